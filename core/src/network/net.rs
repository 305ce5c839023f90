//! A network of one hidden layer: sparse weights from the inputs, and a head, which is fixed signs
//! or sparse weights.

use crate::base::error::{self, Error, Result};
use crate::network::gates::{Empty, Gates, Signs};
use crate::network::weights::Weights;

/// How outputs come from the hidden neurons: `W` is the output weights, or in a [`Shape`] the
/// number of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head<W> {
    /// One output, the sum of the neurons with these signs; training fuses them with the weights,
    /// `w_i = v_i u_i`.
    Signs(Signs),
    /// c outputs with weights of their own.
    Weights(W),
}

/// Sizes of a network, and its kind of head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// d, inputs.
    pub inputs: usize,
    /// m, hidden neurons.
    pub hidden: usize,
    /// Signs, or c.
    pub head: Head<usize>,
}

impl Shape {
    /// Of a network of one output, whose output weights are these signs.
    #[must_use]
    pub const fn signed(inputs: usize, hidden: usize, signs: Signs) -> Self {
        Self { inputs, hidden, head: Head::Signs(signs) }
    }

    /// Of a network with weights to so many outputs.
    #[must_use]
    pub const fn weighted(inputs: usize, hidden: usize, outputs: usize) -> Self {
        Self { inputs, hidden, head: Head::Weights(outputs) }
    }

    /// Output weights that a neuron may have: c, or 0 where they are signs.
    #[must_use]
    pub const fn output_weights(&self) -> usize {
        match self.head {
            Head::Signs(_) => 0,
            Head::Weights(outputs) => outputs,
        }
    }

    /// m d, the weights from the inputs.
    #[must_use]
    pub const fn input_weights(&self) -> usize {
        self.hidden.saturating_mul(self.inputs)
    }
}

/// Entries of a network that lie in one buffer: those of W, and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) first: usize,
    pub(crate) all: usize,
}

/// Entries that a network is written to: room for indices, and for as many values.
#[derive(Debug)]
pub struct EntriesMut<'a> {
    /// Flat indices.
    pub index: &'a mut [u32],
    /// Their values.
    pub value: &'a mut [f32],
}

impl EntriesMut<'_> {
    /// The same entries, for a shorter time.
    pub fn reborrow(&mut self) -> EntriesMut<'_> {
        EntriesMut { index: self.index, value: self.value }
    }
}

/// A network of one hidden layer, borrowed: W of size m×d, and its head.
///
/// ```
/// use tamis::network::{gates::Signs, net::Network, weights::Weights};
/// let w = Weights::new(3, 2, &[0, 4], &[1.0, 2.0])?;
/// let one = Network::signed(w, Signs::Balanced);
/// assert_eq!((one.outputs(), one.nnz()), (1, 2));
/// // Ten outputs: output k of neuron i has the flat index 10 i + k.
/// let ten = Network::new(w, Weights::new(10, 2, &[7, 12], &[1.0, -1.0])?)?;
/// assert_eq!((ten.outputs(), ten.nnz()), (10, 4));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network<'a> {
    w: Weights<'a>,
    head: Head<Weights<'a>>,
}

impl<'a> Network<'a> {
    /// A network with output weights, block i of either side belonging to neuron i.
    ///
    /// # Errors
    /// [`Error::Length`] if the sides do not have the same number of neurons.
    pub fn new(w: Weights<'a>, wt: Weights<'a>) -> Result<Self> {
        error::length("neurons of the output weights", wt.hidden(), w.hidden())?;
        Ok(Self { w, head: Head::Weights(wt) })
    }

    /// A network of one output, whose output weights are signs that `w` is fused with.
    #[must_use]
    pub const fn signed(w: Weights<'a>, signs: Signs) -> Self {
        Self { w, head: Head::Signs(signs) }
    }

    /// A network without weights.
    #[must_use]
    pub const fn empty(shape: Shape) -> Self {
        let head = match shape.head {
            Head::Signs(signs) => Head::Signs(signs),
            Head::Weights(outputs) => Head::Weights(Weights::empty(outputs, shape.hidden)),
        };
        Self { w: Weights::empty(shape.inputs, shape.hidden), head }
    }

