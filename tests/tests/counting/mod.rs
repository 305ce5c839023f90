//! An allocator that counts. A test that declares this module has it as its global allocator, and
//! should be the only one of its file: others beside it would be counted.
#![allow(dead_code, reason = "each test file uses its part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static NOW: AtomicUsize = AtomicUsize::new(0);
static NUMBERS: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Blocks asked for so far, enlarged ones included.
pub(crate) fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Bytes that are allocated now.
pub(crate) fn bytes() -> usize {
    NOW.load(SeqCst)
}

/// Bytes that are allocated now in blocks for numbers of 32 bits or less: samples, labels, weights,
/// workspaces, and buffers that begin at a line of the cache. Other blocks hold pointers and are
/// aligned to 8 bytes or more, those of a thread pool to 128.
pub(crate) fn bytes_of_numbers() -> usize {
    NUMBERS.load(SeqCst)
}

/// The most bytes that were allocated at once while `run` ran, above what was before.
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = bytes();
    PEAK.store(before, SeqCst);
    let result = run();
    (result, PEAK.load(SeqCst) - before)
}

/// Waits until the threads of the pool before have ended: a pool that is dropped does not wait for
/// them.
pub(crate) fn settle() {
    let (mut now, mut same) = (bytes(), 0);
    for _ in 0..500 {
        std::thread::sleep(Duration::from_millis(10));
        let next = bytes();
        same = if next == now { same + 1 } else { 0 };
        now = next;
        if same == 20 {
            return;
        }
    }
    panic!("the allocator never came to rest");
}

fn is_of_numbers(layout: Layout) -> bool {
    layout.align() <= 4 || layout.align() == 64
}

fn grow(layout: Layout, bytes: usize) {
    let now = NOW.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(now, SeqCst);
    CALLS.fetch_add(1, SeqCst);
    if is_of_numbers(layout) {
        NUMBERS.fetch_add(bytes, SeqCst);
    }
}

fn shrink(layout: Layout) {
    NOW.fetch_sub(layout.size(), SeqCst);
    if is_of_numbers(layout) {
        NUMBERS.fetch_sub(layout.size(), SeqCst);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout, layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Counted as the worst case, the new block beside the old one.
        grow(layout, size);
        shrink(layout);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
