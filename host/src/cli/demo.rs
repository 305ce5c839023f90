//! `tamis demo`: everything once, on a problem whose answer is known.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tamis::base::dims::Dims;
use tamis::network::gates::Signs;

use super::common::Common;
use super::console::{self, bytes, count, decibel};
use super::train::history::History;
use super::{generate, interrupt};
use crate::data::planted::{self, Planted};
use crate::data::{Array, Problem, Task};
use crate::lab::plot::{self, Series};
use crate::model::{ModelFile, Score};
use crate::train::{
    self, Budget, LmOptions, Memory, Options, Plan, Recipe, Report, SparseNetwork, Start, Trained,
    train_with,
};
use crate::{Result, base::file};

/// Rows to learn from, and unseen rows to predict.
const TRAINED: usize = 5000;
const UNSEEN: usize = 500;
/// n, d, m and s of the planted network, which the published method does not recover.
const DIMS: Dims = Dims::new(TRAINED, 100, 10, 50);
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
struct Object<'a> {
    recovered: bool,
    support_match: usize,
    max_error: f32,
    unseen: Score,
    budget_bytes: u64,
    within_budget: bool,
    model: String,
    model_bytes: usize,
    picture: String,
    #[serde(flatten)]
    report: &'a Report,
}

impl Demo {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        generate::check_folder(&self.output, &["X.npy", "y.npy"])?;
        let (truth, problem, unseen) = plant(common)?;
        let options = options(common);
        let plan = train::plan(&problem, &options)?;
        common.say(opening(truth.len(), &plan, common.seed))?;

        let mut history = History::losses_only();
        let trained = interrupt::training(|| {
            train_with(problem, &options, Start::Zero, interrupt::stop(), |progress| {
                history.add(progress);
                ControlFlow::Continue(())
            })
        })?;

        let SparseNetwork { index, value, .. } = trained.network.clone();
        let learnt = align(&truth, &index.into_iter().zip(value).collect());
        let model = self.save(&trained, &unseen)?;
        let predictions = common.on_pool(|| model.predict(&unseen.data))??;
        let score = Score::new(Task::Regression, &unseen.labels, &predictions);
        let object = self.object(&trained, &truth, &learnt, score);
        let picture = draw(&object, &history, [&truth, &learnt], [&unseen.labels, &predictions]);
        interrupt::saving(|| {
            file::write(Path::new(&object.picture), |w| w.write_all(picture.as_bytes()))
        })?;
        common.result(&object, || closing(&object, &history, &truth, &learnt, &self.output))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.output.join(name)
    }

    /// Writes the model and the unseen rows, and reads the model back.
    fn save(&self, trained: &Trained, unseen: &Problem) -> Result<ModelFile> {
        let labels = Array::new(&[UNSEEN], &unseen.labels[..])?;
        generate::save(&self.output, &unseen.data, &labels, |folder| {
            folder.write("demo.tamis", |w| w.write_all(trained.model.bytes()))
        })?;
        ModelFile::load(self.path("demo.tamis"))
    }

    fn object<'a>(
        &self,
        trained: &'a Trained,
        truth: &Weights,
        learnt: &Weights,
        unseen: Score,
    ) -> Object<'a> {
        let report = &trained.report;
        let support_match = learnt.keys().filter(|j| truth.contains_key(j)).count();
        let errors = union(truth, learnt).map(|j| (weight(truth, j) - weight(learnt, j)).abs());
        let max_error = errors.fold(0.0, f32::max);
        Object {
            recovered: support_match == DIMS.nnz && max_error < CLOSE,
            support_match,
            max_error,
            unseen,
            budget_bytes: BUDGET,
            within_budget: report.total_bytes() <= BUDGET,
            model: self.path("demo.tamis").display().to_string(),
            model_bytes: trained.model.bytes().len(),
            picture: self.path("demo.svg").display().to_string(),
            report,
        }
    }
}

/// Sparse weights by flat index.
type Weights = BTreeMap<u32, f32>;

fn weight(weights: &Weights, j: u32) -> f32 {
    weights.get(&j).copied().unwrap_or(0.0)
}

/// All indices of both, rising.
fn union(a: &Weights, b: &Weights) -> impl Iterator<Item = u32> + use<> {
    a.keys().chain(b.keys()).copied().collect::<BTreeSet<_>>().into_iter()
}

