//! The data of a fit: rows, labels, and the residual of the current weights.
//!
//! Labels of any size are brought into `[-2, 2)`, or below where rows are spread over processes, by
//! an exact power of two σ, so that squares stay in range: everything here is about `σ y`, and
//! weights are σ times those of the labels.

use super::Params;
use super::cover::Cover;
use super::goal::{OneOutput, SeveralOutputs};
use crate::base::error::{Error, Result};
use crate::base::math::unit_scale;
use crate::network::gates::{Empty, Gates, Signs};
use crate::network::weights::{Block, Weights};
use crate::operator::machine::{Along, Machine};
use crate::operator::sensing::{Rows, Sensing, head_mut, row_head};
use core::ops::Range;

/// What the outputs of a network are to the labels: one label for each output, if not overridden.
pub(super) trait Readout<S: Sensing>: Sized {
    /// Whether its steps leave out rows whose output is below the ceiling.
    const HAS_CEILING: bool = false;

    /// Makes residuals of the outputs in [`Fit::residual`]; the sum of their squares.
    fn subtract(fit: &mut Fit<'_, S, Self>) -> Result<f32, S::Source> {
        let (terms, first, scale) = (fit.terms(), fit.first_label(), fit.scale);
        let out = row_head::<S>(&mut *fit.residual, terms)?;
        let machine = fit.sensing.machine();
        let squares = machine.residual(fit.labels, first, scale, out).map_err(Error::widen)?;
        let has_slack = fit.slack > 0.0;
        Ok(if has_slack { machine.slacken(fit.labels, first, fit.slack, out) } else { squares })
    }
}

impl<S: Sensing> Readout<S> for OneOutput {
    const HAS_CEILING: bool = true;
}

impl<S: Sensing> Readout<S> for SeveralOutputs {}

/// What a fit is made of: labels, n×c, what its networks make of them, and its memory.
pub(super) struct Data<'a, S: Sensing, H> {
    pub(super) labels: &'a Rows<S>,
    pub(super) outputs: usize,
    pub(super) head: H,
    pub(super) residual: &'a mut Rows<S>,
    pub(super) scratch: &'a mut [f32],
}

/// The data, and the residual of the current weights.
pub(super) struct Fit<'a, S: Sensing, H> {
    pub(super) sensing: &'a mut S,
    pub(super) signs: Signs,
    /// σ (ceiling - 1): times a label, how far above it an output may be; 0 for the squared error.
    pub(super) slack: f32,
    pub(super) outputs: usize,
    pub(super) head: H,
    /// `σ y - f(x)` of the current weights, less where there is slack: a float per row and label.
    pub(super) residual: &'a mut Rows<S>,
    pub(super) scratch: &'a mut [f32],
    pub(super) labels: &'a Rows<S>,
    /// Labels of a row.
    width: usize,
    /// Training rows; those behind them are validation rows.
    pub(super) train: usize,
    first: usize,
    /// σ.
    pub(super) scale: f32,
    /// The mean square of the scaled labels of the rows that are selected.
    pub(super) power: f32,
    /// Rows read, all operations together.
    pub(super) rows_read: u64,
    pub(super) cover: Cover<'a>,
}

impl<'a, S: Sensing, H: Readout<S>> Fit<'a, S, H> {
    /// A fit of all training rows.
    pub(super) fn new(
        sensing: &'a mut S,
        data: Data<'a, S, H>,
        params: &Params,
    ) -> Result<Self, S::Source> {
        let Data { labels, outputs, head, residual, scratch } = data;
        let rows = sensing.rows();
        let mut largest = [sensing.machine().largest(labels)];
        // At least the largest of all, and each process has the same.
        sensing.sum(&mut largest)?;
        let mut fit = Self {
            signs: params.signs,
            slack: 0.0,
            outputs,
            head,
            residual,
            scratch,
            labels,
            width: S::Machine::len(labels) / sensing.local(0..rows).len().max(1),
            train: rows.saturating_sub(params.validation),
            first: 0,
            scale: unit_scale(&largest),
            power: 0.0,
            rows_read: 0,
            cover: Cover::default(),
            sensing,
        };
        if H::HAS_CEILING && fit.signs == Signs::Positive {
            fit.slack = fit.scale * (params.ceiling - 1.0).max(0.0);
        }
        fit.measure()?;
        Ok(fit)
    }

    /// Residuals of the rows that are selected, whose squares are the loss.
    pub(super) fn terms(&self) -> usize {
        self.rows().saturating_mul(self.width)
    }

    /// [`Self::terms`] of the whole batch, wherever its rows are: what means are taken over.
    pub(super) fn all_terms(&self) -> f32 {
        self.sensing.batch_rows().saturating_mul(self.width) as f32
    }

    /// Rows of the whole batch, wherever they are.
    pub(super) fn batch_rows(&self) -> f32 {
        self.sensing.batch_rows() as f32
    }

    pub(super) fn rows(&self) -> usize {
        self.sensing.local_rows()
    }

    /// Looks at these rows from now on.
    pub(super) fn select(&mut self, rows: Range<usize>) -> Result<(), S::Source> {
        self.first = self.sensing.local(rows.clone()).start;
        self.sensing.select(rows)?;
        self.measure()
    }

