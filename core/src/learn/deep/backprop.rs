//! Backpropagation: losses of a network on labelled rows, and their derivatives by its weights.
//!
//! With `a_0 = x`, `a_l = relu(W_l a_(l-1))` and the residual `r` of the outputs (label minus
//! output, or one-hot minus softmax), the derivative of row `r · out` by `W_l` is
//! `r_l a_(l-1)^T`, where `r_(l-1) = (W_l^T r_l) * 1[a_(l-1) > 0]`.

use super::{Head, Stack};
use crate::base::bits::sign;
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math::{self, Sum};
use crate::base::rng::Permutation;
use crate::data::samples::Samples;
use crate::learn::loss::Labels;
use crate::operator::machine::Host;
use crate::operator::sensing::head_mut;
use core::ops::Range;

/// Rows of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Positions in the order.
    pub positions: Range<usize>,
    /// Which row stands at a position; none for the order of the data.
    pub order: Option<Permutation>,
}

impl Batch {
    /// All of so many rows, in the order of the data.
    #[must_use]
    pub const fn all(rows: usize) -> Self {
        Self { positions: 0..rows, order: None }
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        let order = self.order;
        self.positions.clone().map(move |at| order.map_or(at, |order| order.get(at)))
    }
}

/// Some blocks of a layer, with all weights that they have room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// The layer's number.
    pub layer: usize,
    /// Its blocks: neurons of a hidden layer, inputs of the weights to the outputs.
    pub blocks: Range<usize>,
}

impl Panel {
    /// All blocks of some layers of a network, in panels of at most so many numbers, or of one block: layers
    /// from the last to the first, as backpropagation goes.
    pub fn all(
        stack: &Stack<'_>,
        layers: Range<usize>,
        numbers: usize,
    ) -> impl Iterator<Item = Self> + use<> {
        let sizes = stack.layers.clone();
        layers.rev().filter_map(move |l| Some((l, *sizes.get(l)?))).flat_map(move |(layer, of)| {
            let step = (numbers / of.width.max(1)).max(1);
            let lows = (0..of.neurons).step_by(step);
            lows.map(move |low| Self { layer, blocks: low..(low + step).min(of.neurons) })
        })
    }

    /// Numbers of it.
    #[must_use]
    pub fn len(&self, stack: &Stack<'_>) -> usize {
        stack.layers.get(self.layer).map_or(0, |layer| self.blocks.len() * layer.width)
    }
}

/// Derivatives by all weights of a panel, in the network or not.
#[derive(Debug, PartialEq)]
pub struct Derivatives<'a> {
    /// Of which weights.
    pub panel: Panel,
    /// Block after block.
    pub values: &'a mut [f32],
    /// The root mean square over the rows of each input and of each neuron's activation, layer by layer.
    pub sizes: &'a [f32],
}

/// Memory for [`Panels::panels`].
#[derive(Debug)]
pub struct PanelMemory<'a> {
    /// As many numbers as [`Stack::activations`].
    pub sizes: &'a mut [f32],
    /// The longest block of a layer or more; a larger panel is faster.
    pub panel: &'a mut [f32],
}

impl PanelMemory<'_> {
    /// Checks that it is enough for a network: what every [`Panels::panels`] begins with.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn check(&self, stack: &Stack<'_>) -> Result<()> {
        error::length("sizes of activations", self.sizes.len(), stack.activations())?;
        let longest = stack.layers.iter().map(|layer| layer.width).max().unwrap_or(0);
        error::length("panel", self.panel.len().min(longest), longest)
    }
}

/// Labelled rows, and what computes losses and gradients of a network on them: [`RowByRow`] here,
/// faster ones elsewhere.
pub trait Backprop {
    /// What reading rows may fail with.
    type Source: core::fmt::Debug;

    /// n, the number of rows.
    fn samples(&self) -> usize;

