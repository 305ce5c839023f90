//! All layers of a network together: the fit in the end, and the parts of a model that a stack is made of and makes.

use std::time::{Duration, Instant};

use tamis::deep::shrink::{self, Wish};
use tamis::deep::{Stack, tune};
use tamis::gates::Signs;
use tamis::model::{Csr, Layer};
use tamis::samples::{ByteRows, Rows, Samples};
use tamis::train::Goal;
use tamis::weights::Weights;

use crate::data::{Matrix, Values};
use crate::operator::Stop;
use crate::run::layers::{End, SparseLayer};
use crate::{Error, Result};

/// How all layers are fitted together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::run) struct Joint<'a> {
    /// The weights that the network is brought down to before, if it has more, and how.
    pub(in crate::run) shrink: Option<(usize, &'a shrink::Params)>,
    /// The fit in the end.
    pub(in crate::run) tune: &'a tune::Params,
}

/// A loss below this part of the labels' mean square is of an exact fit, up to rounding.
pub(super) const EXACT: f64 = 1e-9;
/// Fits that such a network then has, each with a tenth of the steps of the one before.
const FINER: i32 = 3;

/// A joint fit.
pub(in crate::run) struct Fitted {
    /// Loss of the network as it came.
    pub(in crate::run) before: f32,
    /// Epochs of the fits, those between levels included.
    pub(in crate::run) epochs: u32,
    /// Passes over all rows; a step counts as two.
    pub(in crate::run) passes: f64,
    /// Bytes that it took.
    pub(in crate::run) memory_bytes: u64,
    /// Whether its time was up.
    pub(in crate::run) is_late: bool,
    /// Whether the observer or the wish to end ended it.
    pub(in crate::run) is_stopped: bool,
}

/// Part of the time in which a network is brought down; the rest is for the fit in the end, which needs it most.
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

    /// Whether a part of the time is over.
    fn is_over(&mut self, part: f64) -> bool {
        let is_over = self.left.is_some_and(|left| self.began.elapsed() >= left.mul_f64(part));
        self.is_late |= is_over;
        is_over
    }

    fn goes_on(&mut self, progress: &tune::Progress) -> bool {
        self.see(progress);
        !self.is_stopped && !self.is_over(1.0)
    }

    /// The same while a network is brought down in so many levels, each with its part of the time.
    fn wish(&mut self, progress: &tune::Progress, (level, levels): (u32, u32)) -> Wish {
        self.see(progress);
        if self.is_stopped || self.is_over(SHRINKING) {
            Wish::End
        } else if self.is_over(SHRINKING * f64::from(level + 1) / f64::from(levels)) {
            Wish::Drop
        } else {
            Wish::GoOn
        }
    }
}

/// Fits all layers of a network that has ended together, on rows in random order, for so much time: to labels that are
/// classes, which one output gives the log-odds of, or to their values. `observe` hears of the epochs of all fits as of one.
pub(in crate::run) fn fit_together(
    stack: &mut Stack<'_>,
    (data, labels, is_class): (&Matrix, &[f32], bool),
    joint: Joint<'_>,
    (left, stop): (Option<Duration>, &Stop),
    observe: impl FnMut(&tune::Progress) -> bool,
) -> Result<Fitted> {
    let classes: Vec<u16> =
        if is_class { labels.iter().map(|&label| label as u16).collect() } else { Vec::new() };
    let goal = if is_class { Goal::Classes(&classes, stack.outputs()) } else { Goal::Values(labels) };
    let mut memory = vec![0; tune::words(stack.nnz(), stack.activations(), stack.outputs())];
    let mut watch = Watch { began: Instant::now(), left, stop, observe, is_late: false, is_stopped: false };
    let d = data.cols;
    let fitted = match &data.values {
        Values::F32(values) => fit(Rows::new(values, d)?, goal, stack, joint, &mut memory, &mut watch),
        Values::U8(values) => {
            fit(ByteRows::new(values, d, 1.0)?, goal, stack, joint, &mut memory, &mut watch)
        }
    }?;
    let memory_bytes = size_of_val(&memory[..]) as u64;
    Ok(Fitted { memory_bytes, is_late: watch.is_late, is_stopped: watch.is_stopped, ..fitted })
}

