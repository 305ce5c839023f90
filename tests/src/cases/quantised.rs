//! Prediction by integers from a model in flash: 784-10-10 with 1000 weights, and 784-32-10 with a
//! twentieth and a tenth of all weights, whose difference is the cost of weights alone. Then every
//! encoding on the same small layers.

use super::digest::{Digest, Probe};
use core::hint::black_box;
use tamis::infer::model::{Activation, Sum};
use tamis::infer::quantised::{
    Blocks, Dense, Encoding, Layer, Mask, Model, Scales, WINDOW, Weights,
};
use tamis::store::wire::{self, Aligned, Choice, QuantisedView};

const INPUTS: usize = 784;
const CLASSES: usize = 10;
/// 784 columns make four windows, the last of which starts at 528.
const WINDOWS: usize = 4;

/// Two layers of `ROWS` and ten rows; `COUNTS` and `PAIRS` of the first, `LAST` pairs of the
/// second.
struct Flash<const ROWS: usize, const COUNTS: usize, const PAIRS: usize, const LAST: usize> {
    counts: [u8; COUNTS],
    pairs: [[u8; 2]; PAIRS],
    last_counts: [u8; CLASSES],
    last_pairs: [[u8; 2]; LAST],
    factor: [u32; 1],
}

static SMALL: Flash<10, 40, 900, 0> = flash();
static LAST: [i8; CLASSES * CLASSES] = all();
static TWENTIETH: Flash<32, 128, 1248, 20> = flash();
static TENTH: Flash<32, 128, 2496, 40> = flash();
static BYTES: [u8; INPUTS] = bytes();