    /// The labels of the rows.
    fn labels(&self) -> Labels<'_>;

    /// Checks that the network has ended and that rows, labels and network fit each other.
    ///
    /// # Errors
    /// [`Error::Range`] for a network without an end, [`Error::Length`] for rows or labels that do
    /// not fit, [`Error::NotFinite`] for labels that are no numbers.
    fn check(&self, stack: &Stack<'_>) -> Result<(), Self::Source>;

    /// The sum of the losses of the rows of a batch (squared errors, or cross-entropies); writes
    /// the sum over its rows of the derivative of `r · out`, r the residual held fixed, to
    /// `gradient`: the negative derivative of the sum of the losses, [`Labels::slope`] taken out.
    ///
    /// # Errors
    /// [`Error::Source`] if reading the rows fails, [`Error::Stopped`] if it was asked to end.
    fn gradient(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        gradient: &mut [f32],
    ) -> Result<f32, Self::Source>;

    /// Goes on as after gradients of so many rows, where these are changed whenever they are read.
    fn skip(&mut self, rows: u64);

    /// Mean loss of the rows of a batch, as they are: squared error over rows and outputs, or cross-entropy over rows.
    ///
    /// # Errors
    /// As [`Self::gradient`].
    fn loss(&mut self, stack: &Stack<'_>, batch: &Batch) -> Result<f32, Self::Source>;
}

/// Derivatives by weights that the network does not have, and a support that may change: what
/// [`super::dynamic`] needs beside.
pub trait Panels: Backprop {
    /// Gives `see` the derivatives that [`Backprop::gradient`] is of, by all weights that some layers have room
    /// for, in the order of [`Panel::all`]. Rows that are changed whenever they are read are those of the next
    /// gradient's draws.
    ///
    /// # Errors
    /// As [`Backprop::gradient`]; [`Error::Length`] for memory of another length, or shorter than a block.
    fn panels(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        layers: Range<usize>,
        memory: &mut PanelMemory<'_>,
        see: impl FnMut(Derivatives<'_>),
    ) -> Result<(), Self::Source>;

    /// Takes note that the network has another support, and the same widths.
    ///
    /// # Errors
    /// As [`Backprop::check`].
    fn adopt(&mut self, stack: &Stack<'_>) -> Result<(), Self::Source>;
}

/// The reference: one row at a time, in memory for the activations of one row, with the same bits
/// on every target.
#[derive(Debug)]
pub struct RowByRow<'a, X> {
    rows: X,
    labels: Labels<'a>,
    acts: &'a mut [f32],
    deltas: &'a mut [f32],
    pub(super) out: &'a mut [f32],
    /// Rows that gradients have read.
    drawn: u64,
}

/// Words of the memory of [`RowByRow`], for so many activations ([`Stack::activations`]) and
/// outputs.
#[must_use]
pub const fn words(activations: usize, outputs: usize) -> usize {
    activations.saturating_mul(2).saturating_add(outputs)
}

impl<'a, X: Samples> RowByRow<'a, X> {
    /// For networks of the widths of `stack`. `memory` holds at least [`words`].
    ///
    /// # Errors
    /// [`Error::Budget`] with the bytes needed and given.
    pub fn new(
        rows: X,
        labels: Labels<'a>,
        stack: &Stack<'_>,
        memory: &'a mut [u32],
    ) -> Result<Self> {
        let (acts, c) = (stack.activations(), stack.outputs());
        budget::enough(words(acts, c), memory.len())?;
        let mut space = Workspace::new(memory);
        Ok(Self {
            rows,
            labels,
            acts: space.floats(acts)?,
            deltas: space.floats(acts)?,
            out: space.floats(c)?,
            drawn: 0,
        })
    }

    /// The residual of row `k` in `out`, and its loss; activations stay.
    pub(super) fn residual(&mut self, k: usize, stack: &Stack<'_>) -> Result<f32, X::Source> {
        error::length("activations", self.acts.len(), stack.activations())?;
        error::length("outputs", self.out.len(), stack.outputs())?;
        self.rows.row(k, head_mut(self.acts, stack.inputs())?)?;
        stack.activate(self.acts);
        stack.output(self.acts, self.out);
        let c = self.out.len();
        self.labels.residual(&mut Host, k..k + 1, c, self.out).map_err(Error::widen)
    }

    /// The derivative by every weight of the outputs' product with `out`, for the row that the
    /// activations are of, given to `add` with that weight's place in `gradient`, which may be empty.
    pub(super) fn backwards(
        &mut self,
        stack: &Stack<'_>,
        gradient: &mut [f32],
        add: impl Fn(&mut f32, f32),
    ) {
        let Self { acts, deltas, out, .. } = self;
        deltas.fill(0.0);
        let mut first = acts.len() - stack.width();
        let above = deltas.get_mut(first..).unwrap_or_default();
        match stack.head() {
            Head::Open => {}
            Head::Sum(signs) => {
                let r = out.first().copied().unwrap_or(0.0);
                above.iter_mut().enumerate().for_each(|(i, delta)| *delta = sign(signs, i) * r);
            }
            Head::Weights(_) => {
                let own = stack.layers.len().saturating_sub(1);
                let mut gradient =
                    gradient.get_mut(stack.range(own)).unwrap_or_default().iter_mut();
                for block in stack.layer(own).blocks() {
                    let i = block.neuron();
                    let a = acts.get(first + i).copied().unwrap_or(0.0);
                    let mut delta = 0.0;
                    for (k, v) in block.entries() {
                        let r = out.get(k).copied().unwrap_or(0.0);
                        if let Some(g) = gradient.next() {
                            add(g, a * r);
                        }
                        delta += v * r;
                    }
                    above.get_mut(i).into_iter().for_each(|above| *above = delta);
                }
            }
        }
        for (l, layer) in stack.hidden().iter().enumerate().rev() {
            let before = first.saturating_sub(layer.width);
            let (below, own) = deltas.split_at_mut(first);
            let below = below.get_mut(before..).unwrap_or_default();
            let row = acts.get(before..first).unwrap_or(&[]);
            let mut gradient = gradient.get_mut(stack.range(l)).unwrap_or_default().iter_mut();
            for block in stack.layer(l).blocks() {
                let i = block.neuron();
                let is_open = acts.get(first + i).is_some_and(|a| *a > 0.0);
                let delta = own.get(i).copied().filter(|_| is_open).unwrap_or(0.0);
                for (j, w) in block.entries() {
                    if let Some(g) = gradient.next() {
                        add(g, delta * row.get(j).copied().unwrap_or(0.0));
                    }
                    if let Some(below) = below.get_mut(j) {
                        *below += delta * w;
                    }
                }
            }
            first = before;
        }
    }
}

impl<X: Samples> Backprop for RowByRow<'_, X> {
    type Source = X::Source;

    fn samples(&self) -> usize {
        self.rows.samples()
    }

    fn labels(&self) -> Labels<'_> {
        self.labels
    }

    fn check(&self, stack: &Stack<'_>) -> Result<(), X::Source> {
        let n = self.rows.samples();
        error::length("inputs of the rows", self.rows.inputs(), stack.inputs())?;
        check(n, self.labels, stack).map_err(Error::widen)?;
        error::length("activations", self.acts.len(), stack.activations())
    }

    fn gradient(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        gradient: &mut [f32],
    ) -> Result<f32, X::Source> {
        gradient.fill(0.0);
        self.rows.draw(Some(self.drawn));
        let mut sum = Sum::default();
        for k in batch.rows() {
            sum.add(self.residual(k, stack)?);
            self.backwards(stack, gradient, |sum, g| *sum += g);
        }
        self.drawn = self.drawn.wrapping_add(batch.positions.len() as u64);
        Ok(sum.value())
    }

    fn skip(&mut self, rows: u64) {
        self.drawn = rows;
    }

    fn loss(&mut self, stack: &Stack<'_>, batch: &Batch) -> Result<f32, X::Source> {
        self.rows.draw(None);
        let mut sum = Sum::default();
        for k in batch.rows() {
            sum.add(self.residual(k, stack)?);
        }
        let terms = self.labels.terms(self.rows.samples());
        Ok(sum.value() / (batch.positions.len() as f32 * terms))
    }
}

impl<X: Samples> RowByRow<'_, X> {
    /// Root mean squares of inputs and activations.
    fn sizes(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        out: &mut [f32],
    ) -> Result<(), X::Source> {
        out.fill(0.0);
        self.rows.draw(Some(self.drawn));
        for k in batch.rows() {
            self.residual(k, stack)?;
            out.iter_mut().zip(&*self.acts).for_each(|(sum, a)| *sum += a * a);
        }
        let rows = batch.positions.len().max(1) as f32;
        out.iter_mut().for_each(|size| *size = math::sqrt(*size / rows));
        Ok(())
    }

