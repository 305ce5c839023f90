//! What every form of an exported model says.

use tamis::infer::{model, quantised};

use crate::Error;
use crate::model::ModelCost;

pub(super) type Files = Vec<(&'static str, Vec<u8>)>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Network<'a> {
    Integers(&'a quantised::Model<'a>),
    Floats(&'a model::Model<'a>),
}

/// How a class follows from the outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Classes {
    None,
    /// 1 from here on.
    From(f32),
    Largest,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) cost: ModelCost,
    pub(super) classes: Classes,
}

impl Head {
    pub(super) fn title(&self, network: Network<'_>) -> String {
        let of = match network {
            Network::Integers(_) => "8-bit integers",
            Network::Floats(_) => "floats",
        };
        let ModelCost { inputs, outputs, total, crc32, .. } = &self.cost;
        let s = if *outputs == 1 { "" } else { "s" };
        format!(
            "A model of {of}: {inputs} inputs, {outputs} output{s}, {} weights, checksum {crc32}.",
            total.nonzeros
        )
    }
}

pub(super) fn unknown_layer() -> Error {
    Error::new("the model has a layer that this program cannot export").help("update tamis")
}
