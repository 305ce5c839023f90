//! Least squares on the support of a finished model of one hidden layer (*debiasing*): the steps of a search, and no search.

use tamis::dims::Dims;
use tamis::factored::Net;
use tamis::gates::Signs;
use tamis::lm::{self, Checkpoint, Params};
use tamis::math::unit_scale;
use tamis::model::{Activation, Csr, Layer, Model};

use super::deep::ending;
use super::found::Found;
use super::layers::{End, SparseLayer, encode_layers};
use super::limits::Watch;
use super::memory::room_for;
use super::recover::{RecoverOptions, RecoverPlan};
use super::{Limits, Problem, Size, Task};
use crate::Result;
use crate::operator::{Blocked, Stop};
use tamis::wire;

/// A model of one hidden layer as a search has it: neurons whose output is taken away in the odd blocks.
pub(super) struct Shallow {
    inputs: usize,
    requested: usize,
    /// 0 where neurons have signs.
    outputs: usize,
    /// The block of each neuron, and whether its output is taken away.
    places: Vec<(usize, bool)>,
    signs: Vec<u32>,
    found: Found,
}

impl Shallow {
    /// Of a model that least squares can fit: one hidden layer of relu and a sum, or weights to outputs, which are no scores of classes.
    pub(super) fn new(model: &Model<'_>, task: Task, stored: Option<wire::Task>) -> Result<Option<Self>> {
        let [Layer::Csr(csr), end] = model.layers() else { return Ok(None) };
        let scores = task == Task::Multiclass || stored == Some(Task::LOG_ODDS);
        if csr.activation() != Activation::Relu || scores || !matches!(end, Layer::Sum(_) | Layer::Csr(_)) {
            return Ok(None);
        }
        if let Layer::Csr(end) = end
            && end.activation() == Activation::Relu
        {
            return Ok(None);
        }
        let live = csr.outputs();
        let (signs, weights) = ending(end, live)?;
        let outputs = weights.as_ref().map_or(0, |(outputs, ..)| *outputs);
        let is_negative = |i: usize| signs.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1);
        let mixed = (0..live).any(is_negative);
        let mut counts = [0; 2];
        let places: Vec<(usize, bool)> = (0..live)
            .map(|i| {
                let negative = is_negative(i);
                let rank = &mut counts[usize::from(negative)];
                *rank += 1;
                (if mixed { 2 * (*rank - 1) + usize::from(negative) } else { i }, negative)
            })
            .collect();
        // Flat indices have 32 bits.
        if places.iter().any(|(block, _)| (block + 1).saturating_mul(csr.inputs()) > u32::MAX as usize) {
            return Ok(None);
        }
        let mut entries: Vec<(u32, f32)> = Vec::with_capacity(csr.nonzeros());
        let mut at = 0;
        for (&(block, negative), &count) in places.iter().zip(csr.counts()) {
            for _ in 0..count {
                let (column, value) = (usize::from(csr.columns()[at]), csr.values()[at]);
                entries.push(((block * csr.inputs() + column) as u32, if negative { -value } else { value }));
                at += 1;
            }
        }
        entries.sort_unstable_by_key(|&(index, _)| index);
        let (_, out_index, out_value) = weights.unwrap_or_default();
        let found = Found {
            w: entries.into_iter().unzip(),
            wt: (out_index, out_value),
            widths: [csr.inputs(), outputs],
        };
        Ok(Some(Self { inputs: csr.inputs(), requested: Csr::requested(csr), outputs, places, signs, found }))
    }

    fn blocks(&self) -> usize {
        self.places.iter().map(|(block, _)| block + 1).max().unwrap_or(0)
    }

    /// The bytes of a model with these weights in the places of its own.
    fn encode(&self, net: Net<'_>, task: Option<wire::Task>) -> Result<Vec<u8>> {
        let neurons = self.places.iter().map(|&(block, negative)| {
            let sign = if negative { -1.0 } else { 1.0 };
            net.w().block(block).entries().map(|(j, v)| (j, sign * v)).collect()
        });
        let hidden =
            SparseLayer { inputs: self.inputs, requested: self.requested, neurons: neurons.collect() };
        if self.outputs == 0 {
            return encode_layers(&[hidden], End::Sum(&self.signs), task);
        }
        let mut outputs = vec![Vec::new(); self.outputs];
        for (i, &(block, _)) in self.places.iter().enumerate() {
            net.wt().block(block).entries().for_each(|(k, v)| outputs[k].push((i, v)));
        }
        let last = SparseLayer { inputs: self.places.len(), requested: self.outputs, neurons: outputs };
        encode_layers(&[hidden, last], End::Layer, task)
    }
}

/// A fit that is done.
pub(super) struct Refit {
    pub(super) model: Vec<u8>,
    /// What it was fitted to.
    pub(super) problem: Problem,
    pub(super) steps: u32,
    pub(super) limit: Option<&'static str>,
    pub(super) stopped: bool,
    /// Bytes of the plan that survive from step to step.
    pub(super) state_bytes: u64,
}

/// At most `steps` steps on the support; `tell` hears of each with the loss. Runs on the current pool.
pub(super) fn refit(
    mut model: Shallow,
    problem: Problem,
    task: Option<wire::Task>,
    (steps, limits): (u32, Limits),
    stop: &Stop,
    mut tell: impl FnMut(u32, f32) -> bool,
) -> Result<Refit> {
    let Problem { data, labels, task: kind } = problem;
    let blocks = model.blocks();
    let nnz = model.found.w.0.len() + model.found.wt.0.len();
    let dims = Dims::new(data.rows, data.cols, blocks, nnz);
    let signs =
        if model.places.iter().any(|&(_, negative)| negative) { Signs::Balanced } else { Signs::Positive };
    let params = Params { signs, final_steps: steps, ..Params::DEFAULT };
    let options = RecoverOptions { params, ..RecoverOptions::new(blocks, Size::Nonzeros(nnz)) };
    let plan = RecoverPlan::exactly(dims, model.outputs, data.is_bytes(), &options, blocks)?;
    room_for("the fit", plan.plan.total_bytes(), "fit a smaller model or fewer rows")?;
    let mut operator = Blocked::new(data, blocks, plan.budget.room(), plan.plan.layout())?;
    if model.outputs > 0 {
        operator = operator.with_outputs(model.outputs);
    }
    let mut memory = vec![0; plan.budget.words()];
    let mut watch = Watch::new(limits, stop);
    operator.heed(Some(watch.stop()));
    let scale = unit_scale(&labels);
    let start = &mut model.found;
    let scaled = if model.outputs == 0 { &mut start.w.1 } else { &mut start.wt.1 };
    scaled.iter_mut().for_each(|v| *v *= scale);
    let from = Checkpoint::fitting(start.net(blocks)?);
    let observe = |progress: &lm::Progress<'_>| {
        let passes = progress.rows_read as f64 / dims.samples as f64;
        watch.goes_on(passes, progress.checkpoint.is_some() || tell(progress.step, progress.loss))
    };
    let (net, info) = match model.outputs {
        0 => {
            let (w, info) = lm::resume(&mut operator, &labels, dims, &params, &from, &mut memory, observe)?;
            (Net::single(w), info)
        }
        _ => lm::resume_net(&mut operator, &labels, dims, &params, &from, &mut memory, observe)?,
    };
    let (limit, stopped) = watch.ended(info.stopped);
    Ok(Refit {
        model: model.encode(net, task)?,
        problem: Problem { data: operator.into_data(), labels, task: kind },
        steps: info.steps,
        limit,
        stopped,
        state_bytes: plan.plan.state_bytes,
    })
}
