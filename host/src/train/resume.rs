//! What the checkpoints of each recipe are bound to: sizes, settings, memory and data.

use tamis::base::dims::Dims;
use tamis::learn::checkpoint::Form as BodyForm;
use tamis::learn::deep::dynamic;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::train::{OneOutput, Rank, Refresh, Schedule, SeveralOutputs};
use tamis::learn::{anneal, lm, train};
use tamis::network::gates::Signs;

use crate::data::augment::{Changes, PictureChanges, PictureSize};
use crate::data::{Matrix, Problem, Task, Values};
use crate::operator::Layout;
use crate::train::anneal::AnnealSetup;
use crate::train::check::Sizes;
use crate::train::checkpoint::terms::{CRC_64, Term};
use crate::train::checkpoint::{Form, Kind};
use crate::train::dynamic_options::DynamicOptions;
use crate::train::paper::{self, Head, PaperSetup};
use crate::train::plan::Plan;
use crate::train::search::SearchSetup;

const SIGNS: [&str; 4] = ["positive", "balanced", "free", "unoriented"];
const SUPPORTS: [&str; 5] = ["anneal", "gmp", "rigl", "set", "momentum"];
const MOMENTS: [&str; 2] = ["f32", "bf16"];
const STANDINS: [&str; 2] = ["first epoch", "every epoch"];
const TASKS: [&str; 3] = [Task::Regression.name(), Task::Binary.name(), Task::Multiclass.name()];

/// The form of a run's checkpoints. Terms are its sizes, its own ones and its memory; checksums
/// come last, since all else says more.
fn form(
    kind: Kind,
    problem: &Problem,
    sizes: Sizes,
    seed: u64,
    own: &[Term],
    plan: Option<&Plan>,
    body: BodyForm,
) -> Form {
    let Sizes { dims, outputs } = sizes;
    let samples = match &problem.data.values {
        Values::F32(values) => CRC_64.checksum(bytemuck::cast_slice(values)),
        Values::U8(values) => !CRC_64.checksum(values),
    };
    let labels = CRC_64.checksum(bytemuck::cast_slice(&problem.labels));
    let columns = if problem.task == Task::Multiclass { "classes" } else { "columns of labels" };
    let sizes = [
        Term::count("rows", dims.samples),
        Term::count("columns", dims.inputs),
        Term::count(columns, outputs),
        Term::name("--task", &TASKS, problem.task as usize),
        Term::count("--hidden", dims.hidden),
        Term::count("--nnz", dims.nnz),
        Term::count("--seed", seed),
    ];
    let plan: Vec<Term> = plan.into_iter().flat_map(|plan| memory(plan.layout)).collect();
    let last = [
        Term::checksum("checksum of the samples", samples),
        Term::checksum("checksum of the labels", labels),
    ];
    let terms = [&sizes[..], own, &plan, &last].concat();
    debug_assert_eq!(terms.len(), kind.terms());
    Form { kind, terms, body, hidden: dims.hidden, linear: false }
}

/// How the machine lays out its memory, which bits depend on.
fn memory(layout: Layout) -> [Term; 2] {
    [
        Term::count("neurons of a panel (--panel or --ram)", layout.panel),
        Term::count(
            "rows of a tile, groups, strips, held gates and Gram matrix (--ram)",
            (layout.tile * 256 + layout.groups) * 8
                + usize::from(layout.strips) * 4
                + usize::from(layout.hold) * 2
                + usize::from(layout.gram > 0),
        ),
    ]
}

