//! `tamis demo`: everything once, on a problem whose answer is known.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tamis::base::dims::Dims;
use tamis::network::gates::Signs;

use super::common::Common;
use super::console::Console;
use super::console::{self, bytes, count, decibel};
use super::interrupt;
use super::train::history::History;
use crate::data::planted::{self, Planted};
use crate::data::{Array, Matrix, Values, npy};
use crate::data::{Problem, Task};
use crate::lab::plot::{self, Series};
use crate::model::{ModelFile, Score};
use crate::train;
use crate::train::{Budget, LmOptions, Memory, Options, Plan, Recipe, Start, Trained, train_with};
use crate::{Result, base::file};

/// Rows to learn from, and rows held back to predict.
const ROWS: (usize, usize) = (5000, 500);
/// n, d, m and s of the planted network; the published method does not recover networks of this
/// size.
const DIMS: Dims = Dims::new(ROWS.0, 100, 10, 50);
/// Bytes that training may take beside the data.
const BUDGET: u64 = 256 << 10;
/// A weight counts as recovered when it is this close to the planted one.
const CLOSE: f32 = 1e-4;

/// Plant a sparse network, recover it within a byte budget, save, reload, predict and draw.
///
/// A network with a few known weights labels random samples; training sees samples and labels only,
/// and has to find which weights there are and what they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis demo -o tamis-demo")]
pub(super) struct Demo {
    /// The folder to write
    #[arg(short, long, value_name = "DIR", default_value = "tamis-demo")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Object {
    recovered: bool,
    requested_nnz: usize,
    nnz: usize,
    support_match: usize,
    max_error: f32,
    loss: f64,
    psnr_db: Option<f64>,
    unseen: Score,
    budget_bytes: u64,
    budget_kept: bool,
    state_bytes: u64,
    workspace_bytes: u64,
    data_bytes: u64,
    peak_rss_bytes: Option<u64>,
    exact: bool,
    steps: u32,
    moves: u32,
    tried: u32,
    kicks: u32,
    passes: f64,
    seconds: f64,
    seed: u64,
    model: String,
    model_bytes: usize,
    picture: String,
}

impl Demo {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        file::check_folder(&self.output)?;
        let (planted, unseen) = plant(common)?;
        let options = options(common);
        let problem =
            Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
        let plan = train::plan(&problem, &options)?;
        console.say(opening(planted.index.len(), &plan, common.seed))?;

        let mut history = History::losses_only();
        let trained = interrupt::training(|| {
            train_with(problem, &options, Start::Zero, interrupt::stop(), |progress| {
                history.add(progress);
                ControlFlow::Continue(())
            })
        })?;

        let truth = Weights { index: planted.index, value: planted.value };
        let found = align(
            &truth,
            &Weights { index: trained.network.index.clone(), value: trained.network.value.clone() },
        );
        let model = self.save(&trained, &unseen)?;
        let predictions = common.on_pool(|| model.predict(&unseen.data))??;
        let object = self.object(
            &trained,
            &truth,
            &found,
            Score::new(Task::Regression, &unseen.labels, &predictions),
        );
        let picture = draw(&object, &history, &truth, &found, &unseen.labels, &predictions);
        let path = self.path("demo.svg");
        interrupt::saving(|| {
            file::write(&path, |w| std::io::Write::write_all(w, picture.as_bytes()))
        })?;
        console.result(&object, || closing(&object, &history, &truth, &found, &self.output))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.output.join(name)
    }

    /// Writes the model and the unseen rows, and reads the model back.
    fn save(&self, trained: &Trained, unseen: &Problem) -> Result<ModelFile> {
        let Values::F32(values) = &unseen.data.values else {
            unreachable!("planted samples are floats")
        };
        let samples = Array::new(&[unseen.data.rows, unseen.data.cols], &values[..])?;
        let labels = Array::new(&[unseen.labels.len()], &unseen.labels[..])?;
        interrupt::saving(|| {
            file::write_folder(&self.output, |folder| {
                folder
                    .write("demo.tamis", |w| std::io::Write::write_all(w, trained.model.bytes()))?;
                folder.write("X.npy", |w| npy::write(w, &samples))?;
                folder.write("y.npy", |w| npy::write(w, &labels))
            })
        })?;
        ModelFile::load(self.path("demo.tamis"))
    }

    fn object(&self, trained: &Trained, truth: &Weights, found: &Weights, unseen: Score) -> Object {
        let (report, search) = (&trained.report, trained.report.search());
        let support_match = found.index.iter().filter(|j| truth.get(**j).is_some()).count();
        let errors = union(truth, found)
            .map(|j| (truth.get(j).unwrap_or(0.0) - found.get(j).unwrap_or(0.0)).abs());
        let max_error = errors.fold(0.0, f32::max);
        Object {
            recovered: support_match == DIMS.nnz && max_error < CLOSE,
            requested_nnz: report.requested_nnz,
            nnz: report.nnz,
            support_match,
            max_error,
            loss: report.loss,
            psnr_db: report.psnr_db,
            unseen,
            budget_bytes: BUDGET,
            budget_kept: report.total_bytes() <= BUDGET,
            state_bytes: report.state_bytes,
            workspace_bytes: report.workspace_bytes,
            data_bytes: report.data_bytes,
            peak_rss_bytes: report.peak_rss_bytes,
            exact: search.is_some_and(|search| search.exact),
            steps: report.epochs,
            moves: search.map_or(0, |search| search.moves),
            tried: search.map_or(0, |search| search.tried),
            kicks: search.map_or(0, |search| search.kicks),
            passes: report.passes,
            seconds: report.seconds,
            seed: report.seed,
            model: self.path("demo.tamis").display().to_string(),
            model_bytes: trained.model.bytes().len(),
            picture: self.path("demo.svg").display().to_string(),
        }
    }
}

