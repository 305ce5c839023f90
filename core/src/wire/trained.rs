//! What the trainer holds, written without a copy: one hidden layer, the signs of its neurons, and the task.

use super::task::TASK;
use super::write::{CsrHead, Writer};
use super::{HEADER, Task, csr_len, sum_len};
use crate::Result;
use crate::error::{finite, range};
use crate::factored::Net;
use crate::gates::Signs;
use crate::model::{Activation, MAX_INPUTS};
use crate::weights::Weights;

/// Writes a trained network, and the task it was trained for, to the start of `out`; gives the length in bytes.
///
/// The trainer's weights are fused with the output signs, `w_i = v_i u_i`; the model `sum_i v_i relu(u_i x)` holds
/// the `u_i = v_i w_i`. Neurons without weights add nothing and are not written; the model keeps `hidden`, the number of
/// neurons that were asked for, which a trainer may have had blocks beyond.
///
/// # Errors
/// [`crate::Error::Range`] for `hidden` below the neurons that have weights;
/// [`crate::Error::Range`] for no input or more than 65536, or for a neuron with more than 65535 weights;
/// [`crate::Error::NotFinite`] for a NaN or infinite weight or threshold; [`crate::Error::Length`] or again
/// [`crate::Error::Range`] for a task that the number of outputs does not fit; [`crate::Error::Budget`] if `out` is too
/// short (nothing is written then).
pub fn encode(
    weights: Weights<'_>,
    signs: Signs,
    hidden: usize,
    task: Option<Task>,
    out: &mut [u8],
) -> Result<usize> {
    let needed = trained_len(weights, task)?;
    let neurons = weights.blocks().count();
    range("neurons asked for", hidden, neurons, u32::MAX as usize)?;
    let mut writer = Writer::new(out, needed)?;
    writer.header(weights.inputs(), 1)?;
    hidden_layer(&mut writer, weights, signs, hidden)?;
    writer.sum_head(neurons)?;
    writer.signs(weights.blocks().map(|block| signs.sign(block.neuron()) < 0.0))?;
    writer.task(task)?;
    writer.finish()
}

/// Writes a trained network of several outputs, two sparse layers, and the task it was trained for, to the start of `out`;
/// gives the length in bytes.
///
/// Row k of the second layer holds the weights to output k, in order of the neurons. Neurons without input weights add
/// nothing; neither they nor their output weights are written.
///
/// # Errors
/// As [`encode`], and [`crate::Error::Range`] for an output with more than 65535 weights.
///
/// ```
/// use tamis::{factored::Net, weights::Weights, wire};
/// // f(x) = (relu(x_0 - x_2), -2 relu(x_0 - x_2))
/// let w = Weights::new(3, 5, &[6, 8], &[1.0, -1.0])?;
/// let wt = Weights::new(2, 5, &[4, 5], &[1.0, -2.0])?;
/// let net = Net::new(w, wt)?;
/// let task = Some(wire::Task::Multiclass);
/// let mut owned = wire::Aligned([0; 128]);
/// assert_eq!(wire::encode_net(net, task, &mut owned.0)?, wire::net_len(net, task)?);
/// let mut f = [0.0; 2];
/// let view = wire::View::parse(&owned.0)?;
/// view.model().predict(&[3.0, 0.0, 1.0], &mut [0.0], &mut f)?;
/// assert_eq!((f, view.task()), ([2.0, -4.0], task));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn encode_net(net: Net<'_>, task: Option<Task>, out: &mut [u8]) -> Result<usize> {
    let needed = net_len(net, task)?;
    let (neurons, outputs) = (net.w().blocks().count(), net.outputs());
    let mut writer = Writer::new(out, needed)?;
    writer.header(net.w().inputs(), outputs)?;
    hidden_layer(&mut writer, net.w(), Signs::Positive, net.w().hidden())?;
    writer.csr_head(&CsrHead {
        inputs: neurons,
        outputs,
        nonzeros: kept(net).count(),
        requested: outputs,
        activation: Activation::Identity,
    })?;
    let row = |k| kept(net).filter(move |&(_, output, _)| output == k);
    writer.u16s((0..outputs).map(|k| row(k).count() as u16))?;
    writer.u16s((0..outputs).flat_map(|k| row(k).map(|(neuron, _, _)| neuron as u16)))?;
    writer.f32s((0..outputs).flat_map(|k| row(k).map(|(_, _, value)| value)))?;
    writer.task(task)?;
    writer.finish()
}

