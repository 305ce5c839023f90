//! Tables: what the cells gave, took and needed, beside the known figures; for Markdown and for the
//! page.

use super::super::known::{Known, Value};
use super::super::spec::{Method, Point};
use super::axes::{self, Axis};
use super::table::{Item, Table, plain};
use super::view::{Experiment, Stats, View, number};
use super::{checks, summary, verdicts};

/// The tables of a part.
pub(super) fn tables(view: &View) -> Vec<Table> {
    let mut tables = if view.part.data.is_check() {
        vec![checks::table(view)]
    } else {
        let mut tables = vec![quality(view)];
        tables.extend(summary::table(view));
        tables.extend(verdicts::tables(view));
        tables.extend([time(view), passes(view), memory(view)]);
        tables
    };
    tables.extend(lost(view));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The known figures of a cell, by what they are called.
fn known(view: &View, method: Method, at: Point) -> [(&'static str, Option<&Value>); 2] {
    [
        ("published", Known::find(&view.known.published, method, at.m, at.s)),
        ("authors' code, measured", Known::find(&view.known.reference, method, at.m, at.s)),
    ]
}

/// Methods that something is known of, by source.
fn known_columns(view: &View, of: fn(&Value) -> Option<f64>) -> Vec<(&'static str, usize, Method)> {
    let sources = [("published", &view.known.published), ("authors' code", &view.known.reference)];
    let columns = sources.into_iter().enumerate().flat_map(|(k, (name, values))| {
        let pairs = view.part.pairs();
        let known = move |method: &Method| {
            values
                .iter()
                .any(|v| v.method == *method && of(v).is_some() && pairs.contains(&(v.m, v.s)))
        };
        let methods = view.part.methods.iter().copied().filter(known).collect::<Vec<_>>();
        methods.into_iter().map(move |method| (name, k, method))
    });
    columns.collect()
}

/// The settings in words.
pub(super) fn settings(view: &View) -> String {
    if view.part.data.is_check() { checks::settings(view) } else { view.settings() }
}

/// A row per size: a column per method, then one per known figure.
fn grid(
    view: &View,
    methods: &[Method],
    item: impl Fn(Method, &Stats, Point) -> Item,
    of: fn(&Value) -> Option<f64>,
    digits: usize,
) -> (Vec<String>, Vec<Vec<Item>>) {
    let columns = known_columns(view, of);
    let sizes = Axis::of(&view.part);
    let mut head: Vec<String> = sizes.iter().map(|axis| axis.name().to_owned()).collect();
    head.extend(methods.iter().map(|method| method.title().to_owned()));
    head.extend(columns.iter().map(|(name, _, method)| format!("{}, {name}", short(*method))));
    let rows = view.part.points().into_iter().map(|at| {
        let mut row: Vec<Item> =
            sizes.iter().map(|axis| Item::from(axis.text(&view.part, at))).collect();
        row.extend(methods.iter().map(|&method| item(method, &view.stats(method, at), at)));
        row.extend(columns.iter().map(|&(_, k, method)| {
            let value = known(view, method, at)[k].1;
            let text = value.and_then(of).map_or(String::new(), |value| number(value, digits));
            Item { text, hover: value.map(Value::about).unwrap_or_default() }
        }));
        row
    });
    let own = sizes.len()..sizes.len() + methods.len();
    let rows = rows.filter(|row| row[own.clone()].iter().any(|item| !item.text.is_empty()));
    (head, rows.collect())
}

const fn short(method: Method) -> &'static str {
    match method {
        Method::Paper | Method::PaperLeast | Method::PaperSafe | Method::PaperTrials => "IHT",
        Method::Imp | Method::ImpPublished => "IMP",
        Method::Recipe => "recipe",
        Method::Theory | Method::Normalised => "IHT",
        Method::Assumption | Method::Curvature => "check",
        Method::Zero => "zero",
        Method::Mean => "mean",
    }
}

fn quality(view: &View) -> Table {
    let (_, digits) = view.part.metric.digits();
    let item = |method: Method, stats: &Stats, at: Point| {
        let text = match (stats.mean(), stats.median()) {
            (Some(mean), Some(median)) if stats.values.len() > 1 => {
                format!("{} ({}){}", number(mean, digits), number(median, digits), stats.missing())
            }
            (Some(mean), _) => number(mean, digits) + &stats.missing(),
            _ => stats.absent().to_owned(),
        };
        Item { text, hover: hover(view, method, at) }
    };
    let (head, rows) = grid(view, &view.part.methods, item, |value| Some(value.value), digits);
    Table {
        title: format!("{} on the {}", upper(view.part.metric.title()), view.part.on.title()),
        note: "Means over seeds, medians in brackets where there are several seeds; of seeds that have a result, with how many \
               have none."
            .into(),
        head,
        rows,
    }
}

fn time(view: &View) -> Table {
    let methods: Vec<Method> = view.trained().collect();
    let item = |_: Method, stats: &Stats, _: Point| {
        Item::from(stats.seconds.map_or_else(|| stats.absent().to_owned(), duration))
    };
    let (head, rows) = grid(view, &methods, item, |value| value.seconds, 1);
    Table {
        title: "Seconds".into(),
        note: "Wall time of a training and of scoring its rows, medians over seeds; files are read before. The published \
               times are those of a GPU, those of the authors' code of one core."
            .into(),
        head,
        rows,
    }
}

fn passes(view: &View) -> Table {
    let methods: Vec<Method> = view.trained().collect();
    let item = |_: Method, stats: &Stats, _: Point| {
        Item::from(
            stats.passes.map_or_else(|| stats.absent().to_owned(), |passes| number(passes, 0)),
        )
    };
    let (head, rows) = grid(view, &methods, item, |_| None, 0);
    Table {
        title: "Data passes".into(),
        note: "Passes over all rows, forwards or back, medians over seeds; a fraction of the rows counts as that fraction of a pass.".into(),
        head,
        rows,
    }
}

/// Peaks that were measured, what the formulas say, and whether the sparse training stays below the
/// dense one.
fn memory(view: &View) -> Table {
    let methods: Vec<Method> = view.trained().collect();
    let dense = methods.iter().copied().find(|method| *method == Method::ImpPublished);
    let has = |own: Method| methods.iter().copied().find(|method| *method == own);
    let sparse = has(Method::PaperLeast).or(has(Method::Paper));
    let (mut below, mut below_usual, mut both, mut without) = (0, 0, 0, 0);
    let sizes = Axis::of(&view.part);
    let mut head: Vec<String> = sizes.iter().map(|axis| axis.name().to_owned()).collect();
    head.extend(methods.iter().map(|method| format!("{}, measured", method.title())));
    head.extend(
        methods
            .iter()
            .filter(|method| !method.is_dense())
            .map(|m| format!("{}, formula", m.title())),
    );
    head.extend([
        "IMP, usual dense implementation, formula".to_owned(),
        "IHT below IMP".to_owned(),
    ]);
    let rows: Vec<Vec<Item>> = view
        .part
        .points()
        .into_iter()
        .filter_map(|at| {
            let stats = |method: Method| view.stats(method, at);
            let bytes = |bytes: Option<u64>| Item::from(bytes.map_or(String::new(), kilobytes));
            let mut row: Vec<Item> =
                sizes.iter().map(|axis| Item::from(axis.text(&view.part, at))).collect();
            row.extend(methods.iter().map(|&method| bytes(stats(method).heap)));
            if row[sizes.len()..].iter().all(|item| item.text.is_empty()) {
                return None;
            }
            row.extend(
                methods.iter().filter(|of| !of.is_dense()).map(|&of| bytes(stats(of).budget)),
            );
            let usual = dense.and_then(|dense| stats(dense).dense);
            row.push(bytes(usual));
            let heap = |method: Option<Method>| method.and_then(|method| stats(method).heap);
            row.push(match (heap(sparse), heap(dense)) {
                (Some(sparse), Some(dense)) => {
                    both += 1;
                    below += usize::from(sparse < dense);
                    below_usual += usize::from(usual.is_some_and(|usual| sparse < usual));
                    Item::from(if sparse < dense { "yes" } else { "no" }.to_owned())
                }
                (None, Some(_)) => {
                    without += 1;
                    Item::from("no result".to_owned())
                }
                _ => Item::default(),
            });
            Some(row)
        })
        .collect();
    let verdict = if both > 0 {
        format!(
            " The measured peak of {} is below that of IMP as published in {below} of {both} cells, and below what a usual \
             dense implementation takes in {below_usual} of {both}.{}",
            sparse.map_or("IHT", Method::title),
            if without > 0 {
                format!(" In {without} more it has no result, and so no peak.")
            } else {
                String::new()
            }
        )
    } else {
        String::new()
    };
    Table {
        title: "Peak memory of training, KB".into(),
        note: format!(
            "Measured: the most bytes of the heap from the start of the training to its last step, above what was there \
             before with the data loaded; the most of all seeds. Formula: what the run states before it starts. Our IMP runs \
             tile by tile and so takes less than a usual dense implementation, which holds the activations of a batch.{verdict}"
        ),
        head,
        rows,
    }
}

/// Cells without a result.
fn lost(view: &View) -> Option<Table> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for record in view.records.iter().filter(|record| record.solved.is_none()) {
        let what = record.reason.as_deref().unwrap_or("no reason");
        let what = what.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        let text = format!("{}: {what}", record.status.name());
        match reasons.iter_mut().find(|(reason, _)| *reason == text) {
            Some((_, ids)) => ids.push(record.id.clone()),
            None => reasons.push((text, vec![record.id.clone()])),
        }
    }
    let row = |(reason, ids): &(String, Vec<String>)| {
        let first = ids.first().cloned().unwrap_or_default();
        let more =
            if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { String::new() };
        let cells = Item { text: format!("{first}{more}"), hover: ids.join(" ") };
        vec![Item::from(ids.len().to_string()), cells, Item::from(reason.clone())]
    };
    let head = ["cells", "which", "why"].map(str::to_owned).to_vec();
    let rows: Vec<_> = reasons.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Cells without a result".into(),
        note: String::new(),
        head,
        rows,
    })
}

