//! What the trainer holds, written without a copy: one hidden layer, the signs of its neurons, and
//! the task.

use super::head::float_len;
use super::task::TASK;
use super::write::{FloatHead, Writer};
use super::{HEADER, TAG_CSR, Task, sum_len};
use crate::Result;
use crate::base::error::{finite, range};
use crate::infer::model::{Activation, MAX_INPUTS};
use crate::network::gates::Signs;
use crate::network::net::{Head, Network};
use crate::network::weights::Weights;

/// Writes a trained network, and the task it was trained for, to the start of `out`; gives the
/// length in bytes. Neurons without weights from the inputs are not written; `hidden` is the number
/// that was asked for.
///
/// Where output weights are signs, the trainer's weights are fused with them, `w_i = v_i u_i`; the
/// model `sum_i v_i relu(u_i x)` holds the `u_i = v_i w_i`. Otherwise the model has a second sparse
/// layer, of which row k holds the weights to output k, in order of the neurons.
///
/// # Errors
/// [`crate::Error::Range`] for `hidden` below the neurons that have weights, for no input or more
/// than 65536, or for a neuron or an output with more than 65535 weights;
/// [`crate::Error::NotFinite`] for a NaN or infinite weight or threshold; [`crate::Error::Length`]
/// or [`crate::Error::Range`] for a task that the number of outputs does not fit;
/// [`crate::Error::Budget`] if `out` is too short (nothing is written then).
///
/// ```
/// use tamis::{network::{net::Network, weights::Weights}, store::wire};
/// // f(x) = (relu(x_0 - x_2), -2 relu(x_0 - x_2))
/// let w = Weights::new(3, 5, &[6, 8], &[1.0, -1.0])?;
/// let wt = Weights::new(2, 5, &[4, 5], &[1.0, -2.0])?;
/// let network = Network::new(w, wt)?;
/// let task = Some(wire::Task::Multiclass);
/// let mut owned = wire::Aligned([0; 128]);
/// assert_eq!(wire::encode(network, 5, task, &mut owned.0)?, wire::trained_len(network, task)?);
/// let mut f = [0.0; 2];
/// let view = wire::View::parse(&owned.0)?;
/// view.model().predict(&[3.0, 0.0, 1.0], &mut [0.0], &mut f)?;
/// assert_eq!((f, view.task()), ([2.0, -4.0], task));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn encode(
    network: Network<'_>,
    hidden: usize,
    task: Option<Task>,
    out: &mut [u8],
) -> Result<usize> {
    let needed = trained_len(network, task)?;
    let (w, outputs) = (network.w(), network.outputs());
    let neurons = network.live();
    range("neurons asked for", hidden, neurons, u32::MAX as usize)?;
    let mut writer = Writer::new(out, needed)?;
    writer.header(w.inputs(), outputs)?;
    match network.head() {
        Head::Signs(signs) => {
            hidden_layer(&mut writer, w, signs, hidden)?;
            writer.sum_head(neurons)?;
            writer.signs(w.blocks().map(|block| signs.sign(block.neuron()) < 0.0))?;
        }
        Head::Weights(_) => {
            hidden_layer(&mut writer, w, Signs::Positive, hidden)?;
            writer.float_head(&FloatHead {
                tag: TAG_CSR,
                inputs: neurons,
                outputs,
                nonzeros: live_outputs(network).count(),
                requested: outputs,
                biases: 0,
                activation: Activation::Identity,
            })?;
            let row = |k| live_outputs(network).filter(move |&(_, output, _)| output == k);
            writer.u16s((0..outputs).map(|k| row(k).count() as u16))?;
            writer.u16s((0..outputs).flat_map(|k| row(k).map(|(neuron, _, _)| neuron as u16)))?;
            writer.f32s((0..outputs).flat_map(|k| row(k).map(|(_, _, value)| value)))?;
        }
    }
    writer.task(task)?;
    writer.finish()
}

/// Exactly the bytes that [`encode`] writes.
///
/// # Errors
/// Those of [`encode`], but for the buffer.
pub fn trained_len(network: Network<'_>, task: Option<Task>) -> Result<usize> {
    let (w, neurons) = (network.w(), network.live());
    range("inputs of a layer", w.inputs(), 1, MAX_INPUTS)?;
    let most = w.blocks().map(|block| block.values().len()).max().unwrap_or(0);
    range("weights of one neuron", most, 0, usize::from(u16::MAX))?;
    finite("weights", w.value())?;
    let outputs = match network.head() {
        Head::Signs(_) => sum_len(neurons),
        Head::Weights(wt) => {
            range("hidden neurons with weights", neurons, 0, usize::from(u16::MAX))?;
            range("outputs", wt.inputs(), 1, MAX_INPUTS)?;
            finite("output weights", wt.value())?;
            float_len(TAG_CSR, neurons, wt.inputs(), live_outputs(network).count(), 0)
        }
    };
    if let Some(task) = task {
        task.check(network.outputs())?;
        task.fields()?;
    }
    let hidden = float_len(TAG_CSR, w.inputs(), neurons, w.nnz(), 0);
    Ok((HEADER + Task::len(task)).saturating_add(hidden).saturating_add(outputs))
}

/// Output weights of neurons that have input weights: (position among these neurons, output,
/// value).
fn live_outputs(net: Network<'_>) -> impl Iterator<Item = (usize, usize, f32)> + '_ {
    let blocks = net.w().blocks().enumerate();
    blocks.flat_map(move |(at, block)| {
        net.wt().block(block.neuron()).entries().map(move |(output, value)| (at, output, value))
    })
}

fn hidden_layer(
    writer: &mut Writer<'_>,
    weights: Weights<'_>,
    signs: Signs,
    requested: usize,
) -> Result<()> {
    writer.float_head(&FloatHead {
        tag: TAG_CSR,
        inputs: weights.inputs(),
        outputs: weights.blocks().count(),
        nonzeros: weights.nnz(),
        requested,
        biases: 0,
        activation: Activation::Relu,
    })?;
    writer.u16s(weights.blocks().map(|block| block.values().len() as u16))?;
    writer.u16s(
        weights.index().iter().map(|&index| (index as usize % weights.inputs().max(1)) as u16),
    )?;
    for block in weights.blocks() {
        let sign = signs.sign(block.neuron());
        writer.f32s(block.values().iter().map(|value| sign * value))?;
    }
    Ok(())
}

/// The most bytes that a trained hidden layer takes with its task: for the length of a buffer,
/// before training.
///
/// ```
/// const BYTES: usize = tamis::store::wire::max_len(10, 100);
/// assert_eq!(BYTES, 24 + 28 + 20 + 200 + 400 + 16 + 16);
/// ```
#[must_use]
pub const fn max_len(hidden: usize, nonzeros: usize) -> usize {
    let neurons = if hidden < nonzeros { hidden } else { nonzeros };
    let hidden = float_len(TAG_CSR, 0, neurons, nonzeros, 0);
    (HEADER + TASK).saturating_add(hidden).saturating_add(sum_len(neurons))
}
