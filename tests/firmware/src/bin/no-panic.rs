//! A program that reads a model, predicts, writes what its layers give, keeps it in flash and
//! predicts from there, and can be linked only if nothing in it can panic.
//!
//! The panic handler calls a function that does not exist. Where the optimiser can show that no
//! panic is reached, the handler is dropped and the program links; otherwise the linker names
//! `prediction_can_panic`. The model and the row are volatile, so nothing about them is known when
//! the program is built.
#![no_std]
#![no_main]

use core::convert::Infallible;
use core::panic::PanicInfo;
use core::ptr;
use embedded_storage::nor_flash::{ErrorType, NorFlash, ReadNorFlash};
use semihosting::process::exit;
use tamis::infer::trace::{Kind, Trace};
use tamis::store::flash::Slots;
use tamis::store::stream;
use tamis::store::wire::{Aligned, View};

/// Room for a model.
static MODEL: Aligned<[u8; 1024]> = Aligned([0; 1024]);
/// Its length, and that of the row.
static LENGTHS: [usize; 2] = [92, 3];
static FLOATS: [f32; 784] = [0.0; 784];
static BYTES: [u8; 784] = [0; 784];

unsafe extern "C" {
    /// Defined nowhere.
    safe fn prediction_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    prediction_can_panic()
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(i32::from(predict().is_err() || store().is_err()))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(i32::from(predict().is_err() || store().is_err()))
}

/// Both kinds of rows, with a scratch and an output of the lengths that the model asks for.
fn predict() -> tamis::Result<f32> {
    let (model, floats, bytes) = (unknown(&MODEL.0), unknown(&FLOATS), unknown(&BYTES));
    let [len, inputs] = unknown(&LENGTHS);
    let view = View::parse(model.get(..*len).unwrap_or(&[]))?;
    let model = view.model();
    let (mut scratch, mut out) = ([0.0; 64], [0.0; 64]);
    let out = out.get_mut(..model.outputs()).unwrap_or(&mut []);
    model.predict(floats.get(..*inputs).unwrap_or(&[]), &mut scratch, out)?;
    model.predict_u8(bytes.get(..*inputs).unwrap_or(&[]), &mut scratch, out)?;
    let mut longest = 0;
    let mut trace =
        Trace::new(Kind::Floats, *len as u32, |line: &str| longest = line.len().max(longest));
    trace.floats(&model.chain(), floats.get(..*inputs).unwrap_or(&[]), &mut scratch, out)?;
    trace.finish();
    if longest == 0 {
        return Ok(f32::NAN);
    }
    Ok(out.first().copied().unwrap_or(0.0))
}

/// The same reference, of which the compiler knows nothing any more.
fn unknown<T>(value: &'static T) -> &'static T {
    let place: *const T = value;
    // SAFETY: reads a pointer on the stack, which is a copy of a valid reference.
    unsafe { &*ptr::read_volatile(&place) }
}

/// Flash in memory.
struct Flash([u8; 1024]);

impl ErrorType for Flash {
    type Error = Infallible;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Infallible> {
        let from = self.0.get(offset as usize..).unwrap_or(&[]);
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 128;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Infallible> {
        self.0.get_mut(from as usize..to as usize).unwrap_or(&mut []).fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Infallible> {
        let to = self.0.get_mut(offset as usize..).unwrap_or(&mut []);
        to.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// A payload is written, found again, and predicted from.
fn store() -> tamis::Result<()> {
    let (model, floats) = (unknown(&MODEL.0), unknown(&FLOATS));
    let [len, inputs] = unknown(&LENGTHS);
    let mut flash = Flash(*unknown(&[0; 1024]));
    let mut slots = Slots::<_, 64>::open(&mut flash, 0..unknown(&[1024, 0])[0])?;
    let entry = slots.store(1, model.get(..*len).unwrap_or(&[]))?;
    let (mut words, mut scratch, mut out) = ([0; 128], [0.0; 64], [0.0; 64]);
    slots.load(&mut words)?;
    let mut model = stream::Model::open(slots.flash(), entry.range().start, &mut words)?;
    let out = out.get_mut(..model.outputs()).unwrap_or(&mut []);
    model.predict(floats.get(..*inputs).unwrap_or(&[]), &mut words, &mut scratch, out)?;
    let mut model = stream::QuantisedModel::open(slots.flash(), entry.range().start, &mut words)?;
    let (mut scratch, mut out) = ([0; 64], [0; 64]);
    let out = out.get_mut(..model.outputs()).unwrap_or(&mut []);
    model
        .classify(unknown(&BYTES).get(..*inputs).unwrap_or(&[]), &mut words, &mut scratch, out)
        .map(|_| ())
}
