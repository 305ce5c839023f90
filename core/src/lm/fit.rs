//! Least squares on a fixed support: Levenberg-Marquardt steps whose equations are solved by conjugate gradients.
//!
//! With the gates of the current weights the network is linear on their support, `J = A_S`. One step solves
//! `(JᵀJ + λ diag(JᵀJ)) δ = Jᵀ r` to a relative residual, matrix-free, and is kept only if the loss of the true
//! network falls; λ is the only length there is. Scaling by the diagonal (Marquardt 1963) makes the result independent
//! of the scale of the columns.
//!
//! Labels of any size are brought into `[-2, 2)` by an exact power of two σ, so that squares stay in range: everything
//! here is about `σ y`, and weights are σ times those of the labels.

use super::Params;
use crate::error::{self, Error, Result};
use crate::gates::{Empty, Gates, Signs};
use crate::math::{Sum, axpy, dot, norm2, unit_scale};
use crate::sensing::{Sensing, head_mut};
use crate::weights::{Block, Editable, Weights};

/// Damping at the start and after a move.
pub(super) const LAMBDA_START: f32 = 1e-2;
/// Damping at the start of a step is at most this.
const LAMBDA_CAP: f32 = 0.1;
/// Damping never falls below this.
const LAMBDA_LEAST: f32 = 1e-6;
/// Least damping after a step that failed, before it is raised.
const LAMBDA_RETRY: f32 = 1e-5;
/// Attempts of one step.
const ATTEMPTS: u32 = 7;
/// Conjugate gradients end at this relative residual, in the norm of the preconditioner, if not before.
const TOLERANCE: f32 = 1e-2;
/// A step that is to win less than this part of the loss is not worth a try in single precision.
const WORTHLESS: f32 = 1e-6;

/// The data, the residual of the current weights, and six vectors on the support.
pub(super) struct Fit<'a, S> {
    pub(super) sensing: &'a mut S,
    pub(super) signs: Signs,
    /// Products of one attempt at the most.
    products: u32,
    /// `σ y - f(x)` of the current weights, one float per row.
    pub(super) residual: &'a mut [f32],
    vectors: Vectors<'a>,
    pub(super) scratch: &'a mut [f32],
    labels: &'a [f32],
    /// σ.
    scale: f32,
    /// Counts changes of the weights, since operators may keep gates as long as it stays the same.
    round: u32,
    /// λ.
    pub(super) lambda: f32,
    /// Rows read, all operations together.
    pub(super) rows_read: u64,
}

/// Six vectors on the support, the caller's. Outside of [`Fit::improve`] all are free.
pub(super) struct Vectors<'a> {
    /// `Jᵀ r`.
    rhs: &'a mut [f32],
    /// The residual of the equations.
    g: &'a mut [f32],
    /// The direction of conjugate gradients.
    p: &'a mut [f32],
    /// The equations' matrix times `p`; weights that are tried.
    h: &'a mut [f32],
    /// `diag(JᵀJ)`.
    diagonal: &'a mut [f32],
    /// The step δ.
    delta: &'a mut [f32],
}

