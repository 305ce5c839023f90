//! Attributes of a node, and the error for one that no MLP has.

use super::proto::{Attribute, Node};
use crate::{Error, Result};

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
