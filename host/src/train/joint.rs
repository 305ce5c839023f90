//! All layers of a network together: the fit in the end, and conversions between models and stacks.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tamis::data::samples::{ByteRows, Rows, Samples};
use tamis::infer::model::{Csr, Layer};
use tamis::learn::deep::shrink::{self, Scope};
use tamis::learn::deep::{Stack, tune};
use tamis::learn::loss::Labels;
use tamis::learn::start::continue_if;
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis::store::wire;

use crate::data::{Problem, Task, Values};
use crate::model::rows::rows_of;
use crate::operator::Stop;
use crate::train::check::classes_of;
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::{Error, Result};

/// How all layers are fitted together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joint<'a> {
    /// How the network is brought down to `nnz` weights before, if it has more.
    pub(crate) shrink: Option<&'a shrink::Params>,
    pub(crate) nnz: usize,
    /// The fit in the end.
    pub(crate) tune: &'a tune::Params,
    /// Whether labels are classes, which one output gives the log-odds of.
    pub(crate) is_class: bool,
    pub(crate) time: Option<Duration>,
}

/// A loss below this fraction of the labels' mean square is of an exact fit, up to rounding.
pub(crate) const EXACT: f64 = 1e-9;
/// Fits that such a network then has, each with a tenth of the steps of the one before.
const FINER: i32 = 3;

/// A joint fit.
pub(crate) struct Fitted {
    /// Loss of the network as it came.
    pub(crate) before: f32,
    /// Epochs of the fits, those between levels included.
    pub(crate) epochs: u32,
    /// Passes over all rows; a step counts as two.
    pub(crate) passes: f64,
    /// Bytes that it took.
    pub(crate) memory_bytes: u64,
    /// The limit that ended it.
    pub(crate) limit: Option<&'static str>,
    /// Whether the observer or a stop ended it.
    pub(crate) stopped: bool,
}

/// Fraction of the time for bringing a network down to s; the fit in the end needs more.
const SHRINKING: f64 = 0.6;

/// What may end a fit: the clock, the observer, and a stop.
struct Watch<'a> {
    began: Instant,
    time: Option<Duration>,
    stop: &'a Stop,
    observe: &'a mut dyn FnMut(&tune::Progress) -> bool,
    limit: Option<&'static str>,
    stopped: bool,
}

impl Watch<'_> {
    /// Tells of an epoch; whether the fit continues within this share of the time.
    fn goes_on(&mut self, progress: &tune::Progress, share: f64) -> bool {
        self.stopped |= !(self.observe)(progress) || self.stop.asked();
        !self.stopped && !self.is_over(share)
    }

    fn is_over(&mut self, share: f64) -> bool {
        let is_over = self.time.is_some_and(|time| self.began.elapsed() >= time.mul_f64(share));
        if is_over {
            self.limit = Some("time");
        }
        is_over
    }
}

/// Fits all layers of a network that has ended together, on rows in random order. `observe` hears
/// of the epochs of all fits as of one.
pub(crate) fn fit_together(
    stack: &mut Stack<'_>,
    problem: &Problem,
    joint: &Joint<'_>,
    stop: &Stop,
    observe: &mut dyn FnMut(&tune::Progress) -> bool,
) -> Result<Fitted> {
    let Problem { data, labels, .. } = problem;
    let task = if joint.is_class { Task::Multiclass } else { Task::Regression };
    let classes = classes_of(task, labels);
    let goal = match joint.is_class {
        true => Labels::classes(&classes, stack.outputs()),
        false => Labels::values(labels),
    };
    let (began, time) = (Instant::now(), joint.time);
    let mut watch = Watch { began, time, stop, observe, limit: None, stopped: false };
    match &data.values {
        Values::F32(values) => fit(Rows::new(values, data.cols)?, goal, stack, joint, &mut watch),
        Values::U8(values) => {
            fit(ByteRows::new(values, data.cols, 1.0)?, goal, stack, joint, &mut watch)
        }
    }
}

