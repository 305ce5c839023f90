//! The study of the recovery recipe: cells of sizes, seeds, inputs and noise, run one after the other with a checkpoint
//! after each, and the tables and heat maps made of them.

mod compare;
mod inputs;
mod jobs;
mod measure;
mod report;
mod store;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use compare::{Match, compare};
pub use jobs::{Job, Part, plan};
pub use measure::{Fit, Record};
use report::Report;
use store::Store;

/// Inputs of every problem, d.
pub const INPUTS: usize = 100;
/// The tables are written anew after so long, between two runs.
const REWRITE: Duration = Duration::from_secs(60);

/// What to run, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// No run starts after so many hours; none for no end. 0 writes the tables of what is there.
    pub hours: Option<f64>,
    /// Seeds of a cell.
    pub seeds: u64,
    /// Seconds that one recipe may take in one run.
    pub cell_seconds: f64,
    /// Parts to run.
    pub only: Vec<Part>,
    /// Only cells with at most so many neurons and weights.
    pub up_to: usize,
    /// Only cells whose line of progress has this text in it.
    pub matching: String,
    /// Threads of the recipes; 0 for one per core.
    pub threads: usize,
    /// The folder with the MNIST files; none leaves the pixels out.
    pub mnist: Option<PathBuf>,
    /// The folder for the checkpoint and the pictures; the tables go beside it, with the extension `md`.
    pub out: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hours: None,
            seeds: 5,
            cell_seconds: 60.0,
            only: Part::ALL.to_vec(),
            up_to: usize::MAX,
            matching: String::new(),
            threads: 1,
            mnist: None,
            out: PathBuf::from("docs/results/recovery"),
        }
    }
}

impl Settings {
    fn check(&self) -> Result<()> {
        if !(self.cell_seconds > 0.0 && self.cell_seconds <= 1e6) {
            bail!("--cell-seconds must be above 0 and at most 1000000, and is {}", self.cell_seconds);
        }
        if let Some(hours) = self.hours
            && !(0.0..=1e5).contains(&hours)
        {
            bail!("--hours must be 0 to 100000, and is {hours}");
        }
        if !(1..=1000).contains(&self.seeds) {
            bail!("--seeds must be 1 to 1000, and is {}", self.seeds);
        }
        if self.only.is_empty() {
            bail!("--only must name a part");
        }
        Ok(())
    }

    /// Whether a finished run stands for the job: one that a shorter limit ended does not.
    fn settles(&self, record: &Record) -> bool {
        !record.limited() || record.limit >= record.job.part.limit(self.cell_seconds)
    }
}

/// Runs what the checkpoint does not hold yet, cheapest first, and writes the tables and pictures. Returns how many runs
/// were done now and how many are left.
///
/// # Errors
/// A setting is out of bounds, the checkpoint cannot be used, or a problem cannot be made.
pub fn run(settings: &Settings) -> Result<(usize, usize)> {
    settings.check()?;
    let began = Instant::now();
    let mut store = Store::open(&settings.out)?;
    if store.torn > 0 {
        println!("cut off a torn last line of {} bytes; its run is done again", store.torn);
    }
    // The drawing of problems takes no more threads than the recipes.
    rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build_global().or_else(|error| {
        // Where one stands already, as between tests, it serves as well.
        if rayon::current_num_threads() > 0 { Ok(()) } else { Err(error) }
    })?;
    let jobs = plan(settings);
    let done: BTreeMap<&Job, &Record> = store.records.iter().map(|record| (&record.job, record)).collect();
    let settled = |job: &&Job| done.get(job).is_some_and(|record| settings.settles(record));
    let left: Vec<Job> = jobs.iter().filter(|job| !settled(job)).cloned().collect();
    println!("{} of {} runs are in {}", jobs.len() - left.len(), jobs.len(), settings.out.display());

    let commit = commit();
    let bar = bar(jobs.len(), jobs.len() - left.len());
    let (mut bench, mut finished, mut written) = (measure::Bench::default(), 0, Instant::now());
    for job in &left {
        if settings.hours.is_some_and(|hours| began.elapsed().as_secs_f64() >= hours * 3600.0) {
            break;
        }
        bar.set_message(job.to_string());
        let observe = |progress: &tamis::lm::Progress<'_>| {
            bar.set_message(format!("{job}: step {}, best loss {:.1e}", progress.step, progress.best));
        };
        let record = bench.run(job, settings, &commit, observe).with_context(|| format!("{job}"))?;
        tell(&bar, &record)?;
        store.append(record)?;
        finished += 1;
        bar.inc(1);
        if written.elapsed() >= REWRITE {
            Report::new(settings, &store.records).write()?;
            written = Instant::now();
        }
    }
    bar.finish_and_clear();
    let tables = Report::new(settings, &store.records).write()?;
    println!("tables: {}", tables.display());
    Ok((finished, left.len() - finished))
}

/// A bar on a terminal; nothing elsewhere.
fn bar(all: usize, done: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
    bar.set_position(done as u64);
    bar.reset_eta();
    match ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {elapsed}  {wide_msg}") {
        Ok(style) => bar.with_style(style.progress_chars("━╸·")),
        Err(_) => bar,
    }
}

/// One line for a finished run.
fn tell(bar: &ProgressBar, record: &Record) -> Result<()> {
    let fit = |name: &str, fit: &Option<Fit>| match fit {
        Some(fit) => {
            let psnr = fit.psnr_db.map_or("no PSNR".to_owned(), |db| format!("{db:.1} dB"));
            let star = if fit.limited { ", limit" } else { "" };
            format!("  {name} {psnr} {:.2} s{star}", fit.seconds)
        }
        None => String::new(),
    };
    let failures: String = record.failures.iter().map(|why| format!("  {why}")).collect();
    let line = format!(
        "{}{}{}{failures}",
        record.job,
        fit("recovery", &record.recovery),
        fit("paper", &record.paper)
    );
    if bar.is_hidden() {
        writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")?;
    } else {
        bar.println(line);
    }
    Ok(())
}

/// The commit of the working tree, with a plus where the sources are no longer as committed; "unknown" without git.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let out =
            Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let sources = [":/core", ":/host", ":/examples", ":/Cargo.lock"];
    let changed = git(&[&["status", "--porcelain", "--untracked-files=no", "--"][..], &sources].concat());
    if changed.is_some_and(|changed| changed.is_empty()) { head } else { format!("{head}+") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_limit_does_again_what_a_shorter_one_ended_and_nothing_else() {
        let job =
            Job { part: Part::Inputs, hidden: 1, nnz: 1, samples: 1, variant: "gaussian".into(), seed: 0 };
        let mut record = Record::failed(job, "", 1, 10.0, String::new());
        let with = |cell_seconds| Settings { cell_seconds, ..Settings::default() };
        assert!(with(10.0).settles(&record) && with(5.0).settles(&record) && !with(20.0).settles(&record));
        record.job.part = Part::Phase;
        assert!(with(60.0).settles(&record) && !with(61.0).settles(&record));
    }

    #[test]
    fn settings_out_of_bounds_are_refused() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check()
        };
        assert!(with(|_| {}).is_ok());
        assert!(with(|s| s.cell_seconds = 0.0).is_err() && with(|s| s.cell_seconds = f64::NAN).is_err());
        assert!(with(|s| s.hours = Some(-1.0)).is_err() && with(|s| s.seeds = 0).is_err());
        assert!(with(|s| s.only.clear()).is_err());
    }
}
