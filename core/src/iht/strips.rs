//! Products of a step over the rows of its batch: all at once with a stored residual, or strip by strip with one that is
//! computed again for each.

use super::Info;
use crate::error::{Error, Result, length};
use crate::gates::Gates;
use crate::loss;
use crate::math::Sum;
use crate::sensing::{Sensing, Strips, Work, add_up, each_strip, head_mut};
use crate::weights::Weights;
use core::ops::Range;

/// Whose residual: `y - A w`.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) gates: Gates<'a>,
    pub(super) labels: &'a [f32],
    pub(super) w: Weights<'a>,
}

impl Of<'_> {
    /// Computes the residual of the selected rows, of which the labels are `part`; returns the sum of its squares.
    fn compute<S: Sensing>(
        &self,
        sensing: &mut S,
        part: Range<usize>,
        out: &mut [f32],
    ) -> Result<f32, S::Source> {
        if self.w.is_live() {
            sensing.forward(self.gates, self.w, out)?;
        } else {
            out.fill(0.0);
        }
        let labels = self.labels.get(part).unwrap_or(&[]);
        loss::square(labels, out).map_err(Error::widen)
    }

    /// Reads of the rows that computing it takes.
    fn reads(&self) -> u32 {
        u32::from(self.w.is_live())
    }
}

/// What [`Work`] holds but the panel.
pub(super) struct Rows<'a, 'b> {
    residual: &'a mut [f32],
    scratch: &'a mut [f32],
    strips: Option<&'a mut Strips<'b>>,
}

/// The panel and the rest.
pub(super) fn parts<'a, 'b>(work: &'a mut Work<'b>) -> (&'a mut [f32], Rows<'a, 'b>) {
    let Work { residual, panel, scratch, strips } = work;
    (panel, Rows { residual, scratch, strips: strips.as_mut() })
}

impl Rows<'_, '_> {
    /// Whether the batch is gone through at once.
    pub(super) fn whole(&self) -> bool {
        self.strips.is_none()
    }

    /// `|y - A w|²`; the residual stays where there is room for it.
    pub(super) fn loss<S: Sensing>(
        &mut self,
        sensing: &mut S,
        of: Of<'_>,
        info: &mut Info,
    ) -> Result<f32, S::Source> {
        info.reads += of.reads();
        let n = sensing.samples();
        let loss = match &self.strips {
            None => {
                length("residual", self.residual.len(), n)?;
                of.compute(sensing, 0..n, self.residual)?
            }
            Some(strips) => {
                let mut sum = Sum::default();
                each_strip(sensing, &strips.rows, self.residual.len(), |sensing, part| {
                    let r = head_mut(self.residual, part.len())?;
                    sum.add(of.compute(sensing, part, r)?);
                    Ok(())
                })?;
                sum.value()
            }
        };
        if loss.is_finite() { Ok(loss) } else { Err(Error::Diverged { step: 0 }) }
    }

    /// `out = product(r)` with the residual r, where products of strips add up to that of the batch.
    pub(super) fn of_residual<S: Sensing>(
        &mut self,
        sensing: &mut S,
        of: Of<'_>,
        out: &mut [f32],
        info: &mut Info,
        mut product: impl FnMut(&mut S, &[f32], &mut [f32], &mut [f32]) -> Result<(), S::Source>,
    ) -> Result<(), S::Source> {
        info.reads += if self.whole() { 0 } else { of.reads() };
        let residual = &mut *self.residual;
        match &mut self.strips {
            None => product(sensing, residual, out, self.scratch),
            Some(strips) => {
                let room = residual.len();
                add_up(sensing, (strips, room), out, |sensing, part, out| {
                    let r = head_mut(residual, part.len())?;
                    of.compute(sensing, part, r)?;
                    product(sensing, r, out, self.scratch)
                })
            }
        }
    }

    /// `out = product`, which has no use for the residual and adds up over strips too.
    pub(super) fn of_rows<S: Sensing>(
        &mut self,
        sensing: &mut S,
        out: &mut [f32],
        mut product: impl FnMut(&mut S, &mut [f32], &mut [f32]) -> Result<(), S::Source>,
    ) -> Result<(), S::Source> {
        match &mut self.strips {
            None => product(sensing, out, self.scratch),
            Some(strips) => add_up(sensing, (strips, self.residual.len()), out, |sensing, _, out| {
                product(sensing, out, self.scratch)
            }),
        }
    }
}
