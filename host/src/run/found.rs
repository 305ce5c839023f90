//! Networks that a run found: kept beside its memory, and scored.

use std::ops::Range;

use tamis::factored::{Factored as _, Net};
use tamis::gates::Gates;
use tamis::sensing::Sensing as _;
use tamis::weights::Weights;

use super::score::Tally;
use super::{Score, Task, classes};
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

/// Scores a network under these gates, its own, on `rows`, at most `batch` of them at a time, in the memory of the run; `labels`
/// are those of all rows. One output without weights to it is a network with a second side of no outputs; where outputs are
/// summed up, the label is the sum of those that are open.
pub(super) fn score(
    operator: &mut Blocked,
    (task, is_summed): (Task, bool),
    labels: &[f32],
    (net, gates): (Net<'_>, Gates<'_>),
    (rows, batch): (Range<usize>, usize),
    memory: &mut [u32],
) -> Result<Score> {
    let (outputs, width) = match (net.outputs(), task) {
        (0, _) => (1, 1),
        (outputs, _) if is_summed => (outputs, 1),
        (outputs, Task::Multiclass) => (outputs, 1),
        (outputs, _) => (outputs, outputs),
    };
    let batch = batch.clamp(1, rows.len().max(1));
    let (out, scratch) = bytemuck::cast_slice_mut(memory).split_at_mut(batch * outputs);
    let mut tally = Tally::new(task, Score::THRESHOLD);
    let mut classes = classes::Tally::new(net.outputs());
    for first in rows.clone().step_by(batch) {
        let part = first..(first + batch).min(rows.end);
        let labels = &labels[part.start * width..part.end * width];
        let out: &mut [f32] = &mut out[..part.len() * outputs];
        operator.select(part)?;
        match net.outputs() {
            0 => operator.forward(gates, net.w(), out)?,
            _ => operator.net_forward(gates, net, out, scratch)?,
        }
        match task {
            Task::Multiclass => classes.add(labels, out),
            _ if is_summed => {
                let sums = out.chunks(outputs).map(|row| row.iter().map(|z| z.max(0.0)).sum::<f32>());
                tally.add(labels, sums);
            }
            _ => tally.add(labels, out.iter().copied()),
        }
    }
    Ok(if task == Task::Multiclass { classes.score() } else { tally.score() })
}