impl<'a> Vectors<'a> {
    pub(super) fn new([rhs, g, p, h, diagonal, delta]: [&'a mut [f32]; 6]) -> Self {
        Self { rhs, g, p, h, diagonal, delta }
    }

    /// Two of them, free for others between two fits: one for numbers, one for indices.
    pub(super) fn spare(&mut self) -> (&mut [f32], &mut [u32]) {
        (&mut *self.p, bytemuck::cast_slice_mut(&mut *self.g))
    }
}

impl<'a, S: Sensing> Fit<'a, S> {
    /// Nothing is read yet; gates that the operator still holds from earlier runs are dropped.
    pub(super) fn new(
        sensing: &'a mut S,
        labels: &'a [f32],
        params: &Params,
        (residual, vectors, scratch): (&'a mut [f32], Vectors<'a>, &'a mut [f32]),
    ) -> Result<Self, S::Source> {
        sensing.hold(Gates::seeded(0), &[])?;
        let scale = unit_scale(labels);
        let (round, lambda, rows_read) = (1, LAMBDA_START, 0);
        let Params { signs, products, .. } = *params;
        Ok(Self {
            sensing,
            signs,
            products,
            residual,
            vectors,
            scratch,
            labels,
            scale,
            round,
            lambda,
            rows_read,
        })
    }

    /// n, rows that are fitted now.
    pub(super) fn rows(&self) -> usize {
        self.sensing.samples()
    }

    /// Fits the first `rows` rows from now on.
    pub(super) fn select(&mut self, rows: usize) -> Result<(), S::Source> {
        self.sensing.select(0..rows)
    }

    /// The scaled labels of the rows that are fitted now.
    fn targets(&self) -> impl Iterator<Item = f32> {
        let scale = self.scale;
        self.labels.iter().take(self.rows()).map(move |y| scale * y)
    }

    /// The mean square of the scaled labels of the rows that are fitted now.
    pub(super) fn power(&self) -> f32 {
        let mut sum = Sum::default();
        self.targets().for_each(|y| sum.add(y * y));
        sum.value() / self.rows() as f32
    }

    /// The least-squares factor of the outputs that the current residual belongs to.
    pub(super) fn factor(&self) -> f32 {
        let (mut along, mut norm) = (Sum::default(), Sum::default());
        for (y, r) in self.targets().zip(&*self.residual) {
            along.add(y * (y - r));
            norm.add((y - r) * (y - r));
        }
        along.value() / norm.value()
    }

    /// A loss of the scaled labels as one of the labels; infinite where it exceeds the range of floats.
    pub(super) fn in_labels(&self, loss: f32) -> f32 {
        loss / self.scale / self.scale
    }

    /// Turns weights for the scaled labels into those for the labels.
    pub(super) fn unscale(&self, values: &mut [f32]) {
        values.iter_mut().for_each(|w| *w /= self.scale);
    }

    /// The residual of the rows that are fitted now.
    pub(super) fn residual(&self) -> &[f32] {
        self.residual.get(..self.rows()).unwrap_or(&[])
    }

    /// Two vectors on the support, free until the next fit: numbers and indices.
    pub(super) fn spare(&mut self) -> (&mut [f32], &mut [u32]) {
        self.vectors.spare()
    }

    /// The operator, the current residual, and what [`Self::spare`] gives.
    pub(super) fn parts(&mut self) -> (&mut S, &[f32], &mut [f32], &mut [u32]) {
        let residual = self.residual.get(..self.sensing.samples()).unwrap_or(&[]);
        let (numbers, indices) = self.vectors.spare();
        (self.sensing, residual, numbers, indices)
    }

    /// Damps the next step as after a change that the equations do not see.
    pub(super) fn damp(&mut self) {
        self.lambda = self.lambda.max(LAMBDA_START);
    }

    /// Counts a read of all rows.
    pub(super) fn read(&mut self) {
        self.rows_read += self.rows() as u64;
    }

    /// Gates of the network with weights `w`; a new round, since weights may have changed in place.
    pub(super) fn gates<'w>(&mut self, w: Weights<'w>) -> Gates<'w> {
        self.round = self.round.wrapping_add(1);
        Gates::of(w, self.signs, Empty::Freeze, 0, self.round)
    }

