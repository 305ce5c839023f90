//! The messages of `onnx.proto` that an MLP needs, named as there without `Proto`, and a bound on
//! what decoding them takes.
//!
//! A message of two bytes takes two hundred in memory, so the fields are counted before anything is
//! decoded; arrays of floats stay in the file's bytes or grow to twice their size.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::{Error, Result};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Model {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<Opset>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata_props: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Opset {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializer: Vec<()>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub(super) domain: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, tag = "2")]
    pub(super) f: f32,
    #[prost(int64, tag = "3")]
    pub(super) i: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) s: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub(super) t: Option<Tensor>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    pub(super) strings: Vec<Vec<u8>>,
    #[prost(int32, tag = "20")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(bytes = "bytes", tag = "9")]
    pub(super) raw_data: Bytes,
    #[prost(double, repeated, tag = "10")]
    pub(super) double_data: Vec<f64>,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<Entry>,
    #[prost(int32, tag = "14")]
    pub(super) data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) kind: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Type {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor_type: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dim {
    #[prost(int64, optional, tag = "1")]
    pub(super) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) dim_param: Option<String>,
}

pub(super) fn attribute<'g>(node: &'g Node, name: &str) -> Option<&'g Attribute> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

/// An integer attribute, or its default.
pub(super) fn integer(node: &Node, name: &str, default: i64) -> i64 {
    attribute(node, name).map_or(default, |attribute| attribute.i)
}

/// Input `at` of a node; empty where there is none.
pub(super) fn input(node: &Node, at: usize) -> &str {
    node.input.get(at).map_or("", String::as_str)
}

pub(super) fn require(is_fine: bool, expected: &str, got: impl std::fmt::Display) -> Result<()> {
    if is_fine { Ok(()) } else { Err(unsupported(expected, got)) }
}

/// An operator, or a use of one, that no MLP of Tamis has.
pub(super) fn unsupported(expected: &str, got: impl std::fmt::Display) -> Error {
    Error::new("not supported")
        .mismatch(expected, got)
        .help("export the layers of the MLP alone, or save its weights as safetensors or NPZ")
}

/// Fields that a file may have, and bytes in lists of integers: a network of eight layers has a few
/// hundred.
const MOST_FIELDS: usize = 1 << 15;

/// What a field with a length holds.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Value,
    Type,
    TensorType,
    Shape,
    Leaf,
    /// A byte in the file may become eight in memory.
    Integers,
    /// Text, bytes, floats, or what nobody reads.
    Text,
}

impl Kind {
    /// What a field of this message holds.
    fn field(self, tag: u32) -> Self {
        match (self, tag) {
            (Self::Model, 7) => Self::Graph,
            (Self::Model, 8 | 14) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Leaf,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph | Self::Attribute, 5) => Self::Tensor,
            (Self::Graph, 11 | 12) => Self::Value,
            (Self::Node, 5) => Self::Attribute,
            (Self::Value, 2) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Tensor, 1 | 5 | 7) | (Self::Attribute, 8) => Self::Integers,
            _ => Self::Text,
        }
    }
}

pub(super) fn decode(file: Bytes) -> Result<Model> {
    let mut left = MOST_FIELDS;
    weigh(&file, Kind::Model, &mut left)?;
    Model::decode(file).map_err(|error| malformed().source(error))
}

/// Takes what decoding a field takes from what is left.
fn weigh(mut bytes: &[u8], kind: Kind, left: &mut usize) -> Result<()> {
    match kind {
        Kind::Text => return Ok(()),
        Kind::Integers => return charge(left, bytes.len()),
        _ => {}
    }
    while !bytes.is_empty() {
        charge(left, 1)?;
        let (tag, wire) = decode_key(&mut bytes).map_err(|_| malformed())?;
        if wire == WireType::LengthDelimited {
            let len = decode_varint(&mut bytes).ok().and_then(|len| usize::try_from(len).ok());
            let body = len.and_then(|len| bytes.split_off(..len)).ok_or_else(malformed)?;
            weigh(body, kind.field(tag), left)?;
        } else {
            skip_field(wire, tag, &mut bytes, DecodeContext::default()).map_err(|_| malformed())?;
        }
    }
    Ok(())
}

fn charge(left: &mut usize, by: usize) -> Result<()> {
    *left = left.checked_sub(by).ok_or_else(|| {
        Error::new("the ONNX file has too many fields for an MLP")
            .expected(format_args!("at most {MOST_FIELDS} fields and bytes of integer lists"))
            .got("more")
            .help("export the layers of the MLP alone")
    })?;
    Ok(())
}

fn malformed() -> Error {
    Error::new("the ONNX file is malformed")
        .mismatch("a ModelProto message of ONNX, whole", "bytes that are none, or a piece of one")
        .help(
            "the file is cut off, damaged or of another format: copy it again, or export the \
            network again",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_messages_are_refused_before_decoding() {
        // Nodes without anything: two bytes each.
        let graph: Vec<u8> = [0x0a, 0].repeat(MOST_FIELDS + 1);
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(graph.len() as u64, &mut file);
        file.extend(graph);
        assert!(decode(file.into()).unwrap_err().to_string().contains("too many fields"));
    }

    #[test]
    fn long_integer_lists_are_refused_but_not_floats() {
        let list = Tensor { dims: vec![1], int64_data: vec![0; MOST_FIELDS], ..Tensor::default() };
        let floats =
            Tensor { dims: vec![1], float_data: vec![0.5; MOST_FIELDS], ..Tensor::default() };
        let file = |tensor: Tensor| {
            let graph = Graph { initializer: vec![tensor], ..Graph::default() };
            Model { graph: Some(graph), ..Model::default() }.encode_to_vec()
        };
        assert!(decode(file(list).into()).is_err());
        assert!(decode(file(floats).into()).is_ok());
    }

    #[test]
    fn cut_files_are_malformed() {
        let node = Node { op_type: "Relu".into(), name: "r".into(), ..Node::default() };
        let graph = Graph { node: vec![node], ..Graph::default() };
        let file = Model { graph: Some(graph), ir_version: 6, ..Model::default() }.encode_to_vec();
        assert!(decode(file.clone().into()).is_ok());
        let refused =
            (1..file.len()).filter(|&n| decode(file[..n].to_vec().into()).is_err()).count();
        assert!(refused + 2 >= file.len() - 1, "{refused} of {}", file.len());
    }
}
