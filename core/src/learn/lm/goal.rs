//! What a search looks for.

#[cfg(doc)]
use super::{Params, Progress, second_slots, slots};
#[cfg(doc)]
use crate::base::budget::Recovery;
use crate::base::dims::Dims;
#[cfg(doc)]
use crate::network::gates::Signs;

/// What a search looks for: sizes, and how the outputs come from the neurons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal<H> {
    /// Rows, inputs, neurons m at most, and weights s at most, those to outputs included.
    pub dims: Dims,
    /// [`OneOutput`], [`SeveralOutputs`] or [`TwoLayers`].
    pub head: H,
}

/// One output, the sum of the neurons with the signs of [`Params::signs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneOutput;

/// c outputs, with a weight from any neuron to any output: `sum_i relu(w_i · x) wt_i`. Labels are
/// n×c, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeveralOutputs;

/// One output, the sum of the neurons of a second hidden layer:
/// `sum_k relu(sum_i V_ik relu(w_i · x))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoLayers {
    /// Neurons of the second layer at most; `dims.hidden` are those of the first.
    pub second: usize,
}

impl Goal<OneOutput> {
    /// A network of one output: the operator should have [`slots`] blocks, over which the result is
    /// spread; block 0 is empty with [`Signs::Free`]. Memory is [`Recovery::new`].
    #[must_use]
    pub const fn one_output(dims: Dims) -> Self {
        Self { dims, head: OneOutput }
    }
}

impl Goal<SeveralOutputs> {
    /// A network of several outputs, whatever [`Params::signs`]; the operator should have
    /// `slots(m, Signs::Positive)` blocks. A network needs two weights: with `dims.nnz` of 1 the
    /// result is empty. Memory is [`Recovery::factored`].
    ///
    /// ```
    /// use core::ops::ControlFlow::Continue;
    /// use tamis::base::{budget::{Recovery, gated_words}, dims::Dims};
    /// use tamis::data::samples::{NormalRows, Samples};
    /// use tamis::{learn::{lm, start::Start}, network::gates::Signs, operator::gated::Gated};
    /// // y_0 = 2 relu(x_0 - x_3), y_1 = relu(x_2) - relu(x_0 - x_3)
    /// let mut x = NormalRows::new(1, 300, 6);
    /// let mut labels = [0.0; 2 * 300];
    /// for (k, y) in labels.chunks_mut(2).enumerate() {
    ///     let mut row = [0.0; 6];
    ///     x.row(k, &mut row)?;
    ///     let (a, b) = ((row[0] - row[3]).max(0.0), row[2].max(0.0));
    ///     y.copy_from_slice(&[2.0 * a, b - a]);
    /// }
    /// const SLOTS: usize = lm::slots(2, Signs::Positive);
    /// let mut rows = [0.0; gated_words(6, SLOTS)];
    /// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows)?;
    /// const DIMS: Dims = Dims::new(300, 6, 2, 6);
    /// let mut memory = [0; Recovery::factored(DIMS, 2, 1, 606).words()];
    /// let (goal, params) = (lm::Goal::several_outputs(DIMS), lm::Params::DEFAULT);
    /// let (start, observe) = (Start::Zero, |_: &lm::Progress<'_>| Continue(()));
    /// let trained = lm::run(&mut sensing, &labels, goal, start, &params, &mut memory, observe)?;
    /// let network = trained.network;
    /// assert!(trained.info.exact && (network.w().nnz(), network.wt().nnz()) == (3, 3));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub const fn several_outputs(dims: Dims) -> Self {
        Self { dims, head: SeveralOutputs }
    }
}

impl Goal<TwoLayers> {
    /// A network of two hidden layers for one label a row, which should not be below 0 anywhere.
    ///
    /// The result is W and V, the latter with `second` outputs: weight `i m + k` leads from neuron
    /// i of the first layer to neuron k of m of the second one. The operator must be ready for
    /// [`second_slots`] outputs, the search begins with [`Params::deep_search_rows`], and `live` of
    /// [`Progress`] counts both layers. It starts from zero or from a checkpoint. Memory is
    /// [`Recovery::deep`].
    ///
    /// ```
    /// use core::ops::ControlFlow::Continue;
    /// use tamis::base::{budget::{Recovery, gated_words}, dims::Dims};
    /// use tamis::data::samples::{NormalRows, Samples};
    /// use tamis::{learn::{lm, start::Start}, network::gates::Signs, operator::gated::Gated};
    /// // y = relu(relu(x_0 - x_3) - relu(x_2)) + 2 relu(x_2)
    /// let mut x = NormalRows::new(1, 400, 6);
    /// let mut labels = [0.0; 400];
    /// for (k, y) in labels.iter_mut().enumerate() {
    ///     let mut row = [0.0; 6];
    ///     x.row(k, &mut row)?;
    ///     let (a, b) = ((row[0] - row[3]).max(0.0), row[2].max(0.0));
    ///     *y = (a - b).max(0.0) + 2.0 * b;
    /// }
    /// const SLOTS: usize = lm::slots(2, Signs::Positive);
    /// let mut rows = [0.0; gated_words(6, SLOTS)];
    /// let mut sensing = Gated::new(x, SLOTS, 1, &mut rows)?;
    /// const DIMS: Dims = Dims::new(400, 6, 2, 6);
    /// let mut memory = [0; Recovery::deep(DIMS, SLOTS, lm::second_slots(2), 1, 806).words()];
    /// let (goal, params) = (lm::Goal::two_layers(DIMS, 2), lm::Params::DEFAULT);
    /// let observe = |_: &lm::Progress<'_>| Continue(());
    /// let start = Start::Zero;
    /// let trained = lm::run(&mut sensing, &labels, goal, start, &params, &mut memory, observe)?;
    /// let network = trained.network;
    /// assert!(trained.info.exact && (network.w().nnz(), network.wt().nnz()) == (3, 3));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub const fn two_layers(dims: Dims, second: usize) -> Self {
        Self { dims, head: TwoLayers { second } }
    }
}
