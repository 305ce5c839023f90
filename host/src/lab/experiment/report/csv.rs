//! Every number of every cell, a row each.

use serde_json::Value;

use super::super::known::Known;
use super::super::record::{Record, one_line};
use super::super::spec::Metric;
use super::view::{Experiment, View};

/// The columns before those of checks. Most are fields of a record or of its result.
const HEAD: &str = "experiment,profile,part,method,hidden,m,s,seed,status,reason,\
train_loss,train_psnr_db,train_accuracy,test_loss,test_psnr_db,test_accuracy,nnz,live,seconds,\
passes,limit,heap_peak_bytes,rss_peak_bytes,data_bytes,state_bytes,workspace_bytes,dense_bytes,\
model_bytes,threads,version,commit,published,published_seconds,reference,reference_seconds,\
n,d,variant";

/// How the file begins.
pub(super) const HEADS: &[&[u8]] = &[b"experiment,profile,part,method,"];

pub(super) fn csv(experiments: &[Experiment]) -> String {
    let solved =
        || experiments.iter().flat_map(Experiment::records).filter_map(|own| own.solved.as_ref());
    let is_shown = |metric: &Metric| {
        metric.is_measured() && solved().any(|own| own.measured.contains_key(metric))
    };
    let checks = Metric::all().filter(is_shown);
    let checks = checks.map(|metric| metric.name().replace('-', "_"));
    let head: Vec<String> = HEAD.split(',').map(str::to_owned).chain(checks).collect();
    let mut text = head.join(",") + "\n";
    for experiment in experiments {
        for view in &experiment.views {
            for record in &view.records {
                let json = serde_json::to_value(record).unwrap_or_default();
                let field = |name: &String| quoted(&field(experiment, view, record, &json, name));
                text += &(head.iter().map(field).collect::<Vec<_>>().join(",") + "\n");
            }
        }
    }
    text
}

fn field(own: &Experiment, view: &View, record: &Record, json: &Value, name: &str) -> String {
    let cell = &record.cell;
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let known = |values| Known::find(values, cell.method, cell.m, cell.s);
    let (published, reference) = (&view.known.published, &view.known.reference);
    match name {
        "experiment" => own.spec.name.clone(),
        "profile" => own.spec.resolved.clone(),
        "hidden" => view.part.hidden.to_string(),
        "published" => number(known(published).map(|known| known.value)),
        "published_seconds" => number(known(published).and_then(|known| known.seconds)),
        "reference" => number(known(reference).map(|known| known.value)),
        "reference_seconds" => number(known(reference).and_then(|known| known.seconds)),
        _ => {
            let solved = &json["solved"];
            let (rows, quality) = name.split_once('_').unwrap_or((name, ""));
            let measured = &solved["measured"][name.replace('_', "-")];
            let places = [&json[name], &solved[name], &solved[rows][quality], measured];
            places.into_iter().find(|value| !value.is_null()).map_or(String::new(), text)
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(" "),
        value => match (value.as_u64(), value.as_f64()) {
            (Some(count), _) => count.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => String::new(),
        },
    }
}

/// A field of one line; in quotes where it holds a quote or a comma.
fn quoted(field: &str) -> String {
    let line = one_line(field);
    if line.contains(['"', ',']) { format!("\"{}\"", line.replace('"', "\"\"")) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_on_one_line_in_their_column() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(
            quoted("what: this\n  expected: 1, \"2\""),
            "\"what: this; expected: 1, \"\"2\"\"\""
        );
    }
}
