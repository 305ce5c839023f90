//! How a run changes with its steps.

use super::params::Params;
use crate::base::math;

/// Learning rate, size of the support and drop rate as functions of the step.
pub(super) struct Schedule<'p> {
    params: &'p Params<'p>,
    steps: u32,
    warmup: u32,
    every: u32,
}

impl<'p> Schedule<'p> {
    pub(super) fn new(params: &'p Params<'p>, steps: u32) -> Self {
        let warmup = params.warmup.min(steps / 10);
        let every = params.update_every.min(steps / 40).max(1);
        Self { params, steps, warmup, every }
    }

    /// Falls from 1 to 0 as `part` rises from 0 to 1.
    fn cosine(part: f32) -> f32 {
        0.5 * (1.0 + math::sin_cos(core::f32::consts::PI * part.clamp(0.0, 1.0)).1)
    }

    pub(super) fn rate(&self, step: u32) -> f32 {
        let grown = if step < self.warmup { (step + 1) as f32 / self.warmup as f32 } else { 1.0 };
        self.params.rate * grown * Self::cosine(step as f32 / self.steps as f32)
    }

    /// The last step before which the support changes.
    pub(super) fn settled(&self) -> u32 {
        let last = (self.params.settle * self.steps as f32) as u32;
        last / self.every * self.every
    }

    /// Whether the support changes before this step.
    pub(super) fn changes(&self, step: u32) -> bool {
        step > 0 && step.is_multiple_of(self.every) && step <= self.settled()
    }

    /// Entries that the support has from this step on.
    pub(super) fn target(&self, step: u32, nnz: usize, start: usize) -> usize {
        let over = self.params.shrink.min(self.params.settle) * self.steps as f32;
        let left = 1.0 - (step as f32 / over.max(1.0)).min(1.0);
        if step >= self.settled() {
            return nnz;
        }
        nnz + ((start - nnz) as f32 * left * left * left) as usize
    }

    pub(super) fn drop(&self, step: u32) -> f32 {
        self.params.drop * Self::cosine(step as f32 / self.settled().max(1) as f32)
    }
}
