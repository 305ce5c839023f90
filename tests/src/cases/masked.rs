//! A mask from a seed, and training of its weights alone.

use super::digest::{Digest, Probe};
use super::train::{LABELS, PIXELS};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::data::samples::ByteRows;
use tamis::learn::deep::Stack;
use tamis::learn::deep::backprop::{self, RowByRow};
use tamis::learn::loss::Labels;
use tamis::learn::masked::{self, Params};
use tamis::learn::optimiser::Optimiser;
use tamis::network::gates::Signs;
use tamis::network::mask::initial::{Initial, Law};
use tamis::network::mask::select::Choice;
use tamis::network::mask::synflow::{self, Input};
use tamis::network::mask::{LayerShape, Mlp};
use tamis::network::weights::Weights;

/// A network for the pictures of case `train`.
const WIDTHS: [usize; 4] = [64, 12, 6, 1];
const NNZ: usize = 90;
const ACTIVATIONS: usize = WIDTHS[0] + WIDTHS[1] + WIDTHS[2];
const SCALE: f32 = 1.0 / 255.0;
const WEIGHTS: Initial = Initial { seed: 11, law: Law::HeNormal };
const SGD: Params<'_> = Params { epochs: 12, batch: 20, rate: 0.1, warmup: 10, ..Params::SGD };
const ADAM: Params<'_> = Params { epochs: 12, batch: 20, rate: 0.01, ..Params::ADAM };
/// Adam holds the most.
const WORDS: usize = masked::words(NNZ, Optimiser::Adam);
/// Mean loss over the last epoch, where a network without weights has ln 2.
const ENOUGH: f32 = 0.15;

/// The network whose mask is made in 48 KB.
const LARGE: [usize; 4] = [784, 512, 512, 10];
const LARGE_NNZ: usize = 6687;
/// [`synflow::words`] for the large and for the small mask, which a test holds them to.
const LARGE_WORDS: usize = 9538;
const SMALL_WORDS: usize = 2278;

const fn params(count: usize) -> synflow::Params<'static> {
    let (input, rounds) = (Input::Ones, synflow::Params::ROUNDS);
    synflow::Params { weights: WEIGHTS, input, rounds, count, choice: Choice::Largest }
}

/// Digest of the mask, and of the weights and losses of both optimisers; 0 if one does not learn.
pub(super) fn train<P: Probe>(probe: &mut P) -> u32 {
    let (mut digest, mut index) = (Digest::default(), [0; NNZ]);
    if small_mask(&mut index).is_err() {
        return 0;
    }
    index.iter().for_each(|&at| digest.word(at));
    for (name, params) in [("SGD, a step", SGD), ("Adam, a step", ADAM)] {
        match fit(probe, &mut digest, &index, name, &params) {
            Ok(loss) if loss < ENOUGH => {}
            _ => return 0,
        }
    }
    digest.value()
}

#[inline(never)]
fn small_mask(index: &mut [u32; NNZ]) -> tamis::Result<()> {
    let mut memory = [0; SMALL_WORDS];
    let net = Mlp::new(&WIDTHS)?;
    let mask = synflow::indices(&net, &params(NNZ), &mut memory)?;
    index.copy_from_slice(mask.index);
    Ok(())
}

/// Trains the initial weights of the mask; the loss of the last epoch.
#[inline(never)]
fn fit<P: Probe>(
    probe: &mut P,
    digest: &mut Digest,
    mask: &[u32],
    name: &'static str,
    params: &Params<'_>,
) -> tamis::Result<f32> {
    let net = Mlp::new(&WIDTHS)?;
    let (mut index, mut value) = ([0; NNZ], [0.0; NNZ]);
    let mut stack = Stack::new(WIDTHS[0], &mut index, &mut value);
    for layer in net.layers() {
        push(&mut stack, &net, &layer, mask)?;
    }
    let classes = LABELS.map(|label| label as u16);
    let rows = ByteRows::new(black_box(PIXELS), WIDTHS[0], SCALE)?;
    let mut memory = [0; backprop::words(ACTIVATIONS, 1)];
    let mut rows = RowByRow::new(rows, Labels::classes(&classes, 1), &stack, &mut memory)?;
    let mut memory = [0; WORDS];
    probe.start();
    let info = masked::run(&mut rows, &mut stack, params, &mut memory, |_| Continue(()))?;
    probe.stop(name, info.steps);
    stack.values().iter().for_each(|&value| digest.float(value));
    digest.float(info.loss);
    Ok(info.loss)
}

/// Adds a layer of the mask. With one output, the last has its weights in the order of the mask.
#[inline(never)]
fn push(
    stack: &mut Stack<'_>,
    net: &Mlp<'_>,
    layer: &LayerShape,
    mask: &[u32],
) -> tamis::Result<()> {
    let (mut index, mut value, mut nnz) = ([0; NNZ], [0.0; NNZ], 0);
    let own = mask.iter().filter(|&&at| layer.weights().contains(&(at as usize)));
    for ((&at, index), value) in own.zip(&mut index).zip(&mut value) {
        (*index, *value) = (at - layer.first as u32, WEIGHTS.weight(net, at));
        nnz += 1;
    }
    let (index, value) = (index.get(..nnz).unwrap_or(&[]), value.get(..nnz).unwrap_or(&[]));
    if layer.outputs > 1 {
        stack.push(Weights::new(layer.inputs, layer.outputs, index, value)?, Signs::Positive)
    } else {
        stack.end_weights(Weights::new(1, layer.inputs, index, value)?)
    }
}

/// Digest of the mask of 1 % of a network of 668 672 weights; 0 if it cannot be made.
pub(super) fn large_mask<P: Probe>(probe: &mut P) -> u32 {
    let mut memory = [0; LARGE_WORDS];
    let Ok(net) = Mlp::new(black_box(&LARGE)) else { return 0 };
    probe.start();
    let Ok(mask) = synflow::indices(&net, &params(LARGE_NNZ), &mut memory) else { return 0 };
    probe.stop("a weight from the seed", mask.info.regenerated as u32);
    let mut digest = Digest::default();
    mask.index.iter().for_each(|&at| digest.word(at));
    digest.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_masks_need() {
        let words = |widths: &[usize], nnz| synflow::words(&Mlp::new(widths).unwrap(), nnz);
        assert_eq!([LARGE_WORDS, SMALL_WORDS], [words(&LARGE, LARGE_NNZ), words(&WIDTHS, NNZ)]);
    }

    #[test]
    fn both_optimisers_learn_the_pictures() {
        let mut index = [0; NNZ];
        small_mask(&mut index).unwrap();
        for params in [SGD, ADAM] {
            let loss = fit(&mut (), &mut Digest::default(), &index, "", &params).unwrap();
            assert!(loss < ENOUGH, "{loss}");
        }
    }
}
