//! Training of weights that will be rounded (*quantisation-aware fine-tuning*), on the support that
//! they have.
//!
//! Weights and biases stay floats. Every step rounds them and predicts with the integers, as a
//! device would, to the bit; the loss of those predictions moves the floats, with derivatives
//! straight through the rounding (`tamis::infer::quantised::straight`). Scales stay as the
//! calibration has chosen them, and weights stay within them. After each epoch the model of
//! integers is made as it would be saved and scored on all rows; the best one is the result, the
//! untuned one included.
//!
//! The gradients of the rows of a step are added in groups of a fixed size and in order, so threads
//! change no bit.

use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;
use tamis::base::math;
use tamis::base::rng::{Permutation, stream};
use tamis::infer::model::Activation;
use tamis::infer::quantised::{Model, straight};
use tamis::learn::deep::tune::Params;
use tamis::learn::loss;
use tamis::learn::optimiser::Decay;
use tamis::store::wire::{self, Choice};

use super::build::{Built, Frame, predict_bytes};
use super::round::{MOST, Sparse, prune};
use crate::base::Limits;
use crate::data::{Matrix, Task};
use crate::model::Score;
use crate::model::predict::{integer_row, number};
use crate::operator::Stop;
use crate::{Error, Result};

/// Rows whose gradients are added one after the other.
const GROUP: usize = 32;

/// How to tune.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuneOptions {
    /// Epochs, batches, the first step relative to the root mean square of a layer's weights, and
    /// the seed of the order of rows.
    pub params: Params,
    /// Time, looked at after every step; passes are not limited.
    pub limits: Limits,
}

impl TuneOptions {
    /// The first step of a weight, relative to the size of its layer's weights: shorter than that
    /// of floats, which are not fitted yet.
    pub const RATE: f32 = 0.01;
}

/// Where a fit of a finished model is, after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct EpochProgress {
    /// Epochs done, or steps of least squares.
    pub epoch: u32,
    /// Epochs planned; least squares may need fewer.
    pub epochs: u32,
    /// The least loss so far; of a model of integers on all rows.
    pub best: f32,
}

/// What was done; the fields are keys of the command line's JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TuneReport {
    /// Epochs done.
    pub epochs: u32,
    /// The epoch after which the model was best, perhaps one that was ended early; 0 for the model
    /// without tuning.
    pub best_epoch: u32,
    /// Seed of the order of the rows.
    pub seed: u64,
    /// Which limit ended the run.
    pub limit: Option<&'static str>,
    /// Whether it was ended early on request.
    pub stopped: bool,
    /// Seconds of it.
    pub seconds: f64,
    /// Bytes from step to step: of each weight and bias its value, two moments, the length of its
    /// step and its bound.
    pub state_bytes: u64,
}

/// What a run starts from: layers of floats with scales, and the signs behind them.
pub(super) struct Start<'a> {
    pub(super) layers: Vec<Sparse<f32>>,
    pub(super) signs: Option<Vec<bool>>,
    pub(super) frame: Frame<'a>,
    /// The file of integers without tuning, and its encoding.
    pub(super) bytes: Vec<u8>,
    pub(super) choice: Choice,
}

#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) data: &'a Matrix,
    pub(super) task: Task,
    pub(super) labels: &'a [f32],
}

