//! Trains on a table of your own: a CSV file with a header and a label column in, a model file out, and predictions
//! from the file. Here the table is first written from a seed: 16 sensors, of which 4 matter.
//!
//! For a table of yours, put its path and the name of its label column into `load`.
//!
//! Run: `cargo run --release -p tamis-examples --example 2_train_on_csv`

use std::io::Write;
use std::path::Path;
use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::rng::{Rng, stream};
use tamis::sensing::Sensing;
use tamis::train::{self, Schedule, Trials};
use tamis::wire::{self, Task, View};
use tamis_host::data::{self, Matrix, Values};
use tamis_host::operator::{Blocked, Layout};
use tamis_host::{Result, file};

/// Neurons, and nonzero weights to keep.
const HIDDEN: usize = 8;
const NNZ: usize = 4;
/// Labels take both signs, so half of the neurons count negatively.
const SCHEDULE: Schedule<'_> =
    Schedule { signs: Signs::Balanced, trials: Trials::DEFAULT, ..Schedule::PAPER };

fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (table, model) = (folder.path().join("sensors.csv"), folder.path().join("sensors.tamis"));
    write_table(&table)?;

    // The last fifth of the rows is kept for the test. Rows must come in random order; these do.
    let (inputs, labels) = data::load_table(&table)?.split("label")?;
    let (rows, cols) = (inputs.rows * 4 / 5, inputs.cols);
    let values = inputs.values.into_f32();
    let (seen, unseen) = values.split_at(rows * cols);
    let (labels, answers) = labels.split_at(rows);

    let bytes = train(Matrix::new(rows, cols, Values::F32(seen.to_vec()))?, labels)?;
    file::write(&model, |w| w.write_all(&bytes))?;
    println!("trained on {rows} rows of {cols} inputs; the model file has {} bytes", bytes.len());

    // Reloaded, checked and used in place.
    let bytes = file::read_aligned(&model)?;
    let view = View::parse(&bytes)?;
    println!("weights: {} of {}", view.model().cost().nonzeros, HIDDEN * cols);
    let mut error = 0.0;
    for (row, answer) in unseen.chunks_exact(cols).zip(answers) {
        let mut prediction = [0.0];
        view.model().predict(row, &mut [], &mut prediction)?;
        error += (prediction[0] - answer).powi(2);
    }
    let error = (error / answers.len() as f32).sqrt();
    println!("root mean squared error on {} unseen rows: {error:.3}; the noise has 0.050", answers.len());
    Ok(())
}

/// The trained network as the bytes of a model file.
fn train(inputs: Matrix, labels: &[f32]) -> Result<Vec<u8>> {
    let dims = Dims::new(inputs.rows, inputs.cols, HIDDEN, NNZ);
    let mut sensing = Blocked::new(inputs, HIDDEN, NNZ, Layout::new(HIDDEN, dims.inputs))?;
    let budget = SCHEDULE.budget(dims, sensing.panel(), sensing.scratch(dims.samples));
    let mut memory = vec![0; budget.words()];
    let trained = train::run(&mut sensing, labels, NNZ, &SCHEDULE, &mut memory, |_| true)?;
    let task = Some(Task::Regression);
    let mut bytes = vec![0; wire::trained_len(trained.weights, task)?];
    wire::encode(trained.weights, SCHEDULE.signs, trained.weights.hidden(), task, &mut bytes)?;
    Ok(bytes)
}

/// 2000 rows: 16 sensors and `label = relu(1.5 s3 - 0.8 s7) - relu(0.6 s0 + 2 s12) + noise`.
fn write_table(path: &Path) -> Result<()> {
    let mut rng = Rng::new(1, stream::USER);
    file::write(path, |w| {
        writeln!(w, "{},label", (0..16).map(|i| format!("s{i}")).collect::<Vec<_>>().join(","))?;
        for _ in 0..2000 {
            let mut s = [0.0_f32; 16];
            rng.fill_normal(&mut s);
            let label = (1.5 * s[3] - 0.8 * s[7]).max(0.0) - (0.6 * s[0] + 2.0 * s[12]).max(0.0);
            s.iter().try_for_each(|value| write!(w, "{value},"))?;
            writeln!(w, "{}", label + 0.05 * rng.normal())?;
        }
        Ok(())
    })
}
