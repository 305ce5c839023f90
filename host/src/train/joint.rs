//! All layers of a network together: the fit in the end, and conversions between models and stacks.

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

use crate::data::{Matrix, Values};
use crate::model::windows::rows_of;
use crate::operator::Stop;
use crate::train::encode::{End, SparseLayer};
use crate::{Error, Result};

/// How all layers are fitted together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joint<'a> {
    /// The weights that the network is brought down to before, if it has more, and how.
    pub(crate) shrink: Option<(usize, &'a shrink::Params)>,
    /// The fit in the end.
    pub(crate) tune: &'a tune::Params,
}

/// A loss below this fraction of the labels' mean square is of an exact fit, up to rounding.
pub(crate) const EXACT: f64 = 1e-9;
/// Fits that such a network then has, each with a tenth of the steps of the one before.
const FINER: i32 = 3;

/// Rows to fit to, in random order; whether their labels are classes.
#[derive(Clone, Copy)]
pub(crate) struct FitRows<'a> {
    pub(crate) data: &'a Matrix,
    pub(crate) labels: &'a [f32],
    pub(crate) is_class: bool,
}

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
    /// Whether its time was up.
    pub(crate) is_late: bool,
    /// Whether the observer or the wish to end ended it.
    pub(crate) is_stopped: bool,
}

/// Fraction of the time for bringing a network down to s; the fit in the end needs more.
const SHRINKING: f64 = 0.6;

/// Who may end a fit: the clock, the observer, and the wish to end.
struct Watch<'a, O> {
    began: Instant,
    left: Option<Duration>,
    stop: &'a Stop,
    observe: O,
    is_late: bool,
    is_stopped: bool,
}

impl<O: FnMut(&tune::Progress) -> bool> Watch<'_, O> {
    /// Tells of an epoch.
    fn see(&mut self, progress: &tune::Progress) {
        self.is_stopped |= !(self.observe)(progress) || self.stop.asked();
    }

    /// Whether a share of the time is over.
    fn is_over(&mut self, part: f64) -> bool {
        let is_over = self.left.is_some_and(|left| self.began.elapsed() >= left.mul_f64(part));
        self.is_late |= is_over;
        is_over
    }

    fn goes_on(&mut self, progress: &tune::Progress) -> ControlFlow<()> {
        self.see(progress);
        continue_if(!self.is_stopped && !self.is_over(1.0))
    }

    /// The same while a network is brought down in so many levels, each with its share of the time.
    fn ends(&mut self, progress: &tune::Progress, level: u32, levels: u32) -> ControlFlow<Scope> {
        self.see(progress);
        if self.is_stopped || self.is_over(SHRINKING) {
            ControlFlow::Break(Scope::Run)
        } else if self.is_over(SHRINKING * f64::from(level + 1) / f64::from(levels)) {
            ControlFlow::Break(Scope::Level)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Fits all layers of a network that has ended together, on rows in random order, for so much time:
/// to labels that are classes, which one output gives the log-odds of, or to their values.
/// `observe` hears of the epochs of all fits as of one.
pub(crate) fn fit_together(
    stack: &mut Stack<'_>,
    rows: FitRows<'_>,
    joint: Joint<'_>,
    left: Option<Duration>,
    stop: &Stop,
    observe: impl FnMut(&tune::Progress) -> bool,
) -> Result<Fitted> {
    let FitRows { data, labels, is_class } = rows;
    let classes: Vec<u16> =
        if is_class { labels.iter().map(|&label| label as u16).collect() } else { Vec::new() };
    let goal =
        if is_class { Labels::classes(&classes, stack.outputs()) } else { Labels::Values(labels) };
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), stack.outputs())];
    let mut watch =
        Watch { began: Instant::now(), left, stop, observe, is_late: false, is_stopped: false };
    let d = data.cols;
    let fitted = match &data.values {
        Values::F32(values) => {
            fit(Rows::new(values, d)?, goal, stack, joint, &mut memory, &mut watch)
        }
        Values::U8(values) => {
            fit(ByteRows::new(values, d, 1.0)?, goal, stack, joint, &mut memory, &mut watch)
        }
    }?;
    let memory_bytes = size_of_val(&memory[..]) as u64;
    Ok(Fitted { memory_bytes, is_late: watch.is_late, is_stopped: watch.is_stopped, ..fitted })
}

