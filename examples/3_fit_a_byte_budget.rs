//! Fits training into the RAM of a microcontroller: the bytes that a device can spare give the
//! number of nonzero weights, and training takes exactly the bytes computed, not one more.
//!
//! The device holds 200 pictures of 8×8 bytes in flash and tells the digit 1 from 0. All but the
//! printing also runs on the device, bit-identically: the reference operator, caller-owned memory.
//!
//! Run: `cargo run --release -p tamis-examples --example 3_fit_a_byte_budget`

use std::ops::ControlFlow::Continue;
use tamis::base::budget::{self, Memory, WORD, Workspace};
use tamis::base::dims::Dims;
use tamis::data::samples::ByteRows;
use tamis::infer::model::Scaled;
use tamis::learn::train::{self, OneOutput, Schedule};
use tamis::learn::{loss::Labels, start::Start};
use tamis::operator::gated::Gated;
use tamis::store::wire::{OwnedModel, Task, max_len};
use tamis_examples::{PIXELS, zeros_and_ones};

const SAMPLES: usize = 200;
const HIDDEN: usize = 10;
/// What a byte of a picture stands for: ink from 0 to 1.
const SCALE: f32 = 1.0 / 255.0;
/// One neuron's gradient at a time takes the least memory.
const PANEL: usize = 1;
const SCHEDULE: Schedule<'_, OneOutput> = Schedule::PAPER;

/// RAM that the device can spare, in bytes.
const RAM: usize = 4096;
/// What fits, known at compile time, so that a device can lay its memory out statically.
const NNZ: usize = largest_nnz(RAM);
const WORDS: usize = words(NNZ);
/// Bytes of them that are the operator's own.
const OPERATOR: usize = budget::gated_words(PIXELS, HIDDEN) * WORD;

/// Words of memory for training with `nnz` nonzeros: the run's own, and those of the operator.
const fn words(nnz: usize) -> usize {
    let scratch = SAMPLES + PIXELS; // what the reference operator asks for
    let dims = Dims::new(SAMPLES, PIXELS, HIDDEN, nnz);
    SCHEDULE.budget(dims, PANEL, scratch).words() + budget::gated_words(PIXELS, HIDDEN)
}

/// The most nonzeros that `ram` bytes can train; 0 if there are none.
const fn largest_nnz(ram: usize) -> usize {
    let mut nnz = 0;
    while nnz < HIDDEN * PIXELS && words(nnz + 1) * WORD <= ram {
        nnz += 1;
    }
    nnz
}

fn main() -> anyhow::Result<()> {
    for ram in [3072, RAM, 8192, 16_384] {
        let nnz = largest_nnz(ram);
        println!("{ram:5} bytes of RAM train {nnz:3} nonzeros in {:5} bytes", words(nnz) * WORD);
    }

    let (pixels, labels) = zeros_and_ones(SAMPLES, 1)?;
    let mut memory = Memory::<WORDS>::new();
    let model = train_within(&pixels, &labels, memory.words())?;
    let (ram, flash) = (WORDS * WORD, model.as_bytes().len());
    println!("trained {NNZ} nonzeros in {ram} bytes; flash of the model: {flash} bytes");

    // One byte less holds one word less.
    let mut memory = vec![0; (WORDS * WORD - 1) / WORD];
    match train_within(&pixels, &labels, &mut memory) {
        Err(error) => println!("one byte less, the operator's {OPERATOR} aside: {error}"),
        Ok(_) => anyhow::bail!("trained in less memory than the budget says"),
    }

    let (pixels, labels) = zeros_and_ones(1000, 2)?;
    let view = model.view()?;
    let mut right = 0;
    for (bytes, label) in pixels.chunks_exact(PIXELS).zip(&labels) {
        let mut prediction = [0.0];
        view.model().predict_from(&Scaled { bytes, scale: SCALE }, &mut [], &mut prediction)?;
        right += usize::from((prediction[0] > 0.5) == (*label > 0.5));
    }
    println!("right on {right} of {} unseen pictures", labels.len());
    Ok(())
}

/// Trains within `memory`, of which the operator takes the first part; gives the encoded model.
fn train_within(
    pixels: &[u8],
    labels: &[f32],
    memory: &mut [u32],
) -> tamis::Result<OwnedModel<{ max_len(HIDDEN, NNZ) }>> {
    let split = memory.len().min(OPERATOR / WORD);
    let (operator, run) = memory.split_at_mut(split);
    let rows = ByteRows::new(pixels, PIXELS, SCALE)?;
    let operator = Workspace::new(operator).floats(split)?;
    let mut sensing = Gated::new(rows, HIDDEN, PANEL, operator)?;
    let labels = Labels::Values(labels);
    let trained =
        train::run(&mut sensing, labels, NNZ, Start::Zero, &SCHEDULE, run, |_| Continue(()))?;
    OwnedModel::from_trained(trained.network, HIDDEN, Some(Task::BINARY))
}