/// Exactly the bytes that [`encode_net`] writes.
///
/// # Errors
/// Those of [`encode_net`], but for the buffer.
pub fn net_len(net: Net<'_>, task: Option<Task>) -> Result<usize> {
    let hidden = hidden_len(net.w())?;
    let neurons = net.w().blocks().count();
    range("hidden neurons with weights", neurons, 0, usize::from(u16::MAX))?;
    range("outputs", net.outputs(), 1, MAX_INPUTS)?;
    finite("output weights", net.wt().value())?;
    let outputs = csr_len(net.outputs(), kept(net).count());
    Ok(hidden.saturating_add(outputs).saturating_add(task_len(task, net.outputs())?))
}

/// Output weights of neurons that have input weights: (position among these neurons, output, value).
fn kept(net: Net<'_>) -> impl Iterator<Item = (usize, usize, f32)> + '_ {
    let blocks = net.w().blocks().enumerate();
    blocks.flat_map(move |(at, block)| {
        net.wt().block(block.neuron()).entries().map(move |(output, value)| (at, output, value))
    })
}

fn hidden_layer(writer: &mut Writer<'_>, weights: Weights<'_>, signs: Signs, requested: usize) -> Result<()> {
    writer.csr_head(&CsrHead {
        inputs: weights.inputs(),
        outputs: weights.blocks().count(),
        nonzeros: weights.nnz(),
        requested,
        activation: Activation::Relu,
    })?;
    writer.u16s(weights.blocks().map(|block| block.values().len() as u16))?;
    writer.u16s(weights.index().iter().map(|&index| (index as usize % weights.inputs().max(1)) as u16))?;
    for block in weights.blocks() {
        let sign = signs.sign(block.neuron());
        writer.f32s(block.values().iter().map(|value| sign * value))?;
    }
    Ok(())
}

/// Exactly the bytes that [`encode`] writes.
///
/// # Errors
/// Those of [`encode`], but for the buffer.
pub fn trained_len(weights: Weights<'_>, task: Option<Task>) -> Result<usize> {
    let sum = sum_len(weights.blocks().count());
    Ok(hidden_len(weights)?.saturating_add(sum).saturating_add(task_len(task, 1)?))
}

/// Bytes of the task of a model of so many outputs, which must fit it.
fn task_len(task: Option<Task>, outputs: usize) -> Result<usize> {
    if let Some(task) = task {
        task.check(outputs)?;
        task.fields()?;
    }
    Ok(Task::len(task))
}

/// Bytes of the header and of the hidden layer.
fn hidden_len(weights: Weights<'_>) -> Result<usize> {
    range("inputs of a layer", weights.inputs(), 1, MAX_INPUTS)?;
    let most = weights.blocks().map(|block| block.values().len()).max().unwrap_or(0);
    range("weights of one neuron", most, 0, usize::from(u16::MAX))?;
    finite("weights", weights.value())?;
    Ok(head_len(weights.blocks().count(), weights.nnz()))
}

/// The most bytes that a trained hidden layer takes with its task: for the length of a buffer, before training.
///
/// ```
/// const BYTES: usize = tamis::wire::max_len(10, 100);
/// assert_eq!(BYTES, 24 + 28 + 20 + 200 + 400 + 16 + 16);
/// ```
#[must_use]
pub const fn max_len(hidden: usize, nonzeros: usize) -> usize {
    let neurons = if hidden < nonzeros { hidden } else { nonzeros };
    head_len(neurons, nonzeros).saturating_add(sum_len(neurons)).saturating_add(TASK)
}

const fn head_len(neurons: usize, nonzeros: usize) -> usize {
    HEADER.saturating_add(csr_len(neurons, nonzeros))
}
