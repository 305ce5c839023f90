//! Training from zero: 200 pictures of the digits 0 and 1 in flash, 8 × 8 pixels of a byte each.
//!
//! The trained weights become a model in RAM, the model is read back and predicts every picture.

use super::digest::{Digest, Probe};
use core::hint::black_box;
use core::ops::ControlFlow::Continue;
use tamis::base::budget::{Memory, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::ByteRows;
use tamis::infer::model::Scaled;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Schedule};
use tamis::operator::gated::Gated;
use tamis::store::wire::{self, Aligned, Task, View};

/// Pictures.
pub const IMAGES: usize = 200;
/// Seed of the generator that drew them.
pub const DIGITS_SEED: u64 = 0;
/// The pictures, one after the other; a byte stands for `byte * SCALE`.
pub static PIXELS: &[u8] = include_bytes!("../../data/digits01-images.idx").split_at(16).1;
/// 0 or 1 for each picture.
pub static LABELS: [f32; IMAGES] =
    labels(include_bytes!("../../data/digits01-labels.idx").split_at(8).1);

const INPUTS: usize = 64;
const HIDDEN: usize = 8;
const NNZ: usize = 60;
const SCALE: f32 = 1.0 / 255.0;
/// Correct predictions of training pictures, 95 in 100.
const ENOUGH: u32 = 190;

const SCHEDULE: Schedule<'_, OneOutput> = Schedule {
    epochs: 8,
    head: OneOutput {
        convex_epochs: 1,
        step: Step::Normalised,
        refine: Refine::Armijo { steps: 5, decrease: 0.9, halvings: 10 },
        ..OneOutput::PAPER
    },
    ..Schedule::PAPER
};
/// What training needs, the operator's scratch of a row per sample and one of inputs included.
const WORDS: usize =
    SCHEDULE.budget(Dims::new(IMAGES, INPUTS, HIDDEN, NNZ), 1, IMAGES + INPUTS).words();
const MODEL: usize = wire::max_len(HIDDEN, NNZ);

const fn labels(bytes: &[u8]) -> [f32; IMAGES] {
    let mut labels = [0.0; IMAGES];
    let mut i = 0;
    while i < IMAGES {
        labels[i] = bytes[i] as f32;
        i += 1;
    }
    labels
}

/// Digest of the weights, the model's bytes, every prediction and the number of correct ones; 0 if
/// too few are.
pub(super) fn train<P: Probe>(probe: &mut P) -> u32 {
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
    let rows = ByteRows::new(black_box(PIXELS), INPUTS, SCALE)?;
    let mut sensing = Gated::new(rows, HIDDEN, 1, &mut row_memory)?;
    probe.start();
    let (labels, memory) = (Labels::values(&LABELS), memory.words());
    let trained =
        train::run(&mut sensing, labels, NNZ, Start::Zero, &SCHEDULE, memory, |_| Continue(()))?;
    probe.stop("training, a step", trained.info.steps);
    let weights = trained.network.w();
    weights.index().iter().for_each(|&j| digest.word(j));
    weights.value().iter().for_each(|&value| digest.float(value));
    digest.float(trained.info.loss);
    wire::encode(trained.network, HIDDEN, Some(Task::BINARY), model)
}

/// Reads the model and predicts every picture; how many are right.
#[inline(never)]
fn evaluate(digest: &mut Digest, bytes: &[u8]) -> tamis::Result<u32> {
    bytes
        .chunks_exact(4)
        .for_each(|word| digest.word(word.iter().fold(0, |w, &b| w << 8 | u32::from(b))));
    let view = View::parse(bytes)?;
    let mut correct = 0;
    for (picture, &label) in PIXELS.chunks_exact(INPUTS).zip(&LABELS) {
        let mut out = [0.0];
        view.model().predict_from(&Scaled { bytes: picture, scale: SCALE }, &mut [], &mut out)?;
        digest.float(out[0]);
        correct += u32::from((out[0] > 0.5) == (label > 0.5));
    }
    digest.word(correct);
    Ok(correct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_training_pictures_are_learned() {
        let mut model = Aligned([0; MODEL]);
        let len = fit(&mut (), &mut Digest::default(), &mut model.0).unwrap();
        let correct = evaluate(&mut Digest::default(), &model.0[..len]).unwrap();
        assert!(correct >= ENOUGH, "{correct} of {IMAGES}");
    }

    #[test]
    fn labels_are_of_both_classes() {
        assert_eq!(LABELS.iter().filter(|&&label| label == 1.0).count(), IMAGES / 2);
        assert_eq!(LABELS.iter().filter(|&&label| label == 0.0).count(), IMAGES / 2);
    }
}
