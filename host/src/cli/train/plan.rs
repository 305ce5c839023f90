//! `--plan`: what training would take.

use serde::Serialize;

use super::super::common::Common;
use super::super::console::{bytes, count, facts};
use super::data::DataFacts;
use crate::Result;
use crate::data::Problem;
use crate::train::{Forecast, Options, forecast};

/// The object of `--json`.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    forecast: &'a Forecast,
    #[serde(flatten)]
    data: &'a DataFacts,
}

/// Says what training these rows would take.
pub(super) fn run(
    problem: &Problem,
    options: &Options,
    data: &DataFacts,
    common: &Common,
) -> Result<()> {
    let forecast = forecast(problem, options)?;
    common.result(&Object { forecast: &forecast, data }, || data.text() + &text(&forecast))
}

fn text(of: &Forecast) -> String {
    let widths = of.hidden.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let widths = if of.hidden.is_empty() { "no hidden".to_owned() } else { widths };
    let nnz = of.requested_nnz;
    let each = of.state_bytes as f64 / 4.0 / nnz.max(1) as f64;
    let support = of.support as f64 / nnz.max(1) as f64;
    let mut rows = vec![
        (
            "support",
            format!("at most {} weights at a time, {support:.2} a nonzero", count(of.support)),
        ),
        (
            "state",
            format!("{}, {each:.1} words a nonzero, from step to step", bytes(of.state_bytes)),
        ),
        ("workspace", format!("{} besides", bytes(of.workspace_bytes))),
        ("data", bytes(of.data_bytes)),
    ];
    if let Some(layout) = &of.layout {
        let (panel, tile) = (count(layout.panel), count(layout.tile));
        rows.push(("layout", format!("panels of {panel} neurons, tiles of {tile} rows")));
    }
    let resident = of.device_bytes.map(|size| format!(", {} of data and gates there", bytes(size)));
    rows.push(("device", format!("{}{}", of.device, resident.unwrap_or_default())));
    if of.first_layer {
        let rest = "all this is of the first one; each layer behind it takes its own";
        rows.push(("layers", format!("trained one by one: {rest}")));
    }
    if of.chosen {
        let several = "cross-validation compares several networks first, this is one of them";
        rows.push(("choice", several.to_owned()));
    }
    let title = format!(
        "Recipe {}, {widths} neurons, {} nonzeros: nothing is trained",
        of.recipe,
        count(nnz)
    );
    facts(&title, &rows)
}
