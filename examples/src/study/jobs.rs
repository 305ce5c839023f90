//! What the study measures: its parts, their cells, and the order in which they are run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{INPUTS, Settings};

/// Neurons and weights of the grid, as in the publication.
pub(super) const SIZES: [usize; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/// Rows of all parts but the phase diagrams.
pub(super) const SAMPLES: usize = 50_000;
/// Weights and rows of the first phase diagram, at 10 neurons.
pub(super) const PHASE_WEIGHTS: [usize; 6] = [10, 20, 50, 100, 200, 500];
/// Rows of the first phase diagram.
pub(super) const PHASE_SAMPLES: [usize; 8] = [50, 100, 200, 500, 1000, 2000, 5000, 10_000];
/// Neurons of the second phase diagram.
pub(super) const PHASE_NEURONS: [usize; 6] = [1, 2, 5, 10, 20, 50];
/// Neurons of the first phase diagram, and rows of the second.
pub(super) const PHASE_AT: (usize, usize) = (10, 2000);
/// Sizes at which inputs and noise are studied.
pub(super) const PAIRS: [(usize, usize); 2] = [(10, 50), (20, 100)];
/// Sizes of the ablation: one that is easy by now, and one with a weight a neuron, where the supports are hard to find.
pub(super) const ABLATION_AT: [(usize, usize); 2] = [(50, 200), (100, 100)];
/// What the ablation leaves out.
pub(super) const ABLATIONS: [&str; 7] =
    ["whole", "no births and splits", "no moves", "no kicks", "5 products", "search at 1.0 s", "no turns"];
/// Distributions of the inputs.
pub(super) const KINDS: [&str; 6] = ["gaussian", "correlated", "student-t", "ternary", "uniform", "pixels"];
/// Noise in parts of the labels' root mean square, and whether output signs are free.
pub(super) const NOISES: [(&str, f64, bool); 4] =
    [("0.01", 0.01, false), ("0.1", 0.1, false), ("1", 1.0, false), ("0.1, free signs", 0.1, true)];

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// All sizes, against the published recipe.
    Grid,
    /// The recipe without its parts.
    Ablation,
    /// Where exact recovery begins, over weights and rows, and over neurons and weights.
    Phase,
    /// Other distributions of the inputs.
    Inputs,
    /// Noise in the labels.
    Noise,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 5] = [Self::Grid, Self::Ablation, Self::Phase, Self::Inputs, Self::Noise];

    /// Seeds of a cell where `seeds` were asked for.
    #[must_use]
    pub fn seeds(self, seeds: u64) -> u64 {
        match self {
            Self::Ablation => seeds.min(3),
            Self::Phase => 2 * seeds,
            _ => seeds,
        }
    }

    /// Seconds that one run of a cell may take where `seconds` were asked for. Most of the phase diagrams' runs cannot
    /// succeed, so they get a sixth.
    #[must_use]
    pub fn limit(self, seconds: f64) -> f64 {
        if self == Self::Phase { seconds / 6.0 } else { seconds }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grid => "grid",
            Self::Ablation => "ablation",
            Self::Phase => "phase",
            Self::Inputs => "inputs",
            Self::Noise => "noise",
        })
    }
}

/// One run: a cell with a seed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Job {
    /// The part that it belongs to.
    pub part: Part,
    /// Neurons, m.
    pub hidden: usize,
    /// Weights, s.
    pub nnz: usize,
    /// Rows, n.
    pub samples: usize,
    /// What is left out, the inputs or the noise; empty where there is one way only.
    pub variant: String,
    /// Seed of the problem and of the search.
    pub seed: u64,
}

impl Job {
    /// The same cell, whatever the seed.
    #[must_use]
    pub fn cell(&self) -> Self {
        Self { seed: 0, ..self.clone() }
    }

    /// Roughly what the run takes, in seconds on one core; only the order of the runs depends on it.
    #[must_use]
    pub fn cost(&self, limit: f64) -> f64 {
        let (m, s, n) = (self.hidden as f64, self.nnz as f64, self.samples as f64);
        let data = 0.5 + n / 50_000.0;
        // The search looks at 20 rows a weight, as often as there are neurons to find.
        let rows = (20.0 * s).clamp(1000.0, 10_000.0).min(n);
        let search = rows / 1000.0 * m * (s / m).max(1.0).sqrt() / 30.0;
        let hopeless = match self.part {
            Part::Noise => true,
            Part::Phase => n < 20.0 * s,
            _ => matches!(self.variant.as_str(), "uniform" | "pixels"),
        };
        data + if hopeless { limit } else { search.min(limit) }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, hidden, nnz, samples, variant, seed } = self;
        write!(f, "{part} m={hidden} s={nnz} n={samples}")?;
        if !variant.is_empty() {
            write!(f, " {variant}")?;
        }
        write!(f, " seed {seed}")
    }
}

