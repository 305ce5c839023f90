//! An allocator that counts. A test that declares this module has it as its global allocator, and should be the only
//! one of its file: others beside it would be counted.
#![allow(dead_code, reason = "each test file uses its part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static NOW: AtomicUsize = AtomicUsize::new(0);
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

/// The most bytes that were allocated at once while `run` ran, above what was before.
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = bytes();
    PEAK.store(before, SeqCst);
    let result = run();
    (result, PEAK.load(SeqCst) - before)
}

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(now, SeqCst);
    CALLS.fetch_add(1, SeqCst);
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Counted as the worst case, the new block beside the old one.
        grow(size);
        NOW.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
