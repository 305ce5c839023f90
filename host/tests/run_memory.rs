//! Training takes the bytes that its plan states: counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::train::Schedule;
use tamis_host::data::planted;
use tamis_host::run::{self, Memory, Options, Plan, Problem, Size, Task};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Threads, file names, the report: what does not grow with the problem.
const SLACK: usize = 192 << 10;

/// One test: others beside it would be counted.
#[test]
fn training_takes_what_its_plan_states_and_allocates_nothing_per_step() {
    let dims = Dims::new(20_000, 60, 40, 200);
    let plan = |memory| Plan::new(dims, false, &Schedule::PAPER, memory).unwrap();
    for memory in [Memory::Auto, Memory::Panel(3), Memory::Ram(plan(Memory::Auto).total_bytes() / 3)] {
        let planted = planted::network(dims, Signs::Positive, 0).unwrap();
        let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
        let options = Options { memory, threads: 2, ..Options::new(40, Size::Nonzeros(200)) };
        let before = NOW.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let (mut first, mut last) = (0, 0);
        let outcome = run::train(problem, &options, |progress| {
            last = CALLS.load(Ordering::Relaxed);
            if progress.step == 1 {
                first = last;
            }
            true
        })
        .unwrap();
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let plan = plan(memory);
        assert_eq!(outcome.report.plan, plan, "{memory:?}");
        let stated = plan.total_bytes() as usize;
        // Turning the rows of a tile takes a copy of one tile, given back before training.
        assert!(peak <= stated + SLACK, "{memory:?}: {peak} bytes at the peak, {stated} stated");
        assert!(last - first <= 8, "{memory:?}: {} allocations in 14 steps", last - first);
    }
}