    /// Mean squared error of `w`, whose residual stays in [`Self::residual`]; infinity where it is no number.
    #[inline(never)]
    pub(super) fn loss(&mut self, w: Weights<'_>) -> Result<f32, S::Source> {
        let (rows, labels, scale) = (self.rows(), self.labels, self.scale);
        let gates = self.gates(w);
        self.read();
        let out = head_mut(self.residual, rows)?;
        if w.nnz() == 0 {
            out.fill(0.0);
        } else {
            self.sensing.forward(gates, w, out)?;
        }
        for (out, y) in out.iter_mut().zip(labels) {
            *out = scale * y - *out;
        }
        let loss = norm2(out) / rows as f32;
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// `out = φ`, the output of one neuron under `gates`.
    #[inline(never)]
    pub(super) fn image(
        &mut self,
        gates: Gates<'_>,
        block: Block<'_>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        out.fill(0.0);
        self.read();
        self.sensing.apply(gates, block, out)
    }

    /// `out = A_iᵀ v` under `gates`, length d; v is the residual where there is none.
    #[inline(never)]
    pub(super) fn correlate(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: Option<&[f32]>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        out.fill(0.0);
        self.read();
        let residual = self.residual.get(..self.sensing.samples()).unwrap_or(&[]);
        self.sensing.adjoint(gates, i, v.unwrap_or(residual), out)
    }

    /// At most `steps` Levenberg-Marquardt steps from `net`, whose loss is `loss` and whose residual is current; fewer
    /// where no more can be won, or where `goal` is reached. Returns the new loss, which is not above the old one.
    #[inline(never)]
    pub(super) fn improve(
        &mut self,
        net: &mut Editable<'_>,
        mut loss: f32,
        steps: u32,
        goal: f32,
    ) -> Result<f32, S::Source> {
        for _ in 0..steps {
            if loss <= goal {
                break;
            }
            let before = loss;
            loss = self.step(net, loss)?;
            if loss >= before {
                break;
            }
        }
        Ok(loss)
    }

    /// One step: equations, a trial, and another one with more damping where the loss does not fall.
    fn step(&mut self, net: &mut Editable<'_>, loss: f32) -> Result<f32, S::Source> {
        let (s, rows) = (net.nnz(), self.rows());
        if s == 0 || !loss.is_finite() {
            return Ok(loss);
        }
        let w = net.view();
        let gates = self.gates(w);
        let held = self.round;
        let residual = self.residual.get(..rows).unwrap_or(&[]);
        let rhs = head_mut(&mut *self.vectors.rhs, s)?;
        let diagonal = head_mut(&mut *self.vectors.diagonal, s)?;
        self.sensing.hold(gates, w.index())?;
        self.sensing.gradient_at(gates, w.index(), residual, rhs, self.scratch)?;
        self.sensing.diagonal_at(gates, w.index(), diagonal, self.scratch)?;
        self.rows_read += 2 * rows as u64;
        error::finite("gradient", rhs)?;
        error::finite("squared column norms", diagonal)?;
        self.lambda = self.lambda.min(LAMBDA_CAP);
        for _ in 0..ATTEMPTS {
            let won = self.solve(net.view(), held)?;
            if !(won > WORTHLESS * loss * rows as f32) {
                break;
            }
            let Vectors { h, delta, .. } = &mut self.vectors;
            // The vector h is free once the equations are solved: it holds the weights that are tried.
            for (new, (old, delta)) in h.iter_mut().zip(net.view().value().iter().zip(&**delta)) {
                *new = old + delta;
            }
            let trial = self.trial(net)?;
            if trial < loss {
                net.values().copy_from_slice(self.vectors.h.get(..s).unwrap_or(&[]));
                self.lambda = (self.lambda / 5.0).max(LAMBDA_LEAST);
                return Ok(trial);
            }
            self.lambda = 8.0 * self.lambda.max(LAMBDA_RETRY);
        }
        self.loss(net.view())?;
        Ok(loss)
    }

    /// The loss of the weights in `h` on the support of `net`.
    fn trial(&mut self, net: &Editable<'_>) -> Result<f32, S::Source> {
        let values = core::mem::take(&mut self.vectors.h);
        let w = net.view();
        let trial = values
            .get(..w.nnz())
            .ok_or(Error::Length { what: "support", expected: w.nnz(), got: values.len() })
            .and_then(|values| Weights::new(w.inputs(), w.hidden(), w.index(), values).map_err(Error::widen))
            .and_then(|w| self.loss(w));
        self.vectors.h = values;
        trial
    }

    /// `delta` from the equations of this step, by conjugate gradients preconditioned with the diagonal; returns
    /// `rhs · delta`, twice what the linear model wins.
    #[inline(never)]
    fn solve(&mut self, w: Weights<'_>, held: u32) -> Result<f32, S::Source> {
        let (s, rows) = (w.nnz(), self.rows() as u64);
        let gates = Gates::of(w, self.signs, Empty::Freeze, 0, held);
        let damping = 1.0 + self.lambda;
        let Vectors { rhs, g, p, h, diagonal, delta } = &mut self.vectors;
        let [rhs, g, p, h, diagonal, delta] =
            [rhs, g, p, h, diagonal, delta].map(|v| head_mut::<_, S::Source>(v, s));
        let (rhs, g, p, h, diagonal, delta) = (rhs?, g?, p?, h?, diagonal?, delta?);
        // A column without norm has no equation: its weight stays.
        let solved = |diagonal: f32, g: f32| if diagonal > 0.0 { g / (diagonal * damping) } else { 0.0 };
        delta.fill(0.0);
        g.copy_from_slice(rhs);
        let mut slope = 0.0;
        for ((p, g), d) in p.iter_mut().zip(&*g).zip(&*diagonal) {
            *p = solved(*d, *g);
            slope += *p * g;
        }
        let goal = TOLERANCE * TOLERANCE * slope;
        for _ in 0..self.products {
            if !(slope > goal) {
                break;
            }
            let direction = Weights::new(w.inputs(), w.hidden(), w.index(), p).map_err(Error::widen)?;
            self.sensing.normal_at(gates, direction, h, self.scratch)?;
            self.rows_read += rows;
            for ((h, p), d) in h.iter_mut().zip(&*p).zip(&*diagonal) {
                *h += self.lambda * d * p;
            }
            let curvature = dot(p, h);
            let length = slope / curvature;
            if !(curvature > 0.0) || !length.is_finite() {
                break;
            }
            axpy(length, p, delta);
            axpy(-length, h, g);
            let mut next = 0.0;
            for (g, d) in g.iter().zip(&*diagonal) {
                next += solved(*d, *g) * g;
            }
            let beta = next / slope;
            for ((p, g), d) in p.iter_mut().zip(&*g).zip(&*diagonal) {
                *p = solved(*d, *g) + beta * *p;
            }
            slope = next;
        }
        Ok(dot(rhs, delta))
    }
}