fn fit<X: Samples<Source = core::convert::Infallible>, O: FnMut(&tune::Progress) -> bool>(
    mut rows: X,
    goal: Labels<'_>,
    stack: &mut Stack<'_>,
    Joint { shrink, tune }: Joint<'_>,
    memory: &mut [u32],
    watch: &mut Watch<'_, O>,
) -> Result<Fitted> {
    let between =
        shrink.map_or(0, |(nnz, params)| if stack.nnz() > nnz { params.tune.epochs } else { 0 });
    let levels = shrink.map_or(0, |(_, params)| params.levels.max(1));
    let epochs = between.saturating_mul(levels).saturating_add(tune.epochs);
    let power = match goal {
        Labels::Values(labels) => {
            labels.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / labels.len().max(1) as f64
        }
        Labels::Classes(_) => 0.0,
    };
    let shrunk = match shrink {
        Some((nnz, params)) => {
            Some(shrink::run(&mut rows, goal, stack, nnz, params, memory, |now| {
                let epoch = now.level.saturating_mul(between).saturating_add(now.tune.epoch);
                watch.ends(&now.tune.of(epoch, epochs), now.level, levels)
            })?)
        }
        None => None,
    };
    let done = shrunk.map_or(0, |info| info.epochs);
    // A run that was ended is only scored.
    let left = if watch.is_stopped { 0 } else { tune.epochs };
    let tune = tune::Params { epochs: left, ..*tune };
    let mut info = tune::run(&mut rows, goal, stack, &tune, memory, |now| {
        watch.goes_on(&now.of(done.saturating_add(now.epoch), epochs))
    })?;
    let before = info.before;
    let mut done = done.saturating_add(info.epochs);
    // What is all but exact has steps that are too long for it.
    for finer in 1..=FINER {
        if info.stopped || tune.epochs == 0 || f64::from(info.loss) > EXACT * power {
            break;
        }
        let tune = tune::Params { rate: tune.rate * 0.1_f32.powi(finer), ..tune };
        info = tune::run(&mut rows, goal, stack, &tune, memory, |now| {
            watch.goes_on(&now.of(epochs, epochs))
        })?;
        done = done.saturating_add(info.epochs);
    }
    let scored = shrunk.map_or(0.0, |info| 3.0 * f64::from(info.levels));
    let epochs = done;
    Ok(Fitted {
        before: shrunk.and_then(|info| info.before).unwrap_or(before),
        epochs,
        passes: 1.0 + scored + 3.0 * f64::from(epochs),
        memory_bytes: 0,
        is_late: false,
        is_stopped: false,
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

/// Weights to outputs: flat indices over the neurons, and values.
#[derive(Debug, Default)]
pub(crate) struct OutputWeights {
    pub(crate) outputs: usize,
    pub(crate) index: Vec<u32>,
    pub(crate) value: Vec<f32>,
}

/// What is behind the last hidden layer: signs of its neurons as bits, or weights to the outputs.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) signs: Vec<u32>,
    pub(crate) weights: Option<OutputWeights>,
}

impl Ending {
    /// Ends a stack of hidden layers.
    pub(crate) fn end<'a>(&'a self, stack: &mut Stack<'a>) -> Result<()> {
        match &self.weights {
            None => stack.end_sum(&self.signs)?,
            Some(OutputWeights { outputs, index, value }) => {
                let live = stack.width();
                stack.end_weights(Weights::new(*outputs, live, index, value)?)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn ending(end: &Layer<'_>, live: usize) -> Result<Ending> {
    match end {
        Layer::Sum(sum) => Ok(Ending { signs: sum.signs().to_vec(), weights: None }),
        Layer::Csr(csr) => {
            let outputs = csr.outputs();
            let mut entries: Vec<(u32, f32)> = rows_of(csr)
                .zip(csr.columns().iter().zip(csr.values()))
                .map(|(k, (&i, &v))| ((usize::from(i) * outputs + k) as u32, v))
                .collect();
            entries.sort_unstable_by_key(|&(at, _)| at);
            debug_assert!(entries.iter().all(|&(at, _)| (at as usize) < live * outputs));
            let (index, value) = entries.into_iter().unzip();
            Ok(Ending { signs: Vec::new(), weights: Some(OutputWeights { outputs, index, value }) })
        }
        _ => Err(two_layers()),
    }
}

/// The layers of a finished stack as those of a model, with the requested neurons.
pub(crate) fn layers_of<'a>(
    stack: &Stack<'_>,
    hidden: &[usize],
    signs: &'a [u32],
) -> (Vec<SparseLayer>, End<'a>) {
    let mut layers = Vec::new();
    for (l, w) in stack.layers().enumerate() {
        let mut layer =
            SparseLayer { inputs: w.inputs(), requested: 0, neurons: vec![Vec::new(); w.hidden()] };
        for block in w.blocks() {
            layer.neurons[block.neuron()] = block.entries().collect();
        }
        match hidden.get(l) {
            Some(&requested) => layer.requested = requested,
            // The weights to the outputs lie neuron by neuron, and a model wants them output by
            // output.
            None => {
                let mut outputs = vec![Vec::new(); w.inputs()];
                for (i, neuron) in layer.neurons.iter().enumerate() {
                    neuron.iter().for_each(|&(k, v)| outputs[k].push((i, v)));
                }
                layer =
                    SparseLayer { inputs: w.hidden(), requested: outputs.len(), neurons: outputs };
            }
        }
        layers.push(layer);
    }
    let end = if layers.len() > hidden.len() { End::Layer } else { End::Sum(signs) };
    (layers, end)
}
