//! Ctrl-C: at once where nothing is lost, within a step of a training run, after a file that is
//! being written; the third one always at once, since an output may wait for a reader.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::common::INTERRUPTED;
use super::console::say_error;
use crate::operator::Stop;
use crate::train;
use crate::{Error, Result};

/// Nothing would be lost.
const IDLE: u8 = 0;
/// A training run looks at [`stop`] within every step.
const TRAINING: u8 = 1;
/// Temporary files are on the disk.
const SAVING: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(IDLE);
/// Long work that saves nothing before its end.
const UNSAVED: u8 = 3;
/// How often Ctrl-C was pressed.
static ASKED: AtomicU32 = AtomicU32::new(0);
static STOP: LazyLock<Stop> = LazyLock::new(Stop::new);

/// Listens from now on.
pub(super) fn install() -> Result<()> {
    ctrlc::set_handler(interrupted)
        .map_err(|error| Error::new("cannot listen for Ctrl-C").source(error))
}

/// The wish that Ctrl-C expresses.
pub(super) fn stop() -> &'static Stop {
    &STOP
}

/// Runs a training run, which heeds [`stop`].
pub(super) fn training<T>(work: impl FnOnce() -> T) -> T {
    during(TRAINING, work)
}

/// Runs work that has nothing to save before its end; an interrupt ends it at once.
pub(super) fn unsaved<T>(work: impl FnOnce() -> T) -> T {
    during(UNSAVED, work)
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
    let before = ASKED.fetch_add(1, Ordering::SeqCst);
    STOP.ask();
    match PHASE.load(Ordering::SeqCst) {
        _ if train::is_writing() && before < 2 => {}
        TRAINING if before == 0 => {
            say_error(format_args!(
                "\ninterrupted: ending, to save what the steps so far have reached; once more to \
                 end at once"
            ));
        }
        SAVING if before < 2 => {}
        UNSAVED => {
            say_error(format_args!("\ninterrupted: nothing is saved"));
            std::process::exit(i32::from(INTERRUPTED));
        }
        _ => std::process::exit(i32::from(INTERRUPTED)),
    }
}
