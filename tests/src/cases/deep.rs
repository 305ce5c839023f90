//! Two hidden layers on a microcontroller: each trained by the published method on what the layer before it
//! makes of the rows, then both together on the weights that they have; and a network of twice the
//! weights brought down to those that it needs.

use super::digest::{Digest, Probe};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::{Rng, stream};
use tamis::data::samples::{Rows, Samples};
use tamis::learn::deep::{Stack, StackedRows, share, shrink, tune};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Schedule};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;

const ROWS: usize = 80;
const INPUTS: usize = 12;
const HIDDEN: [usize; 2] = [6, 4];
const NNZ: usize = 36;
/// Numbers of a row and of all neurons.
const ACTIVATIONS: usize = INPUTS + HIDDEN[0] + HIDDEN[1];
const DATA_SEED: u64 = 21;
const SCHEDULE: Schedule<'_, OneOutput> = Schedule { epochs: 15, ..Schedule::PAPER };
const TUNE: tune::Params = tune::Params { epochs: 12, batch: 15, rate: 0.05, seed: 4 };
/// The first layer has the larger memory.
const WORDS: usize =
    SCHEDULE.budget(Dims::new(ROWS, INPUTS, HIDDEN[0], NNZ / 2), 1, ROWS + INPUTS).words();
/// Fraction of the labels' mean square that may be left.
const ENOUGH: f32 = 0.01;

/// The planted network.
static FIRST: ([u32; 9], [f32; 9]) =
    ([0, 5, 13, 16, 27, 33, 40, 44, 50], [1.5, -1.0, 0.75, 1.0, -1.25, 0.5, 1.0, 2.0, -0.5]);
static SECOND: ([u32; 7], [f32; 7]) =
    ([0, 3, 7, 8, 11, 13, 16], [1.0, -0.5, 0.75, 1.0, -1.5, 0.5, 1.25]);

/// Digest of the weights, of every prediction and of the losses; 0 if the network does not explain
/// the labels.
pub(super) fn deep<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    match fit(probe, &mut digest) {
        Ok(true) => digest.value(),
        _ => 0,
    }
}

/// A network that has the planted one's weights, somewhat off, and as many others.
const WIDE: usize = 32;
const SHRINK: shrink::Params =
    shrink::Params { levels: 4, tune: tune::Params { epochs: 10, ..TUNE } };

/// Digest of the weights that are left and of the loss; 0 if they are not the planted ones.
pub(super) fn shrink<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    match bring_down(probe, &mut digest) {
        Ok(true) => digest.value(),
        _ => 0,
    }
}

fn bring_down<P: Probe>(probe: &mut P, digest: &mut Digest) -> tamis::Result<bool> {
    let (mut x, mut labels) = ([0.0; ROWS * INPUTS], [0.0; ROWS]);
    Rng::new(black_box(DATA_SEED), stream::USER).fill_normal(&mut x);
    let mut rows = Rows::new(&x, INPUTS)?;
    let power = label(rows, &mut labels)?;
    let (mut index, mut value) = ([0; WIDE], [0.0; WIDE]);
    let mut stack = Stack::new(INPUTS, &mut index, &mut value);
    let [first, second] = planted()?;
    widen(&mut stack, first)?;
    widen(&mut stack, second)?;
    stack.end_sum(&[])?;
    let mut memory = [0; tune::words(WIDE, INPUTS + 9, 1)];
    // The last weight of the first layer leads nowhere.
    let shown = || FIRST.0.iter().take(FIRST.0.len() - 1).chain(&SECOND.0);
    let nnz = shown().count();
    let goal = || Labels::values(&labels);
    probe.start();
    let shrunk =
        shrink::run(&mut rows, goal(), &mut stack, nnz, &SHRINK, &mut memory, |_| Continue(()))?;
    probe.stop("bringing down, an epoch", shrunk.epochs);
    let info = tune::run(&mut rows, goal(), &mut stack, &TUNE, &mut memory, |_| Continue(()))?;
    for w in stack.layers() {
        w.index().iter().for_each(|&j| digest.word(j));
        w.value().iter().for_each(|&value| digest.float(value));
    }
    digest.float(info.loss);
    let is_planted = stack.layers().flat_map(|w| w.index().iter()).eq(shown());
    Ok(is_planted && info.loss < ENOUGH * power)
}

/// Adds a layer of the planted weights with as many others between them.
#[inline(never)]
fn widen(stack: &mut Stack<'_>, planted: Weights<'_>) -> tamis::Result<()> {
    let (inputs, neurons) = (planted.inputs(), planted.hidden());
    let (mut index, mut value) = ([0; WIDE], [0.0; WIDE]);
    let (mut len, mut others) = (0, 0);
    let mut rng = Rng::new(DATA_SEED, stream::USER + 1);
    for j in 0..(inputs * neurons) as u32 {
        let own = planted.index().binary_search(&j).ok().and_then(|at| planted.value().get(at));
        let is_other = own.is_none() && others < planted.nnz() && j as usize % 2 == 1;
        others += usize::from(is_other);
        if own.is_some() || is_other {
            let noise = 0.05 * rng.normal();
            if let (Some(index), Some(value)) = (index.get_mut(len), value.get_mut(len)) {
                (*index, *value) = (j, own.copied().unwrap_or(0.0) + noise);
                len += 1;
            }
        }
    }
    let (index, value) = (index.get(..len).unwrap_or(&[]), value.get(..len).unwrap_or(&[]));
    stack.push(Weights::new(inputs, neurons, index, value)?, Signs::Positive)
}

