//! One step of iterative hard thresholding, `w <- H_s(w + eta A^T (y - A w))`, and its refinement
//! on the support.
//!
//! The dense gradient never exists: it is formed a panel of p blocks at a time and offered to the
//! streaming top-s selection together with the weights, which gives exactly `H_s` of the full
//! vector for every p. Step sizes and refinements need only products restricted to the support,
//! `A_S^T A_S p`, each one read of the data. With [`Params::must_keep`], `H_s` is the projection on
//! the vectors whose support holds these indices ([`crate::network::top`]).
//!
//! ```text
//! r = y - A w                                     one read
//! S = supp(w), or the s largest of |A^T r|
//! g = A_S^T r,  h = A_S^T A_S g                   two reads
//! eta = |g|² / g·h                                normalised step (paper IHT, eq. 7)
//! w+ = H_s(w + eta A^T r)                         one read, panel by panel
//! K times, on supp(w+):  w+ = w+ + eta g, g = g - eta h      one read each
//! ```

pub(super) mod net;
pub(super) mod strips;

use crate::base::error::{Error, Result};
use crate::base::math::{Sum, axpy, dot, norm2, scale, sqrt, unit_scale};
use crate::network::gates::Gates;
use crate::network::net::EntriesMut;
use crate::network::score::{GradientStep, Panel};
use crate::network::top::Top;
use crate::network::weights::{Weights, check_support};
use crate::operator::panels::ranges;
use crate::operator::sensing::{Rows, Sensing, Stepped, Work, carve, head_mut};
use crate::operator::solve::{Equations, Unknowns};
use strips::{Batch, Target};

/// How long the gradient step is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Step {
    /// `|g_S|² / |A_S g_S|²`, the exact line search on the current support (paper IHT, eq. 7);
    /// needs no tuning.
    Normalised,
    /// `2 / (3 beta)` with the columns of A normalised to unit length (Theorem 1); beta from
    /// [`crate::learn::spectrum::extremes`]. A weight whose column vanishes on the batch stays as
    /// it is and competes as if its column had the mean norm of those that do not.
    Theory {
        /// Largest eigenvalue of `A_S^T A_S` over supports of s unit columns.
        beta: f32,
    },
    /// A given length, in units of the mean over the batch: `w + eta A^T (y - A w) / n`.
    Fixed(f32),
}

/// What is done on the support once it is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refine {
    /// Nothing.
    None,
    /// Gradient steps with `|y - A w|²` as loss f and `g = A_S^T (y - A w)`, from the thresholding
    /// step's eta, halved until `f(w + eta g) <= f - decrease · eta |g|²` (the condition of the
    /// published code).
    Armijo {
        /// Steps, K.
        steps: u32,
        /// Fraction of the slope that a step must win; 0.9 as published.
        decrease: f32,
        /// Halvings before the refinement ends.
        halvings: u32,
    },
    /// Conjugate gradients on the normal equations of the fixed-gate least squares.
    ConjugateGradient {
        /// Steps at the most.
        steps: u32,
        /// Ends where `|g|` has fallen to this part of its start.
        tolerance: f32,
    },
}

impl Refine {
    /// The published setting: ten Armijo steps.
    pub const PAPER: Self = Self::Armijo { steps: 10, decrease: 0.9, halvings: 10 };
}

/// What one step is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params<'k> {
    /// Length of the gradient step.
    pub step: Step,
    /// Refinement on the new support.
    pub refine: Refine,
    /// Flat indices, rising and at most s, of pinned weights, which are on the support whatever
    /// their size. They count in s, with value 0 too.
    pub must_keep: &'k [u32],
}

impl Params<'_> {
    /// Normalised steps with ten Armijo refinements, the published setting for scalar outputs.
    pub const PAPER: Self = Self { step: Step::Normalised, refine: Refine::PAPER, must_keep: &[] };
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Info {
    /// `|y - A w|²` before the step.
    pub loss: f32,
    /// The step size eta that was used; 0 where the gradient vanishes.
    pub step_size: f32,
    /// Nonzeros of the new weights, with those that must be kept, whatever their value.
    pub nnz: usize,
    /// Refinement steps that were accepted.
    pub refinements: u32,
    /// Reads of all rows of the batch.
    pub reads: u32,
}

/// One step from `w` to new weights in `out`, whose length is s.
///
/// `gates` stay fixed during the step; they may be those of `w` itself.
///
/// # Errors
/// [`Error::Length`] if a buffer is too short, [`Error::Range`] or [`Error::Unsorted`] for indices
/// that must be kept and are more than s, lie outside or do not rise, [`Error::Diverged`] if the
/// iterate leaves the finite numbers, [`Error::Source`] if reading the data fails.
pub fn step<S: Sensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    labels: &Rows<S>,
    w: Weights<'_>,
    params: &Params<'_>,
    out: EntriesMut<'_>,
    work: &mut Work<'_, Rows<S>>,
) -> Result<Info, S::Source> {
    let of = Target { gates, labels, first: 0, w, must_keep: params.must_keep };
    step_towards(sensing, &of, params, out, work)
}