/// All that is known of a method at a size.
pub(super) fn hover(view: &View, method: Method, at: Point) -> String {
    let stats = view.stats(method, at);
    let (_, digits) = view.part.metric.digits();
    let mut text = format!("{}, {}", method.title(), axes::place(&view.part, at));
    if let (Some(mean), Some(median)) = (stats.mean(), stats.median()) {
        text += &format!(": mean {}, median {}", number(mean, digits), number(median, digits));
        let seeds = stats
            .values
            .iter()
            .map(|(seed, value)| format!("seed {seed}: {}", number(*value, digits)));
        text += &format!("; {}", seeds.collect::<Vec<_>>().join(", "));
    }
    for (seed, status) in &stats.lost {
        text += &format!("; seed {seed}: {}", status.name());
    }
    if let Some(seconds) = stats.seconds.filter(|_| !method.is_constant()) {
        text += &format!("; {} s", duration(seconds));
    }
    if let Some(passes) = stats.passes.filter(|_| !method.is_constant()) {
        text += &format!("; {passes:.0} data passes");
    }
    if let Some(heap) = stats.heap {
        text += &format!("; peak {} KB", kilobytes(heap));
    }
    for (name, value) in known(view, method, at) {
        if let Some(value) = value {
            text += &format!("; {name}: {}", value.text(digits));
        }
    }
    text
}

fn duration(seconds: f64) -> String {
    number(seconds, if seconds < 0.1 { 4 } else { 2 })
}

fn kilobytes(bytes: u64) -> String {
    number(bytes as f64 / 1000.0, if bytes < 100_000 { 1 } else { 0 })
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// The tables of all experiments.
pub(super) fn markdown(experiments: &[Experiment]) -> String {
    let mut text =
        verdicts::headline(experiments).map_or(String::new(), |headline| headline.markdown());
    for experiment in experiments {
        text += &format!("# {}\n\n", plain(&experiment.spec.title));
        for (name, fact) in experiment.facts() {
            text += &format!("- {name}: {}\n", plain(&fact));
        }
        for view in &experiment.views {
            text += &format!("\n## {}\n\n{}.\n", plain(&view.part.title), plain(&settings(view)));
            for table in tables(view) {
                text += &format!("\n### {}\n\n", plain(&table.title));
                if !table.note.is_empty() {
                    text += &format!("{}\n\n", plain(&table.note));
                }
                text += &table.markdown();
            }
        }
        text += "\n";
    }
    text
}
