//! One walk over the nodes of a graph: the numbers of a row from the input to the end, layer by
//! layer.

use std::collections::{HashMap, HashSet};

use tamis::infer::model::MAX_LAYERS;

use super::affine::{Affine, Op, Sums, vector};
use super::decide::End;
use super::linear;
use super::proto::{Graph, Node, attribute, input, integer, require, unsupported};
use super::tensor::{Array, Beside, Constant, define, element, is_float, transposed};
use crate::convert::{Dense, Network, Spread, elements, shape, shown};
use crate::{Error, Result};

enum Stage {
    /// Inputs of the network, or outputs of a relu, perhaps scaled and shifted.
    Numbers(Affine),
    /// Sums of a layer whose end is not known yet.
    Sums(Sums),
    /// Nothing more is computed but a decision.
    Ended(End),
}

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
    /// How far the numbers of a row spread, where a map of them says so.
    spreads: Option<Vec<Spread>>,
}

/// Numbers that a file of any size may have read, and those for each of its bytes.
const WORK: usize = 1 << 28;
const WORK_PER_BYTE: usize = 4;
/// The largest array that may be the weights of several layers.
const SHARED: usize = 1 << 16;

struct Input {
    name: String,
    /// Numbers of a row: of all axes behind the first; none where one is not said.
    width: Option<usize>,
    /// The length of the first axis, where it is fixed.
    rows: Option<i64>,
    /// Axes; none where they are not said.
    rank: Option<usize>,
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
    let (value, input) = rows_of(graph, &constants)?;
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
        spreads: None,
    };
    for node in &graph.node {
        walk.step(node).map_err(|error| error.of(called(node)))?;
    }
    walk.end(graph)
}

