//! Strips of a batch that run at the same time, each on a thread, and what they do together.

use std::ops::Range;

use rayon::prelude::*;
use tamis::base::error::{Error, Result};
use tamis::learn::deep::backprop::Batch;
use tamis::learn::loss::Labels;

use super::strip::{Strip, Work};
use crate::operator::Stop;
use crate::operator::lanes::LANES;

/// A pass over rows: what an engine lends to it.
pub(super) struct Pass<'a> {
    pub(super) work: Work<'a>,
    pub(super) strips: &'a mut [Strip],
    pub(super) across: &'a mut [Vec<f32>],
    /// Rows that were read before.
    pub(super) drawn: u64,
    pub(super) stop: &'a Stop,
}

impl Pass<'_> {
    /// As [`Engine::waves`], with what threads have for panels.
    pub(super) fn waves(
        &mut self,
        batch: &Batch,
        mut run: impl FnMut(Wave<'_>, &mut [Vec<f32>], &mut [Strip]),
    ) -> Result<()> {
        let Self { work, strips, across, drawn, stop } = self;
        for start in batch.positions.clone().step_by(LANES * strips.len()) {
            if stop.asked() {
                return Err(Error::Stopped);
            }
            let count = (batch.positions.end - start).div_ceil(LANES).min(strips.len());
            let wave = Wave { work, batch, start, drawn: *drawn };
            run(wave, across, &mut strips[..count]);
        }
        Ok(())
    }
}

/// What strips work on that run at the same time.
pub(super) struct Wave<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) batch: &'a Batch,
    /// Position of the first sample.
    pub(super) start: usize,
    /// Rows that were read before the batch.
    pub(super) drawn: u64,
}

/// Whether rows are read as they are, or changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Plain,
    Changed,
}

impl Wave<'_> {
    /// Takes the rows through the network, to residuals as [`Self::to_residuals`].
    pub(super) fn forward_to_residuals(&self, labels: Labels<'_>, strips: &mut [Strip]) {
        each(strips, |t, strip| {
            strip.forward(self.work, self.draw(t), self.rows(t));
            strip.residual(self.work, labels);
            strip.head_back(self.work);
        });
    }

    /// Residuals of the outputs, or of the neurons that are summed up.
    pub(super) fn to_residuals(&self, labels: Labels<'_>, strips: &mut [Strip]) {
        each(strips, |_, strip| {
            strip.residual(self.work, labels);
            strip.head_back(self.work);
        });
    }

    pub(super) fn forward(&self, strips: &mut [Strip]) {
        each(strips, |t, strip| strip.forward(self.work, self.draw(t), self.rows(t)));
    }

    /// The number of the first draw of strip `t`.
    pub(super) fn draw(&self, t: usize) -> u64 {
        self.drawn + (self.start - self.batch.positions.start + t * LANES) as u64
    }

    /// Rows of strip `t`.
    pub(super) fn rows(&self, t: usize) -> impl Iterator<Item = usize> + use<> {
        let start = self.start + t * LANES;
        let positions = start..self.batch.positions.end.min(start + LANES);
        Batch { positions, order: self.batch.order }.rows()
    }
}

/// Runs `work` on every strip and its number.
pub(super) fn each(strips: &mut [Strip], work: impl Fn(usize, &mut Strip) + Sync) {
    match strips {
        [one] => work(0, one),
        all => all.par_iter_mut().enumerate().for_each(|(t, strip)| work(t, strip)),
    }
}

/// Adds the sums over the rows of all strips to the `gradient` of some blocks of layer `l`, strip by strip.
pub(super) fn add_gradient(
    work: &Work<'_>,
    strips: &[Strip],
    l: usize,
    blocks: Range<usize>,
    gradient: &mut [f32],
    threads: usize,
) {
    // Fewer take less time than it takes to hand them to another thread.
    const LEAST: usize = 1 << 11;
    if threads < 2 || gradient.len() * strips.len() < LEAST {
        strips.iter().for_each(|strip| strip.add_gradient(work, l, blocks.clone(), gradient));
        return;
    }
    let starts = &work.layers[l].starts;
    let few = threads / 2;
    let middle = starts.split(&blocks, few as f64 / threads as f64);
    let (low, high) = gradient.split_at_mut(starts.before(middle) - starts.before(blocks.start));
    rayon::join(
        || add_gradient(work, strips, l, blocks.start..middle, low, few),
        || add_gradient(work, strips, l, middle..blocks.end, high, threads - few),
    );
}
