//! Checkpoints of the published method, for one output and for several: the weights; the generators of gates that lag behind
//! them, or the best iterate of a safe run; and the counters of a count sketch.

use tamis::budget::{Outputs, Training};
use tamis::gates::Empty;
use tamis::iht::{Refine, Step};
use tamis::train::{Checkpoint, NetSchedule, Progress, Rank, Refresh, Schedule, Standin};

use super::super::before::Before;
use super::super::recover::signs_name;
use super::super::{Options, OutputsOptions, Problem, outputs, train};
use super::terms::{COMMON, MUST_KEEP, Term, terms};
use super::{Form, Keeps, Kept, Offers, Recipe, Record, damaged};
use crate::Result;

const SIGNS: [&str; 2] = ["positive", "balanced"];
const EMPTY: [&str; 3] = ["freeze", "open", "reseed"];
const STEPS: [&str; 3] = ["normalised", "theory", "fixed"];
const REFINES: [&str; 3] = ["none", "armijo", "cg"];
const RANKS: [&str; 2] = ["exact", "sketch"];
const STANDINS: [&str; 2] = ["first epoch", "every epoch"];
const RECIPES: [&str; 2] = ["paper", "paper-safe"];
/// Terms of its own, for one output and for several.
const OWN: usize = 16;
const OWN_OUTPUTS: usize = 11;

impl Keeps for Options<'_> {
    fn form(&self, problem: &Problem) -> Result<Form> {
        let (dims, plan) = train::settle(problem, &Before::default(), self)?;
        let Schedule { epochs, batch, convex_epochs, trials, refresh, signs, empty, seed, params, .. } =
            self.schedule;
        let count = |name, count: u32| Term::count(name, count as usize);
        let (step, length) = match params.step {
            Step::Normalised => ("normalised", 0.0),
            Step::Theory { beta } => ("theory", beta),
            Step::Fixed(eta) => ("fixed", eta),
        };
        let (refine, steps, number, halvings) = match params.refine {
            Refine::None => ("none", 0, 0.0, 0),
            Refine::Armijo { steps, decrease, halvings } => ("armijo", steps, decrease, halvings),
            Refine::ConjugateGradient { steps, tolerance } => ("cg", steps, tolerance, 0),
        };
        let empty = match empty {
            Empty::Freeze => "freeze",
            Empty::Open => "open",
            Empty::Reseed => "reseed",
        };
        let [kept, which] = Term::weights(MUST_KEEP, params.must_keep);
        let own: [Term; OWN] = [
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
        let budget = self.schedule.budget(dims, plan.panel, 0);
        Ok(Form {
            recipe: Recipe::Paper,
            terms: terms(problem, (dims, 1, seed), own, &plan),
            body: Checkpoint::form(&budget),
        })
    }
}

impl Keeps for OutputsOptions<'_> {
    fn form(&self, problem: &Problem) -> Result<Form> {
        let settled = outputs::Settled::new(problem, self)?;
        let (dims, outputs) = (settled.dims, settled.outputs);
        let NetSchedule { epochs, batch, step_size, rank, standin, trials, safe, seed, must_keep, .. } =
            settled.schedule;
        let (rank, decay) = match rank {
            Rank::Exact => ("exact", 1.0),
            Rank::Sketch { decay } => ("sketch", decay),
        };
        let standin = match standin {
            Standin::FirstEpoch => "first epoch",
            Standin::EveryEpoch => "every epoch",
        };
        let [kept, which] = Term::weights(MUST_KEEP, must_keep);
        let own: [Term; OWN_OUTPUTS] = [
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
        Ok(Form {
            recipe: Recipe::Outputs,
            terms: terms(problem, (dims, outputs, seed), own, &settled.plan),
            body: Checkpoint::form_outputs(&settled.schedule.budget(dims, outputs, 1, 0)),
        })
    }
}

impl Offers for Progress<'_> {
    fn offer(&self, record: &mut Record<'_>) {
        if let Some(checkpoint) = &self.checkpoint {
            record.take(checkpoint);
        }
    }
}

impl Kept {
    /// As the core takes it, for one output or for several.
    pub(in crate::run) fn paper(&self) -> Result<Checkpoint<'_>> {
        self.check_recipe("paper")?;
        Checkpoint::read(&self.form, &self.words).map_err(|error| damaged().source(error.to_string()))
    }
}

/// The longest checkpoint of a run with this budget, in bytes.
pub(in crate::run) fn most_bytes(budget: &Training) -> usize {
    super::most_bytes(&Checkpoint::form(budget), COMMON + OWN)
}

/// The same for several outputs.
pub(in crate::run) fn most_bytes_outputs(budget: &Outputs) -> usize {
    super::most_bytes(&Checkpoint::form_outputs(budget), COMMON + OWN_OUTPUTS)
}
