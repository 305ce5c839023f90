//! Training takes the bytes that its plan states: counted by the allocator.

mod counting;

use counting::{bytes, settle};
use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::train::{Schedule, Trials};
use tamis_host::data::planted;
use tamis_host::operator::Stop;
use tamis_host::run::{self, Memory, Options, Plan, Problem, RecoverOptions, Size, Task};

/// Model bytes, the report, and the order of the rows while they are shuffled into place (given back before training).
const SLACK: usize = 32 << 10;

/// Bytes at the peak of a run, above what was there before it, and what its plan states.
fn peak(dims: Dims, memory: Memory) -> (usize, usize) {
    let planted = planted::network(dims, Signs::Positive, 0).unwrap();
    let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let usual = Options::new(dims.hidden, Size::Nonzeros(dims.nnz));
    let schedule = Schedule { epochs: 3, trials: Trials { count: 2, rows: 1000 }, ..usual.schedule };
    let options = Options { memory, threads: 1, schedule, ..usual };
    let plan = Plan::new(dims, false, &options.schedule, memory).unwrap();
    settle();
    let mut held = Vec::with_capacity(1000);
    let (outcome, peak) = counting::peak(|| {
        run::train(problem, &options, &Stop::new(), |_| {
            held.push(bytes());
            true
        })
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.report.plan, plan, "{memory:?}");
    assert!(held.iter().all(|&now| now == held[0]), "{memory:?}: memory is kept from step to step: {held:?}");
    (peak, plan.total_bytes() as usize)
}

/// The same of a search for a network of several outputs.
fn peak_of_search(dims: Dims, outputs: usize, memory: Memory) -> (usize, usize) {
    let planted = planted::factored(dims, outputs, 0).unwrap();
    let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
    let usual = RecoverOptions::new(dims.hidden, Size::Nonzeros(dims.nnz));
    let options = RecoverOptions { memory, threads: 1, ..usual };
    settle();
    let mut held = Vec::with_capacity(10_000);
    let (outcome, peak) = counting::peak(|| {
        run::recover(problem, &options, &Stop::new(), |_| {
            held.push(bytes());
            true
        })
    });
    assert!(held.iter().all(|&now| now == held[0]), "{memory:?}: memory is kept from step to step: {held:?}");
    (peak, outcome.unwrap().report.plan.total_bytes() as usize)
}

/// One test: others beside it would be counted. What the thread itself takes is there for the smallest problem too, and
/// is taken off.
#[test]
fn training_takes_what_its_plan_states_and_keeps_nothing_per_step() {
    let (least, stated) = peak(Dims::new(5000, 4, 1, 1), Memory::Auto);
    let constant = least - stated;
    let dims = Dims::new(20_000, 60, 40, 200);
    let (_, usual) = peak(dims, Memory::Auto);
    for memory in [Memory::Auto, Memory::Panel(3), Memory::Ram(usual as u64 / 3)] {
        let (peak, stated) = peak(dims, memory);
        let more = peak.saturating_sub(stated + constant);
        assert!(more <= SLACK, "{memory:?}: {peak} bytes at the peak, {stated} stated, {constant} constant");
    }
    let dims = Dims::new(20_000, 60, 10, 50);
    let (_, usual) = peak_of_search(dims, 5, Memory::Auto);
    for memory in [Memory::Auto, Memory::Panel(3), Memory::Ram(usual as u64 * 2 / 3)] {
        let (peak, stated) = peak_of_search(dims, 5, memory);
        // The labels are put into their order once more before the search, beside what it then takes.
        let more = peak.saturating_sub(stated + constant);
        assert!(more <= SLACK, "search, {memory:?}: {peak} bytes at the peak, {stated} stated");
    }
}
