//! What parts on random matrices and networks, and on matrix sensing, are of, in words.

use super::super::spec::{Choice, Data, Entries, EntryLaw};
use super::dense;
use super::table::listed;
use super::view::View;

/// What the cells of a part are of, in words.
pub(super) fn settings(view: &View) -> Option<String> {
    let part = &view.part;
    let about = match &part.data {
        Data::Matrices { least_entries, .. } => {
            let repeated = match least_entries {
                0 => String::new(),
                least => format!(", all draws repeated until {least} entries were drawn"),
            };
            format!("random n×d matrices, d×d where there is no n{repeated}; {}", entries(view))
        }
        Data::Numbers { .. } => "uniform numbers, and balls in bins".to_owned(),
        Data::Convolutions { .. } => {
            format!("convolutions of n×n maps with d channels and s×s filters; {}", entries(view))
        }
        Data::Networks(data) => {
            let widths = data.widths(0).into_iter();
            let widths =
                widths.map(|width| if width == 0 { "d".into() } else { width.to_string() });
            format!("networks {} of relu; {}", widths.collect::<Vec<_>>().join("-"), entries(view))
        }
        Data::Sensing(_) => {
            let of = part.variants.first().and_then(|own| own.sensing).unwrap_or_default();
            let momentum = of
                .momentum
                .map_or("momentum that begins anew".into(), |own| format!("momentum {own}"));
            format!(
                "d×s targets and models of m columns, {momentum} at step {}, starts of deviation {}",
                of.step, of.start
            )
        }
        Data::Dense(data) => dense::settings(part, data),
        _ => return None,
    };
    Some(about)
}

/// How entries are drawn and pruned, of all variants.
fn entries(view: &View) -> String {
    let one = |own: &Entries| {
        let law = match own.law {
            EntryLaw::Uniform => format!("U[±{}/√n]", own.k),
            EntryLaw::Normal => format!("N(0, {:.3}/n)", own.k * own.k),
        };
        let choice = match (own.alpha, own.choice) {
            (None, _) => "",
            (Some(_), Choice::Repeated) => ", random ones chosen with replacement",
            (Some(_), Choice::Distinct) => ", random ones chosen without replacement",
        };
        law + choice
    };
    let mut all: Vec<String> =
        view.part.variants.iter().map(|own| one(&own.entries.unwrap_or_default())).collect();
    all.dedup();
    if all.is_empty() { one(&Entries::default()) } else { listed(all) }
}
