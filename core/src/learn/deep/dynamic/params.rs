//! Settings, and the memory that they take.

use super::moments::Moments;
use crate::base::error::{self, Result};
use crate::network::mask::select::BINS;

/// By what weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Salience {
    /// `|w| sqrt(v)`, v the second moment of the gradient.
    #[default]
    Sensitivity,
    /// `|w|`.
    Magnitude,
}

/// By what weights are grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Growth {
    /// The gradient of the loss over the size of the input.
    #[default]
    Gradient,
    /// The same on the rows of ten batches, in place of a momentum of .9, which averages over about as many: that would
    /// take memory for all weights.
    Momentum,
    /// Chance.
    Random,
    /// None is.
    None,
}

/// Which weights are compared with one another, to be dropped or grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Selection {
    /// All of the network: layers become larger and smaller.
    #[default]
    Global,
    /// Those of a layer, which has its share of the weights by ERK; what a layer cannot have the next ones do.
    PerLayer,
}

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// s, nonzeros of the result.
    pub nnz: usize,
    /// F, times as many that training starts from; 1 or more.
    pub factor: f32,
    /// Passes over all rows.
    pub epochs: u32,
    /// Rows of a batch; more than there are count as all.
    pub batch: usize,
    /// The rate after the warm-up.
    pub rate: f32,
    /// First steps, over which the rate rises linearly.
    pub warmup: u32,
    /// Decoupled weight decay (I. Loshchilov, F. Hutter, 2019).
    pub decay: f32,
    /// E, steps from one change of the support to the next.
    pub every: u32,
    /// Share of the steps up to which the support keeps its first size.
    pub hold: f32,
    /// Share of the steps from which on it has its last size.
    pub settled: f32,
    /// How fast it shrinks at first.
    pub power: i32,
    /// Share of the weights that are dropped and grown at first.
    pub exchange: f32,
    /// Share of the steps from which on the support is fixed.
    pub still: f32,
    /// Rows that gradients are taken on for [`Growth::Gradient`]. With 64 to 512 accuracies differed by .2 points at
    /// most, by no rule (MNIST, Fashion-MNIST, Covertype and two tables, four seeds).
    pub rows: usize,
    /// Added to the size of an input, for rows that are mostly within 1.
    pub offset: f32,
    /// By what weights are kept.
    pub salience: Salience,
    /// By what they are grown.
    pub growth: Growth,
    /// Which of them are compared.
    pub selection: Selection,
    /// How the moments of the weights are held.
    pub moments: Moments,
    /// Rows at the end of the data that are not trained on. The result is then the network of least loss on
    /// them, of those at the ends of epochs behind `settled`.
    pub validation: usize,
    /// Such epochs without a new least loss on these rows after which a run ends; 0 for never.
    pub patience: u32,
    /// Whether the last input is 1 in every row, for biases.
    pub constant: bool,
    /// Seed of the start, the order of the rows and those of growth.
    pub seed: u64,
}

impl Params {
    /// Twenty epochs from ten times as many weights.
    #[must_use]
    pub const fn new(nnz: usize) -> Self {
        Self {
            nnz,
            factor: 10.0,
            epochs: 20,
            batch: 128,
            rate: 0.02,
            warmup: 200,
            decay: 0.1,
            every: 100,
            hold: 0.3,
            settled: 0.8,
            power: 2,
            exchange: 0.5,
            still: 0.9,
            rows: 64,
            offset: 0.05,
            salience: Salience::Sensitivity,
            growth: Growth::Gradient,
            selection: Selection::Global,
            moments: Moments::F32,
            validation: 0,
            patience: 0,
            constant: false,
            seed: 0,
        }
    }

    /// Gradual magnitude pruning (M. Zhu, S. Gupta, 2017): set `factor` to that of the dense network.
    #[must_use]
    pub const fn gradual(self) -> Self {
        let (hold, settled, power) = (0.0, 0.8, 3);
        let (salience, growth) = (Salience::Magnitude, Growth::None);
        Self { hold, settled, power, salience, growth, exchange: 0.0, ..self }
    }

    /// `RigL`: as many weights of each layer all the time, the least dropped, those of largest gradient
    /// grown.
    #[must_use]
    pub const fn rigl(self) -> Self {
        let (salience, selection) = (Salience::Magnitude, Selection::PerLayer);
        // Beside which sizes of inputs do not count.
        let offset = 1e6;
        let (factor, exchange, still) = (1.0, 0.3, 0.75);
        Self { factor, exchange, still, salience, selection, offset, ..self }
    }