/// [`step`] from the weights of a target.
pub(super) fn step_towards<S: Sensing>(
    sensing: &mut S,
    of: &Target<'_, S>,
    params: &Params<'_>,
    mut out: EntriesMut<'_>,
    work: &mut Work<'_, Rows<S>>,
) -> Result<Info, S::Source> {
    let (n, w, gates) = (sensing.batch_rows(), of.w, of.gates);
    check_support(w.inputs(), w.hidden(), of.must_keep).map_err(Error::widen)?;
    let (panel, mut rows) = Batch::new(sensing, work);
    let loss = rows.loss(of)?;
    let step_size = match params.step {
        Step::Normalised => normalised(&mut rows, panel, of, out.reborrow())?,
        Step::Theory { beta } => 2.0 / (3.0 * beta),
        Step::Fixed(eta) => eta / n as f32,
    };
    let is_scaled = matches!(params.step, Step::Theory { .. });
    let nnz = match is_scaled {
        true => threshold_scaled(&mut rows, panel, of, step_size, out.reborrow())?,
        false => threshold(&mut rows, panel, of, step_size, out.reborrow())?,
    };
    let mut info = Info { loss, step_size, nnz, refinements: 0, reads: rows.reads };
    let (index, value) = (head(out.index, nnz)?, head_mut(out.value, nnz)?);
    let new = |value| Weights::new(w.inputs(), w.hidden(), index, value).map_err(Error::widen);
    let steps = match params.refine {
        Refine::None => 0,
        Refine::Armijo { steps, .. } | Refine::ConjugateGradient { steps, .. } => steps,
    };
    if steps == 0 || index.is_empty() {
        return Ok(info);
    }
    let gates = rows.hold(gates, index)?;
    let of = Target { gates, w: new(&*value)?, ..*of };
    rows.loss(&of)?;
    let (g, rest) = carve("panel", panel, nnz)?;
    let (p, rest) = carve("panel", rest, nnz)?;
    let (h, _) = carve("panel", rest, nnz)?;
    rows.of_residual(&of, g, |sensing, r, g, scratch| {
        sensing.gradient_at(gates, index, r, g, scratch)
    })?;
    rows.reads += 1;
    // Squares of the gradient may leave the range of floats: gradient and weights are scaled alike,
    // exactly.
    let unit = unit_scale(g);
    scale(unit, g);
    scale(unit, value);
    info.refinements = match params.refine {
        Refine::ConjugateGradient { tolerance, .. } => {
            let equations = Equations { diagonal: None, lambda: 0.0, tolerance, products: steps };
            rows.solve(gates, index, equations, Unknowns { delta: &mut *value, g, p, h })?
        }
        Refine::Armijo { decrease, halvings, .. } => {
            // The theory step is a length in other coordinates; a line search gives one in these.
            let eta = (!is_scaled).then_some(step_size);
            let rule = Armijo { eta, decrease, halvings };
            armijo(steps, rule, value, g, h, |g, h| rows.normal(gates, index, g, h))?
        }
        Refine::None => 0,
    };
    info.reads = rows.reads;
    scale(1.0 / unit, value);
    if value.iter().all(|v| v.is_finite()) { Ok(info) } else { Err(Error::Diverged { step: 0 }) }
}

/// eta of the normalised rule; `out` serves as the first support where `w` has none.
fn normalised<S: Sensing>(
    rows: &mut Batch<'_, '_, S>,
    panel: &mut [f32],
    of: &Target<'_, S>,
    mut out: EntriesMut<'_>,
) -> Result<f32, S::Source> {
    let w = of.w;
    let support = if w.is_live() {
        w.index()
    } else {
        let len = threshold(rows, panel, of, 1.0, out.reborrow())?;
        head(out.index, len)?
    };
    let (g, rest) = carve("panel", panel, support.len())?;
    let (h, _) = carve("panel", rest, support.len())?;
    let gates = rows.hold(of.gates, support)?;
    rows.of_residual(of, g, |sensing, r, g, scratch| {
        sensing.gradient_at(gates, support, r, g, scratch)
    })?;
    // The ratio does not depend on the length of g; its squares may leave the range of floats, so
    // that is made 1.
    scale(unit_scale(g), g);
    rows.normal(gates, support, g, h)?;
    rows.reads += 1;
    let (slope, curvature) = (norm2(g), dot(g, h));
    match slope / curvature {
        _ if slope == 0.0 => Ok(0.0),
        eta if eta.is_normal() && eta > 0.0 => Ok(eta),
        _ => Err(Error::Diverged { step: 0 }),
    }
}

