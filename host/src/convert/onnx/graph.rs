//! One walk over the nodes of a graph: the numbers of a row from the input to the end, layer by
//! layer.

use std::collections::{HashMap, HashSet};

use tamis::infer::model::MAX_LAYERS;

use super::affine::{Affine, Op, Sums, no_vector, vector};
use super::decide::End;
use super::node::{attribute, integer, unsupported};
use super::proto::{Graph, Node};
use super::tensor::{Array, Beside, Constant, define, is_float, is_single, transposed};
use crate::convert::{Dense, Network, shape, shown};
use crate::{Error, Result};

/// What the numbers of a row are at the moment.
enum Stage {
    /// Inputs of the network, or outputs of a relu, perhaps scaled and shifted.
    Numbers(Affine),
    /// Sums of a layer whose end is not known yet.
    Sums(Sums),
    /// Nothing more is computed but a decision.
    Ended(End),
}

/// Where the walk is.
struct Walk<'g, 'b, 'f> {
    constants: HashMap<&'g str, Constant<'g>>,
    beside: &'b mut Beside<'f>,
    /// The name of the numbers.
    value: &'g str,
    stage: Stage,
    layers: Vec<Dense>,
    notes: Vec<String>,
    input: Input,
    /// Constants that are weights of a layer.
    used: HashSet<&'g str>,
    /// Numbers that may still be read or changed: constants that are used over and over must not
    /// take for ever.
    left: usize,
}

/// Numbers that a file of any size may have read, and those for each of its bytes.
const WORK: usize = 1 << 28;
const WORK_PER_BYTE: usize = 4;
/// The largest array that may be the weights of several layers.
const SHARED: usize = 1 << 16;

/// What the graph says of its input.
struct Input {
    name: String,
    /// Numbers of a row: of all axes behind the first; none where one is not said.
    width: Option<usize>,
    /// The length of the first axis, where it is fixed.
    rows: Option<i64>,
    /// Axes; none where they are not said.
    rank: Option<usize>,
    /// Whether a node has made rows of it.
    flat: bool,
}

/// The layers of a graph in a file of `len` bytes.
pub(super) fn network(graph: &Graph, len: usize, beside: &mut Beside<'_>) -> Result<Network> {
    if !graph.sparse_initializer.is_empty() {
        return Err(Error::new("the graph has constants in the sparse form")
            .expected("dense initialisers")
            .got(format_args!("{} sparse_initializer", graph.sparse_initializer.len()))
            .help("convert them to dense ones; zeros are left out here"));
    }
    let mut constants = HashMap::new();
    for tensor in &graph.initializer {
        define(&mut constants, &tensor.name, Constant { tensor, transposed: false })?;
    }
    let (value, input) = input(graph, &constants)?;
    let mut walk = Walk {
        constants,
        beside,
        value,
        stage: Stage::Numbers(Affine::new()),
        layers: Vec::new(),
        notes: Vec::new(),
        input,
        used: HashSet::new(),
        left: len.saturating_mul(WORK_PER_BYTE).saturating_add(WORK),
    };
    for node in &graph.node {
        walk.step(node).map_err(|error| error.of(called(node)))?;
    }
    walk.end(graph)
}

/// The only input that is no constant.
fn input<'g>(
    graph: &'g Graph,
    constants: &HashMap<&str, Constant<'_>>,
) -> Result<(&'g str, Input)> {
    let inputs: Vec<_> =
        graph.input.iter().filter(|input| !constants.contains_key(input.name.as_str())).collect();
    let [only] = inputs[..] else {
        let names: Vec<_> = inputs.iter().take(8).map(|input| shown(&input.name)).collect();
        return Err(Error::new("the graph does not have one input")
            .expected("one input of rows")
            .got(if names.is_empty() { "none".into() } else { names.join(", ") })
            .help("export a network that takes one array of rows"));
    };
    let kind = only.kind.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let dims = kind.and_then(|kind| kind.shape.as_ref()).map(|shape| &shape.dim);
    let lengths = dims.and_then(|dims| {
        let behind =
            dims.iter().skip(1).map(|dim| dim.dim_value.and_then(|n| usize::try_from(n).ok()));
        behind.collect::<Option<Vec<_>>>().and_then(|behind| crate::convert::elements(&behind))
    });
    let rank = dims.map(Vec::len);
    let rows = dims.and_then(|dims| dims.first()?.dim_value);
    let width = lengths.filter(|_| rank != Some(1));
    Ok((&only.name, Input { name: shown(&only.name), width, rows, rank, flat: false }))
}