fn fit<X: Samples<Source = Infallible>>(
    mut rows: X,
    goal: Labels<'_>,
    stack: &mut Stack<'_>,
    joint: &Joint<'_>,
    watch: &mut Watch<'_>,
) -> Result<Fitted> {
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), stack.outputs())];
    let memory = &mut memory[..];
    let power = match goal {
        Labels::Values(labels) => {
            labels.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / labels.len().max(1) as f64
        }
        Labels::Classes(_) => 0.0,
    };
    let (mut tune, mut epochs) = (*joint.tune, joint.tune.epochs);
    let (mut done, mut before, mut scored) = (0, None, 0.0);
    if let Some(shrink) = joint.shrink {
        let between = if stack.nnz() > joint.nnz { shrink.tune.epochs } else { 0 };
        let levels = shrink.levels.max(1);
        epochs = between.saturating_mul(levels).saturating_add(tune.epochs);
        let info = shrink::run(&mut rows, goal, stack, joint.nnz, shrink, memory, |now| {
            let epoch = now.level.saturating_mul(between).saturating_add(now.tune.epoch);
            let share = SHRINKING * f64::from(now.level + 1) / f64::from(levels);
            if !watch.goes_on(&now.tune.of(epoch, epochs), SHRINKING) {
                ControlFlow::Break(Scope::Run)
            } else if watch.is_over(share) {
                ControlFlow::Break(Scope::Level)
            } else {
                ControlFlow::Continue(())
            }
        })?;
        (done, before, scored) = (info.epochs, info.before, 3.0 * f64::from(info.levels));
    }
    if watch.stopped {
        // A run that was ended is only scored.
        tune.epochs = 0;
    }
    let mut info = tune::run(&mut rows, goal, stack, &tune, memory, |now| {
        let now = now.of(done.saturating_add(now.epoch), epochs);
        continue_if(watch.goes_on(&now, 1.0))
    })?;
    let before = before.unwrap_or(info.before);
    done = done.saturating_add(info.epochs);
    // What is all but exact has steps that are too long for it.
    for finer in 1..=FINER {
        if info.stopped || info.diverged || tune.epochs == 0 || f64::from(info.loss) > EXACT * power
        {
            break;
        }
        let tune = tune::Params { rate: tune.rate * 0.1_f32.powi(finer), ..tune };
        info = tune::run(&mut rows, goal, stack, &tune, memory, |now| {
            continue_if(watch.goes_on(&now.of(epochs, epochs), 1.0))
        })?;
        done = done.saturating_add(info.epochs);
    }
    Ok(Fitted {
        before,
        epochs: done,
        passes: 1.0 + scored + 3.0 * f64::from(done),
        memory_bytes: size_of_val(memory) as u64,
        limit: watch.limit,
        stopped: watch.stopped,
    })
}

/// Adds a hidden layer of a model.
pub(crate) fn push_layer(stack: &mut Stack<'_>, csr: &Csr<'_>) -> Result<()> {
    let width = csr.inputs();
    let flat: Vec<u32> = rows_of(csr)
        .zip(csr.columns())
        .map(|(i, &j)| (i * width + usize::from(j)) as u32)
        .collect();
    Ok(stack.push(Weights::new(width, csr.outputs(), &flat, csr.values())?, Signs::Positive)?)
}

pub(crate) fn two_layers() -> Error {
    Error::new("a recipe gave a model of another shape").expected("a hidden layer and its end")
}

/// What is behind the last hidden layer: signs of its neurons as bits, or weights to the outputs.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) signs: Vec<u32>,
    /// 0 for the sum of the neurons.
    pub(crate) outputs: usize,
    /// Flat indices over the neurons.
    pub(crate) index: Vec<u32>,
    pub(crate) value: Vec<f32>,
}

impl Ending {
    /// Of a model's last layer.
    pub(crate) fn new(end: &Layer<'_>) -> Result<Self> {
        match end {
            Layer::Sum(sum) => Ok(Self { signs: sum.signs().to_vec(), ..Self::default() }),
            Layer::Csr(csr) => {
                let outputs = csr.outputs();
                let mut entries: Vec<(u32, f32)> = rows_of(csr)
                    .zip(csr.columns().iter().zip(csr.values()))
                    .map(|(k, (&i, &v))| ((usize::from(i) * outputs + k) as u32, v))
                    .collect();
                entries.sort_unstable_by_key(|&(at, _)| at);
                let (index, value) = entries.into_iter().unzip();
                Ok(Self { signs: Vec::new(), outputs, index, value })
            }
            _ => Err(two_layers()),
        }
    }

    /// Ends a stack of hidden layers.
    pub(crate) fn end<'a>(&'a self, stack: &mut Stack<'a>) -> Result<()> {
        if self.outputs == 0 {
            return Ok(stack.end_sum(&self.signs)?);
        }
        let weights = Weights::new(self.outputs, stack.width(), &self.index, &self.value)?;
        Ok(stack.end_weights(weights)?)
    }
}

/// The model of a finished stack, with the requested neurons and the signs of a sum.
pub(crate) fn encode_stack(
    stack: &Stack<'_>,
    hidden: &[usize],
    signs: &[u32],
    task: Option<wire::Task>,
) -> Result<Vec<u8>> {
    let layers = stack.layers().enumerate().map(|(l, w)| match hidden.get(l) {
        Some(&requested) => SparseLayer::new(w, requested),
        // The weights to the outputs lie neuron by neuron, and a model wants them output by output.
        None => SparseLayer::behind(w, w.inputs()),
    });
    let layers: Vec<_> = layers.collect();
    let end = if layers.len() > hidden.len() { End::Layer } else { End::Sum(signs) };
    encode_layers(layers, end, task)
}