    /// The derivatives by all weights of a panel.
    fn panel(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        panel: &Panel,
        out: &mut [f32],
    ) -> Result<(), X::Source> {
        let Some(&layer) = stack.layers.get(panel.layer) else { return Ok(()) };
        let below = stack.layers.iter().take(panel.layer).fold(0, |sum, layer| sum + layer.width);
        let is_end = panel.layer >= stack.hidden().len();
        out.fill(0.0);
        self.rows.draw(Some(self.drawn));
        for k in batch.rows() {
            self.residual(k, stack)?;
            self.backwards(stack, &mut [], |_, _| ());
            let Self { acts, deltas, out: residual, .. } = &*self;
            let below = acts.get(below..).unwrap_or(&[]);
            let above = below.get(layer.width..).unwrap_or(&[]);
            let deltas = deltas.get(acts.len() - above.len()..).unwrap_or(&[]);
            for (i, own) in panel.blocks.clone().zip(out.chunks_exact_mut(layer.width.max(1))) {
                let (of_block, others) = if is_end {
                    (below.get(i).copied(), &**residual)
                } else {
                    let is_active = above.get(i).is_some_and(|a| *a > 0.0);
                    (deltas.get(i).copied().filter(|_| is_active), below)
                };
                math::axpy(of_block.unwrap_or(0.0), others.get(..own.len()).unwrap_or(&[]), own);
            }
        }
        Ok(())
    }
}

