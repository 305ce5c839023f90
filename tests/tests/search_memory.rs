//! What the recipes `lm` and `anneal` hold and allocate, counted by the allocator: the plan to the
//! byte, nothing per step, and for ten times as many neurons more gates only, which a budget does
//! without.

mod counting;

use std::ops::ControlFlow;

use counting::{bytes, bytes_of_numbers, calls, settle};
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::learn::anneal;
use tamis::learn::lm;
use tamis::network::gates::Signs;
use tamis_host::data::{Problem, Task};
use tamis_host::data::{Values, planted};
use tamis_host::operator::Stop;
use tamis_host::train::{AnnealOptions, LmOptions, Memory, Plan, Start, train_with};
use tamis_host::{Budget, Options, Recipe};

/// What an observer saw at one call.
#[derive(Debug, Clone, Copy)]
struct Mark {
    bytes: usize,
    numbers: usize,
    calls: usize,
}

impl Mark {
    fn now() -> Self {
        Self { bytes: bytes(), numbers: bytes_of_numbers(), calls: calls() }
    }
}

/// What an observer saw.
struct Seen(Vec<Mark>);

impl Seen {
    fn mark(&mut self) {
        if self.0.is_empty() {
            // Threads that have not started yet would allocate later.
            rayon::broadcast(|_| ());
        }
        assert!(self.0.len() < self.0.capacity(), "the marks themselves would be counted");
        self.0.push(Mark::now());
    }
}

fn regression(dims: Dims, outputs: usize, second: Option<usize>) -> Problem {
    let (data, labels) = match outputs {
        1 if second.is_some() => {
            // As many weights in either layer.
            let Dims { samples, inputs, hidden, nnz, .. } = dims;
            let made = planted::deep(samples, inputs, &[hidden, hidden], 1, nnz, 0).unwrap();
            (made.data, made.labels)
        }
        1 => {
            let made = planted::network(dims, Signs::Positive, 0).unwrap();
            (made.data, made.labels)
        }
        outputs => {
            let made = planted::factored(dims, outputs, 0).unwrap();
            (made.data, made.labels)
        }
    };
    Problem { data, labels, task: Task::Regression }
}

fn classes(dims: Dims, classes: usize, small: bool) -> Problem {
    let mut data = planted::network(dims, Signs::Positive, 0).unwrap().data;
    if small {
        let values = data.values.into_f32().iter().map(|x| (x * 40.0 + 128.0) as u8).collect();
        data.values = Values::U8(values);
    }
    let labels = (0..dims.samples).map(|k| (k % classes) as f32).collect();
    Problem { data, labels, task: Task::Multiclass }
}

/// A recipe and the sizes of its problem.
#[derive(Debug, Clone, Copy)]
struct Case {
    dims: Dims,
    /// c; for `anneal` the classes.
    outputs: usize,
    /// Neurons of a second layer.
    second: Option<usize>,
    anneal: bool,
    memory: Memory,
    threads: usize,
    /// Outer steps at the most; for `anneal` epochs.
    steps: u32,
}

/// What a run held at its first step, beside samples and labels.
#[derive(Debug, Clone, Copy)]
struct Held {
    bytes: usize,
    numbers: usize,
    plan: Plan,
}

impl Case {
    fn options(&self, recipe: Recipe) -> Options {
        Options {
            hidden: [Some(self.dims.hidden), self.second].into_iter().flatten().collect(),
            recipe,
            memory: self.memory,
            threads: self.threads,
            ..Options::new(Budget::nnz(self.dims.nnz))
        }
    }

