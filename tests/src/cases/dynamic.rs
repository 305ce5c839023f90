//! A network of two hidden layers from nothing, on a support that shrinks and moves.

use super::digest::{Digest, Probe};
use super::train::{LABELS, PIXELS};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::data::samples::ByteRows;
use tamis::learn::deep::Stack;
use tamis::learn::deep::backprop::{self, RowByRow};
use tamis::learn::deep::dynamic::{self, Moments, Params};
use tamis::learn::loss::Labels;

/// For the pictures of case `train`.
const INPUTS: usize = 64;
const WIDTHS: [usize; 3] = [8, 4, 1];
const ACTIVATIONS: usize = INPUTS + WIDTHS[0] + WIDTHS[1];
const NNZ: usize = 30;
/// Weights at the start.
const ROOM: usize = 3 * NNZ;
const PARAMS: Params = Params {
    factor: 3.0,
    epochs: 24,
    batch: 20,
    warmup: 10,
    every: 12,
    rows: 40,
    seed: 5,
    ..Params::new(NNZ)
};
const WORDS: usize = dynamic::words(Moments::F32, ROOM, ACTIVATIONS, 1, INPUTS);
/// Mean loss over the last epoch, where a network without weights has ln 2.
const ENOUGH: f32 = 0.2;

/// Digest of the support, the weights and the loss, with moments of either kind; 0 if it does not learn.
pub(super) fn train<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let half = Params { moments: Moments::Bf16, ..PARAMS };
    for params in [PARAMS, half] {
        match fit(probe, &mut digest, &params) {
            Ok(loss) if loss < ENOUGH => {}
            _ => return 0,
        }
    }
    digest.value()
}

fn fit<P: Probe>(probe: &mut P, digest: &mut Digest, params: &Params) -> tamis::Result<f32> {
    let (mut index, mut value) = ([0; ROOM], [0.0; ROOM]);
    let mut memory = [0; WORDS];
    let mut stack = Stack::new(INPUTS, &mut index, &mut value);
    dynamic::start(&mut stack, &WIDTHS, params, &mut memory)?;
    let classes = LABELS.map(|label| label as u16);
    let rows = ByteRows::new(black_box(PIXELS), INPUTS, 1.0 / 255.0)?;
    let mut own = [0; backprop::words(ACTIVATIONS, 1)];
    let mut rows = RowByRow::new(rows, Labels::classes(&classes, 1), &stack, &mut own)?;
    probe.start();
    let info = dynamic::run(&mut rows, &mut stack, params, &mut memory, None, |_| Continue(()))?;
    let what = match params.moments {
        Moments::F32 => "a step on a support that moves",
        Moments::Bf16 => "the same with moments as bfloat16",
    };
    probe.stop(what, info.steps);
    stack.layers().for_each(|w| w.index().iter().for_each(|&at| digest.word(at)));
    stack.values().iter().for_each(|&value| digest.float(value));
    digest.float(info.loss);
    Ok(info.loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_support_learns_the_pictures() {
        let loss = fit(&mut (), &mut Digest::default(), &PARAMS).unwrap();
        assert!(loss < ENOUGH, "{loss}");
    }
}