/// The planted weights, the problem to learn them from, and unseen rows.
fn plant(common: &Common) -> Result<(Weights, Problem, Problem)> {
    let dims = Dims::new(TRAINED + UNSEEN, DIMS.inputs, DIMS.hidden, DIMS.nnz);
    let planted = common.on_pool(|| planted::network(dims, Signs::Positive, common.seed))??;
    let Planted { data, labels, index, value, .. } = planted;
    let all = Problem { data, labels, task: Task::Regression };
    let rows = |rows: Range<usize>| all.rows(rows.collect());
    let truth = index.into_iter().zip(value).collect();
    Ok((truth, rows(0..TRAINED)?, rows(TRAINED..TRAINED + UNSEEN)?))
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
fn align(truth: &Weights, learnt: &Weights) -> Weights {
    let at = |weights, neuron: usize, j: usize| weight(weights, (neuron * DIMS.inputs + j) as u32);
    let distance = |a: usize, b: usize| -> f32 {
        (0..DIMS.inputs).map(|j| (at(truth, a, j) - at(learnt, b, j)).powi(2)).sum()
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
    let moved = |(&j, &value): (&u32, &f32)| {
        let (b, input) = (j as usize / DIMS.inputs, j as usize % DIMS.inputs);
        ((place[b].unwrap_or(b) * DIMS.inputs + input) as u32, value)
    };
    learnt.iter().map(moved).collect()
}

fn opening(planted: usize, plan: &Plan, seed: u64) -> String {
    let Dims { samples, inputs, hidden, .. } = DIMS;
    let all = count(DIMS.parameters());
    let [state, workspace, total] =
        [plan.state_bytes, plan.workspace_bytes, plan.total_bytes()].map(bytes);
    let network = format!("{hidden} hidden neurons × {inputs} inputs = {all} weights");
    let (rows, budget) = (count(samples), bytes(BUDGET));
    let facts = [
        ("planted", format!("{planted} nonzeros of {network}")),
        ("data", format!("{rows} random samples, and the network's outputs on them")),
        ("budget", format!("{budget} for state and workspace of training, beside the data")),
        ("plan", format!("state {state} + workspace {workspace} = {total}")),
    ];
    console::facts(&format!("Recover a sparse network from what it computes (seed {seed})"), &facts)
}

fn closing(
    object: &Object<'_>,
    history: &History,
    truth: &Weights,
    learnt: &Weights,
    folder: &Path,
) -> String {
    let r = object.report;
    let verdict = verdict(object.recovered, object.support_match, object.max_error);
    let dir = folder.display();
    let moves = r.search().map(|s| format!("{} of {} moves taken, ", s.moves, s.tried));
    let (moves, passes) = (moves.unwrap_or_default(), r.passes);
    let within = if object.within_budget { "within the budget" } else { "ABOVE the budget" };
    let steps = format!("{} steps, {moves}{passes:.0} passes over the data", r.epochs);
    let Score { n, psnr_db, .. } = object.unseen;
    let facts = [
        ("training", format!("{:.3} s, {steps}", r.seconds)),
        ("loss", format!("{}  to {:.1e}, PSNR {}", history.line(), r.loss, decibel(r.psnr_db))),
        ("memory", format!("{} of {}: {within}", bytes(r.total_bytes()), bytes(BUDGET))),
        ("saved", format!("{} ({}), read back", object.model, bytes(object.model_bytes))),
        ("predicted", format!("{n} unseen samples, PSNR {}", decibel(psnr_db))),
        ("drawn", object.picture.clone()),
    ];
    format!(
        "\n{}\n\n{}\n\n{verdict}\n\nTry next:\n  tamis inspect {dir}/demo.tamis\n  tamis eval \
         {dir}/demo.tamis --data {dir}/X.npy --labels {dir}/y.npy\n  tamis train --help",
        console::facts("Trained by hard thresholding with Levenberg-Marquardt steps", &facts),
        comparison(truth, learnt)
    )
}

fn verdict(recovered: bool, matching: usize, error: f32) -> String {
    if recovered {
        return format!("Recovered: all {matching} weights, the largest error is {error:.1e}.");
    }
    format!(
        "Not recovered with this seed: {matching} of {} weights are in the right place; seed 0 \
         recovers all of them.",
        DIMS.nnz
    )
}

fn comparison(truth: &Weights, learnt: &Weights) -> String {
    let number = |value: Option<&f32>| value.map_or("-".into(), |value| format!("{value:.6}"));
    let row = |j: u32| {
        let place = format!("{}, {}", j as usize / DIMS.inputs, j as usize % DIMS.inputs);
        vec![place, number(truth.get(&j)), number(learnt.get(&j))]
    };
    console::table(&["neuron, input", "planted", "recovered"], union(truth, learnt).map(row))
}

fn draw(
    object: &Object<'_>,
    history: &History,
    [truth, learnt]: [&Weights; 2],
    [labels, predictions]: [&[f32]; 2],
) -> String {
    let memory = format!("{} of {}", bytes(object.report.total_bytes()), bytes(BUDGET));
    let points = |weights: &Weights| -> Vec<(usize, f32)> {
        weights.iter().map(|(&j, &value)| (j as usize, value)).collect()
    };
    let facts = [
        ("weights", format!("{} of {} recovered", object.support_match, DIMS.nnz)),
        ("largest error", format!("{:.1e}", object.max_error)),
        ("training memory", memory),
        ("model file", bytes(object.model_bytes)),
        ("unseen samples", format!("PSNR {}", decibel(object.unseen.psnr_db))),
    ];
    plot::panel(&plot::Panel {
        title: "A sparse network, recovered",
        facts: &facts,
        time: "step",
        losses: &[Series { label: "outer steps", first: 1, values: &history.losses }],
        planted: &points(truth),
        recovered: &points(learnt),
        labels,
        predictions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neurons_in_another_order_are_the_same_network() {
        let truth = Weights::from([(7, 1.0), (120, -2.0), (305, 0.5)]);
        let moved = Weights::from([(20, -2.0), (107, 1.0), (205, 0.5)]);
        assert_eq!(align(&truth, &moved), truth);
    }

    #[test]
    fn the_verdict_is_honest() {
        assert!(verdict(true, 20, 1e-7).starts_with("Recovered: all 20"));
        assert!(verdict(false, 17, 0.5).starts_with("Not recovered with this seed: 17 of 50"));
    }

    #[test]
    fn a_wrong_weight_stays_wrong() {
        let truth = Weights::from([(7, 1.0), (120, -2.0)]);
        let wrong = Weights::from([(8, 1.0), (120, -2.0)]);
        assert_eq!(align(&truth, &wrong), wrong);
    }
}
