//! One strip of samples through the whole network, forwards and back.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use tamis::base::bits::sign;
use tamis::base::error::Result;
use tamis::learn::deep::{Head, Stack};
use tamis::learn::loss::Labels;
use tamis::network::weights::Weights;

use super::kernel::{Backward, Forward, Outer};
use super::links::{Blocks, Starts, TurnedBlocks, Turns};
use super::residual::{Loss, residual};
use crate::data::augment::{Augment, Scratch};
use crate::data::{Matrix, Values};
use crate::operator::gather::{Gather, Rows, row_stride};
use crate::operator::lanes::{ALL_LANES, LANES, Lanes, OverLanes, SumOfNeurons};
use crate::operator::{Columns, Size, add_product};

/// A layer's weights, by both of their ends.
#[derive(Debug)]
pub(super) struct Layer {
    /// Blocks, as they lie in a [`Stack`]: outputs of a hidden layer, inputs of the weights to the
    /// outputs.
    pub(super) starts: Starts,
    /// By the other ends; empty for a first layer that is hidden: its inputs need no residuals.
    turns: Turns,
    /// Places of the weights in the stack.
    pub(super) range: Range<usize>,
    /// Neurons at the other ends of a block.
    width: usize,
    pub(super) is_end: bool,
}

impl Layer {
    /// The layers of a network.
    ///
    /// # Errors
    /// A layer of more than 65536 inputs or neurons.
    pub(super) fn all(stack: &Stack<'_>) -> Result<Vec<Self>> {
        let hidden = stack.layers().count() - usize::from(matches!(stack.head(), Head::Weights(_)));
        let mut end = 0;
        let layer = |(l, w): (usize, Weights<'_>)| {
            let (starts, width, is_end) = (Starts::of(w)?, w.inputs(), l >= hidden);
            let blocks = Blocks { starts: &starts, index: w.index(), width };
            let turns = if l > 0 || is_end { Turns::of(blocks) } else { Turns::default() };
            let range = end..end + w.nnz();
            end = range.end;
            Ok(Self { starts, turns, range, width, is_end })
        };
        stack.layers().enumerate().map(layer).collect()
    }

    /// Whether it is the layer of such weights.
    pub(super) fn is_of(&self, w: Weights<'_>) -> Result<bool> {
        let is_turned = || self.turns.is_empty() || self.turns.are_of(self.by_block(w));
        Ok(self.width == w.inputs() && self.starts == Starts::of(w)? && is_turned())
    }

    /// Weights.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.turns.bytes()
    }

    fn by_block<'a>(&'a self, w: Weights<'a>) -> Blocks<'a> {
        Blocks { starts: &self.starts, index: w.index(), width: self.width }
    }

    fn by_other<'a>(&'a self, next: &'a mut [u32]) -> TurnedBlocks<'a> {
        self.turns.links(&self.starts, next)
    }
}

/// What is the same for all strips of a pass.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) layers: &'a [Layer],
    pub(super) stack: &'a Stack<'a>,
    pub(super) data: &'a Matrix,
    pub(super) scale: f32,
    /// Blocks of input columns that have weights.
    pub(super) used: &'a [bool],
    pub(super) arch: Arch,
    pub(super) augment: Option<&'a Augment>,
}

impl<'a> Work<'a> {
    fn layer(&self, l: usize) -> Option<(&'a Layer, Weights<'a>)> {
        self.layers.iter().zip(self.stack.layers()).nth(l)
    }
}

/// Neurons at the other ends of a panel that are turned into rows at a time.
const PART: usize = 32;

/// Numbers that a thread needs for [`Strip::add_panel`] of a network whose widest layer is this.
pub(super) const fn across(widest: usize) -> usize {
    LANES * row_stride(if widest < PART { widest } else { PART })
}

/// Memory for the rows of a strip that are changed; none where none is.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Rows as they were changed, one behind the other.
    rows: Vec<f32>,
    scratch: Scratch,
}

impl Changed {
    pub(super) fn new(augment: &Augment, cols: usize) -> Self {
        Self { rows: vec![0.0; LANES * cols], scratch: augment.scratch() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.rows[..]) + self.scratch.bytes()
    }
}