/// A node as errors call it.
fn called(node: &Node) -> String {
    let op = shown(&node.op_type);
    match (node.name.as_str(), node.output.first()) {
        ("", Some(output)) => format!("operator {op} (that gives {})", shown(output)),
        (name, _) => format!("operator {op} (node {})", shown(name)),
    }
}

impl<'g> Walk<'g, '_, '_> {
    fn step(&mut self, node: &'g Node) -> Result<()> {
        let op = node.op_type.as_str();
        if !["", "ai.onnx", "ai.onnx.ml"].contains(&node.domain.as_str()) {
            return Err(unsupported(
                "operators of ONNX itself",
                format_args!("domain {}", shown(&node.domain)),
            ));
        }
        let known: Vec<&str> =
            node.input.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let data: Vec<&str> =
            known.iter().copied().filter(|name| !self.constants.contains_key(name)).collect();
        if data.is_empty() {
            return self.constant(node);
        }
        if let Stage::Ended(end) = &mut self.stage
            && end.knows(&data)
        {
            return end.step(node, &self.constants);
        }
        if let Some(other) = data.iter().find(|name| **name != self.value) {
            return Err(unsupported(
                &format!("a chain: numbers of {}", shown(self.value)),
                format_args!("{}, which is computed elsewhere or twice used", shown(other)),
            ));
        }
        let output = node.output.first().map_or("", String::as_str);
        match op {
            "MatMul" => self.matmul(node)?,
            "Gemm" => self.gemm(node)?,
            "Add" | "Sub" | "Mul" | "Div" => self.arithmetic(node)?,
            "Scaler" => self.scaler(node)?,
            "Relu" => self.relu()?,
            "Identity" => {}
            "Dropout" => {
                self.notes.push(format!("{} left out: it does nothing in use", called(node)));
            }
            "Cast" => self.cast(node)?,
            "Flatten" | "Reshape" | "Squeeze" => self.reshape(node)?,
            "Softmax" | "LogSoftmax" | "Sigmoid" | "ArgMax" => {
                let outputs = self.finish()?;
                let end = End::new(node, outputs, &mut self.notes)?;
                self.stage = Stage::Ended(end);
            }
            _ => {
                return Err(unsupported(
                    "Gemm, MatMul, Add, Relu; Flatten, Reshape, Cast, Identity, Dropout; at the end Softmax, ArgMax, Sigmoid",
                    shown(op),
                ));
            }
        }
        self.value = output;
        Ok(())
    }

    /// A node of constants alone.
    fn constant(&mut self, node: &'g Node) -> Result<()> {
        let Some(output) = node.output.first() else { return Ok(()) };
        let of = node.input.first().and_then(|name| self.constants.get(name.as_str())).copied();
        let constant = match (node.op_type.as_str(), of) {
            ("Constant", _) => {
                let tensor = attribute(node, "value").and_then(|attribute| attribute.t.as_ref());
                let tensor = tensor
                    .ok_or_else(|| unsupported("a constant with a tensor", "another kind of it"))?;
                Constant { tensor, transposed: false }
            }
            ("Identity" | "Cast", Some(constant)) => constant,
            ("Transpose", Some(constant)) if constant.tensor.dims.len() == 2 => {
                let order = attribute(node, "perm").map_or(&[1, 0][..], |perm| &perm.ints);
                Constant { transposed: constant.transposed != (order == [1, 0]), ..constant }
            }
            (op, _) => {
                return Err(unsupported(
                    "Constant, Identity, Cast or Transpose of constants",
                    shown(op),
                ));
            }
        };
        define(&mut self.constants, output, constant)
    }

