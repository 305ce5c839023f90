//! What the trainer holds, written without a copy: one hidden layer, the signs of its neurons, and the task.

use super::task::TASK;
use super::write::{CsrHead, Writer};
use super::{HEADER, Task, csr_len, sum_len};
use crate::Result;
use crate::error::{finite, range};
use crate::gates::Signs;
use crate::model::{Activation, MAX_INPUTS};
use crate::weights::Weights;

/// Writes a trained network, and the task it was trained for, to the start of `out`; gives the length in bytes.
///
/// The trainer's weights are fused with the output signs, `w_i = v_i u_i`; the model `sum_i v_i relu(u_i x)` holds
/// the `u_i = v_i w_i`. Neurons without weights add nothing and are not written.
///
/// # Errors
/// [`crate::Error::Range`] for no input or more than 65536, or for a neuron with more than 65535 weights;
/// [`crate::Error::NotFinite`] for a NaN or infinite weight or threshold; [`crate::Error::Budget`] if `out` is too short (nothing
/// is written then).
pub fn encode(weights: Weights<'_>, signs: Signs, task: Option<Task>, out: &mut [u8]) -> Result<usize> {
    let needed = trained_len(weights, task)?;
    let neurons = weights.blocks().count();
    let mut writer = Writer::new(out, needed)?;
    writer.header(weights.inputs(), 1)?;
    writer.csr_head(&CsrHead {
        inputs: weights.inputs(),
        outputs: neurons,
        nonzeros: weights.nnz(),
        requested: weights.hidden(),
        activation: Activation::Relu,
    })?;
    writer.u16s(weights.blocks().map(|block| block.values().len() as u16))?;
    writer.u16s(weights.index().iter().map(|&index| (index as usize % weights.inputs().max(1)) as u16))?;
    for block in weights.blocks() {
        let sign = signs.sign(block.neuron());
        writer.f32s(block.values().iter().map(|value| sign * value))?;
    }
    writer.sum_head(neurons)?;
    writer.signs(weights.blocks().map(|block| signs.sign(block.neuron()) < 0.0))?;
    writer.task(task)?;
    writer.finish()
}

/// Exactly the bytes that [`encode`] writes.
///
/// # Errors
/// Those of [`encode`], but for the buffer.
pub fn trained_len(weights: Weights<'_>, task: Option<Task>) -> Result<usize> {
    range("inputs of a layer", weights.inputs(), 1, MAX_INPUTS)?;
    let most = weights.blocks().map(|block| block.values().len()).max().unwrap_or(0);
    range("weights of one neuron", most, 0, usize::from(u16::MAX))?;
    finite("weights", weights.value())?;
    task.map(Task::fields).transpose()?;
    Ok(shallow_len(weights.blocks().count(), weights.nnz()).saturating_add(Task::len(task)))
}

/// The most bytes that a trained hidden layer takes with its task: for the length of a buffer, before training.
///
/// ```
/// const BYTES: usize = tamis::wire::max_len(10, 100);
/// assert_eq!(BYTES, 24 + 28 + 20 + 200 + 400 + 16 + 16);
/// ```
#[must_use]
pub const fn max_len(hidden: usize, nonzeros: usize) -> usize {
    shallow_len(if hidden < nonzeros { hidden } else { nonzeros }, nonzeros).saturating_add(TASK)
}

const fn shallow_len(neurons: usize, nonzeros: usize) -> usize {
    HEADER.saturating_add(csr_len(neurons, nonzeros)).saturating_add(sum_len(neurons))
}
