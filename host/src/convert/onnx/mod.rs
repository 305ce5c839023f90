//! ONNX: the chain of an MLP in its graph, and layers as a graph.
//!
//! | node | becomes |
//! |---|---|
//! | `MatMul`, `Gemm` (`transB`, `alpha`, `beta`) with constant weights | a layer's weights, and biases of `Gemm` |
//! | `Add`, `Sub`, `Mul`, `Div` with a constant; `Scaler` of scikit-learn | biases; before a layer an affine map, folded into it |
//! | `LinearRegressor`, `LinearClassifier` of scikit-learn | a layer, and the task |
//! | `Relu` | the end of a hidden layer |
//! | `Identity`, `Dropout`, `Cast` to floats, `Flatten`, `Reshape` and `Squeeze` that keep rows | nothing |
//! | `Softmax`, `LogSoftmax`, `ArgMax`, `Sigmoid` of one output, and what makes labels of them | the task |
//!
//! Every other operator is an error that names it and its node.

mod affine;
mod decide;
mod graph;
mod linear;
mod proto;
mod tensor;
mod write;

use bytes::Bytes;

use super::{Meta, Network};
use crate::{Error, Result};

pub use tensor::Beside;
pub(crate) use tensor::transposed;
pub use write::write;

/// Reads the network of a file; `beside` opens the files of weights in the model's folder, where
/// there are some.
///
/// # Errors
/// Bytes that are no ONNX file, an operator or a shape that no MLP of Tamis has, a value that is
/// not finite, weights that are not there.
///
/// ```
/// use tamis_host::convert::{Dense, onnx};
/// let (name, weights) = ("0".to_owned(), vec![0.5, 2.0]);
/// let layer = Dense { name, inputs: 2, outputs: 1, weights, bias: vec![], relu: false };
/// let file = onnx::write(&[layer], None)?;
/// let network = onnx::read(file, &mut |_| unreachable!("its weights are in the file"))?;
/// assert_eq!(network.layers[0].weights, [0.5, 2.0]);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn read(bytes: impl Into<Bytes>, beside: &mut Beside<'_>) -> Result<Network> {
    let bytes = bytes.into();
    let len = bytes.len();
    let model = proto::decode(bytes)?;
    let graph =
        model.graph.as_ref().ok_or_else(|| {
            Error::new("the ONNX file holds no graph")
            .mismatch("a ModelProto message with a graph", "none")
            .help("this may be another file of protobuf, or one that is empty: export the network \
                again")
        })?;
    let mut network = graph::network(graph, len, beside)?;
    let meta = model.metadata_props.iter().find(|entry| entry.key == Meta::KEY);
    network.meta = meta.and_then(|entry| Meta::from_text(&entry.value));
    network.check()?;
    Ok(network)
}

#[cfg(test)]
mod tests;