fn fit<X: Samples<Source = core::convert::Infallible>, O: FnMut(&tune::Progress) -> bool>(
    mut rows: X,
    goal: Goal<'_>,
    stack: &mut Stack<'_>,
    Joint { shrink, tune }: Joint<'_>,
    memory: &mut [u32],
    watch: &mut Watch<'_, O>,
) -> Result<Fitted> {
    let between = shrink.map_or(0, |(nnz, params)| if stack.nnz() > nnz { params.tune.epochs } else { 0 });
    let levels = shrink.map_or(0, |(_, params)| params.levels.max(1));
    let epochs = between.saturating_mul(levels).saturating_add(tune.epochs);
    let power = match goal {
        Goal::Values(labels) => {
            labels.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / labels.len().max(1) as f64
        }
        Goal::Classes(..) => 0.0,
    };
    let shrunk = match shrink {
        Some((nnz, params)) => Some(shrink::run(&mut rows, goal, stack, nnz, params, memory, |now| {
            let epoch = now.level.saturating_mul(between).saturating_add(now.tune.epoch);
            watch.wish(&now.tune.of(epoch, epochs), (now.level, levels))
        })?),
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
        info =
            tune::run(&mut rows, goal, stack, &tune, memory, |now| watch.goes_on(&now.of(epochs, epochs)))?;
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
pub(in crate::run) fn push_layer(stack: &mut Stack<'_>, csr: &Csr<'_>) -> Result<()> {
    let width = csr.inputs();
    let rows = csr.counts().iter().enumerate().flat_map(|(i, &n)| core::iter::repeat_n(i, n.into()));
    let flat: Vec<u32> = rows.zip(csr.columns()).map(|(i, &j)| (i * width + usize::from(j)) as u32).collect();
    Ok(stack.push(Weights::new(width, csr.outputs(), &flat, csr.values())?, Signs::Positive)?)
}

pub(super) fn two_layers() -> Error {
    Error::new("a recipe gave a model of another shape").expected("a hidden layer and its end")
}

/// Signs of the neurons as bits, or the weights to so many outputs.
pub(in crate::run) type Ending = (Vec<u32>, Option<(usize, Vec<u32>, Vec<f32>)>);

pub(in crate::run) fn ending(end: &Layer<'_>, live: usize) -> Result<Ending> {
    match end {
        Layer::Sum(sum) => Ok((sum.signs().to_vec(), None)),
        Layer::Csr(csr) => {
            let outputs = csr.outputs();
            let rows = csr.counts().iter().enumerate().flat_map(|(k, &n)| core::iter::repeat_n(k, n.into()));
            let mut entries: Vec<(u32, f32)> = rows
                .zip(csr.columns().iter().zip(csr.values()))
                .map(|(k, (&i, &v))| ((usize::from(i) * outputs + k) as u32, v))
                .collect();
            entries.sort_unstable_by_key(|&(at, _)| at);
            debug_assert!(entries.iter().all(|&(at, _)| (at as usize) < live * outputs));
            let (index, value) = entries.into_iter().unzip();
            Ok((Vec::new(), Some((outputs, index, value))))
        }
        _ => Err(two_layers()),
    }
}

/// The layers of a finished stack as the parts of a model, with the neurons asked for.
pub(in crate::run) fn layers_of<'a>(
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
            // The weights to the outputs lie neuron by neuron, and a model wants them output by output.
            None => {
                let mut outputs = vec![Vec::new(); w.inputs()];
                for (i, neuron) in layer.neurons.iter().enumerate() {
                    neuron.iter().for_each(|&(k, v)| outputs[k].push((i, v)));
                }
                layer = SparseLayer { inputs: w.hidden(), requested: outputs.len(), neurons: outputs };
            }
        }
        layers.push(layer);
    }
    let end = if layers.len() > hidden.len() { End::Layer } else { End::Sum(signs) };
    (layers, end)
}
