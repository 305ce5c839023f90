//! The summary table of a part, with the columns that its spec names; and a page of nothing but
//! these.

use super::super::median::median;
use super::super::record::Solved;
use super::super::spec::{Column, Method, Metric, Point, Quantity, Rows, Statistic};
use super::axes::{Axis, grid};
use super::table::{Item, Table, plain};
use super::view::{Experiment, View};

/// A row per size and method; none where the part names no columns.
pub(super) fn table(view: &View) -> Option<Table> {
    let part = &view.part;
    if part.columns.is_empty() {
        return None;
    }
    if let ([column], [method], Some(grid)) = (&part.columns[..], &part.methods[..], grid(part)) {
        return Some(matrix(view, *column, *method, &grid));
    }
    let sizes = Axis::of(part);
    let methods = (part.methods.len() > 1).then_some("method");
    let head = sizes.iter().map(|axis| axis.name().to_owned()).chain(methods.map(str::to_owned));
    let head = head.chain(part.columns.iter().map(|column| column.title())).collect();
    let row = |(at, method): (Point, Method)| {
        let solved: Vec<&Solved> =
            view.records_of(method, at).filter_map(|record| record.solved.as_ref()).collect();
        let missing = view.stats(method, at).missing();
        let mut row: Vec<Item> = sizes.iter().map(|axis| Item::from(axis.text(part, at))).collect();
        row.extend(methods.map(|_| Item::from(method.title().to_owned())));
        row.extend(part.columns.iter().enumerate().map(|(k, column)| {
            let text = shown(view, &solved, *column);
            Item::from(if k == 0 { text + &missing } else { text })
        }));
        (!solved.is_empty()).then_some(row)
    };
    let all = part
        .points()
        .into_iter()
        .flat_map(|at| part.methods.iter().map(move |&method| (at, method)));
    Some(Table {
        title: "Summary".into(),
        note: part.note.clone(),
        head,
        rows: all.filter_map(row).collect(),
    })
}

/// One column of one method over two axes.
fn matrix(
    view: &View,
    column: Column,
    method: Method,
    [down, across]: &[(Axis, Vec<usize>); 2],
) -> Table {
    let points = view.part.points();
    let cell = |a: usize, b: usize| {
        let at = points.iter().find(|&&at| (down.0.at(at), across.0.at(at)) == (a, b));
        at.map_or_else(
            || "–".to_owned(),
            |at| {
                let solved: Vec<&Solved> =
                    view.records_of(method, *at).filter_map(|own| own.solved.as_ref()).collect();
                shown(view, &solved, column) + &view.stats(method, *at).missing()
            },
        )
    };
    let row = |&a: &usize| {
        std::iter::once(a.to_string())
            .chain(across.1.iter().map(|&b| cell(a, b)))
            .map(Item::from)
            .collect()
    };
    let head = format!("{}: {} down, {} across", column.title(), down.0.name(), across.0.name());
    Table {
        title: "Summary".into(),
        note: view.part.note.clone(),
        head: std::iter::once(head).chain(across.1.iter().map(usize::to_string)).collect(),
        rows: down.1.iter().map(row).collect(),
    }
}

/// What a column shows of the seeds.
fn shown(view: &View, solved: &[&Solved], column: Column) -> String {
    if column.quantity == Quantity::Kept("recipe") {
        let mut names: Vec<&str> = solved.iter().map(|solved| solved.recipe.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return names.join(", ");
    }
    let values: Vec<f64> =
        solved.iter().filter_map(|solved| value(view, solved, column.quantity)).collect();
    let count = |least: f64| {
        Some(format!("{} of {}", values.iter().filter(|v| **v >= least).count(), solved.len()))
    };
    let text = |value: f64| number(column.quantity, value);
    let found = match column.statistic {
        _ if values.is_empty() => None,
        Statistic::Count => count(1.0),
        Statistic::Reaches(least) => count(least),
        Statistic::Median => median(values).map(text),
        Statistic::Mean => Some(text(values.iter().sum::<f64>() / values.len() as f64)),
        Statistic::Least => values.into_iter().reduce(f64::min).map(text),
        Statistic::Most => values.into_iter().reduce(f64::max).map(text),
        Statistic::Each => Some(values.into_iter().map(text).collect::<Vec<_>>().join(", ")),
    };
    found.unwrap_or_else(|| "–".to_owned())
}

/// Fractions in percent.
fn number(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Of(Metric::Accuracy | Metric::WeightsFound | Metric::ValidationAccuracy)
        | Quantity::Test(Metric::Accuracy) => format!("{:.2} %", 100.0 * value),
        _ => format!("{value:.*}", quantity.shown().1),
    }
}

fn value(view: &View, solved: &Solved, quantity: Quantity) -> Option<f64> {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    match quantity {
        Quantity::Of(metric) if metric.is_measured() => solved.measured.get(&metric).copied(),
        Quantity::Of(metric) => view.quality(solved, view.part.on, metric),
        Quantity::Test(metric) => view.quality(solved, Rows::Test, metric),
        Quantity::Kept(name) => match name {
            "seconds" => Some(solved.seconds),
            "passes" => Some(solved.passes),
            "nonzeros" => Some(solved.nnz as f64),
            "state" => bytes(solved.state_bytes),
            "workspace" => bytes(solved.workspace_bytes),
            "data" => Some(solved.data_bytes as f64),
            "heap" => bytes(solved.heap_peak_bytes),
            "rss" => bytes(solved.rss_peak_bytes),
            "model" => bytes(solved.model_bytes),
            _ => None,
        },
    }
}

/// A page of the summary tables alone.
pub(super) fn markdown(experiments: &[Experiment]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        let env = &experiment.environment;
        let profile = if experiment.spec.resolved == "paper" {
            String::new()
        } else {
            format!(" --profile {}", experiment.spec.resolved)
        };
        text += &format!(
            "# {}\n\n{}. Made by `tamis run {}{profile}` and `tamis report` at commit {} with {} on {}, {}.\n",
            plain(&experiment.spec.title),
            plain(&experiment.spec.source),
            experiment.spec.name,
            experiment.commits(),
            env.toolchain.split(' ').take(2).collect::<Vec<_>>().join(" "),
            env.cpu.as_deref().unwrap_or("an unknown processor"),
            experiment.threads(),
        );
        for view in &experiment.views {
            let Some(table) = table(view) else { continue };
            if experiment.views.len() > 1 {
                text += &format!("\n## {}\n", plain(&view.part.title));
            }
            let note = if table.note.is_empty() {
                String::new()
            } else {
                format!("{}\n\n", plain(&table.note))
            };
            text += &format!("\n{note}{}", table.markdown());
        }
        text += "\n";
    }
    text.trim_end().to_owned() + "\n"
}