pub(super) fn tune(
    start: Start<'_>,
    rows: Rows<'_>,
    options: &TuneOptions,
    stop: &Stop,
    mut observe: impl FnMut(&EpochProgress) -> bool,
) -> Result<(Vec<u8>, TuneReport)> {
    let (began, params) = (Instant::now(), options.params);
    let Rows { data, task, labels } = rows;
    check(&params)?;
    let Start { mut layers, mut signs, frame, bytes, choice } = start;
    prune(&mut layers, &mut signs);
    let goal = Goal::new(frame.task, task, labels);
    let outputs = layers.last().filter(|_| signs.is_none()).map_or(1, |last| last.rows.len());
    let loss = |bytes: &[u8]| -> Result<f64> {
        Ok(Score::stored(frame.task, outputs, task, labels, &predict_bytes(bytes, data)?).loss)
    };
    let mut best = (loss(&bytes)?, 0, bytes);
    let mut state = State::new(&layers);
    let batch = params.batch.min(data.rows).max(1);
    let steps = (params.epochs as usize).saturating_mul(data.rows.div_ceil(batch)).max(1);
    let state_bytes = 20 * state.value.len() as u64;
    let mut report = TuneReport { seed: params.seed, state_bytes, ..TuneReport::default() };
    // Steps shorten over the planned epochs, or over the time where that ends first.
    let part = |step: usize| {
        let of_steps = step as f32 / steps as f32;
        options.limits.time.map_or(of_steps, |limit| {
            let limit = limit.as_secs_f32().max(f32::MIN_POSITIVE);
            of_steps.max(began.elapsed().as_secs_f32() / limit).min(1.0)
        })
    };
    let mut step = 0_usize;
    let mut is_over = false;
    while report.epochs < params.epochs && !is_over {
        let order =
            Permutation::new(params.seed, stream::ROWS + u64::from(report.epochs), data.rows);
        let order: Vec<usize> = (0..data.rows).map(|at| order.get(at)).collect();
        for rows in order.chunks(batch) {
            let is_late = options.limits.time.is_some_and(|limit| began.elapsed() >= limit);
            report.limit = is_late.then_some("time");
            report.stopped = stop.asked();
            if report.limit.is_some() || report.stopped {
                is_over = true;
                break;
            }
            let rounded: Vec<_> = layers.iter().map(|layer| layer.rounded(true)).collect();
            let built = Built::new(&rounded, signs.as_deref(), frame)?;
            // Steps that make biases beyond 32 bits lead nowhere.
            let Ok(integers) = built.layers() else {
                is_over = true;
                break;
            };
            let model = built.model(&integers)?;
            let mut gradient = gradient(&model, data, rows, &goal, state.value.len())?;
            if let (Some(columns), Some(first)) = (frame.columns, layers.first()) {
                less_zeros(&mut gradient, first, &columns.zeros);
            }
            let (_, cosine) = math::sin_cos(part(step) * core::f32::consts::PI);
            state.step(&gradient, params.rate * 0.5 * (1.0 + cosine), rows.len());
            state.write(&mut layers);
            step += 1;
        }
        // An epoch that was ended early is scored, too.
        let epoch = report.epochs + 1;
        let (mut pruned, mut left) =
            (layers.iter().map(|layer| layer.rounded(false)).collect::<Vec<_>>(), signs.clone());
        prune(&mut pruned, &mut left);
        // A step may leave a neuron or all of them without weights: such a network has no scales,
        // and is not the best.
        if pruned.iter().all(|layer| !layer.rows.is_empty())
            && let Ok(bytes) =
                Built::new(&pruned, left.as_deref(), frame).and_then(|built| built.encode(choice))
        {
            let now = loss(&bytes)?;
            if now < best.0 {
                best = (now, epoch, bytes);
            }
        }
        if !is_over {
            report.epochs = epoch;
            report.stopped =
                !observe(&EpochProgress { epoch, epochs: params.epochs, best: best.0 as f32 });
            is_over = report.stopped;
        }
    }
    report.best_epoch = best.1;
    report.seconds = began.elapsed().as_secs_f64();
    Ok((best.2, report))
}

fn check(&Params { epochs, batch, rate, .. }: &Params) -> Result<()> {
    if epochs == 0 || batch == 0 || !(rate >= 0.0 && rate.is_finite()) {
        return Err(Error::new("a setting of tuning is out of bounds")
            .expected("an epoch, a row in a batch, and a rate of 0 or more")
            .got(format_args!("{epochs} epochs, {batch} rows, rate {rate}"))
            .help("choose 5 to 20 epochs"));
    }
    Ok(())
}

enum Goal<'a> {
    Values(&'a [f32]),
    Classes(Vec<u16>),
}

impl<'a> Goal<'a> {
    /// As training has it: classes for several of them and for log-odds, else numbers.
    fn new(stored: Option<wire::Task>, task: Task, labels: &'a [f32]) -> Self {
        let is_odds = task == Task::Binary && stored == Some(Task::LOG_ODDS);
        if task == Task::Multiclass || is_odds {
            return Self::Classes(labels.iter().map(|&label| label as u16).collect());
        }
        Self::Values(labels)
    }

    /// Turns the outputs of a row into the negative derivative of its loss, up to a common factor.
    fn residual(&self, row: usize, out: &mut [f32]) -> Result<()> {
        let c = out.len();
        match self {
            Self::Values(labels) => loss::square(&labels[row * c..(row + 1) * c], out)?,
            Self::Classes(classes) => loss::cross_entropy(&classes[row..=row], c, out)?,
        };
        Ok(())
    }
}

