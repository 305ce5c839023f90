//! Trains on a table of your own: a CSV file with a header and a label column in, a model file out,
//! and predictions from the file. Here the table is first written from a seed: 16 sensors, of which
//! 4 matter.
//!
//! For a table of yours, put its path and the name of its label column into `read` and `target`.
//!
//! Run: `cargo run --release -p tamis-examples --example 2_train_on_csv`

use std::io::Write;
use std::path::Path;

use tamis::base::rng::{Rng, stream};
use tamis_host::{Budget, ModelFile, Result, Table, base::file};

fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (table, model) = (folder.path().join("sensors.csv"), folder.path().join("sensors.tamis"));
    write_table(&table)?;

    // Four fifths of the rows to train on, in a random order.
    let (train, test) = Table::read(&table)?.target("label")?.split(0.8, 1)?;
    let trained = tamis_host::train(&train, Budget::nnz(4))?;
    trained.save(&model)?;
    let (rows, inputs) = (train.data.rows, train.data.cols);
    println!("trained on {rows} rows of {inputs} inputs to {} weights", trained.report.nnz);

    // Reloaded, checked and used in place.
    let model = ModelFile::load(&model)?;
    println!(
        "the first unseen row: {:?}, and its label is {}",
        model.predict(&test.data)?[0],
        test.labels[0]
    );
    let score = model.score_on(&test)?;
    println!("unseen: {score}");
    let error = score.loss.sqrt();
    println!("root mean squared error on {} unseen rows: {error:.3}; the noise has 0.050", score.n);
    Ok(())
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