    /// Input `at` of a node, which must be constant.
    fn operand(&mut self, node: &Node, at: usize) -> Result<Array> {
        let name = node.input.get(at).map_or("", String::as_str);
        let constant = self.constants.get(name).copied().ok_or_else(|| {
            unsupported(
                "weights that are constants of the file",
                format_args!("{}, which is not", shown(name)),
            )
        })?;
        // One with fewer values than its axes say is refused as that, whatever they say.
        self.charge(constant.len().min(constant.stored().unwrap_or(usize::MAX)))?;
        constant.floats(self.beside)
    }

    fn charge(&mut self, numbers: usize) -> Result<()> {
        self.left = self.left.checked_sub(numbers).ok_or_else(|| {
            unsupported(
                "constants that are used once or a few times",
                "large ones that are used over and over",
            )
        })?;
        Ok(())
    }

    /// `numbers @ B`, or with `is_rows` `numbers @ B^T`.
    fn layer(&mut self, node: &'g Node, alpha: f64, is_rows: bool) -> Result<()> {
        let affine = match &mut self.stage {
            Stage::Numbers(affine) => std::mem::replace(affine, Affine::new()),
            Stage::Sums(sums) => {
                return Err(unsupported(
                    &format!("Relu behind layer {}", sums.name),
                    "another layer at once: multiply the weights of the two into one",
                ));
            }
            Stage::Ended(_) => {
                return Err(unsupported("the end of the network", "a layer behind the decision"));
            }
        };
        if node.input.first().is_none_or(|name| name != self.value) {
            return Err(unsupported(
                "rows times weights",
                "weights times columns, or the square of the numbers",
            ));
        }
        if self.layers.len() == MAX_LAYERS {
            return Err(unsupported(&format!("at most {MAX_LAYERS} layers"), "more"));
        }
        let b = self.operand(node, 1)?;
        let [rows, cols] = b.dims[..] else {
            return Err(unsupported(
                "weights with two axes",
                format_args!("axes {}", shape(&b.dims)),
            ));
        };
        let name = node.input.get(1).map_or("", String::as_str);
        if !self.used.insert(name) && b.values.len() > SHARED {
            return Err(unsupported(
                "weights of their own for each layer",
                "one large array in several layers",
            ));
        }
        let (inputs, outputs) = if is_rows { (cols, rows) } else { (rows, cols) };
        let mut weights = if is_rows { b.values } else { transposed(&b.values, rows, cols) };
        if alpha != 1.0 {
            weights.iter_mut().for_each(|w| *w = (f64::from(*w) * alpha) as f32);
        }
        self.check_input(inputs)?;
        let mut sums =
            Sums { weights, inputs, outputs, bias: vec![0.0; outputs], name: shown(name) };
        affine.fold(&mut sums)?;
        if !affine.is_none() {
            let nodes = affine.nodes.join(", ");
            self.notes
                .push(format!("{nodes} folded into layer {}, each weight rounded once", sums.name));
        }
        self.stage = Stage::Sums(sums);
        Ok(())
    }

    /// The first layer takes what the graph says of its input.
    fn check_input(&self, inputs: usize) -> Result<()> {
        if let Some(before) = self.layers.last() {
            return if before.outputs == inputs {
                Ok(())
            } else {
                Err(unsupported(
                    &format!("weights for {} numbers", before.outputs),
                    format_args!("for {inputs}"),
                ))
            };
        }
        let Input { name, width, rank, flat, .. } = &self.input;
        if rank.is_some_and(|rank| rank != 2) && !flat {
            return Err(unsupported(
                &format!("rows: two axes of the input {name}, or Flatten behind it"),
                format_args!("{} axes", rank.unwrap_or(0)),
            ));
        }
        match width {
            Some(width) if *width != inputs => Err(unsupported(
                &format!("weights for the {width} numbers of a row of {name}"),
                format_args!("for {inputs}"),
            )),
            _ => Ok(()),
        }
    }