    /// `SET`: the same with random growth.
    #[must_use]
    pub const fn set(self) -> Self {
        Self { growth: Growth::Random, still: 1.0, ..self.rigl() }
    }

    /// After sparse momentum (T. Dettmers, L. Zettlemoyer, 2019): as many weights all the time, the least dropped, those
    /// of largest [`Growth::Momentum`] grown. All layers are compared together, where theirs lose the same share each and
    /// grow by their mean momentum.
    #[must_use]
    pub const fn momentum(self) -> Self {
        let (growth, selection) = (Growth::Momentum, Selection::Global);
        Self { growth, selection, exchange: 0.5, still: 1.0, ..self.rigl() }
    }

    /// The most weights that there are at a time, of a network that has room for `all`.
    #[must_use]
    pub fn most(&self, all: usize) -> usize {
        let start = (f64::from(self.factor) * self.nnz as f64 + 0.5) as usize;
        start.max(self.nnz).min(all)
    }

    /// Weights that the best network on the validation rows may have, of so many layers: s, and those that
    /// hand on a constant. Each takes 2 words beside [`words`].
    #[must_use]
    pub const fn best_room(&self, layers: usize) -> usize {
        if self.validation > 0 { self.nnz.saturating_add(self.fixed(layers)) } else { 0 }
    }

    /// Whether weights are grown by the gradients of those that are not there, panel by panel.
    #[must_use]
    pub fn grows(&self) -> bool {
        matches!(self.growth, Growth::Gradient | Growth::Momentum)
    }

    /// Rows that gradients are taken on for growth.
    pub(super) const fn growth_rows(&self) -> usize {
        match self.growth {
            Growth::Momentum => self.batch.saturating_mul(10),
            _ => self.rows,
        }
    }

    /// Weights that hand on a constant, and do not count.
    pub(super) const fn fixed(&self, layers: usize) -> usize {
        if self.constant { layers.saturating_sub(1) } else { 0 }
    }

    pub(super) fn check(&self, rows: usize) -> Result<()> {
        let &Self { rate, decay, offset, factor, .. } = self;
        error::range("rows", rows, 1, u32::MAX as usize)?;
        error::range("nonzeros", self.nnz, 1, u32::MAX as usize)?;
        error::range("epochs", self.epochs as usize, 1, u32::MAX as usize)?;
        error::range("validation rows", self.validation, 0, rows - 1)?;
        error::range("rows of a batch", self.batch, 1, usize::MAX)?;
        error::range("steps between changes", self.every as usize, 1, u32::MAX as usize)?;
        error::range("rows for growth", self.rows, 1, usize::MAX)?;
        error::finite("rate, decay, offset or factor", &[rate, decay, offset, factor])?;
        let holds = |what, is_so: bool| error::range(what, usize::from(is_so), 1, 1);
        holds("rate above 0", rate > 0.0)?;
        holds("weight decay of 0 or more, and below 1 over the rate", {
            decay >= 0.0 && decay * rate < 1.0
        })?;
        holds("offset of 0 or more", offset >= 0.0)?;
        holds("factor of 1 or more", factor >= 1.0)?;
        let Self { hold, settled, exchange, still, .. } = *self;
        let share = |x: f32| (0.0..=1.0).contains(&x);
        holds("shares of the steps from 0 to 1", [hold, settled, still].into_iter().all(share))?;
        holds("hold before settled", hold < settled)?;
        holds("exchange from 0 to 1", share(exchange))
    }
}

/// Words of the memory of [`super::run`], beside the network: with such moments, for as many weights as the stack has
/// room for, [`Params::most`] or more, so many activations ([`super::Stack::activations`]) and outputs, and panels of
/// `panel` numbers, which lie where the gradient does. With validation rows there are 2 times [`Params::best_room`] more.
#[must_use]
pub const fn words(
    moments: Moments,
    most: usize,
    activations: usize,
    outputs: usize,
    panel: usize,
) -> usize {
    let scratch = if most > panel { most } else { panel };
    let weights = most.saturating_mul(moments.words()).saturating_add(scratch);
    let neurons = activations.saturating_add(outputs);
    let bits = neurons.div_ceil(32).saturating_mul(4);
    weights.saturating_add(activations).saturating_add(bits).saturating_add(BINS)
}
