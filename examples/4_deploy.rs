//! Makes what the firmware of `examples/firmware/deploy` embeds: a trained model, and pictures to
//! try it on.
//!
//! It writes three files: `digits.tamis`, the model; `pictures.bin`, ten pictures of 8×8 bytes and
//! a byte more each, the label; and `expected.txt`, what the device must print, bit by bit, since it
//! computes with the host's bits. The reference operator trains, so that the files come out the
//! same on every machine.
//!
//! Run: `cargo run --release -p tamis-examples --example 4_deploy [FOLDER]`, then
//! `cd examples/firmware/deploy && cargo run --release`.

use anyhow::Context;
use std::io::Write;
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use tamis::base::budget;
use tamis::base::dims::Dims;
use tamis::data::samples::ByteRows;
use tamis::infer::model::{Model, Scaled};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, Schedule};
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::store::wire::{self, Task, View};
use tamis_examples::{PIXELS, zeros_and_ones};
use tamis_host::base::file::{Aligned, write_folder};

/// Pictures to train on, neurons, nonzero weights.
const DIMS: Dims = Dims::new(1000, PIXELS, 10, 40);
/// What a byte of a picture stands for; the firmware must use the same.
const SCALE: f32 = 1.0 / 255.0;
/// Pictures that go into the firmware.
const PICTURES: usize = 10;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/firmware/deploy/model")),
        PathBuf::from,
    );
    let bytes = train()?;
    let view = View::parse(&bytes)?;
    let (pixels, labels) = zeros_and_ones(PICTURES, 2)?;
    let expected = report(view.model(), &pixels, &labels)?;
    print!("{expected}");
    write_folder(&folder, |folder| {
        folder.write("digits.tamis", |w| w.write_all(&bytes))?;
        folder.write("expected.txt", |w| w.write_all(expected.as_bytes()))?;
        folder.write("pictures.bin", |w| {
            pixels.chunks(PIXELS).zip(&labels).try_for_each(|(picture, label)| {
                w.write_all(picture)?;
                w.write_all(&[*label as u8])
            })
        })
    })?;
    println!(
        "wrote a model of {} bytes and {PICTURES} pictures to {}",
        bytes.len(),
        folder.display()
    );
    Ok(())
}

/// Trains on pictures and gives the bytes of the model.
fn train() -> anyhow::Result<Aligned> {
    let (pixels, labels) = zeros_and_ones(DIMS.samples, 1)?;
    let rows = ByteRows::new(&pixels, PIXELS, SCALE)?;
    let mut operator = vec![0.0; budget::gated_words(PIXELS, DIMS.hidden)];
    let mut sensing = Gated::new(rows, DIMS.hidden, DIMS.hidden, &mut operator)?;
    let schedule = Schedule::PAPER;
    let budget = schedule.budget(DIMS, sensing.panel(), sensing.scratch(DIMS.samples));
    let mut memory = vec![0; budget.words()];
    let (labels, s) = (Labels::values(&labels), DIMS.nnz);
    let trained =
        train::run(&mut sensing, labels, s, Start::Zero, &schedule, &mut memory, |_| Continue(()))?;
    let task = Some(Task::BINARY);
    let mut bytes = vec![0; wire::trained_len(trained.network, task)?];
    wire::encode(trained.network, DIMS.hidden, task, &mut bytes)
        .context("cannot encode the model")?;
    Ok(Aligned::new(&bytes))
}

/// The lines that the firmware prints.
fn report(model: &Model<'_>, pixels: &[u8], labels: &[f32]) -> anyhow::Result<String> {
    let (mut lines, mut right) = (String::new(), 0);
    for (bytes, &label) in pixels.chunks(PIXELS).zip(labels) {
        let mut prediction = [0.0];
        model.predict_from(&Scaled { bytes, scale: SCALE }, &mut [], &mut prediction)?;
        let class = u8::from(prediction[0] > 0.5);
        right += usize::from(f32::from(class) == label);
        lines += &format!(
            "picture of a {label}: class {class}, prediction {:#010x}\n",
            prediction[0].to_bits()
        );
    }
    Ok(lines + &format!("{right} of {} right\n", labels.len()))
}
