//! Predictions of models of both kinds for many rows, in parallel, and their scores.

use std::ops::Range;

use rayon::prelude::*;
use tamis::base::error;
use tamis::infer::model::Model;
use tamis::infer::quantised::{self, Reading, Readings};
use tamis::store::wire::View;

use crate::base::file::Aligned;
use crate::base::memory::room_for;
use crate::data::{Matrix, Problem, Values};
use crate::model::Score;
use crate::model::batch::Batches;
use crate::model::score::Tally;
use crate::operator::gather::Element;
use crate::operator::lanes::LANES;
use crate::{Error, Result};

/// Rows that a thread predicts as integers at a time.
const CHUNK: usize = 256;
/// Rows for each thread that are scored at a time.
const SCORED: usize = 4 * LANES;

/// Scores the bytes of a model on labelled rows; runs on the current rayon pool, 256 rows
/// to each thread at a time: it holds their predictions, and the activations of 64 rows a thread.
///
/// # Errors
/// The bytes are no model of as many inputs, or a prediction overflows.
pub fn score_model(model: &[u8], problem: &Problem) -> Result<Score> {
    score_rows(model, problem, 0..problem.data.rows)
}

/// The same on some of the rows.
pub(crate) fn score_rows(model: &[u8], problem: &Problem, rows: Range<usize>) -> Result<Score> {
    let bytes = Aligned::new(model);
    let view = View::parse(&bytes)?;
    let (model, data) = (view.model(), &problem.data);
    let (outputs, width) = (model.outputs().max(1), problem.outputs());
    let batches = Batches::new(model)?;
    let mut tally = Tally::new(problem.task, view.task(), outputs);
    let chunk = SCORED * rayon::current_num_threads();
    let mut predictions = vec![0.0; chunk.min(rows.len()) * outputs];
    for first in rows.clone().step_by(chunk) {
        let rows = first..(first + chunk).min(rows.end);
        let predictions = &mut predictions[..rows.len() * outputs];
        let labels = &problem.labels[rows.start * width..rows.end * width];
        predict_into(&batches, data, rows, predictions)?;
        tally.add(labels, predictions);
    }
    Ok(tally.score())
}

/// The number that an output of integers stands for.
pub(crate) fn number(output: i32, scale: f32) -> f32 {
    (f64::from(output) * f64::from(scale)) as f32
}

/// The prediction of a model of integers for every row, as floats; on the current rayon pool.
pub(crate) fn predict_integers(model: &quantised::Model<'_>, data: &Matrix) -> Result<Vec<f32>> {
    let (d, c) = (data.cols.max(1), model.outputs().max(1));
    let numbers = (data.rows as u64).saturating_mul(c as u64);
    room_for("the predictions", numbers.saturating_mul(4), "predict fewer rows at a time")?;
    let scales = model.scales();
    let mut out = vec![0.0; data.rows * c];
    let chunks = out.par_chunks_mut(CHUNK * c).enumerate();
    chunks.try_for_each(|(chunk, out)| {
        let (mut scratch, mut sums, mut row) =
            (vec![0; model.scratch_len()], vec![0; c], vec![0; d]);
        for (k, out) in out.chunks_mut(c).enumerate() {
            integer_row(model.readings(), data, chunk * CHUNK + k, &mut row);
            model.predict(&row, &mut scratch, &mut sums)?;
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = number(sum, scales.output()));
        }
        Ok::<(), Error>(())
    })?;
    Ok(out)
}

/// A row of the data as the bytes that a model of integers takes.
pub(crate) fn integer_row(of: Readings<'_>, data: &Matrix, at: usize, row: &mut [u8]) {
    let range = at * data.cols..(at + 1) * data.cols;
    match &data.values {
        // Bytes that stand for themselves are not touched.
        Values::U8(bytes) if of.columns().is_none() && is_plain(of.of(0)) => {
            row.copy_from_slice(&bytes[range]);
        }
        Values::U8(bytes) => {
            let numbers = row.iter_mut().zip(&bytes[range]).enumerate();
            numbers.for_each(|(j, (q, &x))| *q = of.byte(j, x.into()));
        }
        Values::F32(floats) => {
            let numbers = row.iter_mut().zip(&floats[range]).enumerate();
            numbers.for_each(|(j, (q, &x))| *q = of.byte(j, x));
        }
    }
}

