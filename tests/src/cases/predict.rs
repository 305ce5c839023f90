//! Prediction from a model in flash: 784 inputs, ten outputs, 1000 nonzeros, and the same with 500.
//!
//! The two differ in nonzeros only, so that the difference of their instruction counts is the cost
//! of nonzeros alone.

use super::digest::{Digest, Probe};
use core::hint::black_box;
use tamis::infer::model::{Activation, Csr, Layer, Model};

const INPUTS: usize = 784;
const OUTPUTS: usize = 10;

/// A layer of `N` nonzeros, as many in every row.
struct Flash<const N: usize> {
    counts: [u16; OUTPUTS],
    columns: [u16; N],
    values: [f32; N],
}

static MANY: Flash<1000> = flash();
static FEW: Flash<500> = flash();
static BYTES: [u8; INPUTS] = bytes();
static FLOATS: [f32; INPUTS] = floats();

/// A generator of pseudorandom numbers that the compiler can run.
const fn next(state: u32) -> u32 {
    state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

const fn flash<const N: usize>() -> Flash<N> {
    let row = N / OUTPUTS;
    let mut layer = Flash { counts: [row as u16; OUTPUTS], columns: [0; N], values: [0.0; N] };
    let (mut k, mut state) = (0, N as u32);
    while k < N {
        state = next(state);
        // One column at random in each of as many equal intervals as the row has entries.
        let width = INPUTS / row;
        layer.columns[k] = ((k % row) * width + (state >> 16) as usize % width) as u16;
        state = next(state);
        layer.values[k] = ((state >> 8) as f32 - 8_388_608.0) / 8_388_608.0;
        k += 1;
    }
    layer
}

const fn bytes() -> [u8; INPUTS] {
    let mut row = [0; INPUTS];
    let (mut k, mut state) = (0, 7);
    while k < INPUTS {
        state = next(state);
        row[k] = (state >> 24) as u8;
        k += 1;
    }
    row
}

const fn floats() -> [f32; INPUTS] {
    let (bytes, mut row) = (bytes(), [0.0; INPUTS]);
    let mut k = 0;
    while k < INPUTS {
        row[k] = bytes[k] as f32 / 3.0;
        k += 1;
    }
    row
}

impl<const N: usize> Flash<N> {
    fn layer(&'static self) -> tamis::Result<Layer<'static>> {
        let this = black_box(self);
        Csr::new(INPUTS, &this.counts, &this.columns, &this.values, Activation::Identity)
            .map(Layer::Csr)
    }
}

/// Digest of the outputs for a row of floats and one of bytes; 0 if a call failed.
pub(super) fn predict<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let names = ["f32, 1000 nonzeros", "u8, 1000 nonzeros"];
    let many = MANY.layer().and_then(|layer| run(probe, &mut digest, layer, names));
    let names = ["f32, 500 nonzeros", "u8, 500 nonzeros"];
    let few = FEW.layer().and_then(|layer| run(probe, &mut digest, layer, names));
    if many.and(few).is_ok() { digest.value() } else { 0 }
}

#[inline(never)]
fn run<P: Probe>(
    probe: &mut P,
    digest: &mut Digest,
    layer: Layer<'_>,
    [floats, bytes]: [&'static str; 2],
) -> tamis::Result<()> {
    let model = Model::new(&[layer])?;
    let nonzeros = layer_nonzeros(&layer);
    let mut out = [0.0; OUTPUTS];
    let row = black_box(&FLOATS);
    probe.start();
    let done = model.predict(row, &mut [], &mut out);
    probe.stop(floats, nonzeros);
    done?;
    out.iter().for_each(|&y| digest.float(y));
    let row = black_box(&BYTES);
    probe.start();
    let done = model.predict_u8(row, &mut [], &mut out);
    probe.stop(bytes, nonzeros);
    done?;
    out.iter().for_each(|&y| digest.float(y));
    Ok(())
}

fn layer_nonzeros(layer: &Layer<'_>) -> u32 {
    match layer {
        Layer::Csr(csr) => csr.nonzeros() as u32,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    /// Against dense products in double precision.
    #[test]
    fn predictions_are_those_of_the_dense_matrix() {
        let model = Model::new(&[MANY.layer().unwrap()]).unwrap();
        let (mut floats, mut bytes) = ([0.0; OUTPUTS], [0.0; OUTPUTS]);
        model.predict(&FLOATS, &mut [], &mut floats).unwrap();
        model.predict_u8(&BYTES, &mut [], &mut bytes).unwrap();
        let mut dense = std::vec![[0.0_f64; INPUTS]; OUTPUTS];
        for (k, (&column, &value)) in MANY.columns.iter().zip(&MANY.values).enumerate() {
            dense[k / 100][usize::from(column)] += f64::from(value);
        }
        for (j, row) in dense.iter().enumerate() {
            let of = |x: &dyn Fn(usize) -> f64| {
                row.iter().enumerate().map(|(k, w)| w * x(k)).sum::<f64>()
            };
            let (a, b) = (of(&|k| f64::from(FLOATS[k])), of(&|k| f64::from(BYTES[k])));
            assert!((a - f64::from(floats[j])).abs() < 1e-3, "{a} {}", floats[j]);
            assert!((b - f64::from(bytes[j])).abs() < 3e-3, "{b} {}", bytes[j]);
        }
    }
}
