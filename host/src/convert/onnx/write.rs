//! Layers as an ONNX graph: one `Gemm` with `transB` a layer and `Relu` between, in opset 11, which
//! every runtime of the last years reads.

use prost::Message;

use super::proto::{
    Attribute, Dim, Entry, Graph, Model, Node, Opset, Shape, Tensor, TensorType, Type, ValueInfo,
};
use crate::convert::{Dense, Meta, le_bytes};
use crate::{Error, Result};

const IR_VERSION: i64 = 6;
const OPSET: i64 = 11;
const FLOAT: i32 = 1;
const INT: i32 = 2;
/// Bytes of a message of protobuf at the most, with room for all but the weights.
const LIMIT: usize = (1 << 31) - (1 << 20);

/// Writes layers with the input `input` (`N × inputs`) and the output `output` (`N × outputs`).
///
/// # Errors
/// More weights than a file of protobuf holds, which is 2 GiB.
pub fn write(layers: &[Dense], meta: Option<&Meta>) -> Result<Vec<u8>> {
    let numbers = layers.iter().fold(0_usize, |sum, layer| {
        sum.saturating_add(layer.weights.len()).saturating_add(layer.bias.len())
    });
    if numbers > LIMIT / 4 {
        return Err(Error::new("the model is too large for ONNX, whose weights are dense")
            .mismatch(format_args!("at most {} weights with zeros", LIMIT / 4), numbers)
            .help("export it as Rust or C, or train on fewer columns"));
    }
    let ends = layers.first().zip(layers.last());
    let (inputs, outputs) = ends.map_or((0, 0), |(first, last)| (first.inputs, last.outputs));
    let mut graph = Graph {
        name: "tamis".into(),
        input: vec![info("input", inputs)],
        output: vec![info("output", outputs)],
        ..Graph::default()
    };
    let mut value = String::from("input");
    for (l, layer) in layers.iter().enumerate() {
        let is_last = l + 1 == layers.len();
        let name = |what: &str| format!("{}.{what}", 2 * l);
        let (mut input, dims) = (vec![value, name("weight")], [layer.outputs, layer.inputs]);
        graph.initializer.push(tensor(name("weight"), &dims, &layer.weights));
        if !layer.bias.is_empty() {
            input.push(name("bias"));
            graph.initializer.push(tensor(name("bias"), &dims[..1], &layer.bias));
        }
        value = if is_last && !layer.relu { "output".into() } else { name("sums") };
        let rows = Attribute { name: "transB".into(), i: 1, kind: INT, ..Attribute::default() };
        let gemm = node("Gemm", format!("gemm_{l}"), input, &value);
        graph.node.push(Node { attribute: vec![rows], ..gemm });
        if layer.relu {
            let output = if is_last { "output".into() } else { name("relu") };
            graph.node.push(node("Relu", format!("relu_{l}"), vec![value], &output));
            value = output;
        }
    }
    let entry = meta.map(|meta| Entry { key: Meta::KEY.into(), value: meta.to_text() });
    let model = Model {
        ir_version: IR_VERSION,
        producer_name: "tamis".into(),
        graph: Some(graph),
        opset_import: vec![Opset { domain: String::new(), version: OPSET }],
        metadata_props: entry.into_iter().collect(),
    };
    Ok(model.encode_to_vec())
}

fn node(op: &str, name: String, input: Vec<String>, output: &str) -> Node {
    Node { input, output: vec![output.into()], name, op_type: op.into(), ..Node::default() }
}

fn info(name: &str, width: usize) -> ValueInfo {
    let rows = Dim { dim_param: Some("N".into()), dim_value: None };
    let columns =
        Dim { dim_value: Some(i64::try_from(width).unwrap_or(i64::MAX)), dim_param: None };
    let tensor_type =
        TensorType { elem_type: FLOAT, shape: Some(Shape { dim: vec![rows, columns] }) };
    ValueInfo { name: name.into(), kind: Some(Type { tensor_type: Some(tensor_type) }) }
}

fn tensor(name: String, dims: &[usize], values: &[f32]) -> Tensor {
    Tensor {
        dims: dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect(),
        data_type: FLOAT,
        name,
        raw_data: le_bytes(values).into(),
        ..Tensor::default()
    }
}