impl<X: Samples> Panels for RowByRow<'_, X> {
    fn panels(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        layers: Range<usize>,
        memory: &mut PanelMemory<'_>,
        mut see: impl FnMut(Derivatives<'_>),
    ) -> Result<(), X::Source> {
        memory.check(stack).map_err(Error::widen)?;
        let PanelMemory { sizes, panel: room } = memory;
        self.sizes(stack, batch, sizes)?;
        for panel in Panel::all(stack, layers, room.len()) {
            let values = head_mut(room, panel.len(stack))?;
            self.panel(stack, batch, &panel, values)?;
            see(Derivatives { panel, values, sizes });
        }
        Ok(())
    }

    fn adopt(&mut self, stack: &Stack<'_>) -> Result<(), X::Source> {
        self.check(stack)
    }
}

/// Checks that a network has ended and that the labels of `rows` rows fit it: what every
/// [`Backprop::check`] begins with.
///
/// # Errors
/// As [`Backprop::check`].
pub fn check(rows: usize, labels: Labels<'_>, stack: &Stack<'_>) -> Result<()> {
    error::range("layers before the end", usize::from(stack.head() != Head::Open), 1, 1)?;
    labels.check(&mut Host, rows)?;
    error::length("outputs of the network", stack.outputs(), labels.outputs(rows))
}
