//! Ctrl-C: at once where nothing is lost, after the current step of a training run, after a file that is being written.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::{INTERRUPTED, say_error};
use crate::{Error, Result};

/// Nothing would be lost.
const IDLE: u8 = 0;
/// The observer of a training run asks after every step.
const TRAINING: u8 = 1;
/// Temporary files are on the disk.
const SAVING: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(IDLE);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on.
pub(super) fn install() -> Result<()> {
    ctrlc::set_handler(interrupted).map_err(|error| Error::new("cannot listen for Ctrl-C").source(error))
}

/// Whether the run should end.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Runs a training run, whose observer asks [`asked`].
pub(super) fn training<T>(work: impl FnOnce() -> T) -> T {
    during(TRAINING, work)
}

/// Writes files; an interrupt waits until they are whole.
pub(super) fn saving<T>(work: impl FnOnce() -> T) -> T {
    during(SAVING, work)
}

fn during<T>(phase: u8, work: impl FnOnce() -> T) -> T {
    let before = PHASE.swap(phase, Ordering::SeqCst);
    let done = work();
    PHASE.store(before, Ordering::SeqCst);
    done
}

fn interrupted() {
    let again = ASKED.swap(true, Ordering::SeqCst);
    match PHASE.load(Ordering::SeqCst) {
        TRAINING if !again => {
            say_error(format_args!(
                "\ninterrupted: ending after this step and saving; once more to end at once"
            ));
        }
        SAVING => {}
        _ => std::process::exit(i32::from(INTERRUPTED)),
    }
}