/// The only input that is no constant.
fn rows_of<'g>(
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
    let rank = dims.map(Vec::len);
    let width = dims.filter(|dims| dims.len() != 1).and_then(|dims| {
        let lengths = dims.iter().skip(1).map(|dim| usize::try_from(dim.dim_value?).ok());
        elements(&lengths.collect::<Option<Vec<_>>>()?)
    });
    let rows = dims.and_then(|dims| dims.first()?.dim_value);
    Ok((&only.name, Input { name: shown(&only.name), width, rows, rank, flat: false }))
}

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
        let is_known = ["", "ai.onnx", "ai.onnx.ml"].contains(&node.domain.as_str());
        let domain = format_args!("domain {}", shown(&node.domain));
        require(is_known, "operators of ONNX itself", domain)?;
        let named = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
        let data: Vec<&str> = named.filter(|name| !self.constants.contains_key(name)).collect();
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
            "MatMul" => self.layer(node, 1.0, false)?,
            "Gemm" => self.gemm(node)?,
            "Add" | "Sub" | "Mul" | "Div" => self.arithmetic(node)?,
            "Scaler" => self.scaler(node)?,
            "LinearRegressor" | "LinearClassifier" => self.linear(node)?,
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
                    "Gemm, MatMul, Add, Relu; Flatten, Reshape, Cast, Identity, Dropout; at the \
                    end Softmax, ArgMax, Sigmoid",
                    shown(op),
                ));
            }
        }
        self.value = output;
        Ok(())
    }

    fn constant(&mut self, node: &'g Node) -> Result<()> {
        let Some(output) = node.output.first() else { return Ok(()) };
        let of = self.constants.get(input(node, 0)).copied();
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
                let expected = "Constant, Identity, Cast or Transpose of constants";
                return Err(unsupported(expected, shown(op)));
            }
        };
        define(&mut self.constants, output, constant)
    }

    /// Input `at` of a node, which must be constant.
    fn operand(&mut self, node: &Node, at: usize) -> Result<Array> {
        let name = input(node, at);
        let constant = self.constants.get(name).copied().ok_or_else(|| {
            let got = format_args!("{}, which is not", shown(name));
            unsupported("weights that are constants of the file", got)
        })?;
        // One with fewer values than its axes say is refused as that, whatever they say.
        self.charge(constant.len().min(constant.stored().unwrap_or(usize::MAX)))?;
        constant.floats(self.beside)
    }

    fn charge(&mut self, numbers: usize) -> Result<()> {
        let expected = "constants that are used once or a few times";
        require(numbers <= self.left, expected, "large ones that are used over and over")?;
        self.left -= numbers;
        Ok(())
    }

    /// `numbers @ B`, or with `is_rows` `numbers @ B^T`.
    fn layer(&mut self, node: &'g Node, alpha: f64, is_rows: bool) -> Result<()> {
        let affine = self.numbers_before(&shown(input(node, 1)))?;
        let got = "weights times columns, or the square of the numbers";
        require(input(node, 0) == self.value, "rows times weights", got)?;
        let expected = format!("at most {MAX_LAYERS} layers");
        require(self.layers.len() < MAX_LAYERS, &expected, "more")?;
        let b = self.operand(node, 1)?;
        let [rows, cols] = b.dims[..] else {
            let got = format_args!("axes {}", shape(&b.dims));
            return Err(unsupported("weights with two axes", got));
        };
        let name = input(node, 1);
        let is_first = self.used.insert(name);
        let expected = "weights of their own for each layer";
        let is_small = b.values.len() <= SHARED;
        require(is_first || is_small, expected, "one large array in several layers")?;
        let (inputs, outputs) = if is_rows { (cols, rows) } else { (rows, cols) };
        let mut weights = if is_rows { b.values } else { transposed(&b.values, rows, cols) };
        if alpha != 1.0 {
            weights.iter_mut().for_each(|w| *w = (f64::from(*w) * alpha) as f32);
        }
        self.check_input(inputs)?;
        let (bias, name) = (vec![0.0; outputs], shown(name));
        let mut sums = Sums { weights, inputs, outputs, bias, has_bias: false, name };
        self.fold(&affine, &mut sums)?;
        self.stage = Stage::Sums(sums);
        Ok(())
    }

    /// A linear model of scikit-learn, which is the end of the network.
    fn linear(&mut self, node: &'g Node) -> Result<()> {
        let before = self.layers.last().map(|layer| layer.outputs);
        let linear::Linear { mut sums, is_log_odds } =
            linear::read(node, before.or(self.input.width))?;
        let affine = self.numbers_before(&sums.name)?;
        self.check_input(sums.inputs)?;
        self.fold(&affine, &mut sums)?;
        if node.op_type == "LinearRegressor" {
            self.stage = Stage::Sums(sums);
            return Ok(());
        }
        let outputs = sums.outputs;
        require(is_log_odds || outputs > 1, "two classes or more", "one")?;
        self.layers.push(sums.layer(false));
        self.stage = Stage::Ended(End::classifier(node, outputs, &mut self.notes));
        Ok(())
    }

    /// The map of the numbers that a layer takes.
    fn numbers_before(&mut self, name: &str) -> Result<Affine> {
        match &mut self.stage {
            Stage::Numbers(affine) => Ok(std::mem::replace(affine, Affine::new())),
            Stage::Sums(sums) => {
                let got = format_args!("layer {name} at once: multiply the weights of the two");
                Err(unsupported(&format!("Relu behind layer {}", sums.name), got))
            }
            Stage::Ended(_) => {
                Err(unsupported("the end of the network", "a layer behind the decision"))
            }
        }
    }

    /// Folds the map of its inputs into a layer.
    fn fold(&mut self, affine: &Affine, sums: &mut Sums) -> Result<()> {
        affine.fold(sums)?;
        if affine.nodes.is_empty() {
            return Ok(());
        }
        let (nodes, name) = (affine.nodes.join(", "), &sums.name);
        self.notes.push(format!("{nodes} folded into layer {name}, each weight rounded once"));
        if self.layers.is_empty() {
            self.spreads = affine.spreads(sums.inputs);
        }
        Ok(())
    }

    /// The first layer takes what the graph says of its input.
    fn check_input(&self, inputs: usize) -> Result<()> {
        let got = format_args!("for {inputs}");
        if let Some(before) = self.layers.last() {
            let expected = format!("weights for {} numbers", before.outputs);
            return require(before.outputs == inputs, &expected, got);
        }
        let Input { name, rank, flat, .. } = &self.input;
        let rank = rank.unwrap_or(2);
        let expected = format!("rows: two axes of the input {name}, or Flatten behind it");
        require(rank == 2 || *flat, &expected, format_args!("{rank} axes"))?;
        let width = self.input.width.unwrap_or(inputs);
        let expected = format!("weights for the {width} numbers of a row of {name}");
        require(width == inputs, &expected, got)
    }

    fn gemm(&mut self, node: &'g Node) -> Result<()> {
        let is_plain = integer(node, "transA", 0) == 0;
        require(is_plain, "transA = 0", "transA = 1, which mixes rows")?;
        let factor = |name| attribute(node, name).map_or(1.0, |attribute| f64::from(attribute.f));
        let (alpha, beta) = (factor("alpha"), factor("beta"));
        self.layer(node, alpha, integer(node, "transB", 0) != 0)?;
        if input(node, 2).is_empty() || beta == 0.0 {
            return Ok(());
        }
        let c = self.operand(node, 2)?;
        let c = vector(&c, "Gemm")?;
        let Stage::Sums(sums) = &mut self.stage else { return Ok(()) };
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
                let expected = "numbers divided by a constant";
                return Err(unsupported(expected, "a constant divided by them"));
            }
        };
        let array = self.operand(node, usize::from(!second))?;
        let constant = vector(&array, &node.op_type)?;
        self.affine(op, constant, node)
    }

    /// `ai.onnx.ml.Scaler`: `(x - offset) scale`.
    fn scaler(&mut self, node: &Node) -> Result<()> {
        for (name, op) in [("offset", Op::Sub), ("scale", Op::Mul)] {
            match attribute(node, name) {
                Some(list) if !list.floats.is_empty() => self.affine(op, &list.floats, node)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn affine(&mut self, op: Op, constant: &[f32], node: &Node) -> Result<()> {
        self.charge(match &self.stage {
            Stage::Numbers(affine) => affine.scale.len(),
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
            Stage::Numbers(affine) if affine.nodes.is_empty() && !self.layers.is_empty() => Ok(()),
            _ => {
                let got = "Relu of the inputs, of scaled numbers or behind the end";
                Err(unsupported("Relu behind a layer", got))
            }
        }
    }

    fn cast(&mut self, node: &Node) -> Result<()> {
        let to = integer(node, "to", 0);
        let got = format_args!("element type {to}, which rounds or cuts");
        require(is_float(to), "a cast to floats", got)?;
        if to != i64::from(element::FLOAT) {
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
                let constant = self.constants.get(input(node, 1)).copied();
                let got = "one that is computed; use Flatten in its place";
                let constant = constant.ok_or_else(|| unsupported("a constant shape", got))?;
                keeps_rows(&constant.integers()?, self.input.rows, width)
            }
        };
        self.input.flat |= before;
        let expected = "rows that stay rows: Flatten of axis 1, Reshape to [-1, numbers of a row]";
        require(keeps, expected, "another shape")
    }

    fn finish(&mut self) -> Result<usize> {
        match std::mem::replace(&mut self.stage, Stage::Numbers(Affine::new())) {
            Stage::Sums(sums) => {
                let outputs = sums.outputs;
                self.layers.push(sums.layer(false));
                Ok(outputs)
            }
            Stage::Numbers(affine) if !affine.nodes.is_empty() => {
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
                let what = "the graph has an output that is not the end of the network";
                return Err(Error::new(what)
                    .expected(format_args!("{}, or what is decided by it", shown(last)))
                    .got(shown(name))
                    .help("export the network with its last output alone"));
            }
        }
        if let Stage::Ended(end) = &mut self.stage {
            self.notes.append(&mut end.notes);
        }
        let Self { layers, notes, spreads, .. } = self;
        Ok(Network { layers, decision, notes, spreads, ..Network::default() })
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
