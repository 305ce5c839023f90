//! The end of a classifier: what makes probabilities, classes and labels of the outputs of the last
//! layer, and is left out.

use std::collections::HashMap;

use super::proto::{Node, attribute, input, integer, require, unsupported};
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

const MOST_NOTES: usize = 8;

#[derive(Debug)]
pub(super) struct End {
    op: String,
    outputs: usize,
    values: HashMap<String, Value>,
    pub(super) notes: Vec<String>,
}

impl End {
    /// The end that begins with `node`, of a layer of `outputs`.
    pub(super) fn new(node: &Node, outputs: usize, notes: &mut Vec<String>) -> Result<Self> {
        let is_sigmoid = node.op_type == "Sigmoid";
        let axis = integer(node, "axis", if node.op_type == "ArgMax" { 0 } else { 1 });
        let got = format_args!("axis {axis}");
        require(is_sigmoid || [1, -1].contains(&axis), "the last axis: 1 or -1", got)?;
        let got = format_args!("{outputs}, which always gives class 0");
        require(is_sigmoid || outputs > 1, "two outputs or more", got)?;
        let mut end =
            Self { op: node.op_type.clone(), outputs, values: HashMap::new(), notes: Vec::new() };
        let value = if node.op_type == "ArgMax" { argmax(node)? } else { Value::Scores };
        notes.push(if is_sigmoid {
            "Sigmoid left out: the output is the log-odds of class 1, which is the class from 0 on"
                .into()
        } else {
            format!("{} left out: the class is that of the largest output", node.op_type)
        });
        end.give(node, value);
        Ok(end)
    }

    /// The end that a linear classifier of `outputs` is: it gives the class, then scores.
    pub(super) fn classifier(node: &Node, outputs: usize, notes: &mut Vec<String>) -> Self {
        let op = if outputs == 1 { "Sigmoid" } else { "Softmax" };
        let (values, notes_of) = (HashMap::new(), Vec::new());
        let mut end = Self { op: op.into(), outputs, values, notes: notes_of };
        let scores = if outputs == 1 { Value::Pair } else { Value::Scores };
        for (name, value) in node.output.iter().zip([Value::Class, scores]) {
            end.values.insert(name.clone(), value);
        }
        end.labels(attribute(node, "classlabels_ints").map(|list| list.ints.as_slice()));
        notes.push(match outputs {
            1 => "the output is the log-odds of class 1, which is the class from 0 on".into(),
            _ => "the class is that of the largest output".into(),
        });
        end
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
            // Of probabilities to their sum.
            ("Normalizer", &[value @ (Value::Scores | Value::Pair)]) => value,
            ("Cast", &[Value::Class]) => Value::Class,
            ("Cast", &[value]) if is_float(integer(node, "to", 0)) => value,
            ("ArgMax", [Value::Scores | Value::Pair]) => {
                let is_last = [1, -1].contains(&integer(node, "axis", 0));
                require(is_last, "axis 1 or -1", "another")?;
                let several = values != [Value::Scores] || self.outputs > 1;
                require(several, "two classes or more", "one, which is always class 0")?;
                argmax(node)?
            }
            ("Sub", [Value::Scores]) if self.op == "Sigmoid" && self.outputs == 1 => {
                complement(constants.get(input(node, 0)))?
            }
            ("Concat", [Value::Other, Value::Scores]) => Value::Pair,
            ("ZipMap", [_]) => {
                self.labels(attribute(node, "classlabels_int64s").map(|list| list.ints.as_slice()));
                Value::Class
            }
            // Of the scores of two classes that of the second.
            ("ArrayFeatureExtractor", [Value::Pair]) => {
                let at = constants.get(input(node, 1)).and_then(|at| at.integers().ok());
                require(at.as_deref() == Some(&[1]), "the score of class 1", "another")?;
                Value::Scores
            }
            ("ArrayFeatureExtractor", [Value::Class]) => {
                let classes = constants.get(input(node, 0));
                self.labels(classes.and_then(|classes| classes.integers().ok()).as_deref());
                Value::Class
            }
            (op, _) => {
                return Err(unsupported(
                    "behind the decision: ArgMax, ZipMap, ArrayFeatureExtractor, Cast, Reshape, \
                    Identity",
                    shown(op),
                ));
            }
        };
        self.give(node, value);
        Ok(())
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
                let names = classes.iter().take(10).enumerate();
                let names: Vec<_> = names.map(|(i, label)| format!("{i} is {label}")).collect();
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

    pub(super) fn decision(&self) -> Result<Decision> {
        let classes = self.values.values().any(|value| *value == Value::Class);
        match (self.op.as_str(), self.outputs) {
            ("Sigmoid", 1) => Ok(Decision::LogOdds),
            ("Sigmoid", outputs) if !classes => Err(Error::new(
                "Sigmoid of several outputs is several answers at once",
            )
            .mismatch("Sigmoid of one output, or Softmax", format_args!("{outputs} outputs"))
            .help("a model decides between classes: export one output, or leave the Sigmoid out")),
            _ => Ok(Decision::Largest),
        }
    }
}

fn argmax(node: &Node) -> Result<Value> {
    let is_first = integer(node, "select_last_index", 0) == 0;
    require(is_first, "the first of equal outputs", "the last: select_last_index = 1")?;
    Ok(Value::Class)
}

/// `1 - p`
fn complement(one: Option<&Constant<'_>>) -> Result<Value> {
    let floats =
        |one: &Constant<'_>| one.floats(&mut |_| Err(unsupported("1", "a file of its own")));
    let one = one.map(floats).transpose()?;
    require(one.is_some_and(|one| one.values == [1.0]), "1 - p", "another difference")?;
    Ok(Value::Other)
}
