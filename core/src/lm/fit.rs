//! The data of a fit: rows, labels, the residual of the current weights, and the loss of a network of one output.
//!
//! Labels of any size are brought into `[-2, 2)` by an exact power of two σ, so that squares stay in range: everything
//! here is about `σ y`, and weights are σ times those of the labels.

use super::Params;
use super::cover::Cover;
use super::solver::{Equations, Solver, Vectors};
use crate::error::{Error, Result};
use crate::gates::{Empty, Gates, Signs};
use crate::math::{Sum, norm2, unit_scale};
use crate::sensing::{Sensing, head_mut};
use crate::weights::{Block, Editable, Weights};

/// What the outputs of the networks are to the labels.
pub(super) enum Head<'a> {
    /// c labels a row, one for each output.
    Each,
    /// One label a row, the sum of output 0 and of `relu` of the others: these are neurons of a second layer. The bits of a
    /// row, at least c, say which of them are open in the equations that are held; output 0 always is.
    Sum(&'a mut [u32]),
}

/// The data, the residual of the current weights, and the solver of steps.
pub(super) struct Fit<'a, S> {
    pub(super) sensing: &'a mut S,
    pub(super) signs: Signs,
    /// c, outputs of the networks.
    outputs: usize,
    pub(super) head: Head<'a>,
    /// `σ y - f(x)` of the current weights, c floats per row. Where outputs are summed up, that residual for the outputs that
    /// are open, 0 for the others: the residual times the derivative by each output.
    pub(super) residual: &'a mut [f32],
    pub(super) solver: Solver<'a>,
    pub(super) scratch: &'a mut [f32],
    labels: &'a [f32],
    /// Rows that may be fitted; those behind them are held out.
    train: usize,
    /// The first of the rows that are selected.
    first: usize,
    /// σ.
    scale: f32,
    /// Counts changes of the weights, since operators may keep gates as long as it stays the same.
    pub(super) round: u32,
    /// Rows read, all operations together.
    pub(super) rows_read: u64,
    /// Who covers rows that no neuron is open on.
    pub(super) cover: Cover<'a>,
}

impl<'a, S: Sensing> Fit<'a, S> {
    /// Nothing is read yet; gates that the operator still holds from earlier runs are dropped.
    pub(super) fn new(
        sensing: &'a mut S,
        (labels, outputs, head): (&'a [f32], usize, Head<'a>),
        params: &Params,
        (residual, vectors, scratch): (&'a mut [f32], Vectors<'a>, &'a mut [f32]),
    ) -> Result<Self, S::Source> {
        sensing.hold(Gates::seeded(0), &[])?;
        let (scale, solver) = (unit_scale(labels), Solver::new(vectors, params.products));
        let (signs, round, rows_read) = (params.signs, 1, 0);
        let (train, first) = (sensing.rows().saturating_sub(params.validation), 0);
        Ok(Self {
            sensing,
            signs,
            outputs,
            head,
            residual,
            solver,
            scratch,
            labels,
            train,
            first,
            scale,
            round,
            rows_read,
            cover: Cover::default(),
        })
    }

    /// c, outputs of the networks.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Labels of a row.
    fn width(&self) -> usize {
        match self.head {
            Head::Each => self.outputs,
            Head::Sum(_) => 1,
        }
    }

    /// Residuals of the rows that are selected whose squares are the loss.
    pub(super) fn terms(&self) -> usize {
        self.rows().saturating_mul(self.width())
    }

    /// Numbers of the outputs of the rows that are selected.
    pub(super) fn entries(&self) -> usize {
        self.rows().saturating_mul(self.outputs)
    }

    /// Rows that may be fitted: all but those held out.
    pub(super) fn all_rows(&self) -> usize {
        self.train
    }

    /// n, rows that are selected.
    pub(super) fn rows(&self) -> usize {
        self.sensing.samples()
    }

    /// Fits the first `rows` rows from now on.
    pub(super) fn select(&mut self, rows: usize) -> Result<(), S::Source> {
        self.first = 0;
        self.sensing.select(0..rows)
    }

    /// Looks at the rows held out, of which there must be some, until the next [`Self::select`].
    pub(super) fn select_held(&mut self) -> Result<(), S::Source> {
        self.first = self.train;
        self.sensing.select(self.train..self.sensing.rows())
    }

    /// The labels of the rows that are selected.
    fn labels(&self) -> &'a [f32] {
        let first = self.first.saturating_mul(self.width());
        self.labels.get(first..).and_then(|labels| labels.get(..self.terms())).unwrap_or(&[])
    }