/// Bytes of a strip through layers of these widths, that of the inputs first.
pub(crate) fn strip_bytes(widths: impl Iterator<Item = usize> + Clone) -> usize {
    let acts = widths.clone().map(|width| size_of::<Lanes>() * width);
    let next = size_of::<u32>() * widths.max().unwrap_or(0);
    acts.sum::<usize>() + next + LANES * size_of::<usize>()
}

/// Memory for the activations of a strip.
#[derive(Debug)]
pub(super) struct Strip {
    /// Of the input, of each hidden layer, and of the outputs.
    acts: Vec<Vec<Lanes>>,
    /// A number of each neuron of the widest layer, for [`TurnedBlocks`].
    next: Vec<u32>,
    /// Rows of the data in the lanes.
    rows: Vec<usize>,
    pub(super) changed: Changed,
    pub(super) loss: Loss,
}

impl Strip {
    pub(super) fn new(widths: &[usize]) -> Self {
        let acts = widths.iter().map(|&width| vec![Lanes::ZERO; width]).collect();
        let next = vec![0; widths.iter().copied().max().unwrap_or(0)];
        let rows = Vec::with_capacity(LANES);
        Self { acts, next, rows, changed: Changed::default(), loss: Loss::default() }
    }

    /// Neurons of the widest layer.
    pub(super) fn widest(&self) -> usize {
        self.acts.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Samples in the lanes.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        strip_bytes(self.acts.iter().map(Vec::len)) + self.changed.bytes()
    }

    /// The outputs, row by row.
    pub(super) fn outputs(&self, out: &mut [f32]) {
        let acts = &self.acts[self.acts.len() - 1];
        for (l, row) in out.chunks_exact_mut(acts.len()).enumerate() {
            row.iter_mut().zip(acts).for_each(|(out, acts)| *out = acts.0[l]);
        }
    }

    /// Takes `rows` through the network, as draws from number `draw` on where they are changed.
    pub(super) fn forward(
        &mut self,
        work: &Work<'_>,
        draw: u64,
        rows: impl Iterator<Item = usize>,
    ) {
        self.rows.clear();
        self.rows.extend(rows);
        let Work { data, scale, used, arch, .. } = *work;
        let rows = &self.rows[..];
        let (out, ones) = self.acts[0].split_at_mut(data.cols);
        ones.fill(Lanes::ONE);
        if let Some(augment) = work.augment {
            let Changed { rows: changed, scratch } = &mut self.changed;
            let each = (draw..).zip(rows).zip(changed.chunks_exact_mut(data.cols.max(1)));
            for ((draw, &row), out) in each {
                let own = row * data.cols..(row + 1) * data.cols;
                match &data.values {
                    Values::F32(data) => augment.row(draw, &data[own], scale, scratch, out),
                    Values::U8(data) => augment.row(draw, &data[own], scale, scratch, out),
                }
            }
            let (order, data) = (&ALL_LANES[..rows.len()], &changed[..]);
            arch.dispatch(Gather { data, rows: order, scale: 1.0, used, out });
        } else {
            match &data.values {
                Values::F32(data) => arch.dispatch(Gather { data, rows, scale, used, out }),
                Values::U8(data) => arch.dispatch(Gather { data, rows, scale, used, out }),
            }
        }
        for (l, (layer, w)) in work.layers.iter().zip(work.stack.layers()).enumerate() {
            let (below, above) = self.acts.split_at_mut(l + 1);
            let (weights, below, out) = (w.value(), &below[l][..], &mut above[0][..]);
            if layer.is_end {
                let links = layer.by_other(&mut self.next);
                Forward { links, weights, below, out, relu: false }.on(arch);
            } else {
                let links = layer.by_block(w);
                Forward { links, weights, below, out, relu: true }.on(arch);
            }
        }
        let outputs = self.acts.len() - 1;
        if let Head::Sum(signs) = work.stack.head() {
            let (hidden, out) = self.acts.split_at_mut(outputs);
            let (neurons, out) = (&hidden[outputs - 1][..], &mut out[0][0]);
            arch.dispatch(SumOfNeurons { signs, neurons, out });
        }
    }

    /// Losses, and residuals in place of the outputs, of the rows of the last [`Self::forward`].
    pub(super) fn residual(&mut self, work: &Work<'_>, labels: Labels<'_>) {
        let (rows, outputs) = (&self.rows[..], self.acts.len() - 1);
        let out = &mut self.acts[outputs][..];
        self.loss = work.arch.dispatch(Residual { labels, rows, out });
    }