    /// The first label of the rows that are selected.
    pub(super) fn first_label(&self) -> usize {
        self.first.saturating_mul(self.width)
    }

    /// The scaled labels of the rows that are selected, where they can be read here.
    pub(super) fn targets(&self) -> impl Iterator<Item = f32> + use<'a, S, H> {
        let (labels, first, scale) = (self.labels, self.first_label(), self.scale);
        let labels =
            S::Machine::numbers(labels).and_then(|labels| labels.get(first..)).unwrap_or(&[]);
        labels.iter().take(self.terms()).map(move |y| scale * y)
    }

    /// The sums of all processes.
    pub(super) fn sum<const N: usize>(
        &mut self,
        mut local: [f32; N],
    ) -> Result<[f32; N], S::Source> {
        self.sensing.sum(&mut local)?;
        Ok(local)
    }

    /// [`Self::sum`] of products.
    pub(super) fn sum_along(&mut self, local: Along) -> Result<Along, S::Source> {
        let [product, norm2] = self.sum([local.product, local.norm2])?;
        Ok(Along { product, norm2 })
    }

    fn measure(&mut self) -> Result<(), S::Source> {
        let (first, terms) = (self.first_label(), self.terms());
        let power = self.sensing.machine().power(self.labels, first, self.scale, terms);
        self.power = self.sum([power])?[0] / self.all_terms();
        Ok(())
    }

    /// The least-squares factor of the outputs that the current residual belongs to.
    pub(super) fn factor(&mut self) -> Result<f32, S::Source> {
        let first = self.first_label();
        let r = cut::<S>(&*self.residual, self.terms());
        let along = self.sensing.machine().fit(self.labels, first, self.scale, r);
        let Along { product, norm2 } = self.sum_along(along)?;
        Ok(product / norm2)
    }

    /// A loss of the scaled labels as one of the labels.
    pub(super) fn in_labels(&self, loss: f32) -> f32 {
        loss / self.scale / self.scale
    }

    pub(super) fn residual(&self) -> &Rows<S> {
        cut::<S>(self.residual, self.terms())
    }

    pub(super) fn read(&mut self) {
        self.rows_read = self.rows_read.saturating_add(self.rows() as u64);
    }

    /// Gates of the network with weights `w`.
    pub(super) fn gates<'w>(&self, w: Weights<'w>) -> Gates<'w> {
        Gates::of(w, self.signs, Empty::Freeze, 0, 0)
    }

    /// Makes residuals of the outputs; the mean of the squares, infinity where it is no number.
    pub(super) fn mean_square(&mut self) -> Result<f32, S::Source> {
        let total = H::subtract(self)?;
        let loss = self.sum([total])?[0] / self.all_terms();
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }

    /// The squared norms of the columns of `w`, gates included.
    pub(super) fn column_norms_of(
        &mut self,
        w: Weights<'_>,
        diagonal: &mut [f32],
    ) -> Result<(), S::Source> {
        let gates = self.gates(w);
        let diagonal = head_mut(diagonal, w.nnz())?;
        let gates = self.sensing.hold(gates, w.index())?;
        self.sensing.diagonal_at(gates, w.index(), diagonal, self.scratch)?;
        self.sensing.sum(diagonal)?;
        self.read();
        Ok(())
    }

    pub(super) fn open(&self) -> Gates<'static> {
        let none = Weights::empty(self.sensing.inputs(), self.sensing.blocks());
        Gates::of(none, Signs::Positive, Empty::Open, 0, 0)
    }

    /// `out = φ`, the output of one neuron under `gates`.
    #[inline(never)]
    pub(super) fn image(
        &mut self,
        gates: Gates<'_>,
        block: Block<'_>,
        out: &mut Rows<S>,
    ) -> Result<(), S::Source> {
        self.sensing.machine().fill(out, 0.0);
        self.read();
        self.sensing.apply(gates, block, out)
    }

    /// `out = A_iᵀ v` under `gates`, length d; v is the residual where there is none.
    #[inline(never)]
    pub(super) fn correlate(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: Option<&Rows<S>>,
        out: &mut [f32],
    ) -> Result<(), S::Source> {
        out.fill(0.0);
        self.read();
        let rows = self.sensing.local_rows();
        let residual = cut::<S>(&*self.residual, rows);
        self.sensing.adjoint(gates, i, v.unwrap_or(residual), out)?;
        self.sensing.sum(out)
    }

    pub(super) fn norm2(&mut self, a: &Rows<S>) -> Result<f32, S::Source> {
        let local = self.sensing.machine().dot(a, a);
        Ok(self.sum([local])?[0])
    }

    /// The product of `a` with the residual, and `|a|²`.
    pub(super) fn along(&mut self, a: &Rows<S>) -> Result<Along, S::Source> {
        let r = cut::<S>(&*self.residual, self.terms());
        let machine = self.sensing.machine();
        let local = Along { product: machine.dot(r, a), norm2: machine.dot(a, a) };
        self.sum_along(local)
    }
}

/// The first `len` rows.
pub(super) fn cut<S: Sensing>(rows: &Rows<S>, len: usize) -> &Rows<S> {
    debug_assert!(len <= S::Machine::len(rows), "{len} of {} rows", S::Machine::len(rows));
    S::Machine::head(rows, len).unwrap_or(rows)
}
