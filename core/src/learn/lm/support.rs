//! Which weights exist: the start, growth by the streamed gradient, exact thresholding.
//!
//! Both measures are free of the columns' scale: a gradient counts as `|g| / c`, `c_j = rms(x_j)`,
//! what its weight could win, and a weight as `|w| |column|` on the rows where its neuron is
//! active, the root of the loss that its removal alone would bring (Y. Le Cun et al., Optimal brain
//! damage, 1989).

use super::fit::{Fit, Readout, cut};
use super::solver::Solver;
use crate::base::error::{self, Error, Result};
use crate::base::math::{axpy, sqrt};
use crate::base::rng::{Rng, stream};
use crate::network::gates::Gates;
use crate::network::score::{Growth, Panel, Score};
use crate::network::top::Top;
use crate::network::weights::{Editable, Weights};
use crate::operator::machine::Machine;
use crate::operator::panels::panels;
use crate::operator::sensing::{Sensing, head_mut, row_head};

/// A column of a mean square below this counts as zero.
const VANISHING: f32 = 1e-30;
/// Two columns may be one where random projections of them at unit norm are as close as this …
const CLOSE: f32 = 1e-5;
/// … and are, where the square of their difference is below this fraction of theirs.
const REPEATED: f32 = 1e-12;
/// Columns that are compared with a column, at the most.
const COMPARED: usize = 8;

/// What [`Columns::pick`] is asked for.
pub(super) struct Asked<'l> {
    /// So many entries at the most.
    pub(super) count: usize,
    /// What is taken off the gradient of every neuron.
    pub(super) less: Option<&'l [f32]>,
    /// Where gradients count by the columns of the rows on which their neuron is active, as what a
    /// weight could win does: d numbers.
    pub(super) norms: Option<&'l mut [f32]>,
}

impl Asked<'_> {
    /// By the scales of the columns on all rows.
    pub(super) const fn by_scales(count: usize) -> Self {
        Self { count, less: None, norms: None }
    }
}

/// The scales of the columns, and a gradient panel to select with.
pub(super) struct Columns<'a> {
    /// `c_j`, d; 0 for a column that vanishes or is a multiple of an earlier one. Unknown until
    /// [`Self::measure`].
    pub(super) scales: &'a mut [f32],
    pub(super) panel: &'a mut [f32],
}

impl Columns<'_> {
    pub(super) fn scales(&self) -> &[f32] {
        self.scales
    }

    /// Takes the scales from the rows that are selected.
    pub(super) fn measure<S: Sensing, H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
    ) -> Result<(), S::Source> {
        let open = fit.open();
        fit.sensing.column_norms(open, 0..1, self.scales, fit.scratch)?;
        fit.sensing.sum(self.scales)?;
        fit.read();
        error::finite("squared norms of the inputs", self.scales)?;
        let rows = fit.batch_rows();
        for c in &mut *self.scales {
            *c = if *c / rows > VANISHING { sqrt(*c / rows) } else { 0.0 };
        }
        self.drop_repeated(fit)
    }

    /// Sets the scale of a column that is a multiple of an earlier one to 0, so that no weight is
    /// spread over both. Such columns are found by their products with one random vector, and then
    /// compared in full. The residual is lost.
    #[inline(never)]
    fn drop_repeated<S: Sensing, H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
    ) -> Result<(), S::Source> {
        let (d, rows) = (self.scales.len(), fit.rows());
        let open = fit.open();
        let random = row_head::<S>(fit.residual, rows)?;
        fit.sensing.machine().fill_normal(random, &mut Rng::new(0, stream::PROJECTION));
        let projected = head_mut(self.panel, d)?;
        fit.correlate(open, 0, None, projected)?;
        for (p, c) in projected.iter_mut().zip(&*self.scales) {
            *p = if *c > 0.0 { *p / c } else { 0.0 };
        }
        let close = CLOSE * sqrt(fit.batch_rows());
        let projected = &*projected;
        for (j, p) in projected.iter().enumerate().skip(1) {
            let (earlier, rest) = self.scales.split_at_mut(j);
            let Some(c) = rest.first_mut().filter(|c| **c > 0.0) else { continue };
            let candidates = (0..).zip(projected.iter().zip(&*earlier));
            let candidates =
                candidates.filter(|(_, (q, b))| **b > 0.0 && (p.abs() - q.abs()).abs() <= close);
            for (i, (q, b)) in candidates.take(COMPARED) {
                let difference = [1.0 / b, if p * q > 0.0 { -1.0 / *c } else { 1.0 / *c }];
                let index = [i, j as u32];
                let both = Weights::new(d, 1, &index, &difference).map_err(Error::widen)?;
                let out = row_head::<S>(fit.residual, rows)?;
                fit.sensing.machine().fill(out, 0.0);
                fit.sensing.apply(open, both.block(0), out)?;
                let left = fit.sensing.machine().dot(out, out);
                let [left] = fit.sum([left])?;
                fit.read();
                if left <= REPEATED * fit.batch_rows() {
                    *c = 0.0;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Adds the first weights: under random gates the `count` largest `|g| / c`, `w = g / c²`.
    pub(super) fn start<S: Sensing, H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        solver: &mut Solver<'_>,
        net: &mut Editable<'_>,
        count: usize,
        seed: u64,
    ) -> Result<(), S::Source> {
        fit.loss(net.view())?;
        let asked = Asked::by_scales(count);
        let (index, value) = self.pick(fit, solver, Gates::seeded(seed), net, asked)?;
        let d = self.scales.len().max(1);
        for (v, &j) in value.iter_mut().zip(&*index) {
            *v /= self.scales.get(j as usize % d).copied().unwrap_or(1.0);
        }
        add(net, index, value)
    }

    /// Adds zeros where `|g| / c` is largest, as many as are asked for and there is room for. The
    /// residual must be current.
    pub(super) fn grow<S: Sensing, H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        solver: &mut Solver<'_>,
        net: &mut Editable<'_>,
        asked: Asked<'_>,
    ) -> Result<(), S::Source> {
        let count = asked.count.min(net.room() - net.nnz());
        let gates = fit.gates(net.view());
        let (index, value) = self.pick(fit, solver, gates, net, Asked { count, ..asked })?;
        value.fill(0.0);
        add(net, index, value)
    }

    /// The largest `g / c` off the support, in the order of their indices.
    #[inline(never)]
    pub(super) fn pick<'v, S: Sensing, H: Readout<S>>(
        &mut self,
        fit: &mut Fit<'_, S, H>,
        solver: &'v mut Solver<'_>,
        gates: Gates<'_>,
        net: &Editable<'_>,
        Asked { count, less, mut norms }: Asked<'_>,
    ) -> Result<(&'v mut [u32], &'v mut [f32]), S::Source> {
        let (d, open) = (self.scales.len().max(1), fit.open());
        let score = Growth { scales: self.scales, rows: fit.batch_rows() };
        let residual = cut::<S>(&*fit.residual, fit.rows());
        let (value, index) = solver.spare(count)?;
        let mut top = Top::new(&mut *index, &mut *value);
        panels(&mut *fit.sensing, self.panel, d, |sensing, blocks, panel| {
            sensing.gradient(gates, residual, blocks.clone(), panel)?;
            for (g, i) in panel.chunks_mut(d).zip(blocks.clone()) {
                let owned = S::Machine::numbers(residual).and_then(|r| fit.cover.owned(i, r));
                if let Some(owned) = owned {
                    let owned = sensing.machine().rows_in(owned);
                    sensing.adjoint(open, i, owned, g)?;
                }
            }
            sensing.sum(panel)?;
            if let Some(less) = less {
                panel.chunks_mut(d).for_each(|g| axpy(-1.0, less, g));
            }
            let of = Panel { blocks, weights: net.view() };
            score.panel(&of, panel);
            if let Some(norms) = norms.as_deref_mut() {
                let rows = score.rows;
                for (g, i) in panel.chunks_mut(d).zip(of.blocks.clone()) {
                    if net.view().block(i).is_empty() {
                        continue;
                    }
                    let norms = head_mut(norms, d)?;
                    sensing.column_norms(gates, i..i + 1, norms, fit.scratch)?;
                    sensing.sum(norms)?;
                    for ((g, norm), c) in g.iter_mut().zip(norms).zip(score.scales) {
                        let is_large = *norm > VANISHING * rows;
                        *g = if is_large { *g * c * sqrt(rows / *norm) } else { 0.0 };
                    }
                }
            }
            top.offer(of.first(), panel);
            Ok(())
        })?;
        let picked = top.finish();
        fit.read();
        if norms.is_some() {
            fit.read();
        }
        let picked = picked.ok_or(Error::Diverged { step: 0 })?;
        Ok((head_mut(index, picked)?, head_mut(value, picked)?))
    }
}

