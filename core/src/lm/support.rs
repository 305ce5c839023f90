//! Which weights exist: the start, growth by the streamed gradient, exact thresholding.
//!
//! Both measures are free of the columns' scale c: a gradient counts as `|g| / c`, what its weight could win, and a
//! weight as `|w| c`, what it contributes.

use super::fit::Fit;
use crate::error::{self, Error, Result};
use crate::gates::{Empty, Gates, Signs};
use crate::math::{dot, norm2, sqrt};
use crate::sensing::{Sensing, head_mut, panels};
use crate::top::Top;
use crate::weights::{Editable, Weights};

/// Writes `c_j`, the root mean square of every column, to `out` of length d.
pub(super) fn scales<S: Sensing + ?Sized>(fit: &mut Fit<'_, S>, out: &mut [f32]) -> Result<(), S::Source> {
    let (d, m) = (fit.sensing.inputs(), fit.sensing.blocks());
    let open = Gates::of(Weights::empty(d, m), Signs::Positive, Empty::Open, 0, 0);
    fit.sensing.column_norms(open, 0..1, out, fit.scratch)?;
    fit.read();
    error::finite("column norms", out)?;
    let rows = fit.rows() as f32;
    for c in out {
        *c = sqrt(*c / rows);
    }
    Ok(())
}

/// The first weights: under random gates the `count` largest `|g| / c`, `w = g / c²` on them, one scale for all.
pub(super) fn start<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    net: &mut Editable<'_>,
    (scales, panel, index): (&[f32], &mut [f32], &mut [u32]),
    count: usize,
    seed: u64,
) -> Result<(), S::Source> {
    net.clear();
    fit.loss(net.view())?;
    let picked = pick(fit, Gates::seeded(seed), net, (scales, panel, index), count)?;
    let (index, value) = (index.get(..picked).unwrap_or(&[]), head_mut(&mut *fit.p, picked)?);
    let d = scales.len().max(1);
    for (v, &j) in value.iter_mut().zip(index) {
        *v /= scales.get(j as usize % d).copied().unwrap_or(1.0);
    }
    net.add(index, value);
    // One factor for all: the least-squares fit of the labels by the outputs, `f = y - r`.
    fit.loss(net.view())?;
    let labels = fit.labels();
    let (yy, ry, rr) = (norm2(labels), dot(fit.residual(), labels), norm2(fit.residual()));
    let factor = (yy - ry) / (yy - 2.0 * ry + rr);
    if factor.is_finite() && factor > 0.0 {
        net.values().iter_mut().for_each(|w| *w *= factor);
    }
    Ok(())
}

/// Adds up to `count` weights of value 0 where `|g| / c` is largest, off the support and under the current gates.
pub(super) fn grow<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    net: &mut Editable<'_>,
    (scales, panel, index): (&[f32], &mut [f32], &mut [u32]),
    count: usize,
) -> Result<usize, S::Source> {
    let count = count.min(net.room() - net.nnz());
    let gates = Gates::of(net.view(), fit.signs, Empty::Freeze, 0, 0);
    let picked = pick(fit, gates, net, (scales, panel, index), count)?;
    let zeros = head_mut(&mut *fit.p, picked)?;
    zeros.fill(0.0);
    net.add(index.get(..picked).unwrap_or(&[]), zeros);
    Ok(picked)
}

/// The `count` largest `g / c` off the support, in `index` and `fit.p`; how many there are.
fn pick<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    gates: Gates<'_>,
    net: &Editable<'_>,
    (scales, panel, index): (&[f32], &mut [f32], &mut [u32]),
    count: usize,
) -> Result<usize, S::Source> {
    let d = scales.len();
    let (most, rows) = (index.len().min(fit.p.len()), fit.rows());
    let mut top = Top::new(head_mut(index, count.min(most))?, head_mut(&mut *fit.p, count.min(most))?);
    let mut old = net.view().index().iter().peekable();
    let residual = fit.residual.get(..rows).unwrap_or(&[]);
    panels(fit.sensing, panel, 1, |sensing, first, panel| {
        let blocks = first..first + panel.len() / d.max(1);
        sensing.gradient(gates, residual, blocks, panel)?;
        for (g, i) in panel.chunks(d.max(1)).zip(first..) {
            for ((g, c), j) in g.iter().zip(scales).zip((i * d) as u32..) {
                if old.next_if_eq(&&j).is_none() && *g != 0.0 && *c > 0.0 {
                    top.push(j, g / (c * rows as f32));
                }
            }
        }
        Ok(())
    })?;
    let picked = top.finish();
    fit.read();
    picked.ok_or(Error::Diverged { step: 0 })
}

/// Keeps the `count` weights of largest `|w| c`, of equal ones the first; `buffer` has room for as many numbers as
/// there are weights. Flat indices below `free` stay and do not count.
pub(super) fn threshold(
    net: &mut Editable<'_>,
    scales: &[f32],
    buffer: &mut [f32],
    (free, count): (usize, usize),
) {
    let (len, d) = (net.nnz(), scales.len().max(1));
    let exempt = net.view().index().partition_point(|&j| (j as usize) < free);
    let Some(drop) = (len - exempt).checked_sub(count).filter(|&drop| drop > 0) else { return };
    let salience = |j: u32, w: f32| match scales.get(j as usize % d) {
        _ if (j as usize) < free => f32::INFINITY,
        Some(c) => w.abs() * c,
        None => 0.0,
    };
    let Some(buffer) = buffer.get_mut(..len) else { return };
    for ((out, &j), &w) in buffer.iter_mut().zip(net.view().index()).zip(net.view().value()) {
        *out = salience(j, w);
    }
    let (below, &mut edge, _) = buffer.select_nth_unstable_by(drop, f32::total_cmp);
    // Of those at the edge, as many go as are needed; the later ones.
    let below = below.iter().filter(|&&x| x < edge).count();
    let mut at_edge =
        net.view().index().iter().zip(net.view().value()).filter(|&(&j, &w)| salience(j, w) == edge).count();
    at_edge -= (drop - below).min(at_edge);
    net.retain(|j, w| {
        let salience = salience(j, w);
        if salience == edge {
            let keep = at_edge > 0;
            at_edge = at_edge.saturating_sub(1);
            return keep;
        }
        salience > edge
    });
}
