//! Networks of several hidden layers: built layer by layer, then fitted together.
//!
//! A hidden layer is trained by any recipe as the one hidden layer of a network of its own, on what
//! the layers before it make of the rows ([`StackedRows`]); its output weights are then given back
//! (M. Pilanci, T. Ergen and others, layer-wise training). [`tune`] fits all layers together in the
//! end.
//!
//! ```text
//! for each hidden layer:  rows ─> Stack so far ─> StackedRows ─> operator ─> recipe, share of s ─> Stack::push
//! the last one:           Stack::end_sum or Stack::end_weights ─> tune::run
//! ```

pub mod backprop;
pub mod dynamic;
pub mod shrink;
pub mod tune;

use crate::base::bits::sign;
use crate::base::error::{self, Error, Result};
use crate::data::samples::Samples;
use crate::network::gates::Signs;
use crate::network::weights::Weights;
use crate::operator::sensing::head_mut;

/// The most layers of a [`Stack`], that of the outputs included.
pub const MAX_LAYERS: usize = 8;

/// How outputs come from the last hidden layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Head<'a> {
    /// There are no outputs yet: what the last layer makes of a row is a row for the next one.
    Open,
    /// One output, the sum of the neurons; those whose bit is set are taken away. Bits that are
    /// missing are not set.
    Sum(&'a [u32]),
    /// So many outputs, by weights of their own: the last layer of the stack.
    Weights(usize),
}

/// A layer: its entries lie before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layer {
    width: usize,
    neurons: usize,
    end: usize,
}

/// The layers of a network, one behind the other in the caller's memory: flat indices and values, 8
/// bytes a weight.
///
/// ```
/// use tamis::{learn::deep::Stack, network::gates::Signs, network::weights::Weights};
/// // f(x) = relu(relu(x_0) - 2 relu(-x_1)) + relu(relu(-x_1))
/// let (mut index, mut value) = ([0; 5], [0.0; 5]);
/// let mut stack = Stack::new(2, &mut index, &mut value);
/// stack.push(Weights::new(2, 2, &[0, 3], &[1.0, -1.0])?, Signs::Positive)?;
/// stack.push(Weights::new(2, 2, &[0, 1, 3], &[1.0, -2.0, 1.0])?, Signs::Positive)?;
/// stack.end_sum(&[])?;
/// let mut out = [0.0];
/// stack.predict(&[3.0, -1.0], &mut [0.0; 6], &mut out)?;
/// assert_eq!((out, stack.nnz()), ([2.0], 5));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Stack<'a> {
    inputs: usize,
    index: &'a mut [u32],
    value: &'a mut [f32],
    layers: heapless::Vec<Layer, MAX_LAYERS>,
    head: Head<'a>,
}

/// A network without room, and the room.
struct Parts<'a> {
    stack: Stack<'a>,
    index: &'a mut [u32],
    value: &'a mut [f32],
}

impl<'a> Stack<'a> {
    /// No layer yet, for rows of `inputs` numbers; the shorter buffer says how many weights there
    /// is room for.
    #[must_use]
    pub fn new(inputs: usize, index: &'a mut [u32], value: &'a mut [f32]) -> Self {
        Self { inputs, index, value, layers: heapless::Vec::new(), head: Head::Open }
    }

    /// Adds a hidden layer. A trainer's weights are those of neurons times output signs: the signs
    /// are taken out of them.
    ///
    /// # Errors
    /// [`Error::Length`] if the layer does not take what the one before it gives, or for weights
    /// that there is no room for; [`Error::Range`] for too many layers, or a layer behind the end.
    pub fn push(&mut self, w: Weights<'_>, signs: Signs) -> Result<()> {
        error::length("inputs of the layer", w.inputs(), self.width())?;
        error::range("hidden layers", self.layers.len(), 0, self.free().min(MAX_LAYERS - 2))?;
        let start = self.nnz();
        self.add(w)?;
        for (value, &j) in self.values_mut().iter_mut().skip(start).zip(w.index()) {
            *value *= signs.sign(j as usize / w.inputs().max(1));
        }
        Ok(())
    }

    /// Ends the network with the sum of its last neurons, see [`Head::Sum`].
    ///
    /// # Errors
    /// [`Error::Range`] if there is no layer, or the network has ended.
    pub fn end_sum(&mut self, signs: &'a [u32]) -> Result<()> {
        error::range("layers before the end", self.layers.len(), 1, self.free())?;
        self.head = Head::Sum(signs);
        Ok(())
    }