/// The sum of the negative derivatives of the losses of these rows.
fn gradient(
    model: &Model<'_>,
    data: &Matrix,
    rows: &[usize],
    goal: &Goal<'_>,
    len: usize,
) -> Result<Vec<f32>> {
    let chain = model.chain();
    let (scales, hidden, c) = (chain.scales(), straight::bytes(&chain), chain.outputs());
    let has_relu = chain.sum().is_none()
        && chain.layers().last().is_some_and(|last| last.activation() == Activation::Relu);
    let group = |rows: &[usize]| -> Result<Vec<f32>> {
        let (mut gradient, mut deltas) = (vec![0.0; len], vec![0.0; hidden]);
        let (mut scratch, mut sums, mut row) =
            (vec![0; chain.scratch_len()], vec![0; c], vec![0; data.cols]);
        let (mut given, mut out) = (Vec::with_capacity(hidden + c), vec![0.0; c]);
        for &k in rows {
            integer_row(model.readings(), data, k, &mut row);
            given.clear();
            chain.predict_observed(&row, &mut scratch, &mut sums, |_, _, value| {
                given.push(value as u8);
            })?;
            // Behind the bytes stand the outputs.
            given.truncate(hidden);
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = number(sum, scales.output()));
            goal.residual(k, &mut out)?;
            if has_relu {
                let idle = out.iter_mut().zip(&sums).filter(|(_, sum)| **sum <= 0);
                idle.for_each(|(out, _)| *out = 0.0);
            }
            straight::add_gradient(&chain, &row, &given, &out, &mut deltas, &mut gradient)?;
        }
        Ok(gradient)
    };
    let groups = rows.par_chunks(GROUP).map(group).collect::<Result<Vec<_>>>()?;
    let mut groups = groups.into_iter();
    let mut sum = groups.next().unwrap_or_default();
    groups.for_each(|group| sum.iter_mut().zip(group).for_each(|(sum, g)| *sum += g));
    Ok(sum)
}

/// The derivative by a weight of the first layer is that by its bias times the byte less its zero:
/// [`straight::add_gradient`] knows no zero of one input.
fn less_zeros(gradient: &mut [f32], first: &Sparse<f32>, zeros: &[i32]) {
    // The first layer is the last, and its biases are behind its weights.
    let (weights, biases) = gradient.split_at_mut(gradient.len() - first.rows.len());
    let mut from = weights.len() - first.rows.iter().map(Vec::len).sum::<usize>();
    for (row, bias) in first.rows.iter().zip(&*biases) {
        for &(column, _) in row {
            weights[from] -= bias * zeros[column] as f32;
            from += 1;
        }
    }
}

/// Weights and biases as `straight` orders them: the last layer first, in each the weights row by
/// row, then the biases.
struct State {
    value: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
    /// The length of a step in units of the rate; 0 for what stays as it is.
    size: Vec<f32>,
    /// The most that a value may be, of either sign.
    most: Vec<f32>,
    decay: Decay,
}

impl State {
    fn new(layers: &[Sparse<f32>]) -> Self {
        let (mut value, mut size, mut most) = (Vec::new(), Vec::new(), Vec::new());
        for layer in layers.iter().rev() {
            let held = || {
                let rows = layer.rows.iter().zip(&layer.scales);
                rows.flat_map(|(row, &scale)| {
                    row.iter().map(move |(_, w)| (w.clamp(-MOST * scale, MOST * scale), scale))
                })
            };
            // In steps of each row's own scale, so that rows of small weights take small steps.
            let steps = rms(held().map(|(w, scale)| w / scale));
            for (w, scale) in held() {
                value.push(w);
                size.push(steps * scale);
                most.push(MOST * scale);
            }
            let biases = rms(layer.offsets.iter().filter(|b| **b != 0.0).map(|&b| b as f32));
            for &b in &layer.offsets {
                value.push(b as f32);
                size.push(if b == 0.0 { 0.0 } else { biases });
                most.push(f32::MAX);
            }
        }
        let (mean, square) = (vec![0.0; value.len()], vec![0.0; value.len()]);
        Self { value, mean, square, size, most, decay: Decay::START }
    }

    fn step(&mut self, gradient: &[f32], rate: f32, rows: usize) {
        self.decay.step();
        let moments = self.mean.iter_mut().zip(&mut self.square);
        let bounds = self.size.iter().zip(&self.most);
        let all = self.value.iter_mut().zip(gradient).zip(moments).zip(bounds);
        for (((w, g), (mean, square)), (&size, &most)) in all {
            self.decay.update(w, g / rows as f32, mean, square, rate * size);
            *w = w.clamp(-most, most);
        }
    }

    fn write(&self, layers: &mut [Sparse<f32>]) {
        let mut values = self.value.iter();
        for layer in layers.iter_mut().rev() {
            layer.rows.iter_mut().flatten().zip(&mut values).for_each(|((_, w), &v)| *w = v);
            layer.offsets.iter_mut().zip(&mut values).for_each(|(b, &v)| *b = v.into());
        }
    }
}

fn rms(values: impl Iterator<Item = f32>) -> f32 {
    let (count, sum) =
        values.fold((0_usize, 0.0_f64), |(count, sum), v| (count + 1, sum + f64::from(v).powi(2)));
    (sum / count.max(1) as f64).sqrt() as f32
}
