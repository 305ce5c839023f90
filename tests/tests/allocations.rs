//! Training on the host operator allocates nothing per step, and the operator holds the bytes that
//! it states.

mod counting;

use counting::{bytes, calls};
use std::ops::ControlFlow::Continue;
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::learn::anneal;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::lm;
use tamis::learn::lm::Goal;
use tamis::learn::loss::{Classes, Labels};
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Refresh, Schedule};
use tamis::network::gates::{Empty, Signs};
use tamis::operator::factored::Factored;
use tamis::operator::sensing::Sensing;
use tamis_host::data::{Matrix, Values, planted};
use tamis_host::operator::{Blocked, Layout};

/// Epochs of a short run and of a long one.
const SHORT: u32 = 4;
const LONG: u32 = 24;
const CLASSES: usize = 4;
const DIMS: Dims = Dims::new(3000, 40, 24, 90);
/// A search.
const SEARCH: Dims = Dims::new(900, 20, 6, 24);

fn schedule(
    step: Step,
    refine: Refine,
    empty: Empty,
    batch: usize,
) -> Schedule<'static, OneOutput> {
    let (refresh, signs) = (Refresh::Every(2), Signs::Balanced);
    let head = OneOutput { step, refine, empty, refresh, signs, ..OneOutput::PAPER };
    Schedule { batch, head, ..Schedule::PAPER }
}

/// Every operation of the operator occurs: products, norms, and gates of every kind.
fn schedules() -> [Schedule<'static, OneOutput>; 4] {
    let armijo = Refine::Armijo { steps: 3, decrease: 0.9, halvings: 10 };
    let cg = Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 };
    [
        schedule(Step::Normalised, armijo, Empty::Freeze, 0),
        schedule(Step::Normalised, cg, Empty::Reseed, 700),
        schedule(Step::Theory { beta: 100.0 }, armijo, Empty::Open, 0),
        Schedule { strip: 200, ..schedule(Step::Normalised, armijo, Empty::Reseed, 700) },
    ]
}

/// Allocations of a run of `epochs` epochs.
fn allocations(
    pool: &rayon::ThreadPool,
    sensing: &mut Blocked,
    labels: &[f32],
    schedule: &Schedule<'_, OneOutput>,
    epochs: u32,
) -> usize {
    let schedule = Schedule { epochs, ..*schedule };
    let batch = schedule.budget(DIMS, 1, 0).batch;
    let words = schedule.budget(DIMS, sensing.panel(), sensing.scratch(batch)).words();
    let mut memory = vec![0; words];
    pool.install(|| {
        let before = calls();
        let labels = Labels::Values(labels);
        train::run(
            sensing,
            labels,
            DIMS.nnz,
            Start::Zero,
            &schedule,
            &mut memory,
            |_| Continue(()),
        )
        .unwrap();
        calls() - before
    })
}

/// The same for the annealed recipe, with four classes.
fn annealed(pool: &rayon::ThreadPool, sensing: &mut Blocked, labels: &[u16], epochs: u32) -> usize {
    let params = anneal::Params {
        epochs,
        batch: 700,
        validation: 300,
        start_factor: 3.0,
        ..Default::default()
    };
    let mut budget = params.budget(DIMS, CLASSES, sensing.panel(), 0);
    budget.scratch = sensing.net_scratch(budget.batch);
    let mut memory = vec![0; budget.words()];
    pool.install(|| {
        let before = calls();
        let classes = Classes::new(labels, CLASSES);
        anneal::run(
            sensing,
            classes,
            DIMS.nnz,
            Start::Zero,
            &params,
            &mut memory,
            |_| Continue(()),
        )
        .unwrap();
        calls() - before
    })
}

/// Allocations of a whole search for output weights of these signs, or for several outputs.
fn searched(
    pool: &rayon::ThreadPool,
    sensing: &mut Blocked,
    labels: &[f32],
    signs: Option<Signs>,
) -> (usize, lm::Info) {
    let params =
        lm::Params { signs: signs.unwrap_or(Signs::Positive), steps: 60, ..lm::Params::DEFAULT };
    let (rows, panel) = (SEARCH.samples, sensing.panel());
    let budget = match signs {
        Some(signs) => Recovery::new(SEARCH, panel, sensing.scratch(rows), signs.linear(0)),
        None => Recovery::factored(SEARCH, labels.len() / rows, panel, sensing.net_scratch(rows)),
    };
    let mut memory = vec![0; budget.words()];
    pool.install(|| {
        let before = calls();
        let (start, memory) = (Start::Zero, &mut memory);
        let found = match signs {
            Some(_) => {
                lm::run(sensing, labels, Goal::one_output(SEARCH), start, &params, memory, |_| {
                    Continue(())
                })
            }
            None => {
                let goal = Goal::several_outputs(SEARCH);
                lm::run(sensing, labels, goal, start, &params, memory, |_| Continue(()))
            }
        };
        let info = found.unwrap().info;
        (calls() - before, info)
    })
}