/// Sparse weights by flat index.
struct Weights {
    index: Vec<u32>,
    value: Vec<f32>,
}

impl Weights {
    fn get(&self, j: u32) -> Option<f32> {
        self.index.binary_search(&j).ok().map(|at| self.value[at])
    }

    /// The weight of `neuron` at `input`, 0 where there is none.
    fn at(&self, neuron: usize, input: usize) -> f32 {
        self.get((neuron * DIMS.inputs + input) as u32).unwrap_or(0.0)
    }

    fn points(&self) -> Vec<(usize, f32)> {
        self.index.iter().map(|&j| j as usize).zip(self.value.iter().copied()).collect()
    }
}

/// All indices of both, rising.
fn union(a: &Weights, b: &Weights) -> impl Iterator<Item = u32> + use<> {
    let all: std::collections::BTreeSet<u32> = a.index.iter().chain(&b.index).copied().collect();
    all.into_iter()
}

/// The planted problem to learn from, and the rows held back.
fn plant(common: &Common) -> Result<(Planted, Problem)> {
    let dims = Dims::new(ROWS.0 + ROWS.1, DIMS.inputs, DIMS.hidden, DIMS.nnz);
    let mut all = common.on_pool(|| planted::network(dims, Signs::Positive, common.seed))??;
    let labels = all.labels.split_off(ROWS.0);
    let Values::F32(values) = &mut all.data.values else {
        unreachable!("planted samples are floats")
    };
    let unseen = values.split_off(ROWS.0 * DIMS.inputs);
    all.data.rows = ROWS.0;
    let data = Matrix::new(ROWS.1, DIMS.inputs, Values::F32(unseen))?;
    Ok((all, Problem { data, labels, task: Task::Regression }))
}

fn options(common: &Common) -> Options {
    Options {
        hidden: vec![DIMS.hidden],
        recipe: Recipe::Lm(LmOptions { signs: Some(Signs::Positive), ..LmOptions::default() }),
        seed: common.seed,
        memory: Memory::Ram(BUDGET),
        threads: common.threads(),
        ..Options::new(Budget::nnz(DIMS.nnz))
    }
}

/// The recovered weights with their neurons in the order of the planted ones: a sum does not know
/// the order of its terms, so any order is right. The closest pair of neurons first.
fn align(truth: &Weights, found: &Weights) -> Weights {
    let distance = |a: usize, b: usize| -> f32 {
        (0..DIMS.inputs).map(|j| (truth.at(a, j) - found.at(b, j)).powi(2)).sum()
    };
    let all = 0..DIMS.hidden;
    let mut pairs: Vec<_> = all.clone().flat_map(|a| all.clone().map(move |b| (a, b))).collect();
    pairs.sort_by(|x, y| distance(x.0, x.1).total_cmp(&distance(y.0, y.1)));
    let mut place = [None; DIMS.hidden];
    for (a, b) in pairs {
        if place[b].is_none() && !place.contains(&Some(a)) {
            place[b] = Some(a);
        }
    }
    let moved = |&j: &u32| {
        let (b, input) = (j as usize / DIMS.inputs, j as usize % DIMS.inputs);
        (place[b].unwrap_or(b) * DIMS.inputs + input) as u32
    };
    let mut entries: Vec<(u32, f32)> =
        found.index.iter().map(moved).zip(found.value.iter().copied()).collect();
    entries.sort_by_key(|entry| entry.0);
    let (index, value) = entries.into_iter().unzip();
    Weights { index, value }
}

