//! Every number of every cell, a row each.

use super::super::known::Known;
use super::super::record::Record;
use super::super::spec::Metric;
use super::view::{Experiment, View};

/// What stands before the columns of checks.
const HEAD: &str = "experiment,profile,part,method,hidden,m,s,seed,status,reason,train_loss,train_psnr_db,train_accuracy,\
test_loss,test_psnr_db,test_accuracy,nnz,live,seconds,passes,limit,heap_peak_bytes,rss_peak_bytes,data_bytes,state_bytes,\
workspace_bytes,dense_bytes,model_bytes,threads,version,commit,published,published_seconds,reference,reference_seconds";

pub(super) fn csv(experiments: &[Experiment]) -> String {
    let checks = Metric::all().filter(|metric| metric.is_measured()).map(Metric::name);
    let names = ["n", "d", "variant"]
        .into_iter()
        .chain(checks)
        .map(|name| format!(",{}", name.replace('-', "_")));
    let mut text = format!("{HEAD}{}\n", names.collect::<String>());
    for experiment in experiments {
        for view in &experiment.views {
            for record in &view.records {
                let fields = [experiment.spec.name.clone(), experiment.spec.resolved.clone()];
                let fields =
                    fields.into_iter().chain(row(view, record)).map(|field| quoted(&field));
                text += &fields.collect::<Vec<_>>().join(",");
                text.push('\n');
            }
        }
    }
    text
}

fn row(view: &View, record: &Record) -> Vec<String> {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    let (cell, solved) = (&record.cell, record.solved.as_ref());
    let quality = |quality: Option<super::super::record::Quality>| {
        [
            text(quality.map(|quality| quality.loss)),
            text(quality.and_then(|quality| quality.psnr_db)),
            text(quality.and_then(|quality| quality.accuracy)),
        ]
    };
    let mut row = vec![
        cell.part.clone(),
        cell.method.name().into(),
        view.part.hidden.to_string(),
        cell.m.to_string(),
        cell.s.to_string(),
        cell.seed.to_string(),
        record.status.name().into(),
        record.reason.clone().unwrap_or_default(),
    ];
    row.extend(quality(solved.and_then(|solved| solved.train)));
    row.extend(quality(solved.and_then(|solved| solved.test)));
    row.extend([
        text(solved.map(|solved| solved.nnz)),
        text(
            solved.map(|solved| {
                solved.live.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
            }),
        ),
        text(solved.map(|solved| solved.seconds)),
        text(solved.map(|solved| solved.passes)),
        text(solved.and_then(|solved| solved.limit.clone())),
        text(solved.and_then(|solved| solved.heap_peak_bytes)),
        text(solved.and_then(|solved| solved.rss_peak_bytes)),
        text(solved.map(|solved| solved.data_bytes)),
        text(solved.and_then(|solved| solved.state_bytes)),
        text(solved.and_then(|solved| solved.workspace_bytes)),
        text(solved.and_then(|solved| solved.dense_bytes)),
        text(solved.and_then(|solved| solved.model_bytes)),
        record.threads.to_string(),
        record.version.clone(),
        record.commit.clone().unwrap_or_default(),
    ]);
    for values in [&view.known.published, &view.known.reference] {
        let known = Known::find(values, cell.method, cell.m, cell.s);
        row.extend([
            text(known.map(|known| known.value)),
            text(known.and_then(|known| known.seconds)),
        ]);
    }
    row.extend([text(cell.n), text(cell.d), cell.variant.clone().unwrap_or_default()]);
    let checks = Metric::all().filter(|metric| metric.is_measured());
    row.extend(checks.map(|metric| text(solved.and_then(|solved| solved.measured.get(&metric)))));
    row
}

/// A field of one line; in quotes where it holds what parts fields.
fn quoted(field: &str) -> String {
    let line = field.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    if line.contains(['"', ',']) { format!("\"{}\"", line.replace('"', "\"\"")) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_on_one_line_and_in_their_column() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(
            quoted("what: this\n  expected: 1, \"2\""),
            "\"what: this; expected: 1, \"\"2\"\"\""
        );
    }
}
