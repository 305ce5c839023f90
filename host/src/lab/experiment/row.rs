//! A cell as a row of the table that it is of: its place under the paper's names, what was measured,
//! and what is printed, side by side in its line of `results.jsonl`. No name is one of a cell's own.

use serde_json::{Map, Value, json};

use super::record::Record;
use super::spec::{Choice, Data, Entries, EntryLaw, Method, Metric, Part};

/// The row of a cell with a result; empty for cells that are no row of a printed table.
pub(crate) fn row(part: &Part, record: &Record) -> Map<String, Value> {
    let (Some(solved), true) = (&record.solved, part.data.is_random()) else {
        return Map::new();
    };
    let at = record.cell.point(part);
    let variant = part.variant(at);
    let mut row = Map::new();
    let mut set = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    let entries = variant.entries.unwrap_or_default();
    match (&part.data, record.cell.method) {
        (Data::Matrices { .. }, Method::Norms) => {
            set("n1", at.n.into());
            set("n2", at.d.into());
            set("k", entries.k.into());
        }
        (Data::Sensing(_), method) => {
            let sensed = variant.sensing.unwrap_or_default();
            let is_regularised = method == Method::Greedy;
            set("regularised", is_regularised.into());
            set("lambda", if is_regularised { sensed.lambda.into() } else { json!(0.0) });
            set("beta", sensed.beta.into());
            set("sr", sensed.sr.into());
            set("sigma", sensed.sigma.into());
        }
        (Data::Matrices { .. }, _) => {
            set("law", law(&entries).into());
            set("alpha", entries.alpha.into());
        }
        (_, method) if method.is_pruning() => set("alpha", entries.alpha.into()),
        _ => {}
    }
    for (metric, value) in &solved.measured {
        let name =
            if *metric == Metric::SmoothingBeta { "beta".into() } else { key(metric.name()) };
        set(&name, (*value).into());
    }
    set("seconds", solved.seconds.into());
    if let Some(printed) = part.published_at(at) {
        let values = printed.values.iter().map(|(of, value)| (key(of.name()), (*value).into()));
        set("published", Value::Object(values.collect()));
        set("wrong_in_print", (!printed.wrong.is_empty()).into());
        let wrong: Vec<String> = printed.wrong.iter().map(|of| key(of.name())).collect();
        set("wrong", wrong.into());
    }
    row
}

/// The law of entries as Table 3 calls it.
fn law(of: &Entries) -> &'static str {
    match (of.law, of.alpha) {
        (EntryLaw::Uniform, _) => "uniform",
        // Table 3 zeroes with replacement, anew in every draw, and takes moments of what it draws.
        (EntryLaw::Normal, Some(_)) if of.choice != Choice::Repeated => "zeroed-distinct",
        (EntryLaw::Normal, Some(_)) if of.fixed => "zeroed-once",
        (EntryLaw::Normal, Some(_)) if of.exact_moments => "zeroed-exact-moments",
        (EntryLaw::Normal, Some(_)) => "zeroed",
        (EntryLaw::Normal, None) if of.k > 1.0 => "normal3",
        (EntryLaw::Normal, None) => "normal",
    }
}

fn key(name: &str) -> String {
    name.replace('-', "_")
}
