//! Training takes the bytes that its plan states: counted by the allocator.

mod counting;

use std::ops::ControlFlow;

use counting::{bytes, settle};
use tamis::base::dims::Dims;
use tamis::learn::deep::tune;
use tamis::learn::train::{Schedule, Trials};
use tamis::network::gates::Signs;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::operator::Layout;
use tamis_host::operator::Stop;
use tamis_host::train::{
    LayersOptions, Memory, OutputsOptions, PaperOptions, Plan, Start, train_with,
};
use tamis_host::{Budget, Options, Recipe, Result, Trained};

/// Model bytes, the report, and the order of the rows while they are shuffled into place (given
/// back before training).
const SLACK: usize = 32 << 10;

/// Three epochs of the published method, from two random starts.
fn published() -> PaperOptions {
    let usual = PaperOptions::default();
    let schedule =
        Schedule { epochs: 3, trials: Trials { count: 2, rows: 1000 }, ..usual.schedule };
    PaperOptions { schedule, ..usual }
}

fn options(dims: Dims, memory: Memory, recipe: Recipe) -> Options {
    Options {
        hidden: vec![dims.hidden],
        recipe,
        memory,
        threads: 1,
        ..Options::new(Budget::nnz(dims.nnz))
    }
}

fn run(problem: Problem, options: &Options, mut see: impl FnMut() + Send) -> Result<Trained> {
    train_with(problem, options, Start::Zero, &Stop::new(), |_| {
        see();
        ControlFlow::Continue(())
    })
}

/// Bytes at the peak of a run, above what was there before it, and what its plan states.
fn peak(dims: Dims, memory: Memory) -> (usize, usize) {
    let planted = planted::network(dims, Signs::Positive, 0).unwrap();
    let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let planned = Plan::new(dims, false, &published().schedule, memory).unwrap();
    let options = options(dims, memory, Recipe::Paper(published()));
    settle();
    let mut held = Vec::with_capacity(1000);
    let (outcome, peak) = counting::peak(|| run(problem, &options, || held.push(bytes())));
    let outcome = outcome.unwrap();
    let plan = outcome.report.plan.unwrap();
    // A plan by itself is for all threads of the machine, this run has one.
    assert_eq!(Layout { at_once: 1, ..planned.layout }, plan.layout, "{memory:?}");
    assert!(
        held.iter().all(|&now| now == held[0]),
        "{memory:?}: memory is kept from step to step: {held:?}"
    );
    (peak, plan.total_bytes() as usize)
}

/// The same of a search for a network of several outputs.
fn peak_of_search(dims: Dims, outputs: usize, memory: Memory) -> (usize, usize) {
    let planted = planted::factored(dims, outputs, 0).unwrap();
    let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let options = options(dims, memory, Recipe::Auto);
    settle();
    let mut held = Vec::with_capacity(10_000);
    let (outcome, peak) = counting::peak(|| run(problem, &options, || held.push(bytes())));
    assert!(
        held.iter().all(|&now| now == held[0]),
        "{memory:?}: memory is kept from step to step: {held:?}"
    );
    (peak, outcome.unwrap().report.total_bytes() as usize)
}

/// The same of two hidden layers, one by one, of networks of one output or of several.
fn peak_of_layers(rows: usize, outputs: usize, memory: Memory) -> (usize, usize) {
    let problem = layered(rows, outputs);
    let tune = tune::Params { epochs: 2, ..tune::Params::DEFAULT };
    let safe = OutputsOptions { safe: outputs > 1, epochs: 3, ..OutputsOptions::PUBLISHED };
    let options = Options {
        hidden: vec![12, 10],
        recipe: Recipe::Paper(PaperOptions { outputs: safe, ..published() }),
        layers: Some(LayersOptions { tune, ..LayersOptions::default() }),
        memory,
        threads: 1,
        ..Options::new(Budget::nnz(80))
    };
    settle();
    let (outcome, peak) = counting::peak(|| run(problem, &options, || ()));
    let report = outcome.unwrap().report;
    (peak, (report.layers().unwrap().mapped_bytes + report.total_bytes()) as usize)
}

fn layered(rows: usize, outputs: usize) -> Problem {
    let dims = Dims::new(rows, 60, 8, 60);
    let (data, labels) = if outputs == 1 {
        let planted = planted::network(dims, Signs::Positive, 0).unwrap();
        (planted.data, planted.labels)
    } else {
        let planted = planted::factored(dims, outputs, 0).unwrap();
        (planted.data, planted.labels)
    };
    Problem { data, labels, task: Task::Regression }
}

/// One test: others beside it would be counted. What the thread itself takes is there for the
/// smallest problem too, and is taken off.
#[test]
fn training_memory_equals_plan_without_growth_per_step() {
    let (least, stated) = peak(Dims::new(5000, 4, 1, 1), Memory::Auto);
    let constant = least - stated;
    let dims = Dims::new(20_000, 60, 40, 200);
    let (_, usual) = peak(dims, Memory::Auto);
    for memory in [Memory::Auto, Memory::Panel(3), Memory::Ram(usual as u64 * 2 / 3)] {
        let (peak, stated) = peak(dims, memory);
        let more = peak.saturating_sub(stated + constant);
        assert!(
            more <= SLACK,
            "{memory:?}: {peak} bytes at the peak, {stated} stated, {constant} constant"
        );
    }
    let dims = Dims::new(20_000, 60, 10, 50);
    let (_, usual) = peak_of_search(dims, 5, Memory::Auto);
    for memory in [Memory::Auto, Memory::Panel(3), Memory::Ram(usual as u64 * 9 / 10)] {
        let (peak, stated) = peak_of_search(dims, 5, memory);
        // The labels are put into their order once more before the search, beside what it then
        // takes.
        let more = peak.saturating_sub(stated + constant);
        assert!(more <= SLACK, "search, {memory:?}: {peak} bytes at the peak, {stated} stated");
    }
    for outputs in [1, 5] {
        for memory in [Memory::Auto, Memory::Ram(1 << 20), Memory::Ram(100_000), Memory::Least] {
            let (peak, stated) = peak_of_layers(8_000, outputs, memory);
            // Labels are put into their order before a layer is trained; a budget has room for that.
            let most = match memory {
                Memory::Ram(ram) if ram < 1 << 20 => stated.max(ram as usize),
                _ => stated,
            };
            let more = peak.saturating_sub(most + constant);
            assert!(
                more <= SLACK,
                "{outputs} outputs, {memory:?}: {peak} bytes at the peak, {stated} stated"
            );
            if let Memory::Ram(ram) = memory {
                assert!(stated as u64 <= ram, "{outputs} outputs: {stated} stated in {ram}");
            }
        }
        // A bit for each row, while their order is made and undone, is all that grows with them. What threads take to hand
        // each other work differs from run to run by some KB: the least of three runs at most.
        let (few, stated) = peak_of_layers(8_000, outputs, Memory::Least);
        let most = few + 24_000 / 8 + 4096;
        let mut many = usize::MAX;
        for _ in 0..3 {
            let (peak, same) = peak_of_layers(32_000, outputs, Memory::Least);
            assert_eq!(stated, same);
            many = many.min(peak);
            if many <= most {
                break;
            }
        }
        assert!(many <= most, "{outputs} outputs: {few} and {many} bytes at the peak");
        assert!(
            many < 150_000,
            "{outputs} outputs: {many} bytes beside {} of data",
            32_000 * 60 * 4
        );
    }
}
