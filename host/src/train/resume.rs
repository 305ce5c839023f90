//! What the checkpoints of each recipe are bound to: sizes, settings, memory and data.

use tamis::learn::iht::{Refine, Step};
use tamis::learn::train::{OneOutput, Rank, Refresh, Schedule, SeveralOutputs, Standin};
use tamis::learn::{anneal, lm, train};
use tamis::network::gates::{Empty, Signs};

use crate::data::{Problem, Task, Values};
use crate::train::anneal::AnnealSetup;
use crate::train::check::{Sizes, signs_name};
use crate::train::checkpoint::terms::{CRC_64, MUST_KEEP, Term};
use crate::train::checkpoint::{ANNEAL_TERMS, Form, Kind, LM_TERMS, OUTPUTS_TERMS, PAPER_TERMS};
use crate::train::paper::PaperSetup;
use crate::train::paper_outputs::OutputsSetup;
use crate::train::plan::Plan;
use crate::train::search::SearchSetup;

const SIGNS: [&str; 3] = ["positive", "balanced", "free"];
const EMPTY: [&str; 3] = ["freeze", "open", "reseed"];
const STEPS: [&str; 3] = ["normalised", "theory", "fixed"];
const REFINES: [&str; 3] = ["none", "armijo", "cg"];
const RANKS: [&str; 2] = ["exact", "sketch"];
const STANDINS: [&str; 2] = ["first epoch", "every epoch"];
const RECIPES: [&str; 2] = ["paper", "paper-safe"];
const TASKS: [&str; 3] = [Task::Regression.name(), Task::Binary.name(), Task::Multiclass.name()];

/// The terms of a run: sizes, its own ones, memory; checksums come last, since all else says more.
fn terms(
    problem: &Problem,
    sizes: Sizes,
    seed: u64,
    own: impl IntoIterator<Item = Term>,
    plan: &Plan,
) -> Vec<Term> {
    let Sizes { dims, outputs } = sizes;
    let samples = match &problem.data.values {
        Values::F32(values) => CRC_64.checksum(bytemuck::cast_slice(values)),
        Values::U8(values) => !CRC_64.checksum(values),
    };
    let labels = CRC_64.checksum(bytemuck::cast_slice(&problem.labels));
    let sizes = [
        Term::count("rows", dims.samples),
        Term::count("columns", dims.inputs),
        Term::count(
            if problem.task == Task::Multiclass { "classes" } else { "columns of labels" },
            outputs,
        ),
        Term::name("--task", &TASKS, problem.task.name()),
        Term::count("--hidden", dims.hidden),
        Term::count("--nnz", dims.nnz),
        Term::seed(seed),
    ];
    let last = [
        Term::count("neurons of a panel (--panel or --ram)", plan.layout.panel),
        Term::count(
            "rows of a tile, groups, strips, held gates and Gram matrix (--ram)",
            (plan.layout.tile * 256 + plan.layout.groups) * 8
                + usize::from(plan.layout.strips) * 4
                + usize::from(plan.layout.hold) * 2
                + usize::from(plan.layout.gram > 0),
        ),
        Term::checksum("checksum of the samples", samples),
        Term::checksum("checksum of the labels", labels),
    ];
    sizes.into_iter().chain(own).chain(last).collect()
}

fn count(name: &'static str, count: u32) -> Term {
    Term::count(name, count as usize)
}

/// What the checkpoints of a search look like.
pub(crate) fn lm_form(problem: &Problem, setup: &SearchSetup<'_>) -> Form {
    let lm::Params {
        seed,
        signs,
        rows,
        exact,
        random_births,
        perturbations,
        steps,
        final_steps,
        polish,
        patience,
        validation,
        validation_patience,
        spare,
        products,
    } = setup.params;
    let own: [Term; LM_TERMS] = [
        Term::name("--signs", &SIGNS, signs_name(signs)),
        Term::count("rows of the validation split (--validation)", validation),
        count("--patience", validation_patience),
        Term::count("--search-rows", rows),
        count("--kicks", perturbations),
        count("--idle-kicks", patience),
        count("steps", steps),
        Term::float("loss of an exact fit", exact),
        count("random births", random_births),
        count("last steps on all rows", final_steps),
        count("polishing steps", polish),
        Term::count("spare weights", spare as usize),
        count("products of a step", products),
        // Once settings, which every search now has on; files hold them.
        Term::count("births", 1),
        Term::count("tidying", 1),
        Term::count("neurons of the second layer (--hidden)", setup.second.unwrap_or(0)),
    ];
    let plan = &setup.plan;
    Form {
        kind: Kind::Lm { hidden: setup.sizes.dims.hidden, linear: signs.linear(0) },
        terms: terms(problem, setup.sizes, seed, own, &plan.plan),
        body: lm::Checkpoint::form(&plan.budget, plan.slots, signs),
    }
}

/// What the checkpoints of a run of recipe `anneal` look like.
pub(crate) fn anneal_form(problem: &Problem, setup: &AnnealSetup<'_>) -> Form {
    let anneal::Params {
        epochs,
        batch,
        validation,
        patience,
        start_factor,
        rate,
        warmup,
        update_every,
        drop,
        shrink,
        settle,
        growth_rows,
        floor,
        input_scale,
        seed,
        must_keep,
    } = setup.params;
    let [kept, which] = Term::weights(MUST_KEEP, must_keep);
    let own: [Term; ANNEAL_TERMS] = [
        count("--epochs", epochs),
        Term::count("rows of a batch (--batch)", batch),
        Term::count("rows of the validation split (--validation)", validation),
        count("--patience", patience),
        Term::float("first support (--start-factor or --ram)", start_factor),
        Term::float("--rate", rate),
        count("steps of warming up", warmup),
        count("steps between changes of the support", update_every),
        Term::float("--drop", drop),
        Term::float("fraction of the run that shrinks the support", shrink),
        Term::float("fraction of the run on the final support", settle),
        Term::count("rows that growth looks at", growth_rows),
        Term::float("floor of the column scales", floor),
        Term::float("scale of the inputs", input_scale),
        kept,
        which,
    ];
    Form {
        kind: Kind::Anneal,
        terms: terms(problem, setup.sizes, seed, own, &setup.plan),
        body: anneal::Checkpoint::form(&setup.params.budget(
            setup.sizes.dims,
            setup.sizes.outputs,
            1,
            0,
        )),
    }
}

/// What the checkpoints of a run for one output look like.
pub(crate) fn paper_form(problem: &Problem, setup: &PaperSetup<'_>) -> Form {
    let Schedule { epochs, batch, trials, seed, must_keep, head, .. } = setup.schedule;
    let OneOutput { convex_epochs, refresh, signs, empty, step, refine } = head;
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
        body: train::Checkpoint::form(
            &setup.schedule.budget(sizes.dims, setup.plan.layout.panel, 0),
            signs,
        ),
    }
}

/// What the checkpoints of a run for several outputs look like.
pub(crate) fn outputs_form(problem: &Problem, setup: &OutputsSetup<'_>) -> Form {
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
        body: train::Checkpoint::form(&setup.schedule.budget(dims, outputs, 1, 0), Signs::Positive),
    }
}