    /// Ends the network with weights to outputs: output k of neuron i is flat index `i c + k`. Without a
    /// layer before, neurons are inputs, and the network is linear.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn end_weights(&mut self, wt: Weights<'_>) -> Result<()> {
        error::range("layers before the end", self.layers.len(), 0, self.free())?;
        error::length("neurons of the last layer", wt.hidden(), self.width())?;
        self.add(wt)?;
        self.head = Head::Weights(wt.inputs());
        Ok(())
    }

    /// The most layers that there may be before another one.
    fn free(&self) -> usize {
        if self.head == Head::Open { MAX_LAYERS - 1 } else { 0 }
    }

    fn add(&mut self, w: Weights<'_>) -> Result<()> {
        let start = self.nnz();
        let end = start.saturating_add(w.nnz());
        let room = self.index.len().min(self.value.len());
        let full = Error::Length { what: "room for weights", expected: end, got: room };
        let (Some(index), Some(value)) =
            (self.index.get_mut(start..end), self.value.get_mut(start..end))
        else {
            return Err(full);
        };
        index.copy_from_slice(w.index());
        value.copy_from_slice(w.value());
        let layer = Layer { width: w.inputs(), neurons: w.hidden(), end };
        self.layers.push(layer).map_err(|_| full)
    }

    /// How the network ends.
    #[must_use]
    pub const fn head(&self) -> Head<'a> {
        self.head
    }

    /// Numbers of a row.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// c, numbers that the network gives; those of the last layer while it is open.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self.head {
            Head::Open => self.width(),
            Head::Sum(_) => 1,
            Head::Weights(outputs) => outputs,
        }
    }

    /// Neurons of the last hidden layer, or the inputs where there is none.
    #[must_use]
    pub fn width(&self) -> usize {
        self.hidden().last().map_or(self.inputs, |layer| layer.neurons)
    }

    /// Nonzeros of all layers.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.end)
    }

    /// Weights that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.index.len().min(self.value.len())
    }

    /// Numbers that a row and all neurons make: what [`Self::predict`] works in.
    #[must_use]
    pub fn activations(&self) -> usize {
        self.hidden().iter().fold(self.inputs, |sum, layer| sum.saturating_add(layer.neurons))
    }

    /// The hidden layers, then the output weights where there are such.
    pub fn layers(&self) -> impl Iterator<Item = Weights<'_>> {
        (0..self.layers.len()).map(|l| self.layer(l))
    }

    /// The values of all layers, in order.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        self.value.get(..self.nnz()).unwrap_or(&[])
    }

    /// The values of all layers, in order, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        let nnz = self.nnz();
        self.value.get_mut(..nnz).unwrap_or_default()
    }

    /// Keeps the weights that `keep` says so of, by their places in [`Self::values`]; layers stay
    /// as wide as they are.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let (mut at, mut len) = (0, 0);
        for layer in &mut self.layers {
            for from in at..layer.end {
                if keep(from) && from < self.index.len() && from < self.value.len() {
                    self.index.copy_within(from..=from, len);
                    self.value.copy_within(from..=from, len);
                    len += 1;
                }
            }
            at = layer.end;
            layer.end = len;
        }
    }

    /// The network as it is, and the room behind its weights.
    fn parts(&mut self) -> Parts<'_> {
        let nnz = self.nnz().min(self.room());
        let (own, index) = self.index.split_at_mut(nnz);
        let (values, value) = self.value.split_at_mut(nnz);
        let Self { inputs, head, .. } = *self;
        let stack = Stack { inputs, index: own, value: values, layers: self.layers.clone(), head };
        Parts { stack, index, value }
    }

    fn hidden(&self) -> &[Layer] {
        let outputs = usize::from(matches!(self.head, Head::Weights(_)));
        self.layers.get(..self.layers.len().saturating_sub(outputs)).unwrap_or(&[])
    }

    /// Where the entries of layer `l` lie.
    fn range(&self, l: usize) -> core::ops::Range<usize> {
        let start = l.checked_sub(1).and_then(|l| self.layers.get(l)).map_or(0, |layer| layer.end);
        start..self.layers.get(l).map_or(start, |layer| layer.end)
    }

    fn layer(&self, l: usize) -> Weights<'_> {
        let (index, value) = (self.index.get(self.range(l)), self.value.get(self.range(l)));
        let Some(layer) = self.layers.get(l) else { return Weights::empty(self.inputs, 0) };
        // Checked as they came in.
        Weights::trusted(layer.width, layer.neurons, index.unwrap_or(&[]), value.unwrap_or(&[]))
    }

    /// The activations of all hidden layers behind the row that `acts` begins with.
    fn activate(&self, acts: &mut [f32]) {
        let mut before = 0;
        for (layer, w) in self.hidden().iter().zip(self.layers()) {
            let (old, new) = acts.split_at_mut((before + layer.width).min(acts.len()));
            let row = old.get(before..).unwrap_or(&[]);
            let new = new.get_mut(..layer.neurons).unwrap_or_default();
            new.fill(0.0);
            for block in w.blocks() {
                if let Some(a) = new.get_mut(block.neuron()) {
                    let z = block.dot(row);
                    *a = if z > 0.0 { z } else { 0.0 };
                }
            }
            before += layer.width;
        }
    }

    /// Outputs of all activations.
    fn output(&self, acts: &[f32], out: &mut [f32]) {
        let last = acts.get(acts.len() - self.width()..).unwrap_or(&[]);
        out.fill(0.0);
        match self.head {
            Head::Open => out.copy_from_slice(last),
            Head::Sum(signs) => {
                let sum = last.iter().enumerate().fold(0.0, |sum, (i, a)| sum + sign(signs, i) * a);
                out.iter_mut().for_each(|out| *out = sum);
            }
            Head::Weights(_) => {
                for block in self.layer(self.layers.len().saturating_sub(1)).blocks() {
                    let a = last.get(block.neuron()).copied().unwrap_or(0.0);
                    for (k, v) in block.entries() {
                        if let Some(out) = out.get_mut(k) {
                            *out += v * a;
                        }
                    }
                }
            }
        }
    }

    /// The outputs of a row. `scratch` has room for [`Self::activations`] numbers.
    ///
    /// # Errors
    /// [`Error::Length`] for a row, a scratch or outputs of another length.
    pub fn predict(&self, row: &[f32], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        error::length("row", row.len(), self.inputs)?;
        error::length("outputs", out.len(), self.outputs())?;
        let acts = head_mut(scratch, self.activations())?;
        head_mut(acts, row.len())?.copy_from_slice(row);
        self.activate(acts);
        self.output(acts, out);
        Ok(())
    }
}

