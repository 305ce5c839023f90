//! Networks that a search found: kept beside it, and scored.

use std::ops::Range;

use tamis::factored::{Factored as _, Net};
use tamis::gates::{Empty, Gates, Signs};
use tamis::sensing::Sensing as _;
use tamis::weights::Weights;

use super::score::Tally;
use super::{Score, Task};
use crate::Result;
use crate::operator::Blocked;

/// A network in memory of its own: flat indices and values of either side.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) w: (Vec<u32>, Vec<f32>),
    pub(super) wt: (Vec<u32>, Vec<f32>),
    pub(super) widths: [usize; 2],
}

impl Found {
    pub(super) fn new(net: Net<'_>) -> Self {
        let [w, wt] = [net.w(), net.wt()].map(|side| (side.index().to_vec(), side.value().to_vec()));
        Self { w, wt, widths: [net.w().inputs(), net.outputs()] }
    }

    /// As a network of so many neurons.
    pub(super) fn net(&self, neurons: usize) -> Result<Net<'_>> {
        let [inputs, outputs] = self.widths;
        let w = Weights::new(inputs, neurons, &self.w.0, &self.w.1)?;
        Ok(Net::new(w, Weights::new(outputs, neurons, &self.wt.0, &self.wt.1)?)?)
    }

    /// Numbers the neurons that have weights from 0 on, in their order.
    pub(super) fn renumber(&mut self) {
        let mut neurons: Vec<u32> = self.w.0.iter().map(|j| j / self.widths[0] as u32).collect();
        neurons.dedup();
        for ((index, _), width) in [&mut self.w, &mut self.wt].into_iter().zip(self.widths) {
            for j in index {
                let (neuron, at) = (*j / width as u32, *j % width as u32);
                *j = neurons.partition_point(|&i| i < neuron) as u32 * width as u32 + at;
            }
        }
    }
}

/// Scores the network itself (gates from its own weights) on some rows, in the memory of the search; `labels` are those of all
/// rows.
pub(super) fn score(
    operator: &mut Blocked,
    task: Task,
    labels: &[f32],
    (net, signs): (Net<'_>, Signs),
    rows: Range<usize>,
    memory: &mut [u32],
) -> Result<Score> {
    let labels = match net.outputs() {
        0 => &labels[rows.clone()],
        outputs => &labels[rows.start * outputs..rows.end * outputs],
    };
    operator.select(rows)?;
    let gates = Gates::of(net.w(), signs, Empty::Freeze, 0, u32::MAX);
    let (out, scratch) = bytemuck::cast_slice_mut(memory).split_at_mut(labels.len());
    match net.outputs() {
        0 => operator.forward(gates, net.w(), out)?,
        _ => operator.net_forward(gates, net, out, scratch)?,
    }
    let mut tally = Tally::new(Score::THRESHOLD);
    tally.add(labels, out.iter().copied());
    Ok(tally.score(task))
}