    fn matmul(&mut self, node: &'g Node) -> Result<()> {
        self.layer(node, 1.0, false)
    }

    fn gemm(&mut self, node: &'g Node) -> Result<()> {
        if integer(node, "transA", 0) != 0 {
            return Err(unsupported("transA = 0", "transA = 1, which mixes rows"));
        }
        let factor = |name| attribute(node, name).map_or(1.0, |attribute| f64::from(attribute.f));
        let (alpha, beta) = (factor("alpha"), factor("beta"));
        self.layer(node, alpha, integer(node, "transB", 0) != 0)?;
        if node.input.get(2).is_none_or(String::is_empty) || beta == 0.0 {
            return Ok(());
        }
        let c = self.operand(node, 2)?;
        let c = vector(&c).ok_or_else(|| no_vector("Gemm", &c))?;
        let Stage::Sums(sums) = &mut self.stage else { return Ok(()) };
        if beta == 1.0 {
            return sums.then(Op::Add, c, "its bias");
        }
        let scaled: Vec<f32> = c.iter().map(|&c| (f64::from(c) * beta) as f32).collect();
        sums.then(Op::Add, &scaled, "its bias")
    }

    fn arithmetic(&mut self, node: &Node) -> Result<()> {
        let second = node.input.get(1).is_some_and(|name| name == self.value);
        let op = match (node.op_type.as_str(), second) {
            ("Add", _) => Op::Add,
            ("Mul", _) => Op::Mul,
            ("Sub", false) => Op::Sub,
            ("Sub", true) => Op::SubFrom,
            (_, false) => Op::Div,
            (_, true) => {
                return Err(unsupported(
                    "numbers divided by a constant",
                    "a constant divided by them",
                ));
            }
        };
        let array = self.operand(node, usize::from(!second))?;
        let constant = vector(&array).ok_or_else(|| no_vector(&node.op_type, &array))?;
        self.affine(op, constant, node)
    }

    /// `ai.onnx.ml.Scaler`: `(x - offset) scale`.
    fn scaler(&mut self, node: &Node) -> Result<()> {
        for (name, op) in [("offset", Op::Sub), ("scale", Op::Mul)] {
            if let Some(list) =
                attribute(node, name).map(|attribute| &attribute.floats).filter(|l| !l.is_empty())
            {
                self.affine(op, list, node)?;
            }
        }
        Ok(())
    }

    fn affine(&mut self, op: Op, constant: &[f32], node: &Node) -> Result<()> {
        self.charge(match &self.stage {
            Stage::Numbers(affine) => affine.len(),
            Stage::Sums(sums) => sums.weights.len(),
            Stage::Ended(_) => 0,
        })?;
        match &mut self.stage {
            Stage::Numbers(affine) => affine.then(op, constant, &called(node)),
            Stage::Sums(sums) => sums.then(op, constant, &called(node)),
            Stage::Ended(_) => {
                Err(unsupported("the end of the network", "more of it behind the decision"))
            }
        }
    }