    /// Runs, and checks that nothing is asked for and nothing given back from the first step of a
    /// search to its last, and that no search holds more than the first.
    fn run(self) -> Held {
        let mut seen = Seen(Vec::with_capacity(20_000));
        let stop = Stop::new();
        let (before, plan, labels) = if self.anneal {
            let problem = classes(self.dims, self.outputs, self.dims.inputs % 2 == 1);
            settle();
            let before = Mark::now();
            let usual = AnnealOptions::default();
            let params = anneal::Params { epochs: self.steps, ..usual.params };
            let recipe = Recipe::Anneal(AnnealOptions { params, least_steps: 0, ..usual });
            let outcome = train_with(problem, &self.options(recipe), Start::Zero, &stop, |_| {
                seen.mark();
                ControlFlow::Continue(())
            });
            // A class takes two bytes while it trains, and four before.
            (before, outcome.unwrap().report.plan.unwrap(), 2 * self.dims.samples)
        } else {
            let problem = regression(self.dims, self.outputs, self.second);
            settle();
            let before = Mark::now();
            let params = lm::Params { steps: self.steps, ..lm::Params::DEFAULT };
            let recipe = Recipe::Lm(LmOptions { params, ..LmOptions::default() });
            let outcome = train_with(problem, &self.options(recipe), Start::Zero, &stop, |_| {
                seen.mark();
                ControlFlow::Continue(())
            });
            (before, outcome.unwrap().report.plan.unwrap(), 0)
        };
        let Seen(marks) = seen;
        assert!(marks.len() > 3, "{self:?}: {} steps", marks.len());
        let searches: Vec<_> = marks.chunk_by(|one, next| one.numbers == next.numbers).collect();
        // Two layers with few weights for their neurons have another search, of fewer neurons.
        let most = if self.second.is_some() { 2 } else { 1 };
        assert!(searches.len() <= most, "{self:?}: {} sizes", searches.len());
        for (at, search) in searches.into_iter().enumerate() {
            let first = search[0];
            assert!(first.numbers <= marks[0].numbers, "{self:?}: more in search {at}");
            for (step, mark) in search.iter().enumerate() {
                // The queues of a pool with several threads renew a block of their own now and then.
                let (most_calls, most_bytes) =
                    if self.threads == 1 { (0, 0) } else { (32, 1 << 13) };
                let (calls, bytes) = (mark.calls - first.calls, mark.bytes.abs_diff(first.bytes));
                assert!(
                    calls <= most_calls && bytes <= most_bytes,
                    "{self:?}: {calls} calls, {bytes} bytes at step {step} of search {at}"
                );
            }
        }
        let (bytes, numbers) = (marks[0].bytes + labels, marks[0].numbers + labels);
        Held { bytes: bytes - before.bytes, numbers: numbers - before.numbers, plan }
    }
}

/// Groups of tiles, each with a buffer of its own, rooms for those that are worked on at a time, each with ten buffers and
/// two numbers, and blocks of 64 columns of a Gram matrix: the headers of these are in the plan as well.
fn headers(dims: Dims, plan: &Plan) -> usize {
    let buffer = size_of::<Vec<f32>>() + size_of::<usize>();
    let room = 10 * buffer + 2 * size_of::<usize>();
    let gram = plan.layout.gram.next_multiple_of(16).div_ceil(64) * size_of::<Vec<f32>>();
    let groups = groups(dims, plan);
    groups * buffer + groups.min(plan.layout.at_once) * room + gram
}

fn groups(dims: Dims, plan: &Plan) -> usize {
    dims.samples.div_ceil(plan.layout.tile).min(plan.layout.groups)
}

/// What a thread of the pool takes, its queue and the marks by which it is asked to end, which no
/// plan states.
const PER_THREAD: usize = 16 << 10;

fn plan_to_the_byte(lm: Case) {
    let annealed = Case { anneal: true, outputs: 4, steps: 6, ..lm };
    let kinds = [lm, Case { outputs: 3, ..lm }, Case { second: Some(7), steps: 8, ..lm }, annealed];
    let places = [
        (Memory::Auto, lm.dims),
        (Memory::Auto, Dims::new(1100, 51, 40, 90)),
        (Memory::Panel(1), lm.dims),
        (Memory::Ram(300 << 10), lm.dims),
    ];
    for (at, kind) in kinds.into_iter().enumerate() {
        for (place, (memory, dims)) in places.into_iter().enumerate() {
            // Every kind and every place with one thread and with two.
            let case = Case { memory, dims, threads: 1 + (at + place) % 2, ..kind };
            let Held { bytes, numbers, plan } = case.run();
            let stated = plan.total_bytes() as usize;
            assert_eq!(numbers + headers(dims, &plan), stated, "{case:?}: {plan:?}");
            assert!(
                bytes <= stated + case.threads * PER_THREAD,
                "{case:?}: {bytes} bytes, {stated} stated"
            );
        }
    }
}