/// `H_s(w + eta A^T r)` panel by panel, with the indices that must be kept; returns the number of
/// entries.
fn threshold<S: Sensing>(
    rows: &mut Batch<'_, '_, S>,
    panel: &mut [f32],
    of: &Target<'_, S>,
    eta: f32,
    EntriesMut { index, value }: EntriesMut<'_>,
) -> Result<usize, S::Source> {
    let step = GradientStep { step_size: eta };
    let mut top = Top::keeping(index, value, of.must_keep).map_err(Error::widen)?;
    let d = of.w.inputs();
    for blocks in ranges(rows.sensing, panel.len(), d)? {
        let g = head_mut(panel, d * blocks.len())?;
        let panel = Panel { blocks, weights: of.w };
        rows.offer_step(of, &Stepped { panel, step }, g, &mut top)?;
    }
    rows.reads += 1;
    top.finish().ok_or(Error::Diverged { step: 0 })
}

/// As [`threshold`] in the coordinates `u = c w`, c the column norms of A:
/// `H_s(u + eta A^T r / c)`, back in w.
///
/// For columns that vanish see [`Step::Theory`]; a weight of such a column that is zero is on the
/// support only where it must be kept.
fn threshold_scaled<S: Sensing>(
    rows: &mut Batch<'_, '_, S>,
    panel: &mut [f32],
    of: &Target<'_, S>,
    eta: f32,
    EntriesMut { index, value }: EntriesMut<'_>,
) -> Result<usize, S::Source> {
    let (w, d) = (of.w, of.w.inputs());
    let mut top = Top::keeping(&mut *index, &mut *value, of.must_keep).map_err(Error::widen)?;
    let (mut total, mut columns, mut unseen) = (Sum::default(), 0_u32, 0_u32);
    let mut old = w.index().iter().zip(w.value()).peekable();
    for blocks in ranges(rows.sensing, panel.len(), 2 * d)? {
        let (g, norms) = head_mut(panel, 2 * d * blocks.len())?.split_at_mut(d * blocks.len());
        rows.of_residual(of, g, |sensing, r, g, _| {
            sensing.gradient(of.gates, r, blocks.clone(), g)
        })?;
        rows.of_rows(norms, |sensing, norms, scratch| {
            sensing.column_norms(of.gates, blocks.clone(), norms, scratch)
        })?;
        for ((g, norm2), j) in g.iter().zip(norms).zip((blocks.start * d) as u32..) {
            let (c, old) = (sqrt(*norm2), old.next_if(|&(&i, _)| i == j).map_or(0.0, |(_, &v)| v));
            if c > 0.0 {
                total.add(c);
                columns += 1;
                top.push(j, old * c + eta * g / c);
            } else {
                unseen += u32::from(old != 0.0);
            }
        }
    }
    rows.reads += 2;
    if unseen > 0 {
        let mean = if columns > 0 { total.value() / columns as f32 } else { 1.0 };
        rows.norms_at(panel, of.gates, w.index(), |at, norm2| {
            if let (Some(&j), Some(old)) = (w.index().get(at), w.value().get(at))
                && norm2 == 0.0
            {
                top.push(j, old * mean);
            }
        })?;
        rows.reads += 1;
    }
    let len = top.finish().ok_or(Error::Diverged { step: 0 })?;
    let (index, value) = (head(index, len)?, head_mut(value, len)?);
    rows.norms_at(panel, of.gates, index, |at, norm2| {
        let (Some(j), Some(value)) = (index.get(at), value.get_mut(at)) else { return };
        let old = || w.index().binary_search(j).ok().and_then(|at| w.value().get(at)).copied();
        *value = if norm2 > 0.0 { *value / sqrt(norm2) } else { old().unwrap_or(0.0) };
    })?;
    rows.reads += 1;
    Ok(len)
}

/// Step size and acceptance of [`Refine::Armijo`].
#[derive(Clone, Copy)]
struct Armijo {
    /// Length to start from; the exact line search where there is none.
    eta: Option<f32>,
    decrease: f32,
    halvings: u32,
}

/// Armijo steps on the quadratic `f(w + eta g) = f - 2 eta |g|² + eta² g·h`, h = `A_S^T A_S g`:
/// trials cost nothing.
fn armijo<E>(
    steps: u32,
    rule: Armijo,
    w: &mut [f32],
    g: &mut [f32],
    h: &mut [f32],
    mut normal: impl FnMut(&[f32], &mut [f32]) -> Result<(), E>,
) -> Result<u32, E> {
    let mut eta = rule.eta;
    for done in 0..steps {
        normal(g, h)?;
        let (slope, curvature) = (norm2(g), dot(g, h));
        let eta = eta.get_or_insert(slope / curvature);
        let mut halvings = 0;
        // 2 eta |g|² - eta² g·h >= decrease eta |g|²
        while *eta * curvature > (2.0 - rule.decrease) * slope {
            if halvings == rule.halvings {
                return Ok(done);
            }
            halvings += 1;
            *eta *= 0.5;
        }
        if slope == 0.0 || !eta.is_normal() {
            return Ok(done);
        }
        axpy(*eta, g, w);
        axpy(-*eta, h, g);
    }
    Ok(steps)
}

fn head<T, S>(slice: &[T], len: usize) -> Result<&[T], S> {
    slice.get(..len).ok_or(Error::Length { what: "support", expected: len, got: slice.len() })
}
