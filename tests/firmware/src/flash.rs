//! The least programs that predict, for their size alone: one that does nothing, one that reads a model file of each kind, and one
//! for each kernel with a chain that has only that. Which one it is follows from the name of the binary.
//!
//! Chain and row are volatile, so the compiler knows nothing about them but their types. Errors are looked at, as programs do.
#![no_std]
#![no_main]

#[path = "plain.rs"]
#[allow(dead_code, reason = "of one program")]
mod plain;

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;
use tamis::model::{self, Activation, Sum};
use tamis::quantised::{Blocks, Chain, Columns, Csr, Delta, Dense, Fan, Layer, Mask, Scales, Weights};
use tamis::wire::{QuantisedView, View};
use tamis::{Error, Result};

static BYTES: &[u8] = &[];
static FLOATS: &[f32] = &[];
static INPUTS: usize = 0;

const ROWS: model::Layer<'static> =
    model::Layer::Csr(checked(model::Csr::new(1, &[1], &[0], &[1.0], Activation::Relu)));
const WIDE: model::Layer<'static> =
    model::Layer::Blocks(checked(model::Blocks::new(256, 1, &[1], &[0], &[1.0], Activation::Relu)));
const NARROW: model::Layer<'static> =
    model::Layer::Blocks(checked(model::Blocks::new(1, 1, &[1], &[0], &[1.0], Activation::Relu)));
const SUM: model::Layer<'static> = model::Layer::Sum(checked(Sum::new(1, &[0])));

const DENSE: Layer<'static> = layer(Weights::Dense(checked(Dense::new(1, 1, &[], &[1]))));
const DENSE_USED: Layer<'static> = layer(Weights::Dense(checked(Dense::new(2, 1, &[0], &[1]))));
const MASK: Layer<'static> = layer(Weights::Mask(checked(Mask::new(1, 1, &[], &[1], &[1]))));
const MASK_USED: Layer<'static> = layer(Weights::Mask(checked(Mask::new(2, 1, &[0], &[1], &[1]))));
const CSR: Layer<'static> = layer(Weights::Csr(checked(Csr::new(1, &[1], &[0], &[1]))));
const DELTA: Layer<'static> = layer(Weights::Delta(checked(Delta::new(1, &[1], &[0], &[1]))));
const WIDE_BLOCKS: Layer<'static> = layer(Weights::Blocks(checked(Blocks::new(256, 1, &[1], &[[0, 1]]))));
const NARROW_BLOCKS: Layer<'static> = layer(Weights::Blocks(checked(Blocks::new(1, 1, &[1], &[[0, 1]]))));
const WIDE_FAN: Layer<'static> = layer(Weights::Fan(checked(Fan::new(300, 1, Columns::U16(&[0]), &[1]))));
const NARROW_FAN: Layer<'static> = layer(Weights::Fan(checked(Fan::new(1, 1, Columns::U8(&[0]), &[1]))));

/// What was checked; an error ends the compilation.
const fn checked<T: Copy>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{}", error.what()),
    }
}

/// A layer with a bias, as both hidden layers and last ones have.
const fn layer(weights: Weights<'static>) -> Layer<'static> {
    checked(Layer::new(weights, &[], &[1], Activation::Identity))
}

/// Predicts with a chain whose kernels are those of these layers, and of which the compiler knows nothing else.
macro_rules! chain {
    ($first:expr $(, $more:expr)*) => {{
        const SET: u16 = Chain::kernels(&[$first $(, $more)*]);
        static MODEL: Chain<'static, SET> =
            checked(Chain::new(&[$first], None, checked(Scales::new(1.0, 1.0, 0, 0))));
        static PLACE: &Chain<'static, SET> = &MODEL;
        integers(unknown(&PLACE))
    }};
}

/// The same of layers of floats.
macro_rules! float_chain {
    ($first:expr $(, $more:expr)*) => {{
        const SET: u16 = model::Chain::kernels(&[$first $(, $more)*]);
        static MODEL: model::Chain<'static, SET> = checked(model::Chain::new(&[$first]));
        static PLACE: &model::Chain<'static, SET> = &MODEL;
        floats(unknown(&PLACE))
    }};
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::entry]
fn main() -> ! {
    exit(finish(run(env!("CARGO_BIN_NAME"))))
}

#[cfg(target_arch = "riscv32")]
#[riscv_rt::entry]
fn main() -> ! {
    exit(finish(run(env!("CARGO_BIN_NAME"))))
}

/// The status of the program, which may depend on everything that an error says.
fn finish(result: Result<i32>) -> i32 {
    core::hint::black_box(result).unwrap_or(-1)
}

/// The program of a name, of which the compiler keeps only that.
#[inline(always)]
fn run(name: &str) -> Result<i32> {
    let name = name.as_bytes();
    match name {
        b"flash-file-floats" => {
            let view = View::parse(unknown(&BYTES))?;
            floats(&view.model().chain())
        }
        b"flash-file-integers" => {
            let view = QuantisedView::parse(unknown(&BYTES))?;
            integers(&view.model().chain())
        }
        b"flash-floats" => float_chain!(ROWS, SUM),
        b"flash-windows" => float_chain!(WIDE, NARROW, SUM),
        b"flash-all-floats" => float_chain!(ROWS, WIDE, NARROW, SUM),
        b"flash-dense-floats" => {
            let mut out = [0.0; 32];
            plain::dense(unknown(&FLOATS), unknown(&FLOATS), &mut out);
            out.first().map(|&y| y.to_bits() as i32).ok_or(Error::Stopped)
        }
        b"flash-dense" => chain!(DENSE),
        b"flash-dense-used" => chain!(DENSE_USED),
        b"flash-mask" => chain!(MASK),
        b"flash-mask-used" => chain!(MASK_USED),
        b"flash-csr" => chain!(CSR),
        b"flash-delta" => chain!(DELTA),
        b"flash-blocks" => chain!(WIDE_BLOCKS, NARROW_BLOCKS),
        b"flash-fan" => chain!(WIDE_FAN, NARROW_FAN),
        b"flash-integers" => chain!(
            DENSE,
            DENSE_USED,
            MASK,
            MASK_USED,
            CSR,
            DELTA,
            WIDE_BLOCKS,
            NARROW_BLOCKS,
            WIDE_FAN,
            NARROW_FAN
        ),
        _ => Ok(unknown(&INPUTS) as i32),
    }
}

#[inline(always)]
fn floats<const KERNELS: u16>(model: &model::Chain<'_, KERNELS>) -> Result<i32> {
    let (mut scratch, mut out) = ([0.0; 32], [0.0; 32]);
    let out = out.get_mut(..model.outputs()).ok_or(Error::Stopped)?;
    model.predict(unknown(&FLOATS), &mut scratch, out)?;
    out.first().map(|&y| y.to_bits() as i32).ok_or(Error::Stopped)
}

#[inline(always)]
fn integers<const KERNELS: u16>(model: &Chain<'_, KERNELS>) -> Result<i32> {
    let (mut scratch, mut out) = ([0; 32], [0; 32]);
    let out = out.get_mut(..model.outputs()).ok_or(Error::Stopped)?;
    model.predict(unknown(&BYTES), &mut scratch, out)?;
    out.first().copied().ok_or(Error::Stopped)
}

/// A value of which the compiler knows nothing any more.
fn unknown<T: Copy>(place: &'static T) -> T {
    // SAFETY: reads a valid value.
    unsafe { ptr::read_volatile(place) }
}
