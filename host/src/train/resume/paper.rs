//! The terms of the published method, for one output and for several.

use tamis::learn::iht::{Refine, Step};
use tamis::learn::train::{
    Checkpoint, OneOutput, Rank, Refresh, Schedule, SeveralOutputs, Standin,
};
use tamis::network::gates::Empty;

use super::common::terms;
use crate::data::Problem;
use crate::train::check::{Sizes, signs_name};
use crate::train::checkpoint::terms::{MUST_KEEP, Term};
use crate::train::checkpoint::{Form, Kind, OUTPUTS_TERMS, PAPER_TERMS};
use crate::train::paper::PaperSetup;
use crate::train::paper_outputs::OutputsSetup;

const SIGNS: [&str; 2] = ["positive", "balanced"];
const EMPTY: [&str; 3] = ["freeze", "open", "reseed"];
const STEPS: [&str; 3] = ["normalised", "theory", "fixed"];
const REFINES: [&str; 3] = ["none", "armijo", "cg"];
const RANKS: [&str; 2] = ["exact", "sketch"];
const STANDINS: [&str; 2] = ["first epoch", "every epoch"];
const RECIPES: [&str; 2] = ["paper", "paper-safe"];
/// What the checkpoints of a run for one output look like.
pub(crate) fn form(problem: &Problem, setup: &PaperSetup<'_>) -> Form {
    let Schedule { epochs, batch, trials, seed, must_keep, head, .. } = setup.schedule;
    let OneOutput { convex_epochs, refresh, signs, empty, step, refine } = head;
    let count = |name, count: u32| Term::count(name, count as usize);
    let (step, length) = match step {
        Step::Normalised => ("normalised", 0.0),
        Step::Theory { beta } => ("theory", beta),
        Step::Fixed(eta) => ("fixed", eta),
    };
    let (refine, steps, number, halvings) = match refine {
        Refine::None => ("none", 0, 0.0, 0),
        Refine::Armijo { steps, decrease, halvings } => ("armijo", steps, decrease, halvings),
        Refine::ConjugateGradient { steps, tolerance } => ("cg", steps, tolerance, 0),
    };
    let empty = match empty {
        Empty::Freeze => "freeze",
        Empty::Open => "open",
        Empty::Reseed => "reseed",
    };
    let [kept, which] = Term::weights(MUST_KEEP, must_keep);
    let own: [Term; PAPER_TERMS] = [
        count("--epochs", epochs),
        Term::count("--batch", batch),
        count("epochs with random gates", convex_epochs),
        count("--trials", trials.count),
        Term::count("--trial-rows", trials.rows),
        count(
            "steps between changes of the gates",
            match refresh {
                Refresh::Every(steps) => steps,
                Refresh::Never => 0,
            },
        ),
        Term::name("--signs", &SIGNS, signs_name(signs)),
        Term::name("--empty", &EMPTY, empty),
        Term::name("--step", &STEPS, step),
        Term::float("length of a step (--step)", length),
        Term::name("--refine", &REFINES, refine),
        count("steps of --refine", steps),
        Term::float("end of --refine", number),
        count("halvings of --refine", halvings),
        kept,
        which,
    ];
    let sizes = Sizes { outputs: 1, ..setup.sizes };
    Form {
        kind: Kind::Paper,
        terms: terms(problem, sizes, seed, own, &setup.plan),
        body: Checkpoint::form(
            &setup.schedule.budget(sizes.dims, setup.plan.layout.panel, 0),
            signs,
        ),
    }
}

/// What the checkpoints of a run for several outputs look like.
pub(crate) fn form_outputs(problem: &Problem, setup: &OutputsSetup<'_>) -> Form {
    let Schedule { epochs, batch, trials, seed, must_keep, head, .. } = setup.schedule;
    let SeveralOutputs { step_size, rank, standin, safe } = head;
    let (rank, decay) = match rank {
        Rank::Exact => ("exact", 1.0),
        Rank::Sketch { decay } => ("sketch", decay),
    };
    let standin = match standin {
        Standin::FirstEpoch => "first epoch",
        Standin::EveryEpoch => "every epoch",
    };
    let [kept, which] = Term::weights(MUST_KEEP, must_keep);
    let own: [Term; OUTPUTS_TERMS] = [
        Term::name("--recipe", &RECIPES, if safe { "paper-safe" } else { "paper" }),
        Term::count("--epochs", epochs as usize),
        Term::count("--batch", batch),
        Term::float("length of a step (--step)", step_size),
        Term::name("--rank", &RANKS, rank),
        Term::float("decay of --rank", decay),
        Term::name("random values for empty neurons", &STANDINS, standin),
        Term::count("--trials", trials.count as usize),
        Term::count("--trial-rows", trials.rows),
        kept,
        which,
    ];
    let Sizes { dims, outputs } = setup.sizes;
    Form {
        kind: Kind::Outputs,
        terms: terms(problem, setup.sizes, seed, own, &setup.plan),
        body: Checkpoint::form_outputs(&setup.schedule.budget(dims, outputs, 1, 0)),
    }
}
