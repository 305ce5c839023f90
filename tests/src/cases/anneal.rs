//! The annealed recipe from a support of exactly s: the pictures of [`super::train`] as two
//! classes, softmax and all.
//!
//! The network becomes a model of two sparse layers in RAM, which is read back and predicts every
//! picture.

use super::digest::{Digest, Probe};
use super::train::{IMAGES, LABELS, PIXELS};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::ByteRows;
use tamis::learn::anneal::{self, Params};
use tamis::learn::loss::{self, Classes};
use tamis::learn::start::Start;
use tamis::operator::factored::provided;
use tamis::operator::gated::Gated;
use tamis::store::wire::{self, Aligned, Task, View};

const INPUTS: usize = 64;
const HIDDEN: usize = 5;
const CLASSES: usize = 2;
const NNZ: usize = 40;
/// Correct predictions of training pictures, 95 in 100.
const ENOUGH: u32 = 190;

const PARAMS: Params<'_> = Params {
    epochs: 12,
    batch: 20,
    start_factor: 1.0,
    rate: 0.05,
    growth_rows: 20,
    // Bytes as they are; 2^-8 brings them to the unit range.
    input_scale: 1.0 / 256.0,
    ..Params::DEFAULT
};
const DIMS: Dims = Dims::new(IMAGES, INPUTS, HIDDEN, NNZ);
const WORDS: usize =
    PARAMS.budget(DIMS, CLASSES, 1, provided::scratch(PARAMS.batch, INPUTS)).words();
/// More than the two layers of [`NNZ`] weights and the task take.
const MODEL: usize = 24 + 2 * 28 + 6 * NNZ + 2 * HIDDEN + 2 * CLASSES + 16 + 16;

/// Digest of the weights, the model's bytes, every prediction and the number of correct ones; 0 if
/// too few are, or if the weights are not as many as asked for.
pub(super) fn classify<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let mut model = Aligned([0; MODEL]);
    match fit(probe, &mut digest, &mut model.0)
        .and_then(|len| evaluate(&mut digest, &model.0[..len]))
    {
        Ok(correct) if correct >= ENOUGH => digest.value(),
        _ => 0,
    }
}

/// Trains, and writes the model; its length in bytes.
#[inline(never)]
fn fit<P: Probe>(probe: &mut P, digest: &mut Digest, model: &mut [u8]) -> tamis::Result<usize> {
    let mut memory = Memory::<WORDS>::new();
    let mut row_memory = [0.0; gated_words(INPUTS, HIDDEN)];
    let mut labels = [0; IMAGES];
    for (class, label) in labels.iter_mut().zip(LABELS) {
        *class = label as u16;
    }
    let rows = ByteRows::new(black_box(PIXELS), INPUTS, 1.0)?;
    let mut sensing = Gated::new(rows, HIDDEN, 1, &mut row_memory)?;
    probe.start();
    let (classes, memory) = (Classes::new(&labels, CLASSES), memory.words());
    let trained =
        anneal::run(&mut sensing, classes, NNZ, Start::Zero, &PARAMS, memory, |_| Continue(()))?;
    probe.stop("annealing, a step", trained.info.steps);
    tamis::base::error::length("nonzeros", trained.network.nnz(), NNZ)?;
    for side in [trained.network.w(), trained.network.wt()] {
        side.index().iter().for_each(|&j| digest.word(j));
        side.value().iter().for_each(|&value| digest.float(value));
    }
    digest.float(trained.info.training.loss);
    wire::encode(trained.network, HIDDEN, Some(Task::Multiclass), model)
}

/// Reads the model and predicts every picture; how many are right.
#[inline(never)]
fn evaluate(digest: &mut Digest, bytes: &[u8]) -> tamis::Result<u32> {
    bytes
        .chunks_exact(4)
        .for_each(|word| digest.word(word.iter().fold(0, |w, &b| w << 8 | u32::from(b))));
    let view = View::parse(bytes)?;
    if view.task() != Some(Task::Multiclass) {
        return Ok(0);
    }
    let mut correct = 0;
    for (picture, &label) in PIXELS.chunks_exact(INPUTS).zip(&LABELS) {
        let (mut hidden, mut out) = ([0.0; HIDDEN], [0.0; CLASSES]);
        view.model().predict_u8(picture, &mut hidden, &mut out)?;
        out.iter().for_each(|&score| digest.float(score));
        correct += u32::from(loss::best(&out) == label as usize);
    }
    digest.word(correct);
    Ok(correct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_images_are_classified_with_exactly_s_weights() {
        let mut model = Aligned([0; MODEL]);
        let len = fit(&mut (), &mut Digest::default(), &mut model.0).unwrap();
        let correct = evaluate(&mut Digest::default(), &model.0[..len]).unwrap();
        assert!(correct >= ENOUGH, "{correct} of {IMAGES}");
    }
}
