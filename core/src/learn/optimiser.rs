//! Steps along a gradient: SGD with momentum, and Adam (D. Kingma, J. Ba, 2015).

use crate::base::error::{self, Result};
use crate::base::math::sqrt;

/// Decay of the first moment.
const BETA1: f32 = 0.9;
/// Decay of the second moment.
const BETA2: f32 = 0.999;

/// How a gradient becomes a step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Optimiser {
    /// Stochastic gradient descent: `b <- momentum b + g`, `w <- w + rate b`, g the negative
    /// derivative.
    Sgd {
        /// From 0 up to but not 1.
        momentum: f32,
    },
    /// Adam with betas 0.9 and 0.999 and epsilon 1e-8.
    Adam,
}

impl Optimiser {
    /// Numbers that it holds per weight.
    #[must_use]
    pub const fn moments(&self) -> usize {
        match self {
            Self::Sgd { .. } => 1,
            Self::Adam => 2,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let Self::Sgd { momentum } = *self else { return Ok(()) };
        error::finite("momentum", &[momentum])?;
        let fits = (0.0..1.0).contains(&momentum);
        error::range("momentum below 1", usize::from(fits), 1, 1)
    }
}

/// Adam's two moments of a weight after some steps: what is left of their start at 0.
///
/// ```
/// use tamis::learn::optimiser::Decay;
/// let (mut decay, mut w, mut mean, mut square) = (Decay::START, 1.0, 0.0, 0.0);
/// decay.step();
/// decay.update(&mut w, 5.0, &mut mean, &mut square, 0.25);
/// assert!((w - 1.25_f32).abs() < 1e-6); // the first step is one rate long, whatever the gradient's size
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    first: f32,
    second: f32,
    /// Keeps a step finite where the second moment is 0.
    epsilon: f32,
    /// The longest step in units of the rate.
    longest: f32,
}

impl Decay {
    /// Before the first step, which no scale of the gradient changes; four rates are the longest,
    /// what the two decays allow for.
    pub const START: Self = Self { first: 1.0, second: 1.0, epsilon: 1e-30, longest: 4.0 };

    /// The same with the epsilon of `PyTorch`, 1e-8, and steps of any length.
    pub const PYTORCH: Self = Self { epsilon: 1e-8, longest: f32::INFINITY, ..Self::START };

    /// One more step, whose weights are updated behind this.
    pub fn step(&mut self) {
        (self.first, self.second) = (self.first * BETA1, self.second * BETA2);
    }

    /// Moves a weight along `gradient`, the negative derivative of the loss, by about `rate`.
    #[inline]
    pub fn update(
        &self,
        weight: &mut f32,
        gradient: f32,
        mean: &mut f32,
        square: &mut f32,
        rate: f32,
    ) {
        *mean = BETA1 * *mean + (1.0 - BETA1) * gradient;
        *square = BETA2 * *square + (1.0 - BETA2) * gradient * gradient;
        let root = sqrt(*square / (1.0 - self.second));
        let step = (*mean / (1.0 - self.first)) / (root + self.epsilon);
        // Squares below the range of floats count as 0.
        *weight += rate * step.clamp(-self.longest, self.longest);
    }
}
