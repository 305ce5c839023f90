//! The summary table of a part, with the columns that its spec names; and a page of nothing but
//! these.

use super::super::median::median;
use super::super::record::Solved;
use super::super::spec::{Column, Method, Metric, Point, Quantity, Rows, Statistic};
use super::axes::{Axis, Grid};
use super::table::{Item, Table, listed, plain};
use super::view::{Experiment, View};

/// A row per size and method; none where the part names no columns.
pub(super) fn table(view: &View) -> Option<Table> {
    let part = &view.part;
    if part.columns.is_empty() {
        return None;
    }
    if let ([column], [method], Some(grid)) = (&part.columns[..], &part.methods[..], Grid::of(part))
    {
        return Some(matrix(view, *column, *method, &grid));
    }
    let method = (part.methods.len() > 1).then_some("method");
    let mut head = Axis::heads(part);
    head.extend(method.map(str::to_owned));
    head.extend(part.columns.iter().map(|column| column.title()));
    let row = |(at, of): (Point, Method)| {
        let solved: Vec<&Solved> = view.solved(of, at).collect();
        let missing = view.stats(of, at).missing();
        let mut row = Axis::items(part, at);
        row.extend(method.map(|_| of.title().into()));
        row.extend(part.columns.iter().enumerate().map(|(k, column)| {
            let text = shown(view, &solved, *column);
            Item::from(if k == 0 { text + &missing } else { text })
        }));
        (!solved.is_empty()).then_some(row)
    };
    let points = part.points().into_iter();
    let all = points.flat_map(|at| part.methods.iter().map(move |&method| (at, method)));
    Some(Table::new("Summary", &part.note, head, all.filter_map(row).collect()))
}

/// One column of one method over two axes.
fn matrix(view: &View, column: Column, method: Method, grid: &Grid) -> Table {
    let ((down, rows), (across, columns)) = (&grid.down, &grid.across);
    let cell = |at: Option<Point>| {
        let text = at.map(|at| {
            let solved: Vec<&Solved> = view.solved(method, at).collect();
            shown(view, &solved, column) + &view.stats(method, at).missing()
        });
        Item::from(text.unwrap_or_else(|| "–".to_owned()))
    };
    let points = rows.iter().zip(grid.points(&view.part));
    let rows = points.map(|(value, row)| {
        std::iter::once(value.to_string().into()).chain(row.into_iter().map(cell)).collect()
    });
    let head = format!("{}: {} down, {} across", column.title(), down.name(), across.name());
    let head = std::iter::once(head).chain(columns.iter().map(usize::to_string));
    Table::new("Summary", &view.part.note, head, rows.collect())
}

/// What a column shows of the seeds.
fn shown(view: &View, solved: &[&Solved], column: Column) -> String {
    if column.quantity == Quantity::RECIPE {
        let mut names: Vec<&str> = solved.iter().map(|solved| solved.recipe.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return names.join(", ");
    }
    let values: Vec<f64> =
        solved.iter().filter_map(|solved| value(view, solved, column.quantity)).collect();
    let count = |least: f64| {
        format!("{} of {}", values.iter().filter(|v| **v >= least).count(), solved.len())
    };
    let text = |value: f64| number(column.quantity, value);
    let found = match column.statistic {
        _ if values.is_empty() => None,
        Statistic::Count => Some(count(1.0)),
        Statistic::Reaches(least) => Some(count(least)),
        Statistic::Median => median(values).map(text),
        Statistic::Mean => Some(text(values.iter().sum::<f64>() / values.len() as f64)),
        Statistic::Least => values.into_iter().reduce(f64::min).map(text),
        Statistic::Most => values.into_iter().reduce(f64::max).map(text),
        Statistic::Each => Some(listed(values.into_iter().map(text))),
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
    match quantity {
        Quantity::Of(metric) => view.metric(solved, view.part.on, metric),
        Quantity::Test(metric) => view.metric(solved, Rows::Test, metric),
        Quantity::Recorded(name) => Some(match name {
            "seconds" => solved.seconds,
            "passes" => solved.passes,
            "nonzeros" => solved.nnz as f64,
            "state" => solved.state_bytes? as f64,
            "workspace" => solved.workspace_bytes? as f64,
            "data" => solved.data_bytes as f64,
            "heap" => solved.heap_peak_bytes? as f64,
            "rss" => solved.rss_peak_bytes? as f64,
            "model" => solved.model_bytes? as f64,
            _ => return None,
        }),
    }
}

/// A page of the summary tables alone.
pub(super) fn markdown(experiments: &[Experiment]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        let (spec, env) = (&experiment.spec, &experiment.environment);
        let profile = match spec.resolved.as_str() {
            "paper" => String::new(),
            other => format!(" --profile {other}"),
        };
        text += &format!(
            "# {}\n\n{}. Made by `tamis run {}{profile}` and `tamis report` at commit {} with {} \
             on {}, {}.\n",
            plain(&spec.title),
            plain(&spec.source),
            spec.name,
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
            text.push('\n');
            if !table.note.is_empty() {
                text += &format!("{}\n\n", plain(&table.note));
            }
            text += &table.markdown();
        }
        text += "\n";
    }
    text.trim_end().to_owned() + "\n"
}