/// All runs of the study, in the order in which a limited time fills its tables evenly: cheap cells first, and a further
/// seed of a cheap cell later than the first of one that costs a few times as much.
#[must_use]
pub fn plan(settings: &Settings) -> Vec<Job> {
    let mut jobs = Vec::new();
    for part in Part::ALL.into_iter().filter(|part| settings.only.contains(part)) {
        for cell in cells(part) {
            let within = cell.hidden.max(cell.nnz) <= settings.up_to;
            let pixels = cell.part != Part::Inputs || cell.variant != "pixels" || settings.mnist.is_some();
            let wanted = cell.to_string().contains(&settings.matching);
            if within && pixels && wanted {
                jobs.extend((0..part.seeds(settings.seeds)).map(|seed| Job { seed, ..cell.clone() }));
            }
        }
    }
    let rank = |job: &Job| {
        let turns = (job.seed as f64 + 1.0) / if job.part == Part::Phase { 2.0 } else { 1.0 };
        job.cost(job.part.limit(settings.cell_seconds)) * turns.max(1.0).powi(2)
    };
    jobs.sort_by(|a, b| rank(a).total_cmp(&rank(b)).then_with(|| a.cmp(b)));
    jobs
}

/// The cells of a part, each once.
#[must_use]
pub(super) fn cells(part: Part) -> Vec<Job> {
    let cell = |hidden, nnz, samples, variant: &str| Job {
        part,
        hidden,
        nnz,
        samples,
        variant: variant.to_owned(),
        seed: 0,
    };
    let mut cells: Vec<Job> = match part {
        Part::Grid => pairs(&SIZES, &SIZES).map(|(m, s)| cell(m, s, SAMPLES, "")).collect(),
        Part::Ablation => {
            let at = |(m, s)| ABLATIONS.iter().map(move |name| cell(m, s, SAMPLES, name));
            ABLATION_AT.iter().flat_map(|&pair| at(pair)).collect()
        }
        Part::Phase => {
            let rows = pairs(&PHASE_WEIGHTS, &PHASE_SAMPLES).map(|(s, n)| cell(PHASE_AT.0, s, n, ""));
            let sizes = pairs(&PHASE_NEURONS, &PHASE_WEIGHTS).map(|(m, s)| cell(m, s, PHASE_AT.1, ""));
            rows.chain(sizes).collect()
        }
        Part::Inputs => {
            PAIRS.iter().flat_map(|&(m, s)| KINDS.iter().map(move |kind| cell(m, s, SAMPLES, kind))).collect()
        }
        Part::Noise => PAIRS
            .iter()
            .flat_map(|&(m, s)| NOISES.iter().map(move |(name, ..)| cell(m, s, SAMPLES, name)))
            .collect(),
    };
    cells.retain(|cell| cell.nnz <= cell.hidden * INPUTS);
    cells.sort();
    cells.dedup();
    cells
}

fn pairs<'a>(a: &'a [usize], b: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    a.iter().flat_map(move |&a| b.iter().map(move |&b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(only: &[Part]) -> Settings {
        Settings { only: only.to_vec(), mnist: Some("x".into()), ..Settings::default() }
    }

    #[test]
    fn every_cell_is_planned_once_for_every_seed() {
        let plan = plan(&settings(&Part::ALL));
        let count = |part| plan.iter().filter(|job| job.part == part).count();
        // 6 of the 100 cells of the grid have more weights than m·d.
        assert_eq!(Part::ALL.map(count), [94 * 5, 14 * 3, 10 * cells(Part::Phase).len(), 12 * 5, 8 * 5]);
        let mut sorted = plan.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), plan.len());
    }

    #[test]
    fn cheap_cells_come_first_and_every_cell_before_many_seeds_of_dear_ones() {
        let plan = plan(&settings(&[Part::Grid]));
        assert_eq!((plan[0].hidden, plan[0].nnz, plan[0].seed), (1, 1, 0));
        let at =
            |m, s, seed| plan.iter().position(|job| (job.hidden, job.nnz, job.seed) == (m, s, seed)).unwrap();
        assert!(at(1, 1, 4) < at(1000, 1000, 0));
        assert!(at(1000, 1000, 0) < at(200, 1000, 4));
        assert!(at(10, 10, 0) < at(10, 10, 1));
    }

    #[test]
    fn pixels_are_left_out_without_their_files() {
        let without = Settings { mnist: None, ..settings(&[Part::Inputs]) };
        assert_eq!(plan(&without).len(), 10 * 5);
        let small = Settings { up_to: 2, ..settings(&[Part::Grid]) };
        assert_eq!(plan(&small).len(), 4 * 5);
        let named = Settings { matching: "s=100 n=50000 uniform".into(), ..settings(&[Part::Inputs]) };
        assert_eq!(plan(&named).len(), 5);
    }
}