    /// The scaled labels of the rows that are selected.
    pub(super) fn targets(&self) -> impl Iterator<Item = f32> {
        let scale = self.scale;
        self.labels().iter().map(move |y| scale * y)
    }

    /// [`Self::targets`], and the residual beside them.
    pub(super) fn targets_and_residual(&mut self) -> (impl Iterator<Item = f32> + use<'a, S>, &mut [f32]) {
        let (labels, scale, terms) = (self.labels(), self.scale, self.terms());
        (labels.iter().map(move |y| scale * y), self.residual.get_mut(..terms).unwrap_or_default())
    }

    /// The mean square of the scaled labels of the rows that are selected.
    pub(super) fn power(&self) -> f32 {
        let mut sum = Sum::default();
        self.targets().for_each(|y| sum.add(y * y));
        sum.value() / self.terms() as f32
    }

    /// The least-squares factor of the outputs that the current residual belongs to.
    pub(super) fn factor(&self) -> f32 {
        let (mut along, mut norm) = (Sum::default(), Sum::default());
        // Where outputs are summed up, the residual is that of output 0.
        let step = self.outputs.checked_div(self.width()).unwrap_or(1).max(1);
        for (y, r) in self.targets().zip(self.residual.iter().step_by(step)) {
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

    /// The residual of the rows that are selected.
    pub(super) fn residual(&self) -> &[f32] {
        self.residual.get(..self.entries()).unwrap_or(&[])
    }

    /// Two vectors on the support, free until the next fit: numbers and indices.
    pub(super) fn spare(&mut self) -> (&mut [f32], &mut [u32]) {
        self.solver.free().spare()
    }

    /// The operator, the current residual with its cover, and what [`Self::spare`] gives.
    #[allow(clippy::type_complexity, reason = "taken apart at once")]
    pub(super) fn parts(&mut self) -> (&mut S, (&[f32], &mut Cover<'a>), &mut [f32], &mut [u32]) {
        let residual = self.residual.get(..self.sensing.samples()).unwrap_or(&[]);
        let (numbers, indices) = self.solver.free().spare();
        (self.sensing, (residual, &mut self.cover), numbers, indices)
    }

    /// Counts a read of the rows that are selected.
    pub(super) fn read(&mut self) {
        self.rows_read = self.rows_read.saturating_add(self.rows() as u64);
    }

    /// Gates of the network with weights `w`; a new round, since weights may have changed in place.
    pub(super) fn gates<'w>(&mut self, w: Weights<'w>) -> Gates<'w> {
        self.round = self.round.wrapping_add(1);
        Gates::of(w, self.signs, Empty::Freeze, 0, self.round)
    }

    /// `σ y` minus the outputs in [`Self::residual`], and the mean of the squares; infinity where it is no number.
    pub(super) fn settle(&mut self) -> Result<f32, S::Source> {
        let (entries, terms, labels, scale) = (self.entries(), self.terms(), self.labels(), self.scale);
        let out = head_mut(&mut *self.residual, entries)?;
        let total = match self.head {
            Head::Each => {
                for (out, y) in out.iter_mut().zip(labels) {
                    *out = scale * y - *out;
                }
                norm2(out)
            }
            Head::Sum(_) => {
                let mut total = Sum::default();
                for (out, y) in out.chunks_mut(self.outputs.max(1)).zip(labels) {
                    let r = sum_head(out, scale * y);
                    total.add(r * r);
                }
                total.value()
            }
        };
        let loss = total / terms as f32;
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// Mean squared error of `w`, whose residual stays in [`Self::residual`]; infinity where it is no number. Rows that are covered
    /// count as [`super::cover`] says.
    #[inline(never)]
    pub(super) fn loss(&mut self, w: Weights<'_>) -> Result<f32, S::Source> {
        let (rows, gates) = (self.rows(), self.gates(w));
        self.read();
        let out = head_mut(self.residual, rows)?;
        if w.nnz() == 0 {
            out.fill(0.0);
        } else {
            self.sensing.forward(gates, w, out)?;
        }
        let loss = self.settle()?;
        self.cover(w, loss)
    }

    /// The squared norms of the columns of `w`, gates included, in the vector `diagonal`.
    pub(super) fn column_norms_of(&mut self, w: Weights<'_>) -> Result<(), S::Source> {
        let gates = self.gates(w);
        let diagonal = head_mut(&mut *self.solver.free().diagonal, w.nnz())?;
        self.sensing.hold(gates, w.index())?;
        self.sensing.diagonal_at(gates, w.index(), diagonal, self.scratch)?;
        self.read();
        Ok(())
    }

    /// Gates that are open everywhere.
    pub(super) fn open(&self) -> Gates<'static> {
        Gates::of(
            Weights::empty(self.sensing.inputs(), self.sensing.blocks()),
            Signs::Positive,
            Empty::Open,
            0,
            0,
        )
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

    /// At most `steps` Levenberg-Marquardt steps from `net`, see [`Solver::improve`].
    pub(super) fn improve(
        &mut self,
        net: &mut Editable<'_>,
        loss: f32,
        steps: u32,
        goal: f32,
    ) -> Result<f32, S::Source> {
        let mut solver = core::mem::take(&mut self.solver);
        let improved = solver.improve(&mut Support { held: self.round, fit: self, net }, loss, steps, goal);
        self.solver = solver;
        improved
    }
}

/// The residual of one row, `y` minus the sum of its outputs where they are open, in their places; the residual.
fn sum_head(out: &mut [f32], y: f32) -> f32 {
    let Some((first, others)) = out.split_first_mut() else { return y };
    let mut r = y - *first;
    for z in &*others {
        r -= z.max(0.0);
    }
    *first = r;
    // An open output is told by a residual that is not 0, so one of 0 becomes the least there is.
    let open = if r == 0.0 { f32::MIN_POSITIVE } else { r };
    for z in others {
        *z = if *z > 0.0 { open } else { 0.0 };
    }
    r
}

/// A network of one output on its support: `J = A_S` under the gates of round `held`.
struct Support<'f, 'a, 'n, S> {
    fit: &'f mut Fit<'a, S>,
    net: &'f mut Editable<'n>,
    held: u32,
}

impl<S: Sensing> Support<'_, '_, '_, S> {
    /// Other values on the support.
    fn with<'v>(net: &'v Editable<'_>, values: &'v [f32]) -> Result<Weights<'v>, S::Source> {
        let w = net.view();
        Weights::new(w.inputs(), w.hidden(), w.index(), values).map_err(Error::widen)
    }
}

