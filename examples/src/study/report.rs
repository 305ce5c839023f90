//! The tables and pictures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tamis_host::{file, plot};

use super::jobs::{self, Job, Part};
use super::measure::{Fit, RECOVERED, Record, UNSEEN};
use super::{INPUTS, Settings};

/// Ends of the colours for PSNR.
const DECIBELS: (f32, f32) = (-20.0, 160.0);

/// Everything that the tables are made of.
pub(super) struct Report<'a> {
    settings: &'a Settings,
    /// Runs by cell, in the order of their seeds; of several of one run the last counts.
    cells: BTreeMap<Job, Vec<&'a Record>>,
}

/// The results of one recipe in one cell.
struct Cell<'a> {
    fits: Vec<&'a Fit>,
    /// Runs, those included that ended without a result.
    runs: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(settings: &'a Settings, records: &'a [Record]) -> Self {
        let runs: BTreeMap<&Job, &Record> = records.iter().map(|record| (&record.job, record)).collect();
        let mut cells: BTreeMap<Job, Vec<&Record>> = BTreeMap::new();
        for (job, record) in runs {
            cells.entry(job.cell()).or_default().push(record);
        }
        Self { settings, cells }
    }

    /// Writes all files; returns the one with the tables.
    pub(super) fn write(&self) -> Result<PathBuf> {
        for (name, svg) in self.pictures() {
            let path = self.settings.out.join(name);
            save(&path, &svg)?;
        }
        let path = self.settings.out.with_extension("md");
        save(&path, &self.page())?;
        Ok(path)
    }

    fn cell(
        &self,
        part: Part,
        (hidden, nnz, samples): (usize, usize, usize),
        variant: &str,
    ) -> &[&'a Record] {
        let job = Job { part, hidden, nnz, samples, variant: variant.to_owned(), seed: 0 };
        self.cells.get(&job).map_or(&[], Vec::as_slice)
    }

    /// The folder of the pictures, as the page beside it names it.
    fn folder(&self) -> String {
        let name = self.settings.out.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn page(&self) -> String {
        let mut out = String::from("# Recovery of planted networks\n\n");
        self.head(&mut out);
        self.grid(&mut out);
        self.ablation(&mut out);
        self.phase(&mut out);
        self.inputs(&mut out);
        self.noise(&mut out);
        out
    }

    fn head(&self, out: &mut String) {
        let records = || self.cells.values().flatten();
        let distinct = |of: &dyn Fn(&Record) -> String| {
            let mut all: Vec<String> = records().map(|record| of(record)).collect();
            all.sort();
            all.dedup();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let seconds = self.settings.cell_seconds;
        let phase = Part::Phase.limit(seconds);
        let threads = distinct(&|record| record.threads.to_string());
        let limits = distinct(&|record| format!("{}", record.limit));
        let _ = write!(
            out,
            "The weights of random sparse networks are found again from their outputs: y = Σ relu(w_i · x), m neurons, s weights\n\
             N(0, 1) at random places, d = {INPUTS} inputs, n = {} rows where nothing else is said. The `lm` recipe, with the seed of\n\
             the problem, stands beside the `paper` recipe with trials (15 full-batch epochs) on the same rows.\n\n\
             Made by `cargo run --release -p tamis-examples --example 5_recovery_study`: {} runs.\n\
             Commit: {}. Toolchain: {}. Machine: {}. Threads: {threads}. Each recipe may take {seconds} s in a run, in\n\
             the phase diagrams {phase:.3} s (limits of the runs below, s: {limits}).\n\n\
             - **PSNR** is taken on the rows that were fitted: 20 log10 max|y| - 10 log10 MSE. *Exact* runs have an error that single\n\
             \x20 precision cannot tell from 0: a loss of at most 3e-11 of the labels' mean square.\n\
             - Of the limit the recovery recipe leaves a part for turns of published steps, should its search end without an exact fit.\n\
             - After the **limit** a recipe still brings what it has found down to s weights, which takes it a little beyond.\n\
             - **One to one** are runs that found every planted weight and no other. Neurons may come in any order; planted ones\n\
             \x20 without weights do not count, and those that share a direction count as one, as no data can tell them apart.\n\
             - **Recovered** networks have a mean squared error of at most {RECOVERED:e} of the labels' mean square on {UNSEEN} unseen rows.\n\
             - **Seconds** and **passes** are medians. A pass goes through all rows, one through fewer counts in parts; products of\n\
             \x20 conjugate gradients count where the Gram matrix of the support stands for the rows, too.\n\
             - **\\*** marks cells in which the time limit ended at least one run before an exact fit: more time may give more.\n\n",
            jobs::SAMPLES,
            records().count(),
            distinct(&|record| format!("`{}`", record.commit)),
            toolchain(),
            machine(),
        );
    }

    fn grid(&self, out: &mut String) {
        let cells = || jobs::cells(Part::Grid);
        let folder = self.folder();
        let measured: Vec<Job> = cells().into_iter().filter(|cell| self.cells.contains_key(cell)).collect();
        let _ = write!(
            out,
            "## Grid\n\n![PSNR of the recovery recipe, median over seeds]({folder}/grid-psnr.svg)\n\
             ![Part of the runs that are exact]({folder}/grid-exact.svg)\n\
             ![PSNR of the published recipe, median over seeds]({folder}/grid-paper.svg)\n\n"
        );
        if measured.is_empty() {
            return nothing(out);
        }
        out.push_str(
            "| m | s | seeds | exact | one to one | PSNR, median | PSNR, min | unseen, min | weights found | seconds | passes | paper, PSNR | paper, exact | paper, s | paper, passes |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for cell in &measured {
            let runs = &self.cells[cell];
            let (ours, paper) = (Cell::ours(runs), Cell::paper(runs));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                cell.hidden,
                cell.nnz,
                runs.len(),
                ours.count(|fit| fit.exact),
                ours.count(|fit| fit.matched.one_to_one()),
                ours.starred(ours.median(psnr), 1),
                decimal(ours.least(psnr), 1),
                decimal(ours.least(unseen), 1),
                percent(ours.found()),
                decimal(ours.median(|fit| Some(fit.seconds)), 2),
                decimal(ours.median(|fit| Some(fit.passes)), 1),
                paper.starred(paper.median(psnr), 1),
                paper.count(|fit| fit.exact),
                decimal(paper.median(|fit| Some(fit.seconds)), 2),
                decimal(paper.median(|fit| Some(fit.passes)), 1),
            );
        }
        let left = cells().len() - measured.len();
        if left > 0 {
            let _ = writeln!(out, "\n{left} of {} cells are not measured yet.", cells().len());
        }
        out.push('\n');
    }

    fn ablation(&self, out: &mut String) {
        out.push_str(
            "## Ablation\n\n*No moves* is plain updates of the support: no births, splits, kicks, merges and flips, and no turns of published\n\
             steps after them, which *no turns* alone leaves out. The moves are of no use where accurate least squares lead to the\n\
             network at once, as at (50, 200); at (100, 100) and on inputs that are never negative they do not.\n\n",
        );
        let rows = sized(&jobs::ABLATION_AT, &jobs::ABLATIONS);
        self.list(out, Part::Ablation, "recipe", &rows);
    }

    fn inputs(&self, out: &mut String) {
        let _ = write!(
            out,
            "## Inputs\n\nCorrelated: Gaussian, neighbours correlated by 0.7. Student's t has five degrees of freedom. Ternary: -1, 0 and 1. Uniform: 0\n\
             to 1. Pixels: the {INPUTS} most variable ones of the MNIST training images (`--mnist`), 0 to\n\
             1. On inputs that are never negative, neurons that are open on every row add up to one linear function, so a function can be\n\
             recovered exactly although its weights are not one to one.\n\n"
        );
        let rows = sized(&jobs::PAIRS, &jobs::KINDS);
        self.list(out, Part::Inputs, "inputs", &rows);
    }

    /// A table with one line per cell and the PSNR of each seed.
    fn list(&self, out: &mut String, part: Part, what: &str, rows: &[(String, (usize, usize, usize), &str)]) {
        if rows.iter().all(|(_, at, variant)| self.cell(part, *at, variant).is_empty()) {
            return nothing(out);
        }
        let _ = write!(
            out,
            "| {what} | exact | one to one | recovered | PSNR, median | PSNR, min | PSNR by seed | weights found | seconds | passes |\n\
             |---|---|---|---|---|---|---|---|---|---|\n"
        );
        for (name, at, variant) in rows {
            let runs = self.cell(part, *at, variant);
            let ours = Cell::ours(runs);
            let seeds: Vec<String> = ours.fits.iter().map(|fit| marked(psnr(fit), 1, fit.limited)).collect();
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                ours.count(|fit| fit.exact),
                ours.count(|fit| fit.matched.one_to_one()),
                ours.count(Fit::recovered),
                ours.starred(ours.median(psnr), 1),
                decimal(ours.least(psnr), 1),
                if seeds.is_empty() { "–".to_owned() } else { seeds.join(", ") },
                percent(ours.found()),
                decimal(ours.median(|fit| Some(fit.seconds)), 2),
                decimal(ours.median(|fit| Some(fit.passes)), 1),
            );
        }
        out.push('\n');
    }

    fn noise(&self, out: &mut String) {
        let _ = write!(
            out,
            "## Noise in the labels\n\nGaussian noise of σ times the labels' root mean square, on all labels. *Loss* is the mean squared error on the noisy labels of\n\
             {UNSEEN} unseen rows, in parts of the noise on them, which is what the planted network itself scores: 1 is the floor.\n\n"
        );
        let names = jobs::NOISES.map(|(name, ..)| name);
        let rows = sized(&jobs::PAIRS, &names);
        if rows.iter().all(|(_, at, variant)| self.cell(Part::Noise, *at, variant).is_empty()) {
            return nothing(out);
        }
        out.push_str(
            "| σ | loss, median | loss, max | one to one | weights found | extra weights | seconds | passes |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (name, at, variant) in rows {
            let runs = self.cell(Part::Noise, at, variant);
            let ours = Cell::ours(runs);
            let mut parts: Vec<f64> = runs
                .iter()
                .filter_map(|run| Some(run.recovery.as_ref()?.unseen_loss / run.noise_floor?))
                .collect();
            parts.sort_by(f64::total_cmp);
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} | {} | {} |",
                ours.starred(middle(&parts), 4),
                decimal(parts.last().copied(), 4),
                ours.count(|fit| fit.matched.one_to_one()),
                percent(ours.found()),
                decimal(ours.median(|fit| Some(fit.matched.extra as f64)), 0),
                decimal(ours.median(|fit| Some(fit.seconds)), 2),
                decimal(ours.median(|fit| Some(fit.passes)), 1),
            );
        }
        out.push('\n');
    }

    fn phase(&self, out: &mut String) {
        let (m, n) = jobs::PHASE_AT;
        let folder = self.folder();
        let _ = write!(
            out,
            "## Phase diagrams\n\nRuns that recovered the network, of those done, over weights and rows at m = {m}, and over neurons and weights at n = {n}.\n\n\
             ![Part recovered over weights and rows]({folder}/phase-rows.svg)\n![Part recovered over neurons and weights]({folder}/phase-sizes.svg)\n\n"
        );
        for map in [self.phase_rows(), self.phase_sizes()] {
            if map.cells.iter().all(|cell| cell.fits.is_empty()) {
                nothing(out);
                continue;
            }
            let _ = writeln!(out, "| {} \\\\ {} | {} |", map.down.0, map.across.0, map.across.1.join(" | "));
            let _ = writeln!(out, "|{}", "---|".repeat(map.across.1.len() + 1));
            for (label, cells) in map.down.1.iter().zip(map.cells.chunks(map.across.1.len())) {
                let cells: Vec<String> = cells.iter().map(|cell| cell.count(Fit::recovered)).collect();
                let _ = writeln!(out, "| {label} | {} |", cells.join(" | "));
            }
            out.push('\n');
        }
    }

    fn pictures(&self) -> Vec<(&'static str, String)> {
        let (grid, paper) = (self.grid_map(Cell::ours), self.grid_map(Cell::paper));
        let exact = |cell: &Cell<'_>| cell.part(|fit| fit.exact);
        let recovered = |cell: &Cell<'_>| cell.part(Fit::recovered);
        let decibels = |cell: &Cell<'_>| cell.median(psnr);
        let psnr = ("PSNR, dB, median", DECIBELS, 0);
        let (m, n) = jobs::PHASE_AT;
        vec![
            ("grid-psnr.svg", grid.draw("Recovery of planted networks", psnr, &decibels)),
            ("grid-exact.svg", grid.draw("Exact fits", ("part of the runs", (0.0, 1.0), 1), &exact)),
            ("grid-paper.svg", paper.draw("The published recipe, with trials", psnr, &decibels)),
            (
                "phase-rows.svg",
                self.phase_rows().draw(
                    &format!("Recovered at m = {m}"),
                    ("part of the runs", (0.0, 1.0), 1),
                    &recovered,
                ),
            ),
            (
                "phase-sizes.svg",
                self.phase_sizes().draw(
                    &format!("Recovered at n = {n}"),
                    ("part of the runs", (0.0, 1.0), 1),
                    &recovered,
                ),
            ),
        ]
    }

    fn grid_map(&self, of: fn(&[&'a Record]) -> Cell<'a>) -> Map<'a> {
        let at = |m, s| of(self.cell(Part::Grid, (m, s, jobs::SAMPLES), ""));
        Map::new(("m (neurons)", &jobs::SIZES), ("s (weights)", &jobs::SIZES), at)
    }

    fn phase_rows(&self) -> Map<'a> {
        let at = |s, n| Cell::ours(self.cell(Part::Phase, (jobs::PHASE_AT.0, s, n), ""));
        Map::new(("s (weights)", &jobs::PHASE_WEIGHTS), ("n (rows)", &jobs::PHASE_SAMPLES), at)
    }

    fn phase_sizes(&self) -> Map<'a> {
        let at = |m, s| Cell::ours(self.cell(Part::Phase, (m, s, jobs::PHASE_AT.1), ""));
        Map::new(("m (neurons)", &jobs::PHASE_NEURONS), ("s (weights)", &jobs::PHASE_WEIGHTS), at)
    }
}

