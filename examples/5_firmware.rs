//! Makes the network that the firmware of `examples/firmware/chips` watches a machine with: windows
//! of an accelerometer in, three classes out, 8-bit integers. Training is the reference operator's,
//! bit-identical everywhere. For a machine of yours, read recorded windows in `windows`.
//!
//! Run: `cargo run --release -p tamis-examples --example 5_firmware [FOLDER]`; then see
//! `examples/firmware/README.md`.

use std::io::Write;
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use tamis::base::{budget, dims::Dims, rng::Rng, rng::stream};
use tamis::data::samples::Rows;
use tamis::infer::quantised::Encoding;
use tamis::learn::{anneal, anneal::Params, loss::Classes, start::Start};
use tamis::operator::{factored::provided, gated::Gated, sensing::Sensing};
use tamis::store::wire::{self, Choice, QuantisedView, Task};
use tamis_host::base::file::{Aligned, write_folder};
use tamis_host::data::{Matrix, Values};
use tamis_host::model::{self, ModelFile, QuantiseOptions};
use tamis_monitor::{Class, INPUTS, Window, simulated};

/// Windows to train on, neurons, nonzero weights.
const DIMS: Dims = Dims::new(6000, INPUTS, 12, 200);
/// Windows to test on.
const TEST: usize = 3000;
const CLASSES: usize = Class::ALL.len();
/// The byte that stands for 0 g.
const ZERO: f32 = 128.0;
const PARAMS: Params<'_> = Params {
    epochs: 60,
    batch: 100,
    growth_rows: 1000,
    input_scale: 1.0 / 32.0,
    ..Params::DEFAULT
};

fn main() -> anyhow::Result<()> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware/monitor/model");
    let folder = std::env::args_os().nth(1).map_or_else(|| default.into(), PathBuf::from);
    let (windows, classes) = windows(1, DIMS.samples);
    let mut values: Vec<f32> =
        windows.as_flattened().iter().map(|&byte| f32::from(byte) - ZERO).collect();
    let floats = train(&values, &classes)?;
    // Bytes of the accelerometer are those of the network if both ends of their range are seen.
    values.extend([[-ZERO; INPUTS], [255.0 - ZERO; INPUTS]].as_flattened());
    let bytes = Aligned::new(&quantise(&floats, values)?);
    let view = QuantisedView::parse(&bytes)?;
    let (scales, cost) = (view.model().scales(), view.model().layers());
    let same = scales.input() == 1.0 && f32::from(scales.zero) == ZERO;
    anyhow::ensure!(same, "other bytes than the sensor's: {scales:?}");
    let nonzeros: usize = cost.iter().map(|layer| layer.weights().nonzeros()).sum();
    write_folder(&folder, |folder| folder.write("vibration.tamis", |w| w.write_all(&bytes)))?;
    println!("wrote {} bytes, {nonzeros} nonzeros, to {}", bytes.len(), folder.display());
    println!("{} of {TEST} windows right that it has not seen", right(&view)?);
    Ok(())
}

/// Windows and their classes, in random order.
fn windows(seed: u64, count: usize) -> (Vec<Window>, Vec<u16>) {
    let mut rng = Rng::new(seed, stream::USER);
    let classes: Vec<u16> = (0..count).map(|_| rng.below(CLASSES as u32) as u16).collect();
    let window = |&class: &u16| simulated::window(Class::ALL[usize::from(class)], &mut rng);
    (classes.iter().map(window).collect(), classes)
}

/// The bytes of a model of floats.
fn train(values: &[f32], classes: &[u16]) -> anyhow::Result<Vec<u8>> {
    let rows = Rows::new(values, INPUTS)?;
    let mut operator = vec![0.0; budget::gated_words(INPUTS, DIMS.hidden)];
    let mut sensing = Gated::new(rows, DIMS.hidden, 1, &mut operator)?;
    let scratch = provided::scratch(PARAMS.batch, INPUTS);
    let mut memory = vec![0; PARAMS.budget(DIMS, CLASSES, sensing.panel(), scratch).words()];
    let (classes, s) = (Classes::new(classes, CLASSES), DIMS.nnz);
    let trained =
        anneal::run(&mut sensing, classes, s, Start::Zero, &PARAMS, &mut memory, |_| Continue(()))?;
    let task = Some(Task::Multiclass);
    let mut bytes = vec![0; wire::trained_len(trained.network, task)?];
    wire::encode(trained.network, DIMS.hidden, task, &mut bytes)?;
    Ok(bytes)
}

/// The same model in integers, in blocks, which are read from a chip on SPI piece by piece.
fn quantise(floats: &[u8], values: Vec<f32>) -> anyhow::Result<Vec<u8>> {
    let data = Matrix { rows: values.len() / INPUTS, cols: INPUTS, values: Values::F32(values) };
    let options =
        QuantiseOptions { choice: Choice::Prefer(Encoding::Blocks), ..QuantiseOptions::default() };
    Ok(model::quantise(&ModelFile::from_bytes(floats)?, &data, None, &options)?.model)
}

/// How many of other windows get their class.
fn right(view: &QuantisedView<'_>) -> anyhow::Result<usize> {
    let (windows, classes) = windows(2, TEST);
    let (model, mut sums) = (view.model(), [0; CLASSES]);
    let mut scratch = vec![0; model.scratch_len()];
    let predicted = windows.iter().map(|window| model.classify(window, &mut scratch, &mut sums));
    let predicted = predicted.collect::<tamis::Result<Vec<_>>>()?;
    Ok(predicted.iter().zip(&classes).filter(|(a, b)| **a == usize::from(**b)).count())
}
