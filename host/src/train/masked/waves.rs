//! Strips of a batch that run at the same time, one on each thread, and what they do together.

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

/// Runs `work` on every strip, its number and a gradient: the first has `gradient`, the others have
/// so many numbers of their own.
pub(super) fn each_with_gradient(
    strips: &mut [Strip],
    gradient: &mut [f32],
    work: impl Fn(usize, &mut Strip, &mut [f32]) + Sync,
) {
    match strips {
        [] => {}
        [one] => work(0, one, gradient),
        [first, rest @ ..] => {
            let len = gradient.len();
            let others = || {
                rest.par_iter_mut().enumerate().for_each(|(t, strip)| {
                    let mut own = std::mem::take(&mut strip.gradient);
                    work(t + 1, strip, &mut own[..len]);
                    strip.gradient = own;
                });
            };
            rayon::join(|| work(0, first, gradient), others);
        }
    }
}

/// Adds the strips' own gradients in their order.
pub(super) fn add_up(gradient: &mut [f32], strips: &[Strip]) {
    const CHUNK: usize = 1 << 14;
    gradient.par_chunks_mut(CHUNK).enumerate().for_each(|(at, sums)| {
        for strip in strips {
            let own = &strip.gradient[at * CHUNK..][..sums.len()];
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += *own);
        }
    });
}