/// Whether bytes stand for themselves.
fn is_plain(of: Reading) -> bool {
    of.scale == 1.0 && of.zero == 0
}

/// Numbers in the columns that the model reads beyond what its input bytes can stand for.
pub(crate) fn inputs_cut(model: &quantised::Model<'_>, data: &Matrix) -> usize {
    let readings = model.readings();
    let mut used = vec![false; data.cols];
    if let Some(first) = model.layers().first() {
        first.weights().entries(&mut |_, column, weight| {
            if let Some(used) = used.get_mut(usize::from(column)) {
                *used |= weight != 0;
            }
        });
    }
    let is_cut = |j: usize, x: f32| {
        let Reading { scale, zero } = readings.of(j);
        let byte = f64::from(x) / f64::from(scale) + f64::from(zero);
        !(-0.5..255.5).contains(&byte)
    };
    fn count<T: Copy + Sync>(
        values: &[T],
        used: &[bool],
        is_cut: impl Fn(usize, T) -> bool + Sync,
    ) -> usize {
        let row = |row: &[T]| {
            let numbers = row.iter().zip(used).enumerate();
            numbers.filter(|&(j, (&x, &used))| used && is_cut(j, x)).count()
        };
        values.par_chunks(used.len().max(1)).map(row).sum()
    }
    match &data.values {
        Values::F32(values) => count(values, &used, is_cut),
        Values::U8(values) => count(values, &used, |j, x| is_cut(j, x.into())),
    }
}

/// The prediction of a model for every row, on the current rayon pool.
pub(crate) fn predict_rows(model: &Model<'_>, data: &Matrix) -> Result<Vec<f32>> {
    let numbers = (data.rows as u64).saturating_mul(model.outputs() as u64);
    room_for("the predictions", numbers.saturating_mul(4), "predict fewer rows at a time")?;
    let mut out = vec![0.0; data.rows * model.outputs().max(1)];
    predict_into(&Batches::new(model)?, data, 0..data.rows, &mut out)?;
    Ok(out)
}

fn predict_into(
    batches: &Batches<'_>,
    data: &Matrix,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<()> {
    error::length("input row", data.cols, batches.inputs)?;
    let values = rows.start * data.cols..rows.end * data.cols;
    match &data.values {
        Values::F32(of) => predict(batches, &of[values], rows.start, out),
        Values::U8(of) => predict(batches, &of[values], rows.start, out),
    }
}

/// The prediction for rows, the first of which has this number.
fn predict<T: Element + Sync>(
    batches: &Batches<'_>,
    values: &[T],
    first: usize,
    out: &mut [f32],
) -> Result<()> {
    let (d, c) = (batches.inputs.max(1), batches.outputs.max(1));
    let chunks = out.par_chunks_mut(LANES * c).zip(values.par_chunks(LANES * d)).enumerate();
    chunks.try_for_each_init(
        || batches.scratch(),
        |scratch, (chunk, (out, rows))| {
            batches.predict(rows, scratch, out)?;
            let mut rows = out.chunks(c).enumerate();
            match rows.find(|(_, out)| out.iter().any(|value| !value.is_finite())) {
                None => Ok(()),
                Some((k, out)) => {
                    let row = first + chunk * LANES + k;
                    Err(Error::new("a prediction is too large for a 32-bit float")
                        .expected("finite numbers")
                        .got(format_args!("{} in row {row} (counted from 0)", out[0]))
                        .help("scale the data as it was for training"))
                }
            }
        },
    )
}