/// What the checkpoints of recipe `dynamic` look like: of these hidden layers, a stack with room for so
/// many weights, and rows that are changed as `changes` says.
pub(crate) fn dynamic_form(
    problem: &Problem,
    hidden: &[usize],
    room: usize,
    unit: f32,
    settings: &DynamicOptions,
    params: &dynamic::Params,
) -> Form {
    let outputs = problem.network_outputs();
    let Matrix { rows, cols, .. } = problem.data;
    let first = hidden.first().copied().unwrap_or(0);
    let sizes = Sizes { dims: Dims::new(rows, cols, first, params.nnz), outputs };
    let widths: Vec<u32> = hidden.iter().map(|&width| width as u32).collect();
    let changes = settings.augment.map(|of| of.changes(params.nnz));
    let (augment, size, amounts) = match changes {
        None => (0, PictureSize::square(0), [0.0; 5]),
        Some(Changes::Pictures(PictureChanges {
            size,
            shift,
            rotation,
            scale,
            shear,
            elastic,
        })) => (1, size, [shift, rotation, scale, shear, elastic]),
        Some(Changes::Noise(deviation)) => (2, PictureSize::square(0), [deviation; 5]),
    };
    let own = [
        Term::checksum("widths of the hidden layers (--hidden)", {
            CRC_64.checksum(bytemuck::cast_slice(&widths))
        }),
        Term::name("--support", &SUPPORTS, settings.support as usize),
        Term::name("--moments", &MOMENTS, params.moments as usize),
        Term::count("rows that growth looks at", params.rows),
        Term::name("--augment", &["none", "images", "noise"], augment),
        Term::count("width of pictures (--augment)", size.width),
        Term::count("height of pictures (--augment)", size.height),
        Term::float("noise or shift of --augment", amounts[0]),
        Term::checksum("amounts of --augment", CRC_64.checksum(bytemuck::cast_slice(&amounts))),
        Term::count("--epochs", params.epochs),
        Term::count("rows of the validation split (--validation)", params.validation),
        Term::count("--patience", params.patience),
        Term::count("rows of a batch (--batch)", params.batch),
        Term::float("--rate", params.rate),
        Term::float("--weight-decay", params.decay),
        Term::count("--warmup", params.warmup),
        Term::float("first weights (--start-factor or --ram)", params.factor),
        Term::float("scale of the inputs (--raw-inputs)", unit),
    ];
    let body = dynamic::Checkpoint::form(room, params.best_room(hidden.len() + 1));
    form(Kind::Dynamic, problem, sizes, params.seed, &own, None, body)
}

/// What the checkpoints of a search look like.
pub(crate) fn lm_form(problem: &Problem, setup: &SearchSetup<'_>) -> Form {
    let lm::Params {
        seed,
        signs,
        rows,
        exact,
        random_neurons,
        first,
        perturbations,
        steps,
        final_steps,
        polish,
        patience,
        validation,
        validation_patience,
        spare,
        products,
        ceiling,
        exchange_rows,
    } = setup.params;
    let own = [
        Term::name("--signs", &SIGNS, signs as usize),
        Term::count("rows of the validation split (--validation)", validation),
        Term::count("--patience", validation_patience),
        Term::count("--search-rows", rows),
        Term::count("--kicks", perturbations),
        Term::count("--idle-kicks", patience),
        Term::count("steps", steps),
        Term::float("loss of an exact fit", exact),
        Term::count("random neurons", random_neurons),
        Term::count("last steps on all rows", final_steps),
        Term::count("polishing steps", polish),
        Term::count("spare weights", spare),
        Term::count("products of a step", products),
        Term::float("ceiling of outputs, in labels (1 with --turns)", ceiling),
        Term::count("rows by which weights are exchanged", exchange_rows),
        // Files from before there were such hold 1.
        Term::count("steps of Adam", first.saturating_add(1)),
        Term::count("neurons of the second layer (--hidden)", setup.second.unwrap_or(0)),
    ];
    let body = lm::Checkpoint::form(&setup.budget, setup.slots, signs);
    let form = form(Kind::Lm, problem, setup.sizes, seed, &own, Some(&setup.plan), body);
    Form { linear: signs.linear(0), ..form }
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
    let [pinned, which] = Term::pinned(must_keep);
    let own = [
        Term::count("--epochs", epochs),
        Term::count("rows of a batch (--batch)", batch),
        Term::count("rows of the validation split (--validation)", validation),
        Term::count("--patience", patience),
        Term::float("first support (--start-factor or --ram)", start_factor),
        Term::float("--rate", rate),
        Term::count("steps of warming up", warmup),
        Term::count("steps between changes of the support", update_every),
        Term::float("--drop", drop),
        Term::float("fraction of the run that shrinks the support", shrink),
        Term::float("fraction of the run on the final support", settle),
        Term::count("rows that growth looks at", growth_rows),
        Term::float("floor of the column scales", floor),
        Term::float("scale of the inputs", input_scale),
        pinned,
        which,
    ];
    let Sizes { dims, outputs } = setup.sizes;
    let body = anneal::Checkpoint::form(&setup.params.budget(dims, outputs, 1, 0));
    form(Kind::Anneal, problem, setup.sizes, seed, &own, Some(&setup.plan), body)
}

