//! The end of a classifier: what makes probabilities, classes and labels of the outputs of the last
//! layer, and is left out.

use std::collections::HashMap;

use super::node::{attribute, integer, unsupported};
use super::proto::Node;
use super::tensor::{Constant, is_float};
use crate::convert::{Decision, shown};
use crate::{Error, Result};

/// What the numbers behind the end are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// One for each output, in their order.
    Scores,
    /// The probability of class 0, of one output.
    Other,
    /// The probabilities of classes 0 and 1, of one output.
    Pair,
    /// A class, or what it is called.
    Class,
}

/// Notes about the labels at the most.
const MOST_NOTES: usize = 8;

/// The end of a network.
#[derive(Debug)]
pub(super) struct End {
    op: String,
    outputs: usize,
    values: HashMap<String, Value>,
    notes: Vec<String>,
}

impl End {
    /// The end that begins with `node`, of a layer of `outputs`.
    pub(super) fn new(node: &Node, outputs: usize, notes: &mut Vec<String>) -> Result<Self> {
        let axis = integer(node, "axis", if node.op_type == "ArgMax" { 0 } else { 1 });
        if node.op_type != "Sigmoid" && ![1, -1].contains(&axis) {
            return Err(unsupported("the last axis: 1 or -1", format_args!("axis {axis}")));
        }
        let several = if node.op_type == "Sigmoid" { outputs == 1 } else { outputs > 1 };
        if !several && node.op_type != "Sigmoid" {
            return Err(unsupported(
                "two outputs or more",
                format_args!("{outputs}, which always gives class 0"),
            ));
        }
        let mut end =
            Self { op: node.op_type.clone(), outputs, values: HashMap::new(), notes: Vec::new() };
        let value = if node.op_type == "ArgMax" { end.argmax(node)? } else { Value::Scores };
        notes.push(match node.op_type.as_str() {
            "Sigmoid" => {
                "Sigmoid left out: the output is the log-odds of class 1, which is the class from 0 on".into()
            }
            op => format!("{op} left out: the class is that of the largest output"),
        });
        end.give(node, value);
        Ok(end)
    }

    /// Whether all these are behind the end.
    pub(super) fn knows(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.values.contains_key(*name))
    }

    fn give(&mut self, node: &Node, value: Value) {
        self.values.extend(node.output.iter().take(4).map(|name| (name.clone(), value)));
    }

    /// Takes one more node, whose inputs are known or constant.
    pub(super) fn step(
        &mut self,
        node: &Node,
        constants: &HashMap<&str, Constant<'_>>,
    ) -> Result<()> {
        let values: Vec<Value> =
            node.input.iter().filter_map(|name| self.values.get(name)).copied().collect();
        let value = match (node.op_type.as_str(), values.as_slice()) {
            ("Identity" | "Reshape" | "Squeeze" | "Flatten" | "Dropout", &[value]) => value,
            ("Cast", &[Value::Class]) => Value::Class,
            ("Cast", &[value]) if is_float(integer(node, "to", 0)) => value,
            ("ArgMax", [Value::Scores | Value::Pair]) => {
                if ![1, -1].contains(&integer(node, "axis", 0)) {
                    return Err(unsupported("axis 1 or -1", "another"));
                }
                if values == [Value::Scores] && self.outputs == 1 {
                    return Err(unsupported("two classes or more", "one, which is always class 0"));
                }
                self.argmax(node)?
            }
            ("Sub", [Value::Scores]) if self.op == "Sigmoid" && self.outputs == 1 => {
                self.complement(node, constants)?
            }
            ("Concat", [Value::Other, Value::Scores]) => Value::Pair,
            ("ZipMap", [_]) => {
                self.labels(attribute(node, "classlabels_int64s").map(|list| list.ints.as_slice()));
                Value::Class
            }
            ("ArrayFeatureExtractor", [Value::Class]) => {
                let classes = node.input.first().and_then(|name| constants.get(name.as_str()));
                self.labels(classes.and_then(|classes| classes.integers().ok()).as_deref());
                Value::Class
            }
            (op, _) => {
                return Err(unsupported(
                    "behind the decision: ArgMax, ZipMap, ArrayFeatureExtractor, Cast, Reshape, Identity",
                    shown(op),
                ));
            }
        };
        self.give(node, value);
        Ok(())
    }

    fn argmax(&mut self, node: &Node) -> Result<Value> {
        if integer(node, "select_last_index", 0) != 0 {
            return Err(unsupported(
                "the first of equal outputs",
                "the last: select_last_index = 1",
            ));
        }
        Ok(Value::Class)
    }

    /// `1 - p`
    fn complement(
        &mut self,
        node: &Node,
        constants: &HashMap<&str, Constant<'_>>,
    ) -> Result<Value> {
        let one = node.input.first().and_then(|name| constants.get(name.as_str()));
        let one = one
            .map(|one| one.floats(&mut |_| Err(unsupported("1", "a file of its own"))))
            .transpose()?;
        match one {
            Some(one) if one.values == [1.0] => Ok(Value::Other),
            _ => Err(unsupported("1 - p", "another difference")),
        }
    }

    /// Notes what the classes are called, where that is not 0, 1, ….
    fn labels(&mut self, classes: Option<&[i64]>) {
        let count = if self.outputs == 1 { 2 } else { self.outputs };
        let note = match classes {
            Some(classes)
                if classes.len() == count && classes.iter().zip(0..).all(|(a, b)| *a == b) =>
            {
                return;
            }
            Some(classes) => {
                let names: Vec<_> = classes
                    .iter()
                    .take(10)
                    .enumerate()
                    .map(|(i, label)| format!("{i} is {label}"))
                    .collect();
                format!("the classes have other labels in the file: {}", names.join(", "))
            }
            None => {
                "the classes have names in the file; here they are 0, 1, …, in its order".into()
            }
        };
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What is decided.
    pub(super) fn decision(&self) -> Result<Decision> {
        let classes = self.values.values().any(|value| *value == Value::Class);
        match (self.op.as_str(), self.outputs) {
            ("Sigmoid", 1) => Ok(Decision::LogOdds),
            ("Sigmoid", outputs) if !classes => Err(Error::new(
                "Sigmoid of several outputs is several answers at once",
            )
            .expected("Sigmoid of one output, or Softmax")
            .got(format_args!("{outputs} outputs"))
            .help("a model decides between classes: export one output, or leave the Sigmoid out")),
            _ => Ok(Decision::Largest),
        }
    }

    /// The notes so far.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}
