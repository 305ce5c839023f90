//! The layers of a model of floats as dense matrices, for ONNX and safetensors.

use tamis::base::bits::sign;
use tamis::infer::model::{Activation, Layer};

use super::head::{Files, Head, Network, unknown_layer};
use crate::base::room_for;
use crate::convert::{Dense, Meta, onnx, safetensors};
use crate::model::ModelFile;
use crate::{Error, Result};

/// The file, of ONNX or safetensors, and the bytes of its weights.
pub(super) fn files(
    network: Network<'_>,
    head: &Head,
    file: &ModelFile,
    is_onnx: bool,
) -> Result<(Files, usize)> {
    let Network::Floats(model) = network else { return Ok((Vec::new(), 0)) };
    let numbers = model.layers().iter().map(|layer| layer.inputs() as u64 * layer.outputs() as u64);
    let bytes = numbers.fold(0_u64, u64::saturating_add).saturating_mul(4);
    // The matrices, and two times their bytes on the way to the file.
    let help = "export the model as rust or c, which stay sparse";
    room_for("dense weights", bytes.saturating_mul(3), help)?;
    let layers = model.layers().iter().map(dense).collect::<Result<Vec<_>>>()?;
    let stored = file.view()?.task();
    let body = head.cost.layers.iter().filter(|layer| layer.kind != "sum");
    let meta = Meta {
        task: stored.and(head.cost.task).map(|task| task.name().to_owned()),
        threshold: head.cost.threshold,
        sum: matches!(model.layers().last(), Some(Layer::Sum(_))),
        requested: body.map(|layer| layer.requested).collect(),
    };
    let (ending, written) = if is_onnx {
        ("onnx", onnx::write(&layers, Some(&meta))?)
    } else {
        chain(model.layers())?;
        ("safetensors", safetensors::write(&layers, Some(&meta))?)
    };
    Ok((vec![(ending, written)], usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// A layer of a model as a dense matrix.
pub(crate) fn dense(layer: &Layer<'_>) -> Result<Dense> {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let mut weights = vec![0.0; inputs.saturating_mul(outputs)];
    let relu = match layer {
        Layer::Csr(csr) => {
            let mut entries = csr.columns().iter().zip(csr.values());
            for (row, &count) in weights.chunks_exact_mut(inputs.max(1)).zip(csr.counts()) {
                for (&column, &value) in entries.by_ref().take(count.into()) {
                    row[usize::from(column)] = value;
                }
            }
            csr.activation() == Activation::Relu
        }
        Layer::Sum(sum) => {
            for (i, weight) in weights.iter_mut().enumerate() {
                *weight = sign(sum.signs(), i);
            }
            false
        }
        _ => return Err(unknown_layer()),
    };
    let bias = layer.biases().to_vec();
    Ok(Dense { name: String::new(), inputs, outputs, weights, bias, relu })
}

/// Named weights alone do not say where relu is: it must be where every reader takes it to be.
fn chain(layers: &[Layer<'_>]) -> Result<()> {
    let is_readable = |(l, layer): (usize, &Layer<'_>)| match layer {
        Layer::Csr(csr) => (csr.activation() == Activation::Relu) == (l + 1 < layers.len()),
        _ => true,
    };
    if layers.iter().enumerate().all(is_readable) {
        return Ok(());
    }
    Err(Error::new("the model cannot be written as safetensors, which does not say where relu is")
        .mismatch("relu behind every layer but the last", "a model that has it elsewhere")
        .help("export it as onnx"))
}