/// What the checkpoints of a run of the published method look like.
pub(crate) fn paper_form(problem: &Problem, setup: &PaperSetup<'_>) -> Form {
    let Schedule { epochs, batch, trials, seed, must_keep, head, .. } = setup.schedule;
    let [pinned, which] = Term::pinned(must_keep);
    let [epochs, batch] = [Term::count("--epochs", epochs), Term::count("--batch", batch)];
    let trials = [Term::count("--trials", trials.count), Term::count("--trial-rows", trials.rows)];
    let body = |signs| {
        let budget = paper::budget(setup.sizes, &setup.schedule, setup.plan.layout);
        train::Checkpoint::form(&budget, signs)
    };
    match head {
        Head::One(OneOutput { convex_epochs, refresh, signs, empty, step, refine }) => {
            let (step, length) = match step {
                Step::Normalised => (0, 0.0),
                Step::Theory { beta } => (1, beta),
                Step::Fixed(eta) => (2, eta),
            };
            let (refine, steps, number, halvings) = match refine {
                Refine::None => (0, 0, 0.0, 0),
                Refine::Armijo { steps, decrease, halvings } => (1, steps, decrease, halvings),
                Refine::ConjugateGradient { steps, tolerance } => (2, steps, tolerance, 0),
            };
            let own = [
                epochs,
                batch,
                Term::count("epochs with random gates", convex_epochs),
                trials[0],
                trials[1],
                Term::count("steps between changes of the gates", steps_between(refresh)),
                Term::name("--signs", &SIGNS, signs as usize),
                Term::name("--empty", &["freeze", "open", "reseed"], empty as usize),
                Term::name("--step", &["normalised", "theory", "fixed"], step),
                Term::float("length of a step (--step)", length),
                Term::name("--refine", &["none", "armijo", "cg"], refine),
                Term::count("steps of --refine", steps),
                Term::float("end of --refine", number),
                Term::count("halvings of --refine", halvings),
                pinned,
                which,
            ];
            let sizes = Sizes { outputs: 1, ..setup.sizes };
            form(Kind::Paper, problem, sizes, seed, &own, Some(&setup.plan), body(signs))
        }
        Head::Several(SeveralOutputs {
            step_size,
            rank,
            convex_epochs,
            refresh,
            standin,
            keep_standins,
            safe,
        }) => {
            let (rank, decay) = match rank {
                Rank::Exact => (0, 1.0),
                Rank::Sketch { decay } => (1, decay),
            };
            let own = [
                Term::name("--recipe", &["paper", "paper-safe"], usize::from(safe)),
                epochs,
                batch,
                Term::float("length of a step (--step)", step_size),
                Term::name("--rank", &["exact", "sketch"], rank),
                Term::float("decay of --rank", decay),
                Term::count("epochs with random gates", convex_epochs),
                Term::count("steps between changes of the gates", steps_between(refresh)),
                Term::name("random values for empty neurons", &STANDINS, standin as usize),
                Term::name("steps from random values", &["no", "yes"], keep_standins.into()),
                trials[0],
                trials[1],
                pinned,
                which,
            ];
            let body = body(Signs::Positive);
            form(Kind::Outputs, problem, setup.sizes, seed, &own, Some(&setup.plan), body)
        }
    }
}

/// 0 for gates that stay random.
const fn steps_between(refresh: Refresh) -> u32 {
    match refresh {
        Refresh::Every(steps) => steps,
        Refresh::Never => 0,
    }
}