/// Rows as the layers of an open [`Stack`] give them on: samples for the layer above, made on
/// demand.
///
/// ```
/// use tamis::{learn::deep::{Stack, StackedRows}, network::gates::Signs, data::samples::{Rows, Samples}, network::weights::Weights};
/// let (mut index, mut value) = ([0; 2], [0.0; 2]);
/// let mut stack = Stack::new(2, &mut index, &mut value);
/// stack.push(Weights::new(2, 3, &[0, 3], &[1.0, -1.0])?, Signs::Positive)?;
/// let mut scratch = [0.0; 5];
/// let mut rows = StackedRows::new(Rows::new(&[3.0, -1.0, -2.0, 4.0], 2)?, &stack, &mut scratch)?;
/// let mut row = [0.0; 3];
/// rows.row(0, &mut row)?;
/// assert_eq!((rows.inputs(), row), (3, [3.0, 1.0, 0.0]));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct StackedRows<'s, X> {
    rows: X,
    stack: &'s Stack<'s>,
    scratch: &'s mut [f32],
}

impl<'s, X: Samples> StackedRows<'s, X> {
    /// `scratch` has room for [`Stack::activations`] numbers.
    ///
    /// # Errors
    /// [`Error::Length`] if rows or scratch do not fit the stack; [`Error::Range`] for a stack that
    /// has ended.
    pub fn new(rows: X, stack: &'s Stack<'s>, scratch: &'s mut [f32]) -> Result<Self> {
        error::range("layers before the end", stack.layers.len(), 0, stack.free())?;
        error::length("inputs of the rows", rows.inputs(), stack.inputs())?;
        let scratch = head_mut(scratch, stack.activations())?;
        Ok(Self { rows, stack, scratch })
    }
}

impl<X: Samples> Samples for StackedRows<'_, X> {
    type Source = X::Source;

    fn samples(&self) -> usize {
        self.rows.samples()
    }

    fn inputs(&self) -> usize {
        self.stack.width()
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<(), X::Source> {
        error::length("row", out.len(), self.inputs())?;
        self.rows.row(k, head_mut(self.scratch, self.stack.inputs())?)?;
        self.stack.activate(self.scratch);
        let first = self.scratch.len() - out.len();
        out.copy_from_slice(self.scratch.get(first..).unwrap_or(&[]));
        Ok(())
    }

    fn draw(&mut self, draw: Option<u64>) {
        self.rows.draw(draw);
    }
}

/// Of s nonzeros, those that hidden layer `layer` may take, `kept` of them being taken by the
/// layers before it: what is left is split evenly over the layers left, but no layer gets more than
/// it has room for where another one has room.
///
/// `rooms` are the weights that each hidden layer has room for, the output weights, if there are
/// such, counted with the last. The last layer gets all that is left.
///
/// ```
/// use tamis::learn::deep::share;
/// assert_eq!([share(100, &[6400, 2048], 0, 0), share(100, &[6400, 2048], 1, 50)], [50, 50]);
/// // A layer that left some of its share gives it to the next one; a small layer gives to a large one.
/// assert_eq!([share(100, &[6400, 2048], 1, 30), share(100, &[6400, 20], 0, 0)], [70, 80]);
/// ```
#[must_use]
pub fn share(nnz: usize, rooms: &[usize], layer: usize, kept: usize) -> usize {
    let left = nnz.saturating_sub(kept);
    let (own, behind) = match rooms.get(layer..) {
        Some([own, behind @ ..]) => (*own, behind),
        _ => (0, &[][..]),
    };
    let even = left.div_ceil(behind.len() + 1);
    let most = own.min(left.saturating_sub(behind.len()));
    let room = behind.iter().fold(0, |sum: usize, room| sum.saturating_add(*room));
    even.max(left.saturating_sub(room)).min(most)
}
