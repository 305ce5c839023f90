//! The results of a spec and of its parts, and what the seeds of a cell gave together.

use std::collections::{BTreeMap, BTreeSet};

use super::super::figures;
use super::super::known::Known;
use super::super::record::{Record, Solved, Status};
use super::super::spec::{Imp, Method, Metric, Part, Point, Rows, Spec};
use super::super::store::{Folder, Store};
use super::table::listed;
use crate::base::statistics::{mean, median};
use crate::{Error, Result};

pub(super) struct Experiment {
    /// What its files are called.
    pub(super) name: String,
    pub(super) spec: Spec,
    pub(super) folder: Folder,
    pub(super) views: Vec<View>,
}

/// Refuses cells of several states of the code, which nobody should compare.
fn one_code(store: &Store, records: &[Record]) -> Result<()> {
    let mut count = BTreeMap::<&str, usize>::new();
    for record in records {
        *count.entry(record.code.as_deref().unwrap_or("none")).or_default() += 1;
    }
    if count.len() < 2 {
        return Ok(());
    }
    Err(Error::new("the cells are of several states of the code")
        .at(&store.path)
        .expected("cells of one program")
        .got(listed(count.iter().map(|(code, cells)| format!("{cells} of hash {code}"))))
        .help("tamis run with --update removes those of other code than its own, and runs them"))
}

impl Experiment {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let spec = store.spec.clone();
        let records = store.records()?;
        one_code(store, &records)?;
        let has_whole = figures::names().any(|name| name == spec.name);
        let whole = has_whole.then(|| figures::load(&spec.name, Some("paper"))).transpose()?;
        let view = |part: &Part| {
            let records = records.iter().filter(|record| record.cell.part == part.name);
            let known = Known::of(&spec.name, &part.name)?;
            // On the same data.
            let mut parts = whole.iter().flat_map(|whole| &whole.part);
            let whole = parts.find(|own| own.name == part.name && own.data == part.data).cloned();
            Ok(View { part: part.clone(), whole, records: records.cloned().collect(), known })
        };
        let views = spec.part.iter().map(view).collect::<Result<Vec<_>>>()?;
        Ok(Self { name: spec.name.clone(), spec, folder: store.folder.clone(), views })
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.views.iter().flat_map(|view| &view.records)
    }

    /// The commits of the records, each once.
    pub(super) fn commits(&self) -> String {
        let commits: BTreeSet<&String> =
            self.records().filter_map(|record| record.commit.as_ref()).collect();
        if commits.is_empty() { "unknown".into() } else { listed(commits) }
    }

    /// The most threads of a cell, and the GPUs, in words.
    pub(super) fn processors(&self) -> String {
        let mut text = match self.records().map(|record| record.threads).max().unwrap_or(0) {
            1 => "one thread a cell".into(),
            threads => format!("at most {threads} threads a cell"),
        };
        let mut gpus = BTreeMap::<&str, usize>::new();
        let solved = self.records().filter_map(|record| record.solved.as_ref());
        for name in solved.filter_map(|solved| solved.device.as_deref()) {
            *gpus.entry(name).or_default() += 1;
        }
        for (name, cells) in gpus {
            text += &format!(", {cells} cells on {name}");
        }
        text
    }

    /// What was run, where and by what.
    pub(super) fn facts(&self) -> [(&'static str, String); 4] {
        let (env, version) = (&self.folder.environment, &self.folder.version);
        let memory = env.memory_bytes.map(|bytes| bytes as f64 / (1u64 << 30) as f64);
        let memory = memory.map_or(String::new(), |gib| format!(", {gib:.0} GiB"));
        let cpu = env.cpu.as_deref().unwrap_or("processor unknown");
        let (commits, processors) = (self.commits(), self.processors());
        [
            ("published settings", self.spec.source.clone()),
            ("profile", format!("{}, hash {}", self.spec.resolved, self.spec.hash())),
            ("made by", format!("tamis {version}, commit {commits}, {}", env.toolchain)),
            (
                "machine",
                format!("{cpu}, {} cores{memory}, {}, {processors}", env.cores, env.system),
            ),
        ]
    }
}

