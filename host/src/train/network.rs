//! A network in memory of its own, and its score on the operator that it was trained with.

use std::ops::Range;

use tamis::network::gates::{Gates, Signs};
use tamis::network::net::{Head, Network};
use tamis::network::weights::Weights;

use crate::Result;
use crate::data::Task;
use crate::model::Score;
use crate::model::score::Tally;
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
pub(crate) struct Scored<'a> {
    pub(crate) net: Network<'a>,
    pub(crate) gates: Gates<'a>,
    pub(crate) task: Task,
    /// Whether the outputs are summed up: the label is then the sum of those that are active.
    pub(crate) is_summed: bool,
    pub(crate) labels: &'a [f32],
    /// The rows to score, and how many of them at a time.
    pub(crate) rows: Range<usize>,
    pub(crate) batch: usize,
}

impl Scored<'_> {
    /// The score, in the memory of the run.
    pub(crate) fn score(self, operator: &mut Placed, memory: &mut [u32]) -> Result<Score> {
        on_device!(operator, on => self.score_on(on, memory))
    }

    fn score_on(self, operator: &mut impl Backend, memory: &mut [u32]) -> Result<Score> {
        let Self { net, gates, task, is_summed, labels, rows, batch } = self;
        let (outputs, width) = match (net.outputs(), task) {
            (outputs, _) if is_summed => (outputs, 1),
            (outputs, Task::Multiclass) => (outputs, 1),
            (outputs, _) => (outputs, outputs),
        };
        let batch = batch.clamp(1, rows.len().max(1));
        let (out, scratch) = bytemuck::cast_slice_mut(memory).split_at_mut(batch * outputs);
        let mut tally = Tally::new(task, None, outputs);
        for first in rows.clone().step_by(batch) {
            let part = first..(first + batch).min(rows.end);
            let labels = &labels[part.start * width..part.end * width];
            let out: &mut [f32] = &mut out[..part.len() * outputs];
            let done = operator.select(part);
            let done = done.and_then(|()| operator.outputs(gates, net, out, scratch));
            done.map_err(|error| operator.failed(error))?;
            let own = if is_summed { labels.len() } else { out.len() };
            if is_summed {
                for k in 0..own {
                    out[k] = out[k * outputs..(k + 1) * outputs].iter().map(|z| z.max(0.0)).sum();
                }
            }
            tally.add(labels, &out[..own]);
        }
        Ok(tally.score())
    }
}
