//! What experiments gave: heat maps, curves and tables, as files and on one page.
//!
//! | file | holds |
//! |---|---|
//! | `index.html` | all of it, without any other file |
//! | `report.md` | the tables |
//! | `results.csv` | a row per cell, with every number that was kept |
//! | `NAME-PART-METHOD.svg` | heat maps: m down, s across, means over seeds, in the published range of colours |
//! | `NAME-PART-curve-M-S.svg` | the loss in the course of each training |
//!
//! Parts that check the theory have lines over their axes in place of these, each beside what theory says, and losses with
//! their line of least squares: `NAME-PART-METHOD-WHAT.svg`.

mod checks;
mod csv;
mod page;
mod pictures;
mod tables;
mod verdicts;

use std::path::Path;

use super::known::Known;
use super::median;
use super::record::{Record, Solved, Status};
use super::spec::{Method, Metric, Part, Rows, Spec};
use super::store::Store;
use crate::{Result, file};

/// A report in memory.
#[derive(Debug)]
pub struct Report {
    /// Cells of all results.
    pub cells: usize,
    /// Names and contents.
    files: Vec<(String, String)>,
}

/// Makes a report of results.
///
/// # Errors
/// A record cannot be read.
pub fn make(stores: &[Store]) -> Result<Report> {
    let mut experiments = stores.iter().map(Experiment::read).collect::<Result<Vec<_>>>()?;
    name(&mut experiments);
    let mut files = vec![
        ("index.html".to_owned(), page::page(&experiments)),
        ("report.md".to_owned(), tables::markdown(&experiments)),
        ("results.csv".to_owned(), csv::csv(&experiments)),
    ];
    for experiment in &experiments {
        for view in &experiment.views {
            files.extend(
                pictures::all(view)
                    .into_iter()
                    .map(|(name, svg)| (format!("{}-{}-{name}.svg", experiment.name, view.part.name), svg)),
            );
        }
    }
    let cells =
        experiments.iter().flat_map(|experiment| &experiment.views).map(|view| view.records.len()).sum();
    Ok(Report { cells, files })
}

impl Report {
    /// Writes all files into a folder, or none; their paths.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn write(&self, path: &Path) -> Result<Vec<String>> {
        file::write_folder(path, |folder| {
            self.files.iter().try_for_each(|(name, text)| {
                folder.write(name, |w| std::io::Write::write_all(w, text.as_bytes()))
            })
        })?;
        Ok(self.files.iter().map(|(name, _)| path.join(name).display().to_string()).collect())
    }
}

/// Names that are different even where two results are of one spec.
fn name(experiments: &mut [Experiment]) {
    for at in 0..experiments.len() {
        let (before, rest) = experiments.split_at_mut(at);
        let own = &mut rest[0];
        let taken = |name: &str| before.iter().any(|other| other.name == name);
        if taken(&own.name) {
            let base = format!("{}-{}", own.name, own.spec.resolved);
            let mut name = base.clone();
            let mut number = 2;
            while taken(&name) {
                name = format!("{base}-{number}");
                number += 1;
            }
            own.name = name;
        }
    }
}

/// The results of a spec.
struct Experiment {
    /// What its files are called.
    name: String,
    spec: Spec,
    version: String,
    environment: super::environment::Environment,
    views: Vec<View>,
}

impl Experiment {
    fn read(store: &Store) -> Result<Self> {
        let spec = store.spec().clone();
        let records = store.records()?;
        let view = |part: &Part| {
            let records = records.iter().filter(|record| record.cell.part == part.name).cloned().collect();
            Ok(View { part: part.clone(), records, known: Known::of(&spec.name, &part.name)? })
        };
        let views = spec.part.iter().map(view).collect::<Result<Vec<_>>>()?;
        let (version, environment) = (store.version().to_owned(), store.environment().clone());
        Ok(Self { name: spec.name.clone(), spec, version, environment, views })
    }

    /// The commits of the records, each once.
    fn commits(&self) -> String {
        let records = self.views.iter().flat_map(|view| &view.records);
        let mut commits: Vec<&str> = records.filter_map(|record| record.commit.as_deref()).collect();
        commits.sort_unstable();
        commits.dedup();
        if commits.is_empty() { "unknown".into() } else { commits.join(", ") }
    }

    /// What was run, where and by what.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let env = &self.environment;
        let memory = env
            .memory_bytes
            .map_or(String::new(), |bytes| format!(", {:.0} GiB", bytes as f64 / (1u64 << 30) as f64));
        let cpu = env.cpu.as_deref().unwrap_or("processor unknown");
        let threads = self.views.iter().flat_map(|view| &view.records).map(|record| record.threads).max();
        let threads = threads.map_or(String::new(), |threads| format!(", at most {threads} threads a cell"));
        vec![
            ("published settings", self.spec.source.clone()),
            ("profile", format!("{}, hash {}", self.spec.resolved, self.spec.hash())),
            ("made by", format!("tamis {}, commit {}, {}", self.version, self.commits(), env.toolchain)),
            ("machine", format!("{cpu}, {} cores{memory}, {}{threads}", env.cores, env.system)),
        ]
    }
}

/// The results of a part.
struct View {
    part: Part,
    records: Vec<Record>,
    known: Known,
}

/// What the seeds of a cell gave together.
struct Stats {
    /// Of the seeds that have a result.
    values: Vec<(u64, f64)>,
    /// Seeds without one, and what became of them.
    lost: Vec<(u64, Status)>,
    /// Whether a limit of the part ended one.
    limited: bool,
    /// Median over seeds.
    seconds: Option<f64>,
    /// Median over seeds.
    passes: Option<f64>,
    /// The most of all seeds.
    heap: Option<u64>,
    budget: Option<u64>,
    dense: Option<u64>,
}