/// Searches of every kind, none of which may allocate anything from its first step to its last.
fn searches_allocate_nothing(pool: &rayon::ThreadPool) {
    // Threads that have not started yet would allocate later.
    pool.broadcast(|_| ());
    // Labels of other rows, so that no search ends early.
    let data = planted::network(SEARCH, Signs::Balanced, 0).unwrap().data;
    let one = planted::network(SEARCH, Signs::Balanced, 1).unwrap().labels;
    let several = planted::factored(SEARCH, CLASSES, 1).unwrap().labels;
    for signs in [Some(Signs::Positive), Some(Signs::Free), None] {
        let labels = if signs.is_some() { &one } else { &several };
        let slots = lm::slots(SEARCH.hidden, signs.unwrap_or(Signs::Positive));
        for layout in [
            Layout::new(slots, SEARCH.inputs).with_gram([SEARCH.nnz; 2]),
            Layout { hold: false, ..Layout::new(slots, SEARCH.inputs).with_gram([SEARCH.nnz; 2]) },
            Layout { tile: 64, panel: 5, hold: false, gram: 0, ..Layout::new(1, 1) },
        ] {
            let room = Recovery::new(SEARCH, 1, 0, true).room();
            let mut sensing =
                Blocked::new(data.clone(), slots, room, layout).unwrap().with_outputs(CLASSES);
            // The main thread may allocate beside this one, but not every time.
            let mut runs = (0..3).map(|_| searched(pool, &mut sensing, labels, signs));
            let (_, info) = runs.find(|&(calls, _)| calls == 0).unwrap_or_else(|| {
                panic!("{layout:?}, {} threads, {signs:?}: allocations", pool.current_num_threads())
            });
            assert!(info.steps > 10 && info.trials + info.perturbations > 0, "no search: {info:?}");
        }
    }
}

/// The same for a search that covers rows: fewer rows than inputs, and few weights for as many
/// labels.
fn searches_of_few_rows_allocate_nothing(pool: &rayon::ThreadPool) {
    pool.broadcast(|_| ());
    let dims = Dims::new(60, 80, 6, 24);
    let data = planted::network(dims, Signs::Positive, 0).unwrap().data;
    let labels = planted::network(dims, Signs::Positive, 1).unwrap().labels;
    let slots = lm::slots(dims.hidden, Signs::Positive);
    let params = lm::Params { steps: 40, ..lm::Params::DEFAULT };
    for layout in [
        Layout::new(slots, dims.inputs),
        Layout { tile: 16, panel: 3, hold: false, gram: 0, ..Layout::new(1, 1) },
    ] {
        let room = Recovery::new(dims, 1, 0, false).room();
        let mut sensing = Blocked::new(data.clone(), slots, room, layout).unwrap();
        let budget = Recovery::new(dims, sensing.panel(), sensing.scratch(dims.samples), false);
        assert!(budget.cover_words() > 0);
        let mut memory = vec![0; budget.words()];
        // The main thread may allocate beside this one, but not every time.
        let mut runs = (0..3).map(|_| {
            pool.install(|| {
                let before = calls();
                let (goal, start) = (Goal::one_output(dims), Start::Zero);
                let found =
                    lm::run(&mut sensing, &labels, goal, start, &params, &mut memory, |_| {
                        Continue(())
                    });
                let info = found.unwrap().info;
                assert!(info.trials > 0, "no search: {info:?}");
                calls() - before
            })
        });
        assert!(
            runs.any(|calls| calls == 0),
            "{layout:?}, {} threads: allocations",
            pool.current_num_threads()
        );
    }
}

/// Whether a long run allocates as often as a short one. The main thread says after a minute that
/// the test is still running, and allocates for it: so again where they differ.
fn is_flat(mut run: impl FnMut(u32) -> usize) -> bool {
    (0..2).any(|_| run(SHORT) == run(LONG))
}

/// One test: others beside it would be counted.
#[test]
fn steps_allocate_nothing_and_operator_holds_stated_memory() {
    let made = planted::network(DIMS, Signs::Balanced, 0).unwrap();
    let classes: Vec<u16> = (0..DIMS.samples).map(|k| (k % CLASSES) as u16).collect();
    let small: Vec<u8> =
        made.data.values.clone().into_f32().iter().map(|x| (x * 40.0 + 128.0) as u8).collect();
    let layouts = [
        Layout::new(24, 40),
        Layout { tile: 64, panel: 5, hold: false, gram: 0, ..Layout::new(1, 1) },
    ];
    let kinds = [made.data.values.clone(), Values::U8(small)];
    let operator = |values: &Values, layout| {
        let data = Matrix::new(DIMS.samples, DIMS.inputs, values.clone()).unwrap();
        let before = bytes();
        let sensing =
            Blocked::new(data, DIMS.hidden, 3 * DIMS.nnz, layout).unwrap().with_outputs(CLASSES);
        (sensing, bytes() - before)
    };
    let each =
        || kinds.iter().flat_map(|values| layouts.iter().map(move |&layout| (values, layout)));
    // Before any pool: the threads of one that is dropped give their memory back when they end.
    for (values, layout) in each() {
        // The main thread, which waits for this one, may allocate meanwhile as well, but not every
        // time.
        let (sensing, first) = operator(values, layout);
        let held = (0..3).map(|_| operator(values, layout).1).fold(first, usize::min);
        assert_eq!(held, sensing.workspace_bytes(), "{layout:?}");
    }
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for (values, layout) in each() {
            let mut sensing = operator(values, layout).0;
            for schedule in schedules() {
                let mut run =
                    |epochs| allocations(&pool, &mut sensing, &made.labels, &schedule, epochs);
                run(SHORT);
                assert!(is_flat(run), "{layout:?}, {threads} threads, {schedule:?}");
            }
            let mut run = |epochs| annealed(&pool, &mut sensing, &classes, epochs);
            run(SHORT);
            assert!(is_flat(run), "{layout:?}, {threads} threads, annealed");
        }
        searches_allocate_nothing(&pool);
        searches_of_few_rows_allocate_nothing(&pool);
    }
}
