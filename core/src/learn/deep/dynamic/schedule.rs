//! What changes with the steps: the rate, how many weights there may be, how many are exchanged.

use super::params::{Growth, Params};
use crate::base::math;

/// What a change of the support leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// Weights after dropping.
    pub(super) keep: usize,
    /// Weights after growing.
    pub(super) all: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule<'p> {
    params: &'p Params,
    /// Weights at the start.
    start: usize,
    steps: u64,
}

impl<'p> Schedule<'p> {
    pub(super) const fn new(params: &'p Params, start: usize, steps: u64) -> Self {
        Self { params, start, steps }
    }

    /// The share of the steps that are done.
    fn share(&self, step: u64) -> f32 {
        step as f32 / self.steps.max(1) as f32
    }

    /// `(1 + cos(π x)) / 2`.
    fn cosine(x: f32) -> f32 {
        0.5 * (1.0 + math::sin_cos(core::f32::consts::PI * x).1)
    }

    pub(super) fn rate(&self, step: u64) -> f32 {
        let grown = (step + 1) as f32 / self.params.warmup.max(1) as f32;
        self.params.rate * grown.min(1.0) * Self::cosine(self.share(step))
    }

    /// Whether the support has its last size after so many steps.
    pub(super) fn is_settled(&self, steps: u64) -> bool {
        self.share(steps) >= self.params.settled
    }

    pub(super) fn target(&self, step: u64) -> Target {
        let Params { nnz, hold, settled, power, exchange, still, growth, .. } = *self.params;
        let x = self.share(step);
        let left = 1.0 - ((x - hold) / (settled - hold)).clamp(0.0, 1.0);
        let over = self.start.saturating_sub(nnz) as f32;
        let mut shrunk = over;
        (0..power).for_each(|_| shrunk *= left);
        let all = nnz + (shrunk + 0.5) as usize;
        let share = if x < still { exchange * Self::cosine(x / still) } else { 0.0 };
        let exchanged = if growth == Growth::None { 0 } else { (share * all as f32) as usize };
        Target { keep: all - exchanged.min(all), all }
    }
}
