//! Products of a step over the rows of its batch: all at once with a stored residual, or strip by
//! strip with one that is computed again for each.

use crate::base::error::{Error, Result, length};
use crate::base::math::Sum;
use crate::network::gates::Gates;
use crate::network::top::Top;
use crate::network::weights::{Weights, runs};
use crate::operator::machine::Machine;
use crate::operator::sensing::{
    Done, Rows, Sensing, Stepped, Strips, Work, add_up, each_strip, head_mut, row_head,
};
use crate::operator::solve::{Equations, Unknowns, conjugate_gradients};
use core::ops::Range;

/// What a step approaches: labels, of which `y - A w` is left.
pub(in crate::learn) struct Target<'a, S: Sensing> {
    pub(in crate::learn) gates: Gates<'a>,
    pub(in crate::learn) labels: &'a Rows<S>,
    /// The label of the first row of the batch.
    pub(in crate::learn) first: usize,
    pub(in crate::learn) w: Weights<'a>,
    pub(in crate::learn) must_keep: &'a [u32],
}

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
        let first = self.first + part.start;
        sensing.machine().residual(self.labels, first, 1.0, out).map_err(Error::widen)
    }
}

/// The operator, the reads of its batch so far, and what [`Work`] holds but the panel.
pub(in crate::learn) struct Batch<'a, 'b, S: Sensing> {
    pub(super) sensing: &'a mut S,
    pub(super) reads: u32,
    residual: &'a mut Rows<S>,
    scratch: &'a mut [f32],
    strips: Option<&'a mut Strips<'b>>,
}

impl<'a, 'b, S: Sensing> Batch<'a, 'b, S> {
    /// The panel, and the batch.
    pub(in crate::learn) fn new(
        sensing: &'a mut S,
        work: &'a mut Work<'b, Rows<S>>,
    ) -> (&'a mut [f32], Self) {
        let Work { residual, panel, scratch, strips } = work;
        (panel, Batch { sensing, reads: 0, residual, scratch, strips: strips.as_mut() })
    }

    /// [`Sensing::hold`], where the batch is gone through at once.
    pub(super) fn hold<'g>(
        &mut self,
        gates: Gates<'g>,
        support: &[u32],
    ) -> Result<Gates<'g>, S::Source> {
        if self.strips.is_none() { self.sensing.hold(gates, support) } else { Ok(gates) }
    }

    /// `|y - A w|²`; the residual stays where there is room for it.
    pub(super) fn loss(&mut self, of: &Target<'_, S>) -> Result<f32, S::Source> {
        self.reads += u32::from(of.w.is_live());
        let Self { sensing, residual, strips, .. } = self;
        let room = S::Machine::len(residual);
        let loss = match strips {
            None => {
                let n = sensing.local_rows();
                length("residual", room, n)?;
                of.compute(sensing, 0..n, residual)?
            }
            Some(strips) => {
                let mut sum = Sum::default();
                each_strip(*sensing, &strips.rows, room, |sensing, part| {
                    let r = row_head::<S>(residual, part.len())?;
                    sum.add(of.compute(sensing, part, r)?);
                    Ok(())
                })?;
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
        of: &Target<'_, S>,
        out: &mut [f32],
        mut product: impl FnMut(&mut S, &Rows<S>, &mut [f32], &mut [f32]) -> Done<S>,
    ) -> Done<S> {
        let Self { sensing, reads, residual, scratch, strips } = self;
        match strips {
            None => product(sensing, residual, out, scratch)?,
            Some(strips) => {
                *reads += u32::from(of.w.is_live());
                let room = S::Machine::len(residual);
                add_up(*sensing, strips, room, out, |sensing, part, out| {
                    let r = row_head::<S>(residual, part.len())?;
                    of.compute(sensing, part, r)?;
                    product(sensing, r, out, scratch)
                })?;
            }
        }
        sensing.sum(out)
    }

    /// Offers the entries of a panel of blocks after a gradient step, see [`Sensing::offer_step`].
    pub(super) fn offer_step(
        &mut self,
        of: &Target<'_, S>,
        stepped: &Stepped<'_>,
        memory: &mut [f32],
        top: &mut Top<'_>,
    ) -> Done<S> {
        if self.strips.is_none() {
            return self.sensing.offer_step(of.gates, self.residual, stepped, memory, top);
        }
        self.of_residual(of, memory, |sensing, r, g, _| {
            sensing.gradient(of.gates, r, stepped.panel.blocks.clone(), g)
        })?;
        stepped.offer(memory, top);
        Ok(())
    }

    /// `out = product`, which has no use for the residual and adds up over strips too.
    pub(super) fn of_rows(
        &mut self,
        out: &mut [f32],
        mut product: impl FnMut(&mut S, &mut [f32], &mut [f32]) -> Done<S>,
    ) -> Done<S> {
        let Self { sensing, residual, scratch, strips, .. } = self;
        match strips {
            None => product(sensing, out, scratch)?,
            Some(strips) => {
                let room = S::Machine::len(residual);
                add_up(*sensing, strips, room, out, |sensing, _, out| {
                    product(sensing, out, scratch)
                })?;
            }
        }
        sensing.sum(out)
    }

    /// `h = A_S^T A_S p`.
    pub(super) fn normal(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        p: &[f32],
        h: &mut [f32],
    ) -> Done<S> {
        self.reads += 1;
        let (d, m) = (self.sensing.inputs(), self.sensing.blocks());
        let p = Weights::new(d, m, support, p).map_err(Error::widen)?;
        self.of_rows(h, |sensing, h, scratch| sensing.normal_at(gates, p, h, scratch))
    }

    /// Solves equations on a support, in one call where the batch is gone through at once; the
    /// steps.
    pub(super) fn solve(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
    ) -> Result<u32, S::Source> {
        if self.strips.is_some() {
            let normal = |p: &[f32], h: &mut [f32]| self.normal(gates, support, p, h);
            return Ok(conjugate_gradients(equations, unknowns, normal)?.steps);
        }
        let solved = self.sensing.solve_at(gates, support, equations, unknowns, self.scratch)?;
        self.reads += solved.products;
        Ok(solved.steps)
    }

    /// Calls `each(position, |A_j|²)` for every index j of a support in order, neuron by neuron.
    pub(in crate::learn) fn norms_at(
        &mut self,
        panel: &mut [f32],
        gates: Gates<'_>,
        support: &[u32],
        mut each: impl FnMut(usize, f32),
    ) -> Done<S> {
        let d = self.sensing.inputs();
        for (i, run) in runs(d, support) {
            let norms = head_mut(panel, d)?;
            self.of_rows(norms, |sensing, norms, scratch| {
                sensing.column_norms(gates, i..i + 1, norms, scratch)
            })?;
            for at in run {
                let Some(&j) = support.get(at) else { continue };
                each(at, norms.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(0.0));
            }
        }
        Ok(())
    }
}
