//! The conformance suite, in sizes that the smallest microcontroller has memory and time for.

use super::digest::{Digest, Probe};
use crate::conformance::{Agreement, Failure, Spy, recover, recovery_words, run, words};
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::{NormalRows, Rows};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::gaussian::Gaussian;
use tamis::operator::sensing::HostSensing;

const N: usize = 10;
const D: usize = 5;
const M: usize = 4;
/// Shares no factor with the numbers of gates, supports and batches.
const STRIDE: usize = 7;

/// The second column is zero, the last one the same as the first.
static VALUES: [f32; N * D] = values();

const fn values() -> [f32; N * D] {
    let mut values = [0.0; N * D];
    let mut k = 0;
    while k < N * D {
        values[k] = match k % D {
            1 => 0.0,
            4 => values[k - 4],
            _ => ((k * k * 7 + k * 31) % 256) as f32 / 100.0 - 1.28,
        };
        k += 1;
    }
    values
}

/// Digest of the number of checks passed and of what was recovered; below 256 if something failed.
pub(super) fn conformance<P: Probe>(_: &mut P) -> u32 {
    let mut digest = Digest::default();
    let outcomes = [gated(), gaussian(), network(), sparse()];
    for (i, outcome) in (1..).zip(outcomes) {
        match outcome {
            Ok(word) => digest.word(word),
            Err(code) => return i << 4 | code,
        }
    }
    digest.value()
}

fn code(_: Failure) -> u32 {
    2
}

/// The reference operator against its provided bodies.
#[inline(never)]
fn gated() -> Result<u32, u32> {
    let samples = Rows::new(&VALUES, D).map_err(|_| 1_u32)?;
    let (mut a, mut b) = ([0.0; gated_words(D, M)], [0.0; gated_words(D, M)]);
    let mut inner = Gated::new(samples, M, 1, &mut a).map_err(|_| 1_u32)?;
    let mut sensing = Gated::new(samples, M, M, &mut b).map_err(|_| 1_u32)?;
    hold(&mut Spy::provided(&mut inner), &mut sensing)
}

#[inline(never)]
fn gaussian() -> Result<u32, u32> {
    let mut inner = Gaussian::new(3, N, D, M).map_err(|_| 1_u32)?;
    let mut sensing = inner.clone();
    // Entries are drawn for every use: a few situations only.
    held(&mut Spy::provided(&mut inner), &mut sensing, 9 * STRIDE)
}

fn hold<O: HostSensing, S: HostSensing>(oracle: &mut O, sensing: &mut S) -> Result<u32, u32> {
    held(oracle, sensing, STRIDE)
}

fn held<O: HostSensing, S: HostSensing>(
    oracle: &mut O,
    sensing: &mut S,
    stride: usize,
) -> Result<u32, u32> {
    let mut memory = Memory::<{ words(N, D, M, N + D) }>::new();
    run(oracle, sensing, Agreement::Bits, stride, memory.words()).map_err(code)
}

/// A planted network of two neurons, under its own gates.
#[inline(never)]
fn network() -> Result<u32, u32> {
    const DIMS: Dims = Dims::new(60, 8, 2, 4);
    let mut memory = Memory::<{ recovery_words(DIMS, 1, 68) }>::new();
    let mut row_memory = [0.0; gated_words(8, 2)];
    let mut sensing =
        Gated::new(NormalRows::new(1, 60, 8), 2, 1, &mut row_memory).map_err(|_| 1_u32)?;
    let planted =
        Weights::new(8, 2, &[1, 6, 10, 13], &[1.0, -2.0, 1.5, 0.75]).map_err(|_| 1_u32)?;
    let gates = Gates::of(planted, Signs::Balanced, Empty::Freeze, 0, 1);
    recovered(recover(&mut sensing, gates, planted, 8, memory.words()))
}

/// A planted vector of three entries, from 24 Gaussian measurements of 40.
#[inline(never)]
fn sparse() -> Result<u32, u32> {
    const DIMS: Dims = Dims::new(24, 10, 4, 3);
    let mut memory = Memory::<{ recovery_words(DIMS, 1, 34) }>::new();
    let mut sensing = Gaussian::new(2, 24, 10, 4).map_err(|_| 1_u32)?;
    let planted = Weights::new(10, 4, &[3, 17, 36], &[1.0, -2.0, 1.5]).map_err(|_| 1_u32)?;
    recovered(recover(&mut sensing, Gates::seeded(0), planted, 4, memory.words()))
}

/// The bits of a relative error that is small enough.
fn recovered(error: Result<f32, Failure>) -> Result<u32, u32> {
    match error.map_err(code)? {
        error if error < 1e-5 => Ok(error.to_bits()),
        _ => Err(3),
    }
}