impl<S: Sensing> Equations for Support<'_, '_, '_, S> {
    type Source = S::Source;

    fn values(&self) -> &[f32] {
        self.net.view().value()
    }

    fn terms(&self) -> usize {
        self.fit.terms()
    }

    fn set_up(&mut self, rhs: &mut [f32], diagonal: &mut [f32]) -> Result<(), S::Source> {
        let (w, rows) = (self.net.view(), self.fit.rows());
        let gates = self.fit.gates(w);
        self.held = self.fit.round;
        let Fit { sensing, residual, scratch, rows_read, .. } = &mut *self.fit;
        let residual = residual.get(..rows).unwrap_or(&[]);
        sensing.hold(gates, w.index())?;
        sensing.gradient_at(gates, w.index(), residual, rhs, scratch)?;
        sensing.diagonal_at(gates, w.index(), diagonal, scratch)?;
        *rows_read = rows_read.saturating_add(2 * rows as u64);
        self.fit.cover_gradient(w, rhs, diagonal)
    }

    fn multiply(&mut self, p: &[f32], out: &mut [f32]) -> Result<(), S::Source> {
        let gates = Gates::of(self.net.view(), self.fit.signs, Empty::Freeze, 0, self.held);
        let direction = Self::with(self.net, p)?;
        self.fit.sensing.normal_at(gates, direction, out, self.fit.scratch)?;
        self.fit.read();
        self.fit.cover_product(direction, out)
    }

    fn try_out(&mut self, values: &[f32]) -> Result<f32, S::Source> {
        let w = Self::with(self.net, values)?;
        self.fit.loss(w)
    }

    fn take(&mut self, values: &[f32]) {
        self.net.values().copy_from_slice(values);
    }

    fn restore(&mut self) -> Result<(), S::Source> {
        self.fit.loss(self.net.view()).map(|_| ())
    }
}