fn fit<P: Probe>(probe: &mut P, digest: &mut Digest) -> tamis::Result<bool> {
    let (mut x, mut labels) = ([0.0; ROWS * INPUTS], [0.0; ROWS]);
    Rng::new(black_box(DATA_SEED), stream::USER).fill_normal(&mut x);
    let mut rows = Rows::new(&x, INPUTS)?;
    let power = label(rows, &mut labels)?;
    let (mut index, mut value) = ([0; NNZ], [0.0; NNZ]);
    let mut stack = Stack::new(INPUTS, &mut index, &mut value);
    let rooms = [INPUTS * HIDDEN[0], HIDDEN[0] * HIDDEN[1]];
    for (l, hidden) in HIDDEN.into_iter().enumerate() {
        let nnz = share(NNZ, &rooms, l, stack.nnz());
        layer(probe, &mut stack, rows, &labels, hidden, nnz)?;
    }
    stack.end_sum(&[])?;
    let mut memory = [0; tune::words(NNZ, ACTIVATIONS, 1)];
    probe.start();
    let info =
        tune::run(&mut rows, Labels::values(&labels), &mut stack, &TUNE, &mut memory, |_| {
            Continue(())
        })?;
    probe.stop("joint fit, an epoch", info.epochs);
    for w in stack.layers() {
        w.index().iter().for_each(|&j| digest.word(j));
        w.value().iter().for_each(|&value| digest.float(value));
    }
    digest.float(info.before);
    digest.float(info.loss);
    predict(rows, &stack, digest)?;
    Ok((NNZ / 2..=NNZ).contains(&stack.nnz())
        && info.loss < info.before
        && info.loss < ENOUGH * power)
}

/// Trains one layer behind those that there are.
#[inline(never)]
fn layer<P: Probe>(
    probe: &mut P,
    stack: &mut Stack<'_>,
    rows: Rows<'_>,
    labels: &[f32],
    hidden: usize,
    nnz: usize,
) -> tamis::Result<()> {
    let mut memory = Memory::<WORDS>::new();
    let mut row_memory = [0.0; gated_words(INPUTS, HIDDEN[0])];
    let mut scratch = [0.0; ACTIVATIONS];
    let below = StackedRows::new(rows, stack, &mut scratch)?;
    let (inputs, labels) = (below.inputs(), Labels::Values(labels));
    let mut sensing = Gated::new(below, hidden, 1, &mut row_memory)?;
    probe.start();
    let trained =
        train::run(&mut sensing, labels, nnz, Start::Zero, &SCHEDULE, memory.words(), |_| {
            Continue(())
        })?;
    probe.stop("a layer, an epoch", trained.info.epochs);
    let w = trained.network.w();
    stack.push(Weights::new(inputs, hidden, w.index(), w.value())?, Signs::Positive)
}

/// The layers of the planted network.
fn planted() -> tamis::Result<[Weights<'static>; 2]> {
    let first = Weights::new(INPUTS, 5, &FIRST.0, &FIRST.1)?;
    Ok([first, Weights::new(5, 4, &SECOND.0, &SECOND.1)?])
}

/// Labels of the planted network; their mean square.
#[inline(never)]
fn label(mut rows: Rows<'_>, labels: &mut [f32]) -> tamis::Result<f32> {
    let (mut index, mut value) = ([0; 16], [0.0; 16]);
    let mut stack = Stack::new(INPUTS, &mut index, &mut value);
    for w in planted()? {
        stack.push(w, Signs::Positive)?;
    }
    stack.end_sum(&[])?;
    let (mut row, mut scratch) = ([0.0; INPUTS], [0.0; ACTIVATIONS]);
    for (k, label) in labels.iter_mut().enumerate() {
        rows.row(k, &mut row)?;
        stack.predict(&row, &mut scratch, core::slice::from_mut(label))?;
    }
    Ok(tamis::base::math::norm2(labels) / labels.len() as f32)
}

#[inline(never)]
fn predict(mut rows: Rows<'_>, stack: &Stack<'_>, digest: &mut Digest) -> tamis::Result<()> {
    let (mut row, mut scratch, mut out) = ([0.0; INPUTS], [0.0; ACTIVATIONS], [0.0]);
    for k in 0..ROWS {
        rows.row(k, &mut row)?;
        stack.predict(&row, &mut scratch, &mut out)?;
        digest.float(out[0]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_explained() {
        assert_eq!(fit(&mut (), &mut Digest::default()), Ok(true));
    }

    #[test]
    fn the_planted_weights_are_what_is_left() {
        assert_eq!(bring_down(&mut (), &mut Digest::default()), Ok(true));
    }
}
