//! Products of a step over the rows of its batch: all at once with a stored residual, or strip by
//! strip with one that is computed again for each.

use crate::base::error::{Error, Result, length};
use crate::base::math::Sum;
use crate::network::gates::Gates;
use crate::network::weights::Weights;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Rows, Sensing, Strips, Work, add_up, each_strip, row_head};
use core::ops::Range;

/// What a step approaches: labels, of which `y - A w` is left.
pub(super) struct Target<'a, S: Sensing> {
    pub(super) gates: Gates<'a>,
    pub(super) labels: &'a Rows<S>,
    pub(super) w: Weights<'a>,
    pub(super) must_keep: &'a [u32],
}

impl<S: Sensing> Clone for Target<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Sensing> Copy for Target<'_, S> {}

impl<S: Sensing> Target<'_, S> {
    /// Computes the residual of the selected rows, of which the labels are `part`; returns the sum
    /// of its squares.
    fn compute(
        &self,
        sensing: &mut S,
        part: Range<usize>,
        out: &mut Rows<S>,
    ) -> Result<f32, S::Source> {
        if self.w.is_live() {
            sensing.forward(self.gates, self.w, out)?;
        } else {
            sensing.machine().fill(out, 0.0);
        }
        sensing.machine().residual(self.labels, part.start, 1.0, out).map_err(Error::widen)
    }

    /// Reads of the rows that computing it takes.
    fn reads(&self) -> u32 {
        u32::from(self.w.is_live())
    }
}

/// What [`Work`] holds but the panel.
pub(super) struct Batch<'a, 'b, S: Sensing> {
    residual: &'a mut Rows<S>,
    scratch: &'a mut [f32],
    strips: Option<&'a mut Strips<'b>>,
}

/// The panel and the rest.
pub(super) fn parts<'a, 'b, S: Sensing>(
    work: &'a mut Work<'b, Rows<S>>,
) -> (&'a mut [f32], Batch<'a, 'b, S>) {
    let Work { residual, panel, scratch, strips } = work;
    (panel, Batch { residual, scratch, strips: strips.as_mut() })
}

impl<S: Sensing> Batch<'_, '_, S> {
    /// Whether the batch is gone through at once.
    pub(super) fn whole(&self) -> bool {
        self.strips.is_none()
    }

    /// `|y - A w|²`; the residual stays where there is room for it.
    pub(super) fn loss(
        &mut self,
        sensing: &mut S,
        of: Target<'_, S>,
        reads: &mut u32,
    ) -> Result<f32, S::Source> {
        *reads += of.reads();
        let n = sensing.local_rows();
        let loss = match &self.strips {
            None => {
                length("residual", S::Machine::len(self.residual), n)?;
                of.compute(sensing, 0..n, self.residual)?
            }
            Some(strips) => {
                let mut sum = Sum::default();
                each_strip(
                    sensing,
                    &strips.rows,
                    S::Machine::len(self.residual),
                    |sensing, part| {
                        let r = row_head::<S>(self.residual, part.len())?;
                        sum.add(of.compute(sensing, part, r)?);
                        Ok(())
                    },
                )?;
                sum.value()
            }
        };
        let mut total = [loss];
        sensing.sum(&mut total)?;
        let [loss] = total;
        if loss.is_finite() { Ok(loss) } else { Err(Error::Diverged { step: 0 }) }
    }

    /// `out = product(r)` with the residual r, where products of strips add up to that of the
    /// batch.
    pub(super) fn of_residual(
        &mut self,
        sensing: &mut S,
        of: Target<'_, S>,
        out: &mut [f32],
        reads: &mut u32,
        mut product: impl FnMut(&mut S, &Rows<S>, &mut [f32], &mut [f32]) -> Result<(), S::Source>,
    ) -> Result<(), S::Source> {
        *reads += if self.whole() { 0 } else { of.reads() };
        let residual = &mut *self.residual;
        match &mut self.strips {
            None => product(sensing, residual, out, self.scratch)?,
            Some(strips) => {
                let room = S::Machine::len(residual);
                add_up(sensing, strips, room, out, |sensing, part, out| {
                    let r = row_head::<S>(residual, part.len())?;
                    of.compute(sensing, part, r)?;
                    product(sensing, r, out, self.scratch)
                })?;
            }
        }
        sensing.sum(out)
    }

    /// `out = product`, which has no use for the residual and adds up over strips too.
    pub(super) fn of_rows(
        &mut self,
        sensing: &mut S,
        out: &mut [f32],
        mut product: impl FnMut(&mut S, &mut [f32], &mut [f32]) -> Result<(), S::Source>,
    ) -> Result<(), S::Source> {
        match &mut self.strips {
            None => product(sensing, out, self.scratch)?,
            Some(strips) => {
                let room = S::Machine::len(self.residual);
                add_up(sensing, strips, room, out, |sensing, _, out| {
                    product(sensing, out, self.scratch)
                })?;
            }
        }
        sensing.sum(out)
    }
}
