//! A network in memory of its own, and its score on the operator that it was trained with.

use std::ops::Range;

use tamis::network::gates::{Gates, Signs};
use tamis::network::net::{Head, Network};
use tamis::network::weights::Weights;
use tamis::store::wire;

use crate::Result;
use crate::data::Task;
use crate::model::Score;
use crate::model::score::{Tally, two_classes};
use crate::operator::{Backend, Placed, on_device};

/// The nonzeros of a network of one hidden layer, as flat indices and values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseNetwork {
    /// Flat indices of the weights from the inputs, rising: input j of neuron i is `i d + j`.
    pub index: Vec<u32>,
    /// Their values; for one output fused with the output signs: `w_i = v_i u_i`.
    pub value: Vec<f32>,
    /// Flat indices of the weights to several outputs, rising: output k of neuron i is `i c + k`.
    pub out_index: Vec<u32>,
    /// Their values.
    pub out_value: Vec<f32>,
    /// d.
    pub(crate) inputs: usize,
    /// c; 0 where the output weights are signs.
    pub(crate) outputs: usize,
    /// The output signs, where they are no weights.
    pub(crate) signs: Signs,
}

impl SparseNetwork {
    pub(crate) fn new(net: Network<'_>) -> Self {
        let [(index, value), (out_index, out_value)] =
            [net.w(), net.wt()].map(|side| (side.index().to_vec(), side.value().to_vec()));
        let inputs = net.w().inputs();
        let (outputs, signs) = match net.head() {
            Head::Signs(signs) => (0, signs),
            Head::Weights(wt) => (wt.inputs(), Signs::Positive),
        };
        Self { index, value, out_index, out_value, inputs, outputs, signs }
    }

    /// As a network of so many neurons.
    pub(crate) fn net(&self, neurons: usize) -> Result<Network<'_>> {
        let w = Weights::new(self.inputs, neurons, &self.index, &self.value)?;
        if self.outputs == 0 {
            return Ok(Network::signed(w, self.signs));
        }
        Ok(Network::new(w, Weights::new(self.outputs, neurons, &self.out_index, &self.out_value)?)?)
    }

    /// Numbers the neurons that have weights from 0 on, in their order.
    pub(crate) fn renumber(&mut self) {
        let mut neurons: Vec<u32> = self.index.iter().map(|j| j / self.inputs as u32).collect();
        neurons.dedup();
        for (index, width) in [(&mut self.index, self.inputs), (&mut self.out_index, self.outputs)]
        {
            for j in index {
                let (neuron, at) = (*j / width as u32, *j % width as u32);
                *j = neurons.partition_point(|&i| i < neuron) as u32 * width as u32 + at;
            }
        }
    }
}

/// A network to score under its own gates.
#[derive(Clone)]
pub(crate) struct Scored<'a> {
    pub(crate) net: Network<'a>,
    pub(crate) gates: Gates<'a>,
    pub(crate) task: Task,
    /// What a model file says of it.
    pub(crate) stored: wire::Task,
    /// Whether the outputs are summed up: the label is then the sum of those that are positive.
    pub(crate) is_summed: bool,
    pub(crate) labels: &'a [f32],
    /// The rows to score, and how many of them at a time.
    pub(crate) rows: Range<usize>,
    pub(crate) batch: usize,
}

impl Scored<'_> {
    /// The score, in the memory of the run.
    pub(crate) fn score(&self, operator: &mut Placed, memory: &mut [u32]) -> Result<Score> {
        on_device!(operator, on => self.score_on(on, memory))
    }

    /// The same with the threshold for two classes that these rows ask for.
    pub(crate) fn with_threshold(self, operator: &mut Placed, memory: &mut [u32]) -> Result<Self> {
        if self.task != Task::Binary {
            return Ok(self);
        }
        let (all, rest) = bytemuck::cast_slice_mut(memory).split_at_mut(self.rows.len());
        let (out, scratch) = rest.split_at_mut(self.batch() * self.net.outputs());
        let parts = all.chunks_mut(self.batch()).zip(self.rows.clone().step_by(self.batch()));
        for (to, first) in parts {
            let part = first..first + to.len();
            let own = on_device!(operator, on => self.outputs_on(on, part, out, scratch))?;
            to.copy_from_slice(&out[..own]);
        }
        Ok(Self { stored: two_classes(&self.labels[self.rows.clone()], all), ..self })
    }

    fn batch(&self) -> usize {
        self.batch.clamp(1, self.rows.len().max(1))
    }

    /// The outputs of a batch, and what is left.
    fn split<'m>(&self, memory: &'m mut [u32]) -> (&'m mut [f32], &'m mut [f32]) {
        bytemuck::cast_slice_mut(memory).split_at_mut(self.batch() * self.net.outputs())
    }

    /// The outputs of a part of the rows, or their sums; how many numbers these are.
    fn outputs_on(
        &self,
        on: &mut impl Backend,
        part: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<usize> {
        let (outputs, rows) = (self.net.outputs(), part.len());
        let out = &mut out[..rows * outputs];
        let done = on.select(part);
        let done = done.and_then(|()| on.outputs(self.gates, self.net, out, scratch));
        done.map_err(|error| on.failed(error))?;
        if !self.is_summed {
            return Ok(out.len());
        }
        for k in 0..rows {
            out[k] = out[k * outputs..(k + 1) * outputs].iter().map(|z| z.max(0.0)).sum();
        }
        Ok(rows)
    }

    fn score_on(&self, on: &mut impl Backend, memory: &mut [u32]) -> Result<Score> {
        let outputs = self.net.outputs();
        // The labels of a row.
        let width = if self.is_summed || self.task == Task::Multiclass { 1 } else { outputs };
        let mut tally = Tally::new(self.task, Some(self.stored), outputs);
        let (out, scratch) = self.split(memory);
        for first in self.rows.clone().step_by(self.batch()) {
            let part = first..(first + self.batch()).min(self.rows.end);
            let own = self.outputs_on(on, part.clone(), out, scratch)?;
            tally.add(&self.labels[part.start * width..part.end * width], &out[..own]);
        }
        Ok(tally.score())
    }
}
