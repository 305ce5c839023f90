//! Least squares on a fixed support: Levenberg-Marquardt steps whose equations are solved by conjugate gradients.
//!
//! With the gates of the current weights the network is linear on their support, `J = A_S`. One step solves
//! `(JᵀJ + λ diag(JᵀJ)) δ = Jᵀ r` to a relative residual, matrix-free, and is kept only if the loss of the true
//! network falls; λ is the only length there is. Scaling by the diagonal makes the result independent of the scale of
//! the columns.

use crate::error::{self, Error, Result};
use crate::gates::{Empty, Gates, Signs};
use crate::loss;
use crate::math::{axpy, dot};
use crate::sensing::{Sensing, head_mut};
use crate::weights::{Block, Editable, Weights};

/// Damping at the start and after a move.
const LAMBDA_START: f32 = 1e-2;
/// Damping at the start of a step is at most this.
const LAMBDA_CAP: f32 = 0.1;
/// Damping never falls below this.
const LAMBDA_LEAST: f32 = 1e-6;
/// Least damping after a step that failed, before it is raised.
const LAMBDA_RETRY: f32 = 1e-5;
/// Attempts of one step.
const ATTEMPTS: u32 = 7;
/// Conjugate gradients end at this relative residual, in the norm of the preconditioner …
const TOLERANCE: f32 = 1e-2;
/// … or after so many products.
const PRODUCTS: u32 = 40;
/// A step that is to win less than this part of the loss is not worth a try in single precision.
const WORTHLESS: f32 = 1e-6;

/// The data, the residual of the current weights, and the vectors on the support.
pub(super) struct Fit<'a, S: ?Sized> {
    pub(super) sensing: &'a mut S,
    labels: &'a [f32],
    pub(super) signs: Signs,
    /// `y - f(x)` of the current weights, one float per row.
    pub(super) residual: &'a mut [f32],
    /// Six vectors on the support.
    pub(super) rhs: &'a mut [f32],
    pub(super) g: &'a mut [f32],
    pub(super) p: &'a mut [f32],
    pub(super) h: &'a mut [f32],
    pub(super) diagonal: &'a mut [f32],
    pub(super) delta: &'a mut [f32],
    pub(super) scratch: &'a mut [f32],
    round: u32,
    lambda: f32,
    /// Rows read, all operations together.
    pub(super) rows_read: u64,
}

/// Buffers of a [`Fit`], the caller's.
pub(super) struct Vectors<'a> {
    pub(super) residual: &'a mut [f32],
    pub(super) support: [&'a mut [f32]; 6],
    pub(super) scratch: &'a mut [f32],
}

impl<'a, S: Sensing + ?Sized> Fit<'a, S> {
    pub(super) fn new(sensing: &'a mut S, labels: &'a [f32], signs: Signs, vectors: Vectors<'a>) -> Self {
        let Vectors { residual, support: [rhs, g, p, h, diagonal, delta], scratch } = vectors;
        Self {
            sensing,
            labels,
            signs,
            residual,
            rhs,
            g,
            p,
            h,
            diagonal,
            delta,
            scratch,
            round: 1,
            lambda: LAMBDA_START,
            rows_read: 0,
        }
    }

    /// n, rows that are fitted now.
    pub(super) fn rows(&self) -> usize {
        self.sensing.samples()
    }

    /// Fits the first `rows` rows from now on.
    pub(super) fn select(&mut self, rows: usize) -> Result<(), S::Source> {
        self.sensing.select(0..rows)
    }

