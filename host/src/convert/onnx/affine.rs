//! Numbers under way to a layer (`x`, or `scale x + shift`), and the sums of one (`W x + b`).

use super::tensor::Array;
use crate::convert::{Dense, Spread, shape};
use crate::{Error, Result};

/// `scale_j x_j + shift_j`; lists of one number are of all j.
#[derive(Debug, Clone)]
pub(super) struct Affine {
    pub(super) scale: Vec<f64>,
    shift: Vec<f64>,
    /// The nodes that it is of.
    pub(super) nodes: Vec<String>,
}

/// `W x + b` before relu.
#[derive(Debug)]
pub(super) struct Sums {
    /// `outputs × inputs`.
    pub(super) weights: Vec<f32>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// One number for each output.
    pub(super) bias: Vec<f64>,
    /// Whether a node adds some, which may be 0.
    pub(super) has_bias: bool,
    pub(super) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    /// The constant less the numbers.
    SubFrom,
    Mul,
    Div,
}

impl Op {
    fn apply(self, x: f64, c: f64) -> f64 {
        match self {
            Self::Add => x + c,
            Self::Sub => x - c,
            Self::SubFrom => c - x,
            Self::Mul => x * c,
            Self::Div => x / c,
        }
    }

    /// What it does to the factor of x.
    fn factor(self, scale: f64, c: f64) -> f64 {
        match self {
            Self::Add | Self::Sub => scale,
            Self::SubFrom => -scale,
            Self::Mul | Self::Div => self.apply(scale, c),
        }
    }
}

/// Number `j` of a list, whose only number is of all j.
fn at<T: Copy + Default>(list: &[T], j: usize) -> T {
    list.get(if list.len() == 1 { 0 } else { j }).copied().unwrap_or_default()
}

/// The constant of a node, one number for each of the last axis or one for all: `[]`, `[n]`,
/// `[1, n]`.
pub(super) fn vector<'a>(array: &'a Array, node: &str) -> Result<&'a [f32]> {
    let (_, before) = array.dims.split_last().unwrap_or((&1, &[]));
    if before.iter().all(|&dim| dim == 1) {
        return Ok(&array.values);
    }
    Err(Error::new(format!("{node} has a constant that differs from row to row"))
        .expected("one number, or one for each column")
        .got(format_args!("axes {}", shape(&array.dims)))
        .help("export the network for any number of rows"))
}

impl Affine {
    pub(super) fn new() -> Self {
        Self { scale: vec![1.0], shift: vec![0.0], nodes: Vec::new() }
    }

    /// Goes on by `op` with one number or one for each x.
    pub(super) fn then(&mut self, op: Op, constant: &[f32], node: &str) -> Result<()> {
        let width = self.scale.len().max(constant.len());
        let fits = |len: usize| len == 1 || len == width;
        if !fits(self.scale.len()) || !fits(constant.len()) {
            return Err(Error::new(format!("{node} does not fit the numbers before it"))
                .mismatch(format_args!("1 or {} numbers", self.scale.len()), constant.len()));
        }
        let wide = |list: &[f64]| (0..width).map(|j| at(list, j)).collect::<Vec<f64>>();
        let (mut scale, mut shift) = (wide(&self.scale), wide(&self.shift));
        for (j, (scale, shift)) in scale.iter_mut().zip(&mut shift).enumerate() {
            let c = f64::from(at(constant, j));
            (*scale, *shift) = (op.factor(*scale, c), op.apply(*shift, c));
        }
        *self = Self { scale, shift, nodes: std::mem::take(&mut self.nodes) };
        if self.nodes.last().is_none_or(|last| last != node) {
            self.nodes.push(node.to_owned());
        }
        Ok(())
    }

    /// The numbers before the map, where those behind it are about 0, give or take 1.
    pub(super) fn spreads(&self, inputs: usize) -> Option<Vec<Spread>> {
        let spread = |j| {
            let (scale, shift) = (at(&self.scale, j), at(&self.shift, j));
            Spread { centre: -shift / scale, size: 1.0 / scale.abs() }
        };
        (self.scale.len() == inputs).then(|| (0..inputs).map(spread).collect())
    }

    /// Folds the map into the layer behind it: `W (scale x + shift) + b`.
    pub(super) fn fold(&self, sums: &mut Sums) -> Result<()> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        if self.scale.len() != 1 && self.scale.len() != sums.inputs {
            let (name, nodes) = (&sums.name, self.nodes.join(", "));
            return Err(Error::new(format!("layer {name} does not fit {nodes}"))
                .mismatch(format_args!("{} inputs", self.scale.len()), sums.inputs));
        }
        for (row, bias) in sums.weights.chunks_exact_mut(sums.inputs.max(1)).zip(&mut sums.bias) {
            for (j, weight) in row.iter_mut().enumerate() {
                let w = f64::from(*weight);
                // A weight that is not there stays so, whatever the scale.
                if w != 0.0 {
                    *bias += w * at(&self.shift, j);
                    *weight = (w * at(&self.scale, j)) as f32;
                }
            }
        }
        Ok(())
    }
}

impl Sums {
    /// Goes on by `op` with one number or one for each output.
    pub(super) fn then(&mut self, op: Op, constant: &[f32], node: &str) -> Result<()> {
        if constant.len() != 1 && constant.len() != self.outputs {
            return Err(Error::new(format!("{node} does not fit layer {}", self.name))
                .expected(format_args!("1 or {} numbers, as the layer has outputs", self.outputs))
                .got(constant.len()));
        }
        self.has_bias |= matches!(op, Op::Add | Op::Sub);
        let rows = self.weights.chunks_exact_mut(self.inputs.max(1)).zip(&mut self.bias);
        for (i, (row, bias)) in rows.enumerate() {
            let c = f64::from(at(constant, i));
            *bias = op.apply(*bias, c);
            if !matches!(op, Op::Add | Op::Sub) {
                row.iter_mut().for_each(|w| *w = op.factor(f64::from(*w), c) as f32);
            }
        }
        Ok(())
    }

    pub(super) fn layer(self, relu: bool) -> Dense {
        let Self { weights, inputs, outputs, bias, has_bias, name } = self;
        let is_none = !has_bias && bias.iter().all(|&b| b == 0.0);
        let bias = if is_none { Vec::new() } else { bias.into_iter().map(|b| b as f32).collect() };
        Dense { name, inputs, outputs, weights, bias, relu }
    }
}