fn opening(planted: usize, plan: &Plan, seed: u64) -> String {
    let facts = [
        (
            "planted",
            format!(
                "{} weights other than zero, of {} hidden neurons × {} inputs = {}",
                planted,
                DIMS.hidden,
                DIMS.inputs,
                count(DIMS.parameters())
            ),
        ),
        (
            "data",
            format!("{} random samples and what the network makes of them", count(DIMS.samples)),
        ),
        (
            "budget",
            format!("{} for state and workspace of training, beside the data", bytes(BUDGET)),
        ),
        (
            "plan",
            format!(
                "state {} + workspace {} = {}",
                bytes(plan.state_bytes),
                bytes(plan.workspace_bytes),
                bytes(plan.total_bytes())
            ),
        ),
    ];
    console::facts(&format!("Recover a sparse network from what it computes (seed {seed})"), &facts)
}

fn closing(
    object: &Object,
    history: &History,
    truth: &Weights,
    found: &Weights,
    folder: &Path,
) -> String {
    let verdict = verdict(object.recovered, object.support_match, object.max_error);
    let dir = folder.display();
    let used = object.state_bytes + object.workspace_bytes;
    let facts = [
        (
            "training",
            format!(
                "{:.3} s, {} steps, {} of {} moves taken, {:.0} passes over the data",
                object.seconds, object.steps, object.moves, object.tried, object.passes
            ),
        ),
        (
            "loss",
            format!("{}  to {:.1e}, PSNR {}", history.line(), object.loss, decibel(object.psnr_db)),
        ),
        (
            "memory",
            format!(
                "{} used of {}: {}",
                bytes(used),
                bytes(object.budget_bytes),
                if object.budget_kept { "kept" } else { "NOT kept" }
            ),
        ),
        ("saved", format!("{} ({}), read back", object.model, bytes(object.model_bytes))),
        (
            "predicted",
            format!(
                "{} samples it has not seen, PSNR {}",
                object.unseen.n,
                decibel(object.unseen.psnr_db)
            ),
        ),
        ("drawn", object.picture.clone()),
    ];
    format!(
        "\n{}\n\n{}\n\n{verdict}\n\nTry next:\n  tamis inspect {dir}/demo.tamis\n  tamis eval {dir}/demo.tamis --data \
         {dir}/X.npy --labels {dir}/y.npy\n  tamis train --help",
        console::facts("Trained by hard thresholding with Levenberg-Marquardt steps", &facts),
        comparison(truth, found)
    )
}

fn verdict(recovered: bool, found: usize, error: f32) -> String {
    if recovered {
        return format!("Recovered: all {found} weights, the largest error is {error:.1e}.");
    }
    format!(
        "Not recovered with this seed: {found} of {} weights are in the right place; seed 0 recovers all of them.",
        DIMS.nnz
    )
}

/// Planted and recovered weights side by side.
fn comparison(truth: &Weights, found: &Weights) -> String {
    let number = |value: Option<f32>| value.map_or("-".into(), |value| format!("{value:.6}"));
    let row = |j: u32| {
        let place = format!("{}, {}", j as usize / DIMS.inputs, j as usize % DIMS.inputs);
        vec![place, number(truth.get(j)), number(found.get(j))]
    };
    console::table(&["neuron, input", "planted", "recovered"], union(truth, found).map(row))
}

fn draw(
    object: &Object,
    history: &History,
    truth: &Weights,
    found: &Weights,
    labels: &[f32],
    predictions: &[f32],
) -> String {
    let used = object.state_bytes + object.workspace_bytes;
    let facts = [
        ("weights", format!("{} of {} found", object.support_match, DIMS.nnz)),
        ("largest error", format!("{:.1e}", object.max_error)),
        ("training memory", format!("{} of {}", bytes(used), bytes(object.budget_bytes))),
        ("model file", bytes(object.model_bytes)),
        ("unseen samples", format!("PSNR {}", decibel(object.unseen.psnr_db))),
    ];
    plot::panel(&plot::Panel {
        title: "A sparse network, recovered",
        facts: &facts,
        time: "step",
        losses: &[Series { label: "outer steps", first: 1, values: history.losses() }],
        planted: &truth.points(),
        recovered: &found.points(),
        labels,
        predictions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neurons_in_another_order_are_the_same_network() {
        let truth = Weights { index: vec![7, 120, 305], value: vec![1.0, -2.0, 0.5] };
        let moved = Weights { index: vec![20, 107, 205], value: vec![-2.0, 1.0, 0.5] };
        let aligned = align(&truth, &moved);
        assert_eq!((aligned.index, aligned.value), (truth.index, truth.value));
    }

    #[test]
    fn the_verdict_is_honest() {
        assert!(verdict(true, 20, 1e-7).starts_with("Recovered: all 20"));
        assert!(verdict(false, 17, 0.5).starts_with("Not recovered with this seed: 17 of 50"));
    }

    #[test]
    fn a_wrong_weight_stays_wrong() {
        let truth = Weights { index: vec![7, 120], value: vec![1.0, -2.0] };
        let wrong = Weights { index: vec![8, 120], value: vec![1.0, -2.0] };
        assert_eq!(align(&truth, &wrong).index, [8, 120]);
    }
}