/// Keeps the `count` weights of largest salience `|w| |column|`, of equal ones the first. `norms`
/// are the squared norms of the columns, gates included, which become the saliences; flat indices
/// below `free` stay and do not count.
#[inline(never)]
pub(super) fn threshold(
    net: &mut Editable<'_>,
    norms: &mut [f32],
    buffer: &mut [f32],
    free: usize,
    count: usize,
) -> Result<()> {
    let len = net.nnz();
    let exempt = net.view().index().partition_point(|&j| (j as usize) < free);
    let Some(drop) = (len - exempt).checked_sub(count).filter(|&drop| drop > 0) else {
        return Ok(());
    };
    if drop == len {
        net.clear();
        return Ok(());
    }
    let (norms, buffer) = (head_mut(norms, len)?, head_mut(buffer, len)?);
    let w = net.view();
    for ((norm, out), (&j, w)) in
        norms.iter_mut().zip(&mut *buffer).zip(w.index().iter().zip(w.value()))
    {
        *norm = if (j as usize) < free { f32::INFINITY } else { w.abs() * sqrt(*norm) };
        *out = *norm;
    }
    let mut edge = Edge::new(buffer, drop);
    let mut saliences = norms.iter();
    net.retain(|_, _| saliences.next().is_some_and(|salience| edge.keeps(*salience)));
    Ok(())
}

pub(super) struct Edge {
    value: f32,
    /// Of those at the edge, so many stay, the first ones.
    left: usize,
}

impl Edge {
    /// Drops the `drop` smallest of the saliences, which are reordered; fewer than there are.
    pub(super) fn new(saliences: &mut [f32], drop: usize) -> Self {
        let (below, &mut value, _) = saliences.select_nth_unstable_by(drop, f32::total_cmp);
        let below = below.iter().filter(|&&x| x < value).count();
        let left = saliences.iter().filter(|&&x| x == value).count();
        Self { value, left: left - (drop - below).min(left) }
    }

    /// Whether the next one in order stays.
    pub(super) fn keeps(&mut self, salience: f32) -> bool {
        if salience == self.value {
            let keep = self.left > 0;
            self.left = self.left.saturating_sub(1);
            return keep;
        }
        salience > self.value
    }
}

#[inline(never)]
pub(super) fn add<S>(net: &mut Editable<'_>, index: &[u32], value: &[f32]) -> Result<(), S> {
    if net.add(index, value) {
        return Ok(());
    }
    let (expected, got) = (net.nnz() + index.len(), net.room());
    Err(Error::Length { what: "room for weights", expected, got })
}

#[cfg(test)]
mod tests;
