//! The vibration monitor of `examples/firmware` on a machine and an accelerometer that are
//! computed, with its network in the program and in a chip on an SPI bus.

use super::digest::{Digest, Probe};
use crate::simulated::Chip;
use core::hint::black_box;
use tamis_monitor::simulated::{Accelerometer, Clock, Pin};
use tamis_monitor::{
    CONFIRM, Class, Classifier, Embedded, Lis3dh, MODEL_FILE, Monitor, Streamed, TRIES,
};

/// What the machine does, window after window.
const PLAN: &[Class] = {
    use Class::{Running, Stopped, Unbalanced};
    &[
        Stopped, Running, Running, Running, Unbalanced, Unbalanced, Unbalanced, Running, Stopped,
        Stopped,
    ]
};
/// The first transfer of the fifth window: eight of the first one, four of each other.
const LOST: u32 = 8 + 3 * 4;

/// Digest of the classes and of the pin, undisturbed, with one transfer that is lost, and with as
/// many as are tried; 0 unless each class is the right one, the pin follows, and it is low in the
/// fault.
pub(super) fn watch<P: Probe>(_probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let mut done = Some(());
    for lost in [0, 1, TRIES] {
        let embedded = black_box(Embedded::default());
        done = done.and_then(|()| run(&mut digest, embedded, lost));
        done = done.and_then(|()| run(&mut digest, streamed()?, lost));
    }
    if done.is_some() { digest.value() } else { 0 }
}

fn streamed() -> Option<Streamed<Chip<'static>>> {
    Streamed::open(Chip::new(black_box(MODEL_FILE)), MODEL_FILE.len() as u32, 0).ok()
}

/// One run, in which `lost` transfers in a row are not acknowledged.
#[inline(never)]
fn run<Model: Classifier>(digest: &mut Digest, model: Model, lost: u8) -> Option<()> {
    let chip = Accelerometer::new(3, PLAN).failing(LOST, lost.into());
    let mut monitor =
        Monitor::new(Lis3dh::new(chip, 0x18), model, Pin::default(), Clock::default());
    let (mut may_run, mut against) = (false, 0);
    for (k, &class) in PLAN.iter().enumerate() {
        let retries = if k == 4 { lost } else { 0 };
        if retries >= TRIES {
            monitor.step().is_err().then_some(())?;
            return (!monitor.release().1.is_high).then_some(());
        }
        let status = monitor.step().ok()?;
        against = if class.is_good() == may_run { 0 } else { against + 1 };
        (may_run, against) = if against >= CONFIRM { (!may_run, 0) } else { (may_run, against) };
        (status.class == class && status.may_run == may_run && status.retries == retries)
            .then_some(())?;
        digest.word(
            status.class as u32 | u32::from(status.may_run) << 8 | u32::from(status.retries) << 16,
        );
    }
    let (chip, pin) = monitor.release();
    digest.word(chip.transfers());
    (pin.is_high == may_run).then_some(())
}
