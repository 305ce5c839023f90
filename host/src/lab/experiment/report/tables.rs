//! Tables: what the cells gave, took and needed, beside the known figures; for Markdown and for the
//! page.

use std::collections::BTreeMap;

use super::super::known::{Known, Value};
use super::super::record::one_line;
use super::super::spec::{Data, Method, Point};
use super::axes::{self, by_size};
use super::table::{Item, Table, listed, plain};
use super::view::{Experiment, Stats, View, number};
use super::{checks, dense, exact, masked, missing, random, sketch, summary, verdicts};

pub(super) fn tables(view: &View) -> Vec<Table> {
    let mut tables = if let Data::Masked(_) = view.part.data {
        masked::tables(view)
    } else if view.part.data.is_random() {
        let own = summary::table(view).into_iter().chain(random::summary(view));
        own.chain([checks::table(view)]).collect()
    } else if view.part.data.is_check() {
        let own = [sketch::claims(view), checks::table(view)].into_iter();
        own.chain(dense::layers(view)).collect()
    } else {
        let mut tables = vec![quality(view)];
        tables.extend(summary::table(view));
        tables.push(exact::table(view));
        tables.extend(verdicts::tables(view));
        tables.extend([time(view), passes(view), memory(view)]);
        tables
    };
    tables.extend([lost(view), missing::table(view)]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

pub(super) fn settings(view: &View) -> String {
    match &view.part.data {
        Data::Masked(_) => masked::settings(view),
        data if data.is_check() => checks::settings(view),
        _ => view.settings(),
    }
}

/// A row per size: a column per method, then one per known figure that has `known`.
fn grid(
    view: &View,
    texts: [&str; 2],
    methods: &[Method],
    known: fn(&Value) -> Option<f64>,
    digits: usize,
    item: impl Fn(Method, &Stats, Point) -> Item,
) -> Table {
    let part = &view.part;
    let pairs = part.pairs();
    let mut heads: Vec<String> = methods.iter().map(|method| method.title().to_owned()).collect();
    let mut columns: Vec<(&[Value], Method)> = Vec::new();
    for (name, values) in view.known.sources() {
        for &method in &part.methods {
            let is_shown = |v: &&Value| v.method == method && pairs.contains(&(v.m, v.s));
            if values.iter().filter(is_shown).any(|value| known(value).is_some()) {
                heads.push(format!("{}, {name}", method.short()));
                columns.push((values, method));
            }
        }
    }
    by_size(part, texts, heads, |at| {
        let of = |&method: &Method| item(method, &view.stats(method, at), at);
        let mut row: Vec<Item> = methods.iter().map(of).collect();
        // Constants of data that no size changes are of every size, run or not.
        let is_own = |method: &Method| !method.is_constant() || !part.data.is_fixed();
        let is_alone = !methods.iter().any(is_own);
        let mut shown = methods.iter().zip(&row).filter(|(method, _)| is_alone || is_own(method));
        if shown.all(|(_, item)| item.text.is_empty()) {
            return None;
        }
        row.extend(columns.iter().map(|&(values, method)| {
            let value = Known::find(values, method, at.m, at.s);
            let text = value.and_then(known).map(|value| number(value, digits));
            let hover = value.map(Value::about).unwrap_or_default();
            Item { text: text.unwrap_or_default(), hover }
        }));
        Some(row)
    })
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
    let (first, rest) = view.part.metric.title().split_at(1);
    let title = format!("{}{rest} on the {}", first.to_uppercase(), view.part.on.title());
    let note = "Means over seeds, medians in brackets where there are several seeds; of seeds that \
                have a result, with how many have none.";
    grid(view, [&title, note], &view.part.methods, |value| Some(value.value), digits, item)
}

fn time(view: &View) -> Table {
    let item = |_: Method, stats: &Stats, _: Point| {
        Item::from(stats.seconds.map_or_else(|| stats.absent().to_owned(), duration))
    };
    let note = "Wall time of a training and of scoring its rows, medians over seeds; files are \
                read before. The published times are those of a GPU, those of the authors' code of \
                one core.";
    grid(view, ["Seconds", note], &view.trained(), |value| value.seconds, 1, item)
}

fn passes(view: &View) -> Table {
    let item = |_: Method, stats: &Stats, _: Point| {
        let passes = stats.passes.map(|passes| number(passes, 0));
        Item::from(passes.unwrap_or_else(|| stats.absent().to_owned()))
    };
    let note = "Passes over all rows, forwards or back, medians over seeds; a fraction of the rows \
                counts as that fraction of a pass.";
    grid(view, ["Data passes", note], &view.trained(), |_| None, 0, item)
}

/// Cells in which a sparse method and the dense one have a peak, and where that of the sparse one is
/// below.
#[derive(Default)]
struct Peaks {
    both: usize,
    below: usize,
    /// Below that of a usual dense implementation.
    below_usual: usize,
    /// The dense method alone.
    without: usize,
}

impl Peaks {
    /// Adds a cell; whether the sparse peak is below, in words.
    fn add(&mut self, sparse: Option<u64>, dense: Option<u64>, usual: Option<u64>) -> &'static str {
        let (Some(sparse), Some(dense)) = (sparse, dense) else {
            self.without += usize::from(dense.is_some());
            return if dense.is_some() { "no result" } else { "" };
        };
        self.both += 1;
        self.below += usize::from(sparse < dense);
        self.below_usual += usize::from(usual.is_some_and(|usual| sparse < usual));
        if sparse < dense { "yes" } else { "no" }
    }

    /// The counts, in a sentence or two.
    fn told(&self, of: Method) -> Option<String> {
        let Self { both, below, below_usual, without } = self;
        let without = match without {
            0 => String::new(),
            _ => format!(" In {without} more it has no result, and so no peak."),
        };
        (*both > 0).then(|| {
            format!(
                " The measured peak of {} is below that of IMP as published in {below} of {both} \
                 cells, and below what a usual dense implementation takes in {below_usual} of \
                 {both}.{without}",
                of.title()
            )
        })
    }
}

/// Peaks that were measured, those by formula, and whether the sparse is below the dense one.
fn memory(view: &View) -> Table {
    let methods = view.trained();
    let has = |own: Method| methods.contains(&own).then_some(own);
    let dense = has(Method::ImpPublished);
    let least = has(Method::PaperLeast).or(has(Method::Paper));
    let sparse: Vec<Method> = least.into_iter().chain(has(Method::Recipe)).collect();
    let stated: Vec<Method> = methods.iter().copied().filter(|method| !method.is_dense()).collect();
    let mut heads: Vec<String> =
        methods.iter().map(|method| format!("{}, measured", method.title())).collect();
    heads.extend(stated.iter().map(|method| format!("{}, formula", method.title())));
    heads.push("IMP, usual dense implementation, formula".to_owned());
    heads.extend(sparse.iter().map(|method| match method {
        Method::Recipe => "the recipe below IMP".to_owned(),
        _ => "IHT below IMP".to_owned(),
    }));
    let mut peaks: Vec<Peaks> = sparse.iter().map(|_| Peaks::default()).collect();
    let mut table = by_size(&view.part, ["Peak memory of training, KB", ""], heads, |at| {
        let stats = |method: Method| view.stats(method, at);
        let bytes = |bytes: Option<u64>| Item::from(bytes.map(kilobytes).unwrap_or_default());
        let mut row: Vec<Item> = methods.iter().map(|&method| bytes(stats(method).heap)).collect();
        if row.iter().all(|item| item.text.is_empty()) {
            return None;
        }
        row.extend(stated.iter().map(|&method| bytes(stats(method).budget)));
        let usual = dense.and_then(|dense| stats(dense).dense);
        row.push(bytes(usual));
        let dense = dense.and_then(|dense| stats(dense).heap);
        let cells = sparse.iter().zip(&mut peaks);
        row.extend(cells.map(|(&of, peaks)| Item::from(peaks.add(stats(of).heap, dense, usual))));
        Some(row)
    });
    table.note = "Measured: the most bytes of the heap from the start of the training to its last \
                  step, above what was there before with the data loaded; the most of all seeds. \
                  Formula: what the run states before it starts. Our IMP runs tile by tile and so \
                  takes less than a usual dense implementation, which holds the activations of a \
                  batch."
        .to_owned();
    table.note.extend(sparse.iter().zip(&peaks).filter_map(|(of, peaks)| peaks.told(*of)));
    table
}

fn lost(view: &View) -> Table {
    let mut reasons = BTreeMap::<String, Vec<String>>::new();
    for record in view.records.iter().filter(|record| record.solved.is_none()) {
        let what = one_line(record.reason.as_deref().unwrap_or("no reason"));
        let text = format!("{}: {what}", record.status.name());
        reasons.entry(text).or_default().push(record.id.clone());
    }
    let row = |(reason, ids): (String, Vec<String>)| {
        let more = if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { "".into() };
        let cells = Item { text: format!("{}{more}", ids[0]), hover: ids.join(" ") };
        vec![Item::from(ids.len().to_string()), cells, Item::from(reason)]
    };
    let rows = reasons.into_iter().map(row).collect();
    Table::new("Cells without a result", "", ["cells", "which", "why"], rows)
}

/// All that is known of a method at a size.
pub(super) fn hover(view: &View, method: Method, at: Point) -> String {
    let stats = view.stats(method, at);
    let (_, digits) = view.part.metric.digits();
    let number = |value: f64| number(value, digits);
    let is_trained = !method.is_constant();
    let place = axes::place(&view.part, at);
    let mut facts = vec![format!("{}, {place}", method.title())];
    if let (Some(mean), Some(median)) = (stats.mean(), stats.median()) {
        facts[0] += &format!(": mean {}, median {}", number(mean), number(median));
        let seeds = stats.values.iter();
        facts.push(listed(seeds.map(|(seed, value)| format!("seed {seed}: {}", number(*value)))));
    }
    let lost = stats.lost.iter();
    facts.extend(lost.map(|(seed, status)| format!("seed {seed}: {}", status.name())));
    let seconds = stats.seconds.filter(|_| is_trained);
    facts.extend(seconds.map(|seconds| format!("{} s", duration(seconds))));
    let passes = stats.passes.filter(|_| is_trained);
    facts.extend(passes.map(|passes| format!("{passes:.0} data passes")));
    facts.extend(stats.heap.map(|heap| format!("peak {} KB", kilobytes(heap))));
    let names = ["published", "authors' code, measured"];
    for (name, (_, values)) in names.into_iter().zip(view.known.sources()) {
        let value = Known::find(values, method, at.m, at.s);
        facts.extend(value.map(|value| format!("{name}: {}", value.text(digits))));
    }
    facts.join("; ")
}

fn duration(seconds: f64) -> String {
    number(seconds, if seconds < 0.1 { 4 } else { 2 })
}

fn kilobytes(bytes: u64) -> String {
    number(bytes as f64 / 1000.0, if bytes < 100_000 { 1 } else { 0 })
}

pub(super) fn markdown(experiments: &[Experiment]) -> String {
    let mut text = String::new();
    for (sentence, table) in verdicts::headlines(experiments) {
        let rows = table.markdown();
        text += &format!("# {}\n\n{}\n\n{rows}\n", plain(&table.title), plain(&sentence));
    }
    for experiment in experiments {
        text += &format!("# {}\n\n", plain(&experiment.spec.title));
        for (name, fact) in experiment.facts() {
            text += &format!("- {name}: {}\n", plain(&fact));
        }
        for view in &experiment.views {
            text += &format!("\n## {}\n\n{}.\n", plain(&view.part.title), plain(&settings(view)));
            for table in tables(view) {
                text += &format!("\n### {}\n\n{}", plain(&table.title), table.markdown());
            }
        }
        text += "\n";
    }
    text
}
