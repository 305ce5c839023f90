//! The summary table of a part, with the columns that its spec names; and a page of nothing but
//! these.

use std::collections::BTreeSet;

use super::super::figures;
use super::super::record::Solved;
use super::super::spec::{Column, Method, Metric, Point, Quantity, Recorded, Rows, Statistic};
use super::axes::{Grid, Side, by_size};
use super::table::{Item, Table, listed, plain};
use super::view::{Experiment, View};
use super::{checks, random};
use crate::base::statistics::{mean, median};

/// A row per size and method; none where the part names no columns.
pub(super) fn table(view: &View) -> Option<Table> {
    let part = &view.part;
    let cell = |at: Point, of: Method, column: Column| {
        shown(view, &view.solved(of, at).collect::<Vec<_>>(), column)
    };
    let missing = |at: Point, of: Method| view.stats(of, at).missing();
    if let ([column], [of], Some(grid)) = (&part.columns[..], &part.methods[..], Grid::of(part)) {
        let Side { axis: down, values: rows } = &grid.down;
        let Side { axis: across, values: columns } = &grid.across;
        let item = |at: Option<Point>| {
            Item::from(at.map_or("–".into(), |at| cell(at, *of, *column) + &missing(at, *of)))
        };
        let points = rows.iter().zip(grid.points(part));
        let rows = points.map(|(value, row)| {
            std::iter::once(value.to_string().into()).chain(row.into_iter().map(item)).collect()
        });
        let head = format!("{}: {} down, {} across", column.title(), down.name(), across.name());
        let head = std::iter::once(head).chain(columns.iter().map(usize::to_string));
        return Some(Table::new("Summary", &part.note, head, rows.collect()));
    }
    let method = (part.methods.len() > 1).then_some("method");
    let titles = part.columns.iter().map(|column| column.title());
    let heads = method.map(str::to_owned).into_iter().chain(titles);
    let rows = |at: Point| {
        let solved = part.methods.iter().filter(move |&&of| view.solved(of, at).next().is_some());
        solved.map(move |&of| {
            let title = method.map(|_| of.title().into());
            let cells = part.columns.iter().enumerate().map(|(k, &column)| {
                let text = cell(at, of, column);
                Item::from(if k == 0 { text + &missing(at, of) } else { text })
            });
            title.into_iter().chain(cells).collect()
        })
    };
    (!part.columns.is_empty()).then(|| by_size(part, ["Summary", &part.note], heads, rows))
}

/// What a column shows of the seeds.
fn shown(view: &View, solved: &[&Solved], column: Column) -> String {
    if column.quantity == Quantity::RECIPE {
        return listed(solved.iter().map(|solved| &solved.recipe).collect::<BTreeSet<_>>());
    }
    let values = solved.iter().filter_map(|solved| value(view, solved, column.quantity));
    let values: Vec<f64> = values.collect();
    let count = |least: f64| {
        let count = values.iter().filter(|value| **value >= least).count();
        (!values.is_empty()).then(|| format!("{count} of {}", solved.len()))
    };
    let text = |value: f64| number(column.quantity, value);
    let shown = match column.statistic {
        Statistic::Count => count(1.0),
        Statistic::Reaches(least) => count(least),
        Statistic::Median => median(values).map(text),
        Statistic::Mean => mean(&values).map(text),
        Statistic::Least => values.into_iter().reduce(f64::min).map(text),
        Statistic::Most => values.into_iter().reduce(f64::max).map(text),
        Statistic::Each => {
            Some(listed(values.into_iter().map(text))).filter(|text| !text.is_empty())
        }
    };
    shown.unwrap_or_else(|| "–".to_owned())
}

/// Fractions in percent.
fn number(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Of(Metric::Accuracy | Metric::WeightsFound | Metric::ValidationAccuracy)
        | Quantity::Test(Metric::Accuracy) => format!("{:.2} %", 100.0 * value),
        Quantity::Of(metric) if metric.is_measured() => checks::shown(value, metric.digits().1),
        _ => format!("{value:.*}", quantity.shown().1),
    }
}

fn value(view: &View, solved: &Solved, quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::Of(metric) => view.metric(solved, view.part.on, metric),
        Quantity::Test(metric) => view.metric(solved, Rows::Test, metric),
        Quantity::Recorded(at) => match at {
            Recorded::Recipe => None,
            Recorded::Seconds => Some(solved.seconds),
            Recorded::Passes => Some(solved.passes),
            Recorded::Nonzeros => Some(solved.nnz as f64),
            Recorded::DataBytes => Some(solved.data_bytes as f64),
            Recorded::StateBytes => solved.state_bytes.map(|bytes| bytes as f64),
            Recorded::WorkspaceBytes => solved.workspace_bytes.map(|bytes| bytes as f64),
            Recorded::HeapPeakBytes => solved.heap_peak_bytes.map(|bytes| bytes as f64),
            Recorded::RssPeakBytes => solved.rss_peak_bytes.map(|bytes| bytes as f64),
            Recorded::ModelBytes => solved.model_bytes.map(|bytes| bytes as f64),
        },
    }
}

pub(super) fn markdown(experiments: &[Experiment]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        let (spec, env) = (&experiment.spec, &experiment.folder.environment);
        let profile = match spec.resolved.as_str() {
            "paper" => String::new(),
            other => format!(" --profile {other}"),
        };
        let ships = figures::names().any(|name| name == spec.name);
        let name = if ships { spec.name.clone() } else { format!("{}.toml", spec.name) };
        text += &format!(
            "# {}\n\n{}. Made by `tamis run {name}{profile}` and `tamis report` at commit {} with {} \
             on {}, {}.\n",
            plain(&spec.title),
            plain(&spec.source),
            experiment.commits(),
            env.toolchain.split(' ').take(2).collect::<Vec<_>>().join(" "),
            env.cpu.as_deref().unwrap_or("an unknown processor"),
            experiment.processors(),
        );
        if !spec.remarks.is_empty() {
            let remarks = spec.remarks.iter().map(|remark| format!("- {}\n", plain(remark)));
            text += &format!("\n{}", remarks.collect::<String>());
        }
        for view in &experiment.views {
            let tables: Vec<Table> = table(view).into_iter().chain(random::summary(view)).collect();
            if experiment.views.len() > 1 && !tables.is_empty() {
                text += &format!("\n## {}\n", plain(&view.part.title));
            }
            text +=
                &tables.iter().map(|table| format!("\n{}", table.markdown())).collect::<String>();
        }
        text += "\n";
    }
    text.trim_end().to_owned() + "\n"
}