/// Ten times the neurons: state is the same to the byte, and the only part of the workspace that is
/// larger are the gates that are held as bits, which a budget does without, and the numbers of their
/// neurons.
fn ten_times_the_neurons(case: Case, per_nonzero: u64) {
    let of = |hidden, memory| {
        let Dims { samples, inputs, nnz, .. } = case.dims;
        let dims = Dims::new(samples, inputs, hidden, nnz);
        Case { dims, memory, ..case }.run()
    };
    let (few, many) = (of(100, Memory::Panel(16)), of(1000, Memory::Panel(16)));
    assert_eq!(few.plan.state_bytes, many.plan.state_bytes, "{case:?}");
    let per = few.plan.state_bytes / case.dims.nnz as u64;
    assert!(per < per_nonzero, "{case:?}: {per} bytes of state a nonzero");
    let gates = |plan: &Plan, hidden| {
        let tiles = case.dims.samples.div_ceil(plan.layout.tile) + 1;
        let held = if case.anneal { hidden } else { lm::slots(hidden, Signs::Positive) };
        let words = if plan.layout.hold { tiles * plan.layout.tile.div_ceil(32) } else { 0 };
        // And the neurons that they are of, where there is use for it.
        let marked = plan.layout.hold || plan.layout.gram > 0;
        4 * held * (words + usize::from(marked))
    };
    let without =
        [(few, 100), (many, 1000)].map(|(held, hidden)| held.numbers - gates(&held.plan, hidden));
    assert_eq!(without[0], without[1], "{case:?}: {:?} {:?}", few.plan, many.plan);
    // A budget that is enough for the few neurons, and not for the gates of the many.
    let ram = few.plan.total_bytes();
    let held = of(1000, Memory::Ram(ram));
    assert!(held.plan.total_bytes() <= ram && held.plan.state_bytes == few.plan.state_bytes);
    assert!(
        held.bytes <= ram as usize + case.threads * PER_THREAD,
        "{case:?}: {} bytes of {ram}",
        held.bytes
    );
}

// What the optimiser itself holds is known before there is a program: it has no term of m.
const _: () = {
    const fn state(hidden: usize, outputs: usize) -> usize {
        let dims = Dims::new(50_000, 100, hidden, 1000);
        match outputs {
            0 => Recovery::new(dims, 16, 50_100, false).state_bytes(),
            outputs => Recovery::factored(dims, outputs, 16, 500_100).state_bytes(),
        }
    }
    const fn annealed(hidden: usize) -> usize {
        let params = anneal::Params { batch: 500, ..anneal::Params::DEFAULT };
        params.budget(Dims::new(50_000, 100, hidden, 1000), 10, 16, 0).state_bytes()
    }
    assert!(annealed(1000) == annealed(100) && annealed(1000) == 10 * 20 * 1000);
    assert!(state(1000, 0) == state(100, 0) && state(1000, 0) < 100 * 1000);
    assert!(state(1000, 10) == state(100, 10) && state(1000, 10) < 100 * 1000);
};

/// One test: others beside it would be counted.
#[test]
fn search_memory_equals_plan_without_allocation_per_step() {
    let memory = Memory::Auto;
    let dims = Dims::new(1200, 30, 8, 40);
    let case =
        Case { dims, outputs: 1, second: None, anneal: false, memory, threads: 1, steps: 16 };
    plan_to_the_byte(case);
    let case = Case { dims: Dims::new(200, 100, 0, 1000), steps: 4, threads: 2, ..case };
    ten_times_the_neurons(case, 100);
    ten_times_the_neurons(Case { outputs: 10, ..case }, 100);
    // Ten times s entries of 20 bytes at first, and 4 bytes a nonzero for the best iterate.
    ten_times_the_neurons(Case { outputs: 10, anneal: true, ..case }, 205);
}