    fn relu(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.stage, Stage::Numbers(Affine::new())) {
            Stage::Sums(sums) => {
                self.layers.push(sums.layer(true));
                Ok(())
            }
            // A second relu changes nothing, and numbers are above 0 then.
            Stage::Numbers(affine) if affine.is_none() && !self.layers.is_empty() => Ok(()),
            _ => Err(unsupported(
                "Relu behind a layer",
                "Relu of the inputs, of scaled numbers or behind the end",
            )),
        }
    }

    fn cast(&mut self, node: &Node) -> Result<()> {
        let to = integer(node, "to", 0);
        if !is_float(to) {
            return Err(unsupported(
                "a cast to floats",
                format_args!("element type {to}, which rounds or cuts"),
            ));
        }
        if !is_single(to) {
            self.notes.push(format!("{} left out: predictions are of 32-bit floats", called(node)));
        }
        Ok(())
    }

    /// Shapes that keep every row what it is.
    fn reshape(&mut self, node: &Node) -> Result<()> {
        let before = matches!(&self.stage, Stage::Numbers(_)) && self.layers.is_empty();
        let outputs = match &self.stage {
            Stage::Sums(sums) => Some(sums.outputs),
            _ => self.layers.last().map(|layer| layer.outputs),
        };
        let width = if before { self.input.width } else { outputs };
        let keeps = match node.op_type.as_str() {
            "Flatten" => integer(node, "axis", 1) == 1,
            "Squeeze" => outputs == Some(1) && matches!(self.stage, Stage::Sums(_)),
            _ => {
                let name = node.input.get(1).map_or("", String::as_str);
                let constant = self.constants.get(name).copied();
                let constant = constant.ok_or_else(|| {
                    unsupported(
                        "a constant shape",
                        "one that is computed; use Flatten in its place",
                    )
                })?;
                keeps_rows(&constant.integers()?, self.input.rows, width)
            }
        };
        if !keeps {
            return Err(unsupported(
                "rows that stay rows: Flatten of axis 1, Reshape to [-1, numbers of a row]",
                "another shape",
            ));
        }
        if before {
            self.input.flat = true;
        }
        Ok(())
    }

    /// The last layer: no relu follows.
    fn finish(&mut self) -> Result<usize> {
        match std::mem::replace(&mut self.stage, Stage::Numbers(Affine::new())) {
            Stage::Sums(sums) => {
                let outputs = sums.outputs;
                self.layers.push(sums.layer(false));
                Ok(outputs)
            }
            Stage::Numbers(affine) if !affine.is_none() => {
                Err(unsupported("a layer behind it", "the end of the network")
                    .of(affine.nodes.join(", ")))
            }
            Stage::Numbers(_) => match self.layers.last() {
                Some(last) => Ok(last.outputs),
                None => Err(unsupported("a layer with weights: Gemm or MatMul", "none")),
            },
            Stage::Ended(_) => Err(unsupported("one decision", "two")),
        }
    }

    /// The outputs of the graph are those of the last layer, or what is decided by them.
    fn end(mut self, graph: &Graph) -> Result<Network> {
        let last = self.value;
        let decision = if let Stage::Ended(end) = &self.stage {
            Some(end.decision()?)
        } else {
            self.finish()?;
            None
        };
        for output in &graph.output {
            let name = output.name.as_str();
            let known =
                name == last || matches!(&self.stage, Stage::Ended(end) if end.knows(&[name]));
            if !known {
                return Err(Error::new(
                    "the graph has an output that is not the end of the network",
                )
                .expected(format_args!("{}, or what is decided by it", shown(last)))
                .got(shown(name))
                .help("export the network with its last output alone"));
            }
        }
        if let Stage::Ended(end) = &mut self.stage {
            self.notes.append(&mut end.notes());
        }
        Ok(Network { layers: self.layers, decision, notes: self.notes, meta: None })
    }
}

/// Whether a shape keeps rows of `width` numbers what they are.
fn keeps_rows(shape: &[i64], rows: Option<i64>, width: Option<usize>) -> bool {
    let is_width = |n: i64| width.is_some_and(|width| usize::try_from(n) == Ok(width));
    match *shape {
        [-1] => width == Some(1),
        [0, -1] => true,
        [-1 | 0, n] => is_width(n),
        [n, -1] => rows == Some(n),
        [n, m] => rows == Some(n) && is_width(m),
        _ => false,
    }
}