    /// Labels of the rows that are fitted now.
    pub(super) fn labels(&self) -> &'a [f32] {
        self.labels.get(..self.rows()).unwrap_or(self.labels)
    }

    /// The residual of the rows that are fitted now.
    pub(super) fn residual(&self) -> &[f32] {
        self.residual.get(..self.sensing.samples()).unwrap_or(&[])
    }

    /// Damps the next step as after a change that the equations do not see.
    pub(super) fn damp(&mut self) {
        self.lambda = self.lambda.max(LAMBDA_START);
    }

    /// Counts a read of all rows.
    pub(super) fn read(&mut self) {
        self.rows_read += self.sensing.samples() as u64;
    }

    /// Gates of the network with weights `w`; a new round, since weights may have changed in place.
    pub(super) fn gates<'w>(&mut self, w: Weights<'w>) -> Gates<'w> {
        self.round = self.round.wrapping_add(1);
        Gates::of(w, self.signs, Empty::Freeze, 0, self.round)
    }

    /// Mean squared error of `w`, whose residual stays in [`Self::residual`]; infinity where it is no number.
    pub(super) fn loss(&mut self, w: Weights<'_>) -> Result<f32, S::Source> {
        let (rows, labels) = (self.rows(), self.labels());
        let gates = self.gates(w);
        self.read();
        let out = head_mut(self.residual, rows)?;
        if w.nnz() == 0 {
            out.fill(0.0);
        } else {
            self.sensing.forward(gates, w, out)?;
        }
        let loss = loss::square(labels, out).map_err(Error::widen)? / rows as f32;
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// `out += φ`, the output of one neuron with its own gate; `block` belongs to `w`, which holds it alone.
    pub(super) fn image(
        &mut self,
        w: Weights<'_>,
        block: Block<'_>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        let gates = self.gates(w);
        self.read();
        self.sensing.apply(gates, block, out)
    }

    /// `steps` Levenberg-Marquardt steps from `net`, whose loss is `loss` and whose residual is current; fewer where
    /// no more can be won, or where `goal` is reached. Returns the new loss.
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

    fn step(&mut self, net: &mut Editable<'_>, loss: f32) -> Result<f32, S::Source> {
        let (s, rows) = (net.nnz(), self.rows());
        if s == 0 || !loss.is_finite() {
            return Ok(loss);
        }
        self.round = self.round.wrapping_add(1);
        let held = self.round;
        let w = net.view();
        let gates = Gates::of(w, self.signs, Empty::Freeze, 0, held);
        let residual = self.residual.get(..rows).unwrap_or(&[]);
        let rhs = head_mut(&mut *self.rhs, s)?;
        let diagonal = head_mut(&mut *self.diagonal, s)?;
        self.sensing.hold(gates, w.index())?;
        self.sensing.gradient_at(gates, w.index(), residual, rhs, self.scratch)?;
        self.sensing.diagonal_at(gates, w.index(), diagonal, self.scratch)?;
        self.rows_read += 2 * rows as u64;
        error::finite("gradient", rhs)?;
        error::finite("diagonal", diagonal)?;
        self.lambda = self.lambda.min(LAMBDA_CAP);
        for _ in 0..ATTEMPTS {
            let won = self.solve(net.view(), held)?;
            if won <= WORTHLESS * loss * rows as f32 {
                break;
            }
            // The vector h is free once the equations are solved: it holds the weights that are tried.
            let delta = self.delta.get(..s).unwrap_or(&[]);
            for (new, (old, delta)) in self.h.iter_mut().zip(net.view().value().iter().zip(delta)) {
                *new = old + delta;
            }
            let trial = self.trial(net)?;
            if trial < loss {
                net.values().copy_from_slice(self.h.get(..s).unwrap_or(&[]));
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
        let values = core::mem::take(&mut self.h);
        let w = net.view();
        let trial = values
            .get(..w.nnz())
            .ok_or(Error::Length { what: "support", expected: w.nnz(), got: values.len() })
            .and_then(|values| Weights::new(w.inputs(), w.hidden(), w.index(), values).map_err(Error::widen))
            .and_then(|w| self.loss(w));
        self.h = values;
        trial
    }

    /// `delta` from the equations of this step; returns `rhs · delta`, twice what the linear model wins.
    fn solve(&mut self, w: Weights<'_>, held: u32) -> Result<f32, S::Source> {
        let (s, rows) = (w.nnz(), self.rows() as u64);
        let gates = Gates::of(w, self.signs, Empty::Freeze, 0, held);
        let damping = 1.0 + self.lambda;
        let [delta, g, p, h] = [&mut *self.delta, &mut *self.g, &mut *self.p, &mut *self.h]
            .map(|v| head_mut::<_, S::Source>(v, s));
        let (delta, g, p, h) = (delta?, g?, p?, h?);
        let rhs = self.rhs.get(..s).unwrap_or(&[]);
        let diagonal = self.diagonal.get(..s).unwrap_or(&[]);
        // A column without norm has no equation: its weight stays.
        let solved = |diagonal: f32, g: f32| if diagonal > 0.0 { g / (diagonal * damping) } else { 0.0 };
        delta.fill(0.0);
        g.copy_from_slice(rhs);
        let mut slope = 0.0;
        for ((p, g), d) in p.iter_mut().zip(&*g).zip(diagonal) {
            *p = solved(*d, *g);
            slope += *p * g;
        }
        let goal = TOLERANCE * TOLERANCE * slope;
        for _ in 0..PRODUCTS {
            if !(slope > goal) {
                break;
            }
            let direction = Weights::new(w.inputs(), w.hidden(), w.index(), p).map_err(Error::widen)?;
            self.sensing.normal_at(gates, direction, h, self.scratch)?;
            self.rows_read += rows;
            for ((h, p), d) in h.iter_mut().zip(&*p).zip(diagonal) {
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
            for (g, d) in g.iter().zip(diagonal) {
                next += solved(*d, *g) * g;
            }
            let beta = next / slope;
            for ((p, g), d) in p.iter_mut().zip(&*g).zip(diagonal) {
                *p = solved(*d, *g) + beta * *p;
            }
            slope = next;
        }
        Ok(dot(rhs, delta))
    }
}