/// A number that only the arguments decide.
const fn scrambled(a: usize, b: usize) -> u32 {
    let mut x =
        (a as u32).wrapping_mul(0x9E37_79B9) ^ (b as u32).wrapping_mul(0x85EB_CA6B) ^ 0x1234_5678;
    x = (x ^ x >> 16).wrapping_mul(0x7FEB_352D);
    x = (x ^ x >> 15).wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

/// One column in each of as many equal intervals as the row has weights.
const fn column(row: usize, k: usize, per_row: usize, inputs: usize) -> usize {
    let width = inputs / per_row;
    k * width + (scrambled(row, k) % width as u32) as usize
}

const fn weight(row: usize, k: usize) -> u8 {
    (scrambled(row, k) >> 24) as u8 | 1
}

const fn flash<const ROWS: usize, const COUNTS: usize, const PAIRS: usize, const LAST: usize>()
-> Flash<ROWS, COUNTS, PAIRS, LAST> {
    let mut flash = Flash {
        counts: [0; COUNTS],
        pairs: [[0; 2]; PAIRS],
        last_counts: [(LAST / CLASSES) as u8; CLASSES],
        last_pairs: [[0; 2]; LAST],
        // 2^23 / 2^34: sums are divided by 2048.
        factor: [34 << 24 | 1 << 23],
    };
    let (mut at, mut window, per_row) = (0, 0, PAIRS / ROWS);
    while window < WINDOWS {
        let start = if window == WINDOWS - 1 { INPUTS - WINDOW } else { window * WINDOW };
        let mut row = 0;
        while row < ROWS {
            let mut k = 0;
            while k < per_row {
                let column = column(row, k, per_row, INPUTS);
                if column / WINDOW == window {
                    flash.pairs[at] = [(column - start) as u8, weight(row, k)];
                    flash.counts[window * ROWS + row] += 1;
                    at += 1;
                }
                k += 1;
            }
            row += 1;
        }
        window += 1;
    }
    let mut at = 0;
    while at < LAST {
        let per_row = LAST / CLASSES;
        let (row, k) = (at / per_row, at % per_row);
        flash.last_pairs[at] = [column(row, k, per_row, ROWS) as u8, weight(k, row)];
        at += 1;
    }
    flash
}

const fn all() -> [i8; CLASSES * CLASSES] {
    let mut values = [0; CLASSES * CLASSES];
    let mut k = 0;
    while k < values.len() {
        values[k] = weight(k, 7) as i8;
        k += 1;
    }
    values
}

const fn bytes() -> [u8; INPUTS] {
    let mut row = [0; INPUTS];
    let mut k = 0;
    while k < INPUTS {
        row[k] = (scrambled(k, 77) >> 24) as u8;
        k += 1;
    }
    row
}

impl<const ROWS: usize, const COUNTS: usize, const PAIRS: usize, const LAST: usize>
    Flash<ROWS, COUNTS, PAIRS, LAST>
{
    fn last(&'static self) -> tamis::Result<Weights<'static>> {
        let this = black_box(self);
        Blocks::new(ROWS, CLASSES, &this.last_counts, &this.last_pairs).map(Weights::Blocks)
    }
}

/// Digest of the outputs; 0 if a call failed.
pub(super) fn predict<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let dense = Dense::new(CLASSES, CLASSES, black_box(&LAST)).map(Weights::Dense);
    let small =
        dense.and_then(|last| run(probe, &mut digest, &SMALL, last, "int8, 784-10-10, 1000"));
    let twentieth = TWENTIETH
        .last()
        .and_then(|last| run(probe, &mut digest, &TWENTIETH, last, "int8, 784-32-10, 5 %"));
    let tenth = TENTH
        .last()
        .and_then(|last| run(probe, &mut digest, &TENTH, last, "int8, 784-32-10, 10 %"));
    let every = every_encoding(&mut digest);
    if small.and(twentieth).and(tenth).and(every).is_ok() { digest.value() } else { 0 }
}

const WIDE: usize = 300;
const NARROW: usize = 5;

/// A model of three layers with biases and a factor for each neuron, written in each encoding, read
/// back, and run on a row. All give the same numbers.
#[inline(never)]
fn every_encoding(digest: &mut Digest) -> tamis::Result<()> {
    let (mut columns, mut values) = ([0; 6 * NARROW], [0; 6 * NARROW]);
    for (k, (at, value)) in columns.iter_mut().zip(&mut values).enumerate() {
        *at = column(k / 6, k % 6, 6, WIDE) as u16;
        *value = weight(k, 3) as i8;
    }
    let factors = [
        30 << 24 | 0xC0_0001,
        29 << 24 | 1 << 23,
        31 << 24 | 0xFF_FFFF,
        33 << 24 | 1 << 23,
        30 << 24 | 0x9A_BCDE,
    ];
    let mut bits = [0; Mask::words(WIDE, NARROW)];
    Mask::mark(WIDE, &[6; NARROW], &columns, &mut bits);
    let first = Weights::Mask(Mask::new(WIDE, NARROW, &bits, &values)?);
    let bits = [0b1_0001, 0b0_0100, 0b0_1011];
    let second = Weights::Mask(Mask::new(NARROW, 3, &bits, &[100, -7, 90, 127, -128, 33])?);
    let layers = [
        Layer::new(first, &factors, &[5000, -400, 30, 2, 0], Activation::Relu)?,
        Layer::new(second, &[34 << 24 | 0xAA_AAAA], &[], Activation::Relu)?,
    ];
    let sum = Sum::new(3, &[0b010])?;
    let view = QuantisedView::new(Model::new(&layers, Some(sum), Scales::new(1.0, 0.5, 0, 0)?)?);
    let row = BYTES.get(..WIDE).unwrap_or_default();
    for choice in
        [Choice::Smallest, Choice::Fastest].into_iter().chain(Encoding::ALL.map(Choice::Prefer))
    {
        let mut bytes = Aligned([0; LONGEST]);
        let len = view.encode(choice, &mut bytes.0)?;
        let bytes = bytes.0.get(..len).unwrap_or_default();
        let (mut scratch, mut out) = ([0; 8], [0]);
        let class = QuantisedView::parse(bytes)?.model().classify(row, &mut scratch, &mut out)?;
        digest.word(wire::checksum(bytes));
        digest.word(out[0] as u32);
        digest.word(class as u32);
    }
    Ok(())
}

/// Bytes of the longest of these files, the dense one.
const LONGEST: usize = 1800;

#[inline(never)]
fn run<P: Probe, const ROWS: usize, const COUNTS: usize, const PAIRS: usize, const LAST: usize>(
    probe: &mut P,
    digest: &mut Digest,
    flash: &'static Flash<ROWS, COUNTS, PAIRS, LAST>,
    last: Weights<'_>,
    name: &'static str,
) -> tamis::Result<()> {
    let flash = black_box(flash);
    let hidden = Weights::Blocks(Blocks::new(INPUTS, ROWS, &flash.counts, &flash.pairs)?);
    let layers = [
        Layer::new(hidden, &flash.factor, &[], Activation::Relu)?,
        Layer::new(last, &[], &[], Activation::Identity)?,
    ];
    let model = Model::new(&layers, None, Scales::new(1.0, 1.0, 0, 0)?)?;
    let (mut scratch, mut out) = ([0; 40], [0; CLASSES]);
    let (row, nonzeros) = (black_box(&BYTES), black_box(hidden.nonzeros() + last.nonzeros()));
    probe.start();
    let done = model.predict(row, &mut scratch, &mut out);
    probe.stop(name, nonzeros as u32);
    done?;
    out.iter().for_each(|&y| digest.word(y as u32));
    Ok(())
}