pub(super) struct View {
    pub(super) part: Part,
    /// The same with the whole grid of the paper; none of a spec that somebody made.
    pub(super) whole: Option<Part>,
    pub(super) records: Vec<Record>,
    pub(super) known: Known,
}

/// What the seeds of a cell gave together.
#[derive(Default)]
pub(super) struct Stats {
    /// Of the seeds that have a result.
    pub(super) values: Vec<(u64, f64)>,
    /// Seeds without one, and what became of them.
    pub(super) lost: Vec<(u64, Status)>,
    /// Whether a limit of the part ended one.
    pub(super) limited: bool,
    pub(super) seconds: Option<f64>,
    pub(super) passes: Option<f64>,
    /// The most of all seeds, in bytes.
    pub(super) heap: Option<u64>,
    pub(super) budget: Option<u64>,
    pub(super) dense: Option<u64>,
}

impl View {
    pub(super) fn settings(&self) -> String {
        let part = &self.part;
        let batch = |rows: usize| match rows {
            0 => "all rows at once".to_owned(),
            rows => format!("batches of {rows}"),
        };
        let several = |count: usize, what: &str| match count {
            1 => format!("one {what}"),
            count => format!("{count} {what}s"),
        };
        let passes = part.passes.map_or(String::new(), |passes| {
            format!("; the default recipe ends after {passes} passes at the latest")
        });
        let mut imp = String::new();
        if part.methods.iter().any(|method| matches!(method, Method::Imp | Method::ImpSum)) {
            let Imp { epochs, batch: rows, prune, .. } = part.imp;
            imp = format!(
                "; IMP trained properly: {epochs} epochs a level, {}, {:.0} % of the weights \
                 pruned a round, rates {}",
                batch(rows),
                100.0 * prune,
                listed(part.imp.rates())
            );
        }
        let published = match part.epochs {
            0 => String::new(),
            epochs => format!("; {epochs} epochs, {}, as published", batch(part.batch)),
        };
        format!(
            "{} inputs, {}, {}{published}{imp}{passes}; {}; {} on the {}",
            part.data.inputs(),
            several(part.data.outputs(), "output"),
            several(part.hidden, "hidden layer"),
            self.seeds(),
            part.metric.title(),
            part.on.title()
        )
    }

    pub(super) fn seeds(&self) -> String {
        let seeds = &self.part.seeds;
        format!("{} {}", if seeds.len() == 1 { "seed" } else { "seeds" }, listed(seeds))
    }

    pub(super) fn records_of(&self, method: Method, at: Point) -> impl Iterator<Item = &Record> {
        let fixed = method.is_constant() && self.part.data.is_fixed();
        let own = move |record: &&Record| {
            let cell = &record.cell;
            cell.method == method && if fixed { cell.m == 0 } else { cell.point(&self.part) == at }
        };
        self.records.iter().filter(own)
    }

    /// The results of the seeds that have one.
    pub(super) fn solved(&self, method: Method, at: Point) -> impl Iterator<Item = &Solved> {
        self.records_of(method, at).filter_map(|record| record.solved.as_ref())
    }

    pub(super) fn first_seed(&self, method: Method, at: Point) -> Option<&Solved> {
        let seed = self.part.seeds.first()?;
        self.records_of(method, at).find(|record| record.cell.seed == *seed)?.solved.as_ref()
    }

    pub(super) fn value(&self, solved: &Solved) -> Option<f64> {
        self.metric(solved, self.part.on, self.part.metric)
    }

