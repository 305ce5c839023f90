//! The least programs that predict, for their size alone: one that does nothing, one that reads a model file of each kind, and one
//! with tables for each kernel. Which one it is follows from the name of the binary.
//!
//! Tables and row are volatile, so the compiler knows nothing about them but their types. Errors are looked at, as programs do.
#![no_std]
#![no_main]

#[path = "plain.rs"]
#[allow(dead_code, reason = "of one program")]
mod plain;

use core::panic::PanicInfo;
use core::ptr;
use semihosting::process::exit;
use tamis::model::{self, Activation, Sum};
use tamis::quantised::{
    Blocks, Columns, Csr, Delta, Dense, Encoding, Fan, Layer, Mask, Model, Scales, Weights,
};
use tamis::wire::{QuantisedView, View};
use tamis::{Error, Result};

static WORDS: &[u32] = &[];
static HALVES: &[u16] = &[];
static BYTES: &[u8] = &[];
static VALUES: &[i8] = &[];
static BIASES: &[i32] = &[];
static PAIRS: &[[u8; 2]] = &[];
static FLOATS: &[f32] = &[];
static INPUTS: usize = 0;

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
            floats(view.model())
        }
        b"flash-file-integers" => {
            let view = QuantisedView::parse(unknown(&BYTES))?;
            integers(view.model())
        }
        b"flash-floats" => {
            let csr = model::Csr::new(
                unknown(&INPUTS),
                unknown(&HALVES),
                unknown(&HALVES),
                unknown(&FLOATS),
                Activation::Relu,
            );
            let sum = Sum::new(unknown(&INPUTS), unknown(&WORDS))?;
            let layers = [model::Layer::Csr(csr?), model::Layer::Sum(sum)];
            floats(&model::Model::new(&layers)?)
        }
        b"flash-dense-floats" => {
            let mut out = [0.0; 32];
            plain::dense(unknown(&FLOATS), unknown(&FLOATS), &mut out);
            out.first().map(|&y| y.to_bits() as i32).ok_or(Error::Stopped)
        }
        b"flash-integers" => {
            let layers = Encoding::ALL.map(weights);
            let mut made = [layer(Encoding::Csr)?; Encoding::ALL.len()];
            for (place, weights) in made.iter_mut().zip(layers) {
                *place = around(weights?)?;
            }
            of_layers(made.get(..unknown(&INPUTS)).ok_or(Error::Stopped)?)
        }
        b"flash-dense" => of_layers(&[layer(Encoding::Dense)?]),
        b"flash-dense-used" => of_layers(&[layer(Encoding::DenseUsed)?]),
        b"flash-mask" => of_layers(&[layer(Encoding::Mask)?]),
        b"flash-mask-used" => of_layers(&[layer(Encoding::MaskUsed)?]),
        b"flash-csr" => of_layers(&[layer(Encoding::Csr)?]),
        b"flash-delta" => of_layers(&[layer(Encoding::Delta)?]),
        b"flash-blocks" => of_layers(&[layer(Encoding::Blocks)?]),
        b"flash-fan" => of_layers(&[layer(Encoding::Fan)?]),
        _ => Ok(unknown(&INPUTS) as i32),
    }
}

/// Weights in an encoding.
#[inline(always)]
fn weights(encoding: Encoding) -> Result<Weights<'static>> {
    let (inputs, outputs) = (unknown(&INPUTS), unknown(&INPUTS));
    let (halves, values) = (unknown(&HALVES), unknown(&VALUES));
    match encoding {
        Encoding::Dense => Dense::new(inputs, outputs, &[], values).map(Weights::Dense),
        Encoding::DenseUsed => Dense::new(inputs, outputs, halves, values).map(Weights::Dense),
        Encoding::Mask => Mask::new(inputs, outputs, &[], unknown(&WORDS), values).map(Weights::Mask),
        Encoding::MaskUsed => Mask::new(inputs, outputs, halves, unknown(&WORDS), values).map(Weights::Mask),
        Encoding::Csr => Csr::new(inputs, halves, unknown(&HALVES), values).map(Weights::Csr),
        Encoding::Delta => Delta::new(inputs, halves, unknown(&BYTES), values).map(Weights::Delta),
        Encoding::Blocks => {
            Blocks::new(inputs, outputs, unknown(&BYTES), unknown(&PAIRS)).map(Weights::Blocks)
        }
        Encoding::Fan => {
            let columns = Columns::U16(unknown(&HALVES));
            Fan::new(inputs, outputs, columns, values).map(Weights::Fan)
        }
        _ => Err(Error::Stopped),
    }
}

#[inline(always)]
fn layer(encoding: Encoding) -> Result<Layer<'static>> {
    around(weights(encoding)?)
}

fn around(weights: Weights<'static>) -> Result<Layer<'static>> {
    Layer::new(weights, unknown(&WORDS), unknown(&BIASES), Activation::Relu)
}

fn of_layers(layers: &[Layer<'_>]) -> Result<i32> {
    let sum = Sum::new(unknown(&INPUTS), unknown(&WORDS))?;
    let scales = Scales::new(1.0, 1.0, 0, 0)?;
    integers(&Model::new(layers, Some(sum), scales)?)
}

#[inline(always)]
fn floats(model: &model::Model<'_>) -> Result<i32> {
    let (mut scratch, mut out) = ([0.0; 32], [0.0; 32]);
    let out = out.get_mut(..model.outputs()).ok_or(Error::Stopped)?;
    model.predict(unknown(&FLOATS), &mut scratch, out)?;
    out.first().map(|&y| y.to_bits() as i32).ok_or(Error::Stopped)
}

#[inline(always)]
fn integers(model: &Model<'_>) -> Result<i32> {
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