    /// From the residuals of the outputs to those of the last layer.
    pub(super) fn head_back(&mut self, work: &Work<'_>) {
        if let Head::Sum(signs) = work.stack.head() {
            let outputs = self.acts.len() - 1;
            let (hidden, out) = self.acts.split_at_mut(outputs);
            let (residual, neurons) = (&out[0][0], &mut hidden[outputs - 1][..]);
            work.arch.dispatch(Spread { signs, residual, neurons });
        }
    }

    /// Layer `l`, whose outputs have their residuals: adds the sum over the rows to the layer's `gradient`, which
    /// may be empty but for the first layer; its inputs have their residuals then, but those of the network.
    pub(super) fn layer_back(&mut self, work: &Work<'_>, l: usize, gradient: &mut [f32]) {
        let Some((layer, w)) = work.layer(l) else { return };
        if l == 0 {
            self.add_gradient(work, l, 0..layer.starts.blocks(), gradient);
            return;
        }
        let (below, above) = self.acts.split_at_mut(l + 1);
        let (below, above) = (&mut below[l][..], &above[0][..]);
        let weights = w.value();
        if layer.is_end {
            let links = layer.by_block(w);
            Backward { links, weights, gradient, above, below }.on(work.arch);
        } else {
            let links = layer.by_other(&mut self.next);
            Backward { links, weights, gradient, above, below }.on(work.arch);
        }
    }

    /// Adds the sum over the rows to the `gradient` of some blocks of layer `l`, whose outputs have their residuals and
    /// whose inputs have not.
    pub(super) fn add_gradient(
        &self,
        work: &Work<'_>,
        l: usize,
        blocks: Range<usize>,
        gradient: &mut [f32],
    ) {
        let Some((layer, w)) = work.layer(l) else { return };
        let (own, others) = if layer.is_end { (l, l + 1) } else { (l + 1, l) };
        let (own, others) = (&self.acts[own][..], &self.acts[others][..]);
        Outer { links: layer.by_block(w), blocks, gradient, own, others }.on(work.arch);
    }

    /// Adds the derivatives by all weights that the blocks of layer `l` from `low` on have room for, to `out`,
    /// where its outputs have their residuals and its inputs have not; `across` has as many numbers as [`across`] says.
    pub(super) fn add_panel(
        &self,
        work: &Work<'_>,
        l: usize,
        low: usize,
        across: &mut [f32],
        out: &mut [f32],
    ) {
        let (own, others) = if work.layers[l].is_end { (l, l + 1) } else { (l + 1, l) };
        let (own, others) = (&self.acts[own], &self.acts[others][..]);
        let width = others.len();
        let cols = out.len() / width.max(1);
        let own: &[f32] = bytemuck::cast_slice(&own[low..low + cols]);
        let own = Columns { values: own, stride: LANES };
        for (columns, first) in others.chunks(PART).zip((0..).step_by(PART)) {
            let (stride, size) =
                (row_stride(columns.len()), Size { rows: columns.len(), depth: LANES, cols });
            let across = &mut across[..LANES * stride];
            work.arch.dispatch(Rows { columns, out: across });
            let across = Columns { values: &*across, stride };
            add_product(size, Columns { values: &mut out[first..], stride: width }, across, own);
        }
    }

    /// Adds the sums of squares of all activations, inputs first, to `out`.
    pub(super) fn add_squares(&self, out: &mut [f32]) {
        for (out, acts) in out.iter_mut().zip(self.acts.iter().flatten()) {
            *out += acts.0[..self.len()].iter().map(|a| a * a).sum::<f32>();
        }
    }
}

/// Residuals of the neurons of a sum, in place of their activations.
struct Spread<'a> {
    signs: &'a [u32],
    residual: &'a Lanes,
    neurons: &'a mut [Lanes],
}

impl WithSimd for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (i, a) in self.neurons.iter_mut().enumerate() {
            let sign = sign(self.signs, i);
            for (a, r) in a.0.iter_mut().zip(&self.residual.0) {
                *a = if *a > 0.0 { sign * r } else { 0.0 };
            }
        }
    }
}

struct Residual<'a> {
    labels: Labels<'a>,
    pub(super) rows: &'a [usize],
    pub(super) out: &'a mut [Lanes],
}

impl WithSimd for Residual<'_> {
    type Output = Loss;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Loss {
        residual(self.labels, self.rows, self.out)
    }
}