    /// A metric; PSNR or accuracy on some rows.
    pub(super) fn metric(&self, solved: &Solved, on: Rows, metric: Metric) -> Option<f64> {
        let quality = if on == Rows::Train { solved.train } else { solved.test };
        match metric {
            Metric::Psnr => quality?.psnr_db,
            Metric::Accuracy => quality?.accuracy,
            metric => solved.measured.get(&metric).copied(),
        }
    }

    pub(super) fn stats(&self, method: Method, at: Point) -> Stats {
        let solved = || self.solved(method, at);
        let most = |of: fn(&Solved) -> Option<u64>| solved().filter_map(of).max();
        let value =
            |record: &Record| Some((record.cell.seed, self.value(record.solved.as_ref()?)?));
        let lost = self.records_of(method, at).filter(|record| record.solved.is_none());
        Stats {
            values: self.records_of(method, at).filter_map(value).collect(),
            lost: lost.map(|record| (record.cell.seed, record.status)).collect(),
            limited: solved().any(|solved| solved.limit.is_some()),
            seconds: median(solved().map(|solved| solved.seconds).collect()),
            passes: median(solved().map(|solved| solved.passes).collect()),
            heap: most(|solved| solved.heap_peak_bytes),
            budget: most(|solved| Some(solved.state_bytes? + solved.workspace_bytes?)),
            dense: most(|solved| solved.dense_bytes),
        }
    }

    pub(super) fn trained(&self) -> Vec<Method> {
        self.part.methods.iter().copied().filter(|method| !method.is_constant()).collect()
    }
}

impl Stats {
    fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    pub(super) fn mean(&self) -> Option<f64> {
        mean(&self.numbers())
    }

    pub(super) fn median(&self) -> Option<f64> {
        median(self.numbers())
    }

    pub(super) fn most(&self) -> Option<f64> {
        self.numbers().into_iter().reduce(f64::max)
    }

    /// Median, least and most where there are several seeds, and what became of the others.
    pub(super) fn spread(&self, digits: usize) -> String {
        let number = |value: f64| number(value, digits);
        let least = self.numbers().into_iter().reduce(f64::min);
        let Some(((median, least), most)) = self.median().zip(least).zip(self.most()) else {
            return self.absent().to_owned();
        };
        let mut text = number(median);
        if self.values.len() > 1 {
            text += &format!(" ({} to {})", number(least), number(most));
        }
        text + &self.missing()
    }

    /// What became of seeds without a result, where others have one.
    pub(super) fn missing(&self) -> String {
        match self.lost.len() {
            0 => String::new(),
            lost => format!(", {lost} of {} {}", lost + self.values.len(), self.absent()),
        }
    }

    /// In words, where there is no value.
    pub(super) fn absent(&self) -> &'static str {
        self.lost.iter().map(|(_, status)| *status).max().map_or("", Status::name)
    }
}

pub(super) fn number(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

/// At most so many of a list: the first, the last and what lies evenly between.
pub(super) fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (count, last) = (most.min(all.len()), all.len().saturating_sub(1));
    let chosen: Vec<usize> =
        (0..count).map(|k| k * last / count.saturating_sub(1).max(1)).collect();
    all.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_without_a_result_are_not_passed_over() {
        let stats = |values: &[f64], lost: &[Status]| Stats {
            values: values.iter().zip(0..).map(|(value, seed)| (seed, *value)).collect(),
            lost: lost.iter().zip(10..).map(|(status, seed)| (seed, *status)).collect(),
            ..Stats::default()
        };
        assert_eq!(stats(&[3.0, 1.0, 2.0], &[]).spread(1), "2.0 (1.0 to 3.0)");
        assert_eq!(
            stats(&[3.0, 1.0], &[Status::Failed]).spread(1),
            "2.0 (1.0 to 3.0), 1 of 3 failed"
        );
        assert_eq!(stats(&[3.0], &[Status::Timeout; 2]).spread(1), "3.0, 2 of 3 timeout");
        assert_eq!(stats(&[], &[Status::Failed]).spread(1), "failed");
    }
}