impl View {
    /// The settings in words.
    fn settings(&self) -> String {
        let part = &self.part;
        if part.data.is_check() {
            return checks::settings(self);
        }
        let batch =
            if part.batch == 0 { "all rows at once".into() } else { format!("batches of {}", part.batch) };
        let imp_batch = if part.imp.batch == 0 {
            "all rows at once".into()
        } else {
            format!("batches of {}", part.imp.batch)
        };
        let outputs = match part.data.outputs() {
            1 => "one output".to_owned(),
            outputs => format!("{outputs} outputs"),
        };
        let layers = if part.hidden == 1 {
            "one hidden layer".into()
        } else {
            format!("{} hidden layers", part.hidden)
        };
        let passes = part.passes.map_or(String::new(), |passes| {
            format!("; the usual recipe ends after {passes} passes at the latest")
        });
        let imp = format!(
            "; IMP trained properly: {} epochs a level, {imp_batch}, {:.0} % of the weights pruned a round",
            part.imp.epochs,
            100.0 * part.imp.prune
        );
        let imp = if part.methods.contains(&Method::Imp) { imp } else { String::new() };
        format!(
            "{} inputs, {outputs}, {layers}; {} epochs, {batch}, as published{imp}{passes}; {} {}; {} on the {}",
            part.data.inputs(),
            part.epochs,
            if part.seeds.len() == 1 { "seed" } else { "seeds" },
            part.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            part.metric.title(),
            part.on.title()
        )
    }

    fn records_of(&self, method: Method, m: usize, s: usize) -> impl Iterator<Item = &Record> {
        let fixed = method.is_constant() && self.part.data.is_fixed();
        let size = if fixed { (0, 0) } else { (m, s) };
        self.records
            .iter()
            .filter(move |record| record.cell.method == method && (record.cell.m, record.cell.s) == size)
    }

    fn value(&self, solved: &Solved) -> Option<f64> {
        if self.part.metric.is_measured() {
            return solved.measured.get(&self.part.metric).copied();
        }
        let quality = match self.part.on {
            Rows::Train => solved.train,
            Rows::Test => solved.test,
        }?;
        match self.part.metric {
            Metric::Psnr => quality.psnr_db,
            _ => quality.accuracy,
        }
    }

    fn stats(&self, method: Method, m: usize, s: usize) -> Stats {
        let records: Vec<&Record> = self.records_of(method, m, s).collect();
        let solved = || records.iter().filter_map(|record| Some((record, record.solved.as_ref()?)));
        let most = |of: fn(&Solved) -> Option<u64>| solved().filter_map(|(_, solved)| of(solved)).max();
        let lost = records.iter().filter(|record| record.solved.is_none());
        Stats {
            values: solved()
                .filter_map(|(record, solved)| Some((record.cell.seed, self.value(solved)?)))
                .collect(),
            lost: lost.map(|record| (record.cell.seed, record.status)).collect(),
            limited: solved().any(|(_, solved)| solved.limit.is_some()),
            seconds: median(solved().map(|(_, solved)| solved.seconds).collect()),
            passes: median(solved().map(|(_, solved)| solved.passes).collect()),
            heap: most(|solved| solved.heap_peak_bytes),
            budget: most(|solved| Some(solved.state_bytes? + solved.workspace_bytes?)),
            dense: most(|solved| solved.dense_bytes),
        }
    }

    /// Methods that train.
    fn trained(&self) -> impl Iterator<Item = Method> {
        self.part.methods.iter().copied().filter(|method| !method.is_constant())
    }
}

impl Stats {
    fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().map(|(_, value)| value).sum::<f64>() / n as f64)
    }

    fn median(&self) -> Option<f64> {
        median(self.values.iter().map(|(_, value)| *value).collect())
    }

    fn most(&self) -> Option<f64> {
        self.values.iter().map(|(_, value)| *value).reduce(f64::max)
    }

    /// The median, and from the least to the most where there are several seeds; and what became of the others.
    fn spread(&self, digits: usize) -> String {
        let number = |value: f64| tables::number(value, digits);
        let least = self.values.iter().map(|(_, value)| *value).reduce(f64::min);
        let text = match (self.median(), least, self.most()) {
            (Some(median), Some(least), Some(most)) if self.values.len() > 1 => {
                format!("{} ({} to {})", number(median), number(least), number(most))
            }
            (Some(median), ..) => number(median),
            _ => return self.absent().to_owned(),
        };
        text + &self.missing()
    }

    /// What became of seeds without a result, where others have one.
    fn missing(&self) -> String {
        match self.lost.len() {
            0 => String::new(),
            lost => format!(", {lost} of {} {}", lost + self.values.len(), self.absent()),
        }
    }

    /// In words, where there is no value.
    fn absent(&self) -> &'static str {
        self.lost.iter().map(|(_, status)| *status).max().map_or("", Status::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_without_a_result_are_not_passed_over() {
        let stats = |values: &[f64], lost: &[Status]| Stats {
            values: values.iter().zip(0..).map(|(value, seed)| (seed, *value)).collect(),
            lost: lost.iter().zip(10..).map(|(status, seed)| (seed, *status)).collect(),
            limited: false,
            seconds: None,
            passes: None,
            heap: None,
            budget: None,
            dense: None,
        };
        assert_eq!(stats(&[3.0, 1.0, 2.0], &[]).spread(1), "2.0 (1.0 to 3.0)");
        assert_eq!(stats(&[3.0, 1.0], &[Status::Failed]).spread(1), "2.0 (1.0 to 3.0), 1 of 3 failed");
        assert_eq!(stats(&[3.0], &[Status::Timeout; 2]).spread(1), "3.0, 2 of 3 timeout");
        assert_eq!(stats(&[], &[Status::Failed]).spread(1), "failed");
    }
}
