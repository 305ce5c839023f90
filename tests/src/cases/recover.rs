//! Exact recovery on a microcontroller: rows are drawn from a seed whenever they are needed, labels come from
//! a planted network, and the recipe of [`tamis::learn::lm`] finds that network again.

use super::digest::{Digest, Probe};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::base::budget::{Memory, Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::{NormalRows, Samples};
use tamis::learn::lm::{self, Goal, Info, Params};
use tamis::learn::start::Start;
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;

const ROWS: usize = 60;
const INPUTS: usize = 12;
const HIDDEN: usize = 3;
const NNZ: usize = 9;
const SLOTS: usize = lm::slots(HIDDEN, Signs::Positive);
const DIMS: Dims = Dims::new(ROWS, INPUTS, HIDDEN, NNZ);
/// The operator's scratch is a row per sample and one of inputs.
const WORDS: usize = Recovery::new(DIMS, 1, ROWS + INPUTS, false).words();
const DATA_SEED: u64 = 11;

/// The planted network, three weights a neuron.
static INDEX: [u32; NNZ] = [1, 4, 9, 12, 18, 23, 27, 28, 33];
static VALUE: [f32; NNZ] = [1.5, -0.75, 0.5, -1.0, 1.25, 0.625, 0.5, 2.0, -1.0];

/// Digest of the weights and of how they were found; 0 if they are not the planted ones.
pub(super) fn recover<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    match find(probe, &mut digest) {
        Ok(true) => digest.value(),
        _ => 0,
    }
}

/// Recovers the network; whether it is the planted one, neuron by neuron.
#[inline(never)]
fn find<P: Probe>(probe: &mut P, digest: &mut Digest) -> tamis::Result<bool> {
    let planted = Weights::new(INPUTS, HIDDEN, &INDEX, &VALUE)?;
    let rows = NormalRows::new(black_box(DATA_SEED), ROWS, INPUTS);
    let mut labels = [0.0; ROWS];
    label(rows, planted, &mut labels)?;
    let mut row_memory = [0.0; gated_words(INPUTS, SLOTS)];
    let mut sensing = Gated::new(rows, SLOTS, 1, &mut row_memory)?;
    let mut memory = Memory::<WORDS>::new();
    probe.start();
    let (goal, memory) = (Goal::one_output(DIMS), memory.words());
    let found =
        lm::run(&mut sensing, &labels, goal, Start::Zero, &Params::DEFAULT, memory, |_| {
            Continue(())
        })?;
    let (found, info) = (found.network.w(), found.info);
    probe.stop("recovery, a row read", info.rows_read as u32);
    found.index().iter().for_each(|&j| digest.word(j));
    found.value().iter().for_each(|&value| digest.float(value));
    let Info { loss, steps, trials, rows_read, .. } = info;
    digest.float(loss);
    [steps, trials, rows_read as u32].into_iter().for_each(|count| digest.word(count));
    Ok(info.exact && is_same(found, planted))
}

#[inline(never)]
fn label(mut rows: NormalRows, planted: Weights<'_>, labels: &mut [f32]) -> tamis::Result<()> {
    let mut row = [0.0; INPUTS];
    for (k, label) in labels.iter_mut().enumerate() {
        rows.row(k, &mut row)?;
        *label = planted.blocks().map(|block| block.dot(&row).max(0.0)).sum();
    }
    Ok(())
}

/// Whether every planted neuron was found, whatever its number, to one in ten thousand.
fn is_same(found: Weights<'_>, planted: Weights<'_>) -> bool {
    let is_close =
        |((i, a), (j, b)): ((usize, f32), (usize, f32))| i == j && (a - b).abs() <= 1e-4 * b.abs();
    found.nnz() == planted.nnz()
        && planted.blocks().all(|block| {
            found.blocks().any(|other| {
                other.values().len() == block.values().len()
                    && other.entries().zip(block.entries()).all(is_close)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planted_network_is_found() {
        assert_eq!(find(&mut (), &mut Digest::default()), Ok(true));
    }

    #[test]
    fn another_network_is_not_the_planted_one() {
        let planted = Weights::new(INPUTS, HIDDEN, &INDEX, &VALUE).unwrap();
        assert!(is_same(planted, planted));
        let mut value = VALUE;
        value[5] *= 1.001;
        assert!(!is_same(Weights::new(INPUTS, HIDDEN, &INDEX, &value).unwrap(), planted));
    }
}
