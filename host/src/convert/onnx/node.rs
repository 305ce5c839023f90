//! Attributes of a node, and the error for one that no MLP has.

use super::proto::{Attribute, Node};
use crate::Error;

/// The attribute of a name.
pub(super) fn attribute<'g>(node: &'g Node, name: &str) -> Option<&'g Attribute> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

/// An integer attribute, or what it is where it is not there.
pub(super) fn integer(node: &Node, name: &str, usual: i64) -> i64 {
    attribute(node, name).map_or(usual, |attribute| attribute.i)
}

/// An operator, or a use of one, that no MLP of Tamis has.
pub(super) fn unsupported(expected: &str, got: impl std::fmt::Display) -> Error {
    Error::new("not supported")
        .expected(expected)
        .got(got)
        .help("export the layers of the MLP alone, or save its weights as safetensors or NPZ")
}
