//! One check in one situation: what it is held against, and how numbers are compared.

use super::failure::{Agreement, Failure, Outcome};
use super::situation::{Buffers, Situation};
use tamis::Error;
use tamis::base::math::{norm2, sqrt};
use tamis::network::gates::Gates;
use tamis::network::weights::Weights;
use tamis::operator::sensing::HostSensing;

/// One check in one situation.
pub(super) struct Trial<'t, O, S> {
    pub(super) oracle: &'t mut O,
    pub(super) sensing: &'t mut S,
    pub(super) situation: Situation,
    pub(super) gates: Gates<'t>,
    pub(super) w: Weights<'t>,
    pub(super) agreement: Agreement,
    pub(super) scale: Scale,
    pub(super) buffers: Buffers<'t>,
}

/// What rounding errors are measured against: bounds of every partial sum, so that cancellation is
/// no failure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The largest norm of a column.
    pub(super) column: f32,
    /// `|v|`, v the residual or the labels.
    pub(super) v: f32,
    /// The sum of `|w_j|`.
    pub(super) w: f32,
}

impl Scale {
    /// Of a batch, at weights and gates; draws `v` too.
    pub(super) fn measure<O: HostSensing>(
        oracle: &mut O,
        situation: Situation,
        gates: Gates<'_>,
        w: Weights<'_>,
        buffers: &mut Buffers<'_>,
    ) -> Result<Self, Failure> {
        let (n, d, m) = (oracle.local_rows(), oracle.inputs(), oracle.blocks());
        let norms = part(buffers.expected, m * d)?;
        call(oracle.column_norms(gates, 0..m, norms, buffers.scratch))?;
        let column = sqrt(largest(norms));
        situation.rng(2).fill_normal(buffers.v);
        let v = sqrt(norm2(part(buffers.v, n)?));
        Ok(Self { column, v, w: w.value().iter().map(|w| w.abs()).sum() })
    }

    /// Of outputs.
    pub(super) fn output(self) -> f32 {
        self.w * self.column
    }

    /// Of gradients.
    pub(super) fn gradient(self) -> f32 {
        self.v * self.column
    }
}

impl<O: HostSensing, S: HostSensing> Trial<'_, O, S> {
    /// n of the batch, d and m.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.sensing.local_rows(), self.sensing.inputs(), self.sensing.blocks())
    }

    /// The difference allowed; `None` where every bit must agree.
    pub(super) fn allow(&self, difference: f32) -> Option<f32> {
        (self.agreement != Agreement::Bits).then_some(difference)
    }

    /// As [`Self::allow`], for outputs.
    pub(super) fn allow_output(&self, difference: f32) -> Option<f32> {
        let exact = self.agreement == Agreement::Outputs && !self.situation.is_random();
        self.allow(difference).filter(|_| !exact)
    }
}

pub(super) fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |top, value| top.max(value.abs()))
}

/// Element by element: the same bits, or a difference of at most `limit`.
pub(super) fn agree(
    what: &'static str,
    expected: &[f32],
    got: &[f32],
    limit: Option<f32>,
) -> Outcome {
    let is_wrong = |expected: f32, got: f32| match limit {
        None => expected.to_bits() != got.to_bits(),
        Some(limit) => !is_within(limit, expected, got),
    };
    let mut pairs = expected.iter().zip(got).enumerate();
    match pairs.find(|(_, (expected, got))| is_wrong(**expected, **got)) {
        None => Ok(()),
        Some((at, (expected, got))) => Err(Failure::new(what, at, *expected, *got)),
    }
}

/// False for NaN.
pub(super) fn is_within(limit: f32, expected: f32, got: f32) -> bool {
    (expected - got).abs() <= limit
}

pub(super) fn count(what: &'static str, expected: usize, got: usize) -> Outcome {
    if expected == got { Ok(()) } else { Err(Failure::new(what, 0, expected as f32, got as f32)) }
}

pub(super) fn call<T, E>(result: Result<T, Error<E>>) -> Result<T, Failure> {
    result.map_err(Failure::refused)
}

pub(super) fn refused<T, E>(what: &'static str, result: Result<T, Error<E>>) -> Outcome {
    match result.map(|_| ()) {
        Err(Error::Length { .. } | Error::Range { .. }) => Ok(()),
        _ => Err(Failure::new(what, 0, f32::NAN, 0.0)),
    }
}

pub(super) fn part(buffer: &mut [f32], len: usize) -> Result<&mut [f32], Failure> {
    buffer.get_mut(..len).ok_or(Failure::new("memory", len, 0.0, 0.0))
}