/// Cells over two sizes.
struct Map<'a> {
    down: (&'static str, Vec<String>),
    across: (&'static str, Vec<String>),
    cells: Vec<Cell<'a>>,
}

impl<'a> Map<'a> {
    fn new(
        down: (&'static str, &[usize]),
        across: (&'static str, &[usize]),
        at: impl Fn(usize, usize) -> Cell<'a>,
    ) -> Self {
        let cells = down.1.iter().flat_map(|&a| across.1.iter().map(move |&b| (a, b))).map(|(a, b)| at(a, b));
        let labels = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect();
        Self { cells: cells.collect(), down: (down.0, labels(down.1)), across: (across.0, labels(across.1)) }
    }

    fn draw(
        &self,
        title: &str,
        (value, range, digits): (&str, (f32, f32), usize),
        of: &dyn Fn(&Cell<'_>) -> Option<f64>,
    ) -> String {
        let values: Vec<Option<f32>> = self.cells.iter().map(|cell| of(cell).map(|v| v as f32)).collect();
        let starred: Vec<bool> = self.cells.iter().map(Cell::limited).collect();
        plot::heat(&plot::Heat {
            title,
            value,
            rows: plot::Scale { name: self.down.0, labels: &self.down.1 },
            columns: plot::Scale { name: self.across.0, labels: &self.across.1 },
            values: &values,
            range,
            digits,
            starred: &starred,
            star: "the time limit ended at least one run",
            hover: &[],
        })
    }
}

impl<'a> Cell<'a> {
    fn ours(records: &[&'a Record]) -> Self {
        Self { fits: records.iter().filter_map(|r| r.recovery.as_ref()).collect(), runs: records.len() }
    }

    fn paper(records: &[&'a Record]) -> Self {
        Self { fits: records.iter().filter_map(|r| r.paper.as_ref()).collect(), runs: records.len() }
    }

    /// Whether a limit ended a run, or a run has no result.
    fn limited(&self) -> bool {
        self.fits.len() < self.runs || self.fits.iter().any(|fit| fit.limited)
    }

    fn sorted(&self, of: impl Fn(&Fit) -> Option<f64>) -> Vec<f64> {
        let mut values: Vec<f64> = self.fits.iter().filter_map(|fit| of(fit)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: impl Fn(&Fit) -> Option<f64>) -> Option<f64> {
        middle(&self.sorted(of))
    }

    fn least(&self, of: impl Fn(&Fit) -> Option<f64>) -> Option<f64> {
        self.sorted(of).first().copied()
    }

    /// The part of the runs for which something holds.
    fn part(&self, of: impl Fn(&Fit) -> bool) -> Option<f64> {
        let count = self.fits.iter().filter(|fit| of(fit)).count();
        (self.runs > 0).then(|| count as f64 / self.runs as f64)
    }

    /// How many runs it holds for, of how many.
    fn count(&self, of: impl Fn(&Fit) -> bool) -> String {
        if self.runs == 0 {
            return "–".to_owned();
        }
        let star = if self.limited() { "\\*" } else { "" };
        format!("{}/{}{star}", self.fits.iter().filter(|fit| of(fit)).count(), self.runs)
    }

    /// The median part of the planted weights that was found.
    fn found(&self) -> Option<f64> {
        self.median(|fit| Some(fit.matched.weights_found as f64 / fit.matched.weights.max(1) as f64))
    }

    fn starred(&self, value: Option<f64>, digits: usize) -> String {
        marked(value, digits, self.limited())
    }
}

/// Cells of the two sizes at which one thing is varied.
fn sized<'n>(
    pairs: &[(usize, usize)],
    variants: &[&'n str],
) -> Vec<(String, (usize, usize, usize), &'n str)> {
    let cell =
        |(m, s): (usize, usize), name: &'n str| (format!("{name} ({m}, {s})"), (m, s, jobs::SAMPLES), name);
    pairs.iter().flat_map(|&pair| variants.iter().map(move |name| cell(pair, name))).collect()
}

fn psnr(fit: &Fit) -> Option<f64> {
    fit.psnr_db
}

fn unseen(fit: &Fit) -> Option<f64> {
    fit.unseen_db
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[half - 1], upper) })
}

fn decimal(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

fn marked(value: Option<f64>, digits: usize, star: bool) -> String {
    format!("{}{}", decimal(value, digits), if star { "\\*" } else { "" })
}

fn percent(part: Option<f64>) -> String {
    part.map_or("–".to_owned(), |part| format!("{:.1} %", 100.0 * part))
}

fn nothing(out: &mut String) {
    out.push_str("Not measured yet.\n\n");
}

fn save(path: &std::path::Path, text: &str) -> Result<()> {
    file::write(path, |out| std::io::Write::write_all(out, text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The compiler that is installed now.
fn toolchain() -> String {
    let out = Command::new("rustc").arg("--version").output().ok();
    let out = out.filter(|out| out.status.success());
    out.map_or("unknown".to_owned(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// The processor, where the system says.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    let name = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{name}, {cores} cores")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Match;

    fn record(part: Part, (hidden, nnz): (usize, usize), seed: u64, db: f64, limited: bool) -> Record {
        let samples = if part == Part::Phase { jobs::PHASE_AT.1 } else { jobs::SAMPLES };
        let variant = match part {
            Part::Ablation => "no kicks",
            Part::Inputs => "uniform",
            Part::Noise => "0.1",
            _ => "",
        };
        let job = Job { part, hidden, nnz, samples, variant: variant.to_owned(), seed };
        let matched = Match { neurons: 2, neurons_found: 2, weights: 4, weights_found: 3, extra: 0 };
        let fit = Fit {
            psnr_db: Some(db),
            unseen_db: Some(db),
            unseen_loss: 3.0,
            unseen_part: 1e-9,
            exact: db > 120.0,
            limited,
            seconds: 1.5,
            passes: 7.0,
            matched,
            moves: 1,
            kicks: 0,
        };
        let failed = Record::failed(job, "abc", 1, 60.0, String::new());
        Record { recovery: Some(fit), noise_floor: Some(2.0), failures: vec![], ..failed }
    }

    #[test]
    fn the_tables_hold_medians_minima_and_marks() {
        let records = [
            record(Part::Grid, (10, 50), 0, 150.0, false),
            record(Part::Grid, (10, 50), 1, 90.0, true),
            record(Part::Grid, (10, 50), 2, 160.0, false),
            // A run done again: the last counts.
            record(Part::Ablation, (50, 200), 0, 1.0, false),
            record(Part::Ablation, (50, 200), 0, 40.0, false),
            record(Part::Noise, (20, 100), 0, 20.0, false),
            record(Part::Phase, (5, 20), 0, 150.0, false),
            record(Part::Inputs, (10, 50), 0, 151.0, false),
        ];
        let settings = Settings::default();
        let page = Report::new(&settings, &records).page();
        let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
        assert_eq!(
            line("| 10 | 50 |"),
            "| 10 | 50 | 3 | 2/3\\* | 3/3\\* | 150.0\\* | 90.0 | 90.0 | 75.0 % | 1.50 | 7.0 | –\\* | 0/3\\* | – | – |"
        );
        assert!(
            line("| no kicks (50, 200) |").contains("| 0/1 | 1/1 | 1/1 | 40.0 | 40.0 | 40.0 |"),
            "{page}"
        );
        assert!(line("| 0.1 (20, 100) |").starts_with("| 0.1 (20, 100) | 1.5000 | 1.5000 |"));
        assert!(line("| uniform (10, 50) |").contains("151.0"));
        assert!(page.contains("| 5 | – | 1/1 | – |") && page.contains("7 runs."), "{page}");
        assert!(page.contains("93 of 94 cells are not measured yet") && page.contains("Commit: `abc`"));
    }

    #[test]
    fn nothing_measured_is_said_and_drawn() {
        let settings = Settings::default();
        let report = Report::new(&settings, &[]);
        assert_eq!(report.page().matches("Not measured yet").count(), 6);
        assert!(report.pictures().iter().all(|(_, svg)| svg.contains("no data")));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!((middle(&[]), middle(&[1.0]), middle(&[1.0, 4.0])), (None, Some(1.0), Some(2.5)));
    }
}