    /// A network whose entries lie at the beginning of longer slices, in order by construction:
    /// those of W, then those of Wt, with indices of their own matrix.
    pub(crate) fn cut(shape: Shape, index: &'a [u32], value: &'a [f32], count: Count) -> Self {
        let (index, value) =
            (index.get(..count.all).unwrap_or(&[]), value.get(..count.all).unwrap_or(&[]));
        let (index, out_index) = index.split_at_checked(count.first).unwrap_or_default();
        let (value, out_value) = value.split_at_checked(count.first).unwrap_or_default();
        let head = match shape.head {
            Head::Signs(signs) => Head::Signs(signs),
            Head::Weights(outputs) => {
                Head::Weights(Weights::trusted(outputs, shape.hidden, out_index, out_value))
            }
        };
        Self { w: Weights::trusted(shape.inputs, shape.hidden, index, value), head }
    }

    /// The gates of the network itself, `1[X w_i > 0]`, inactive where a neuron has no weights;
    /// `round` as in [`Gates::of`].
    pub const fn gates(&self, round: u32) -> Gates<'a> {
        let signs = match self.head {
            Head::Signs(signs) => signs,
            Head::Weights(_) => Signs::Positive,
        };
        Gates::of(self.w, signs, Empty::Freeze, 0, round)
    }

    /// W, the weights from the inputs.
    #[must_use]
    pub const fn w(&self) -> Weights<'a> {
        self.w
    }

    /// How the outputs come from the neurons.
    #[must_use]
    pub const fn head(&self) -> Head<Weights<'a>> {
        self.head
    }

    /// Wt, the weights to the outputs: flat index `i c + k` for output k of neuron i. Without
    /// outputs where they are signs.
    #[must_use]
    pub const fn wt(&self) -> Weights<'a> {
        match self.head {
            Head::Signs(_) => Weights::empty(0, self.w.hidden()),
            Head::Weights(wt) => wt,
        }
    }

    /// Sizes and kind of head.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        let head = match self.head {
            Head::Signs(signs) => Head::Signs(signs),
            Head::Weights(wt) => Head::Weights(wt.inputs()),
        };
        Shape { inputs: self.w.inputs(), hidden: self.w.hidden(), head }
    }

    /// c, outputs.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        match self.head {
            Head::Signs(_) => 1,
            Head::Weights(wt) => wt.inputs(),
        }
    }

    /// Nonzeros, those to the outputs included.
    #[must_use]
    pub const fn nnz(&self) -> usize {
        self.w.nnz() + self.wt().nnz()
    }

    /// Whether there is a weight that is not 0.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.w.is_live() || self.wt().is_live()
    }

    /// Neurons that have weights from the inputs.
    #[must_use]
    pub fn live(&self) -> usize {
        self.w.blocks().count()
    }

    /// Checks that this is a network of `hidden` neurons of `inputs` inputs.
    ///
    /// # Errors
    /// [`Error::Length`] if it is not.
    pub fn check(&self, inputs: usize, hidden: usize) -> Result<()> {
        self.w.check(inputs, hidden)
    }

    /// Checks that this network has a shape, and numbers as weights.
    pub(crate) fn check_shape(&self, shape: Shape) -> Result<()> {
        self.w.check(shape.inputs, shape.hidden)?;
        let own = self.shape();
        error::length("outputs with weights", own.output_weights(), shape.output_weights())?;
        if own.head != shape.head {
            return Err(Error::Range { what: "signs of the network", min: 0, max: 0, got: 1 });
        }
        self.wt().check(shape.output_weights(), shape.hidden)?;
        error::finite("weights of the network", self.w.value())?;
        error::finite("output weights of the network", self.wt().value())
    }

    /// Copies all entries, W first, to the beginning of longer buffers; how many.
    pub(crate) fn copy_to(&self, to: EntriesMut<'_>) -> Count {
        let sides = [self.w, self.wt()];
        let EntriesMut { index, value } = to;
        debug_assert!(self.nnz() <= index.len().min(value.len()), "room for the network");
        let indices = sides.iter().flat_map(Weights::index);
        let values = sides.iter().flat_map(Weights::value);
        index.iter_mut().zip(indices).for_each(|(to, from)| *to = *from);
        value.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        Count { first: self.w.nnz(), all: self.nnz() }
    }
}
