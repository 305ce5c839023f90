//! The operator behind slices of the host, so that the suite can hold it to operators of the host.

use std::ops::Range;
use tamis::Result;
use tamis::network::gates::Gates;
use tamis::network::net::Network;
use tamis::network::weights::{Block, Weights};
use tamis::operator::factored::{Factored, GradientMut, Tangent};
use tamis::operator::machine::{Host, Machine};
use tamis::operator::sensing::Sensing;
use tamis::operator::solve::{Equations, Solved, Unknowns};
use tamis::operator::tables::Residual;
use tamis_gpu::{Error, GpuOperator};

/// Copies row vectors to the device before a call, and back after it.
pub(crate) struct OnHost {
    pub(crate) inner: GpuOperator,
    host: Host,
}

impl OnHost {
    pub(crate) fn new(inner: GpuOperator) -> Self {
        Self { inner, host: Host }
    }

    fn with<T>(&mut self, v: &[f32], body: impl FnOnce(&mut GpuOperator, &[u32]) -> T) -> T {
        let mut memory = vec![0.0; v.len()];
        let handle = self.inner.machine().upload(v, &mut memory);
        body(&mut self.inner, handle)
    }

    /// The same for residuals.
    fn with_residual<T>(
        &mut self,
        r: Residual<'_, [f32]>,
        body: impl FnOnce(&mut GpuOperator, Residual<'_, [u32]>) -> T,
    ) -> T {
        let (numbers, bits) = match r {
            Residual::Each(r) => return self.with(r, |inner, r| body(inner, Residual::Each(r))),
            Residual::Open { r, open } => (r, open),
        };
        let (mut memory, mut other) = (vec![0.0; numbers.len()], vec![0.0; bits.len()]);
        let r = self.inner.machine().upload(numbers, &mut memory);
        let open = self.inner.machine().upload(bits, &mut other);
        body(&mut self.inner, Residual::Open { r, open })
    }

    fn set<T>(
        &mut self,
        out: &mut [f32],
        body: impl FnOnce(&mut GpuOperator, &mut [u32]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut memory = vec![0.0; out.len()];
        let handle = self.inner.machine().upload(out, &mut memory);
        let result = body(&mut self.inner, handle)?;
        out.copy_from_slice(&self.inner.machine().download(handle));
        Ok(result)
    }
}

impl Sensing for OnHost {
    type Source = Error;
    type Machine = Host;

    fn machine(&mut self) -> &mut Host {
        &mut self.host
    }

    fn rows(&self) -> usize {
        self.inner.rows()
    }

    fn local_rows(&self) -> usize {
        self.inner.local_rows()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn panel(&self) -> usize {
        self.inner.panel()
    }

    fn select(&mut self, rows: Range<usize>) -> Result<(), Error> {
        self.inner.select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<(), Error> {
        self.set(out, |inner, out| inner.apply(gates, w, out))
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &[f32],
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.with(v, |inner, v| inner.adjoint(gates, i, v, out))
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>, Error> {
        self.inner.hold(gates, support)
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<(), Error> {
        self.set(out, |inner, out| inner.forward(gates, w, out))
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.with(r, |inner, r| inner.gradient(gates, r, blocks, out))
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.with(r, |inner, r| inner.gradient_at(gates, support, r, out, scratch))
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.inner.normal_at(gates, p, out, scratch)
    }

    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved, Error> {
        self.inner.solve_at(gates, support, equations, unknowns, scratch)
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.inner.diagonal_at(gates, support, out, scratch)
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.inner.column_norms(gates, blocks, out, scratch)
    }
}

impl Factored for OnHost {
    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.set(out, |inner, out| inner.net_forward(gates, net, out, scratch))
    }

    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut [f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let (mut memory, mut other) = (vec![0.0; out.len()], vec![0.0; open.len()]);
        let sums = self.inner.machine().rows_in(&mut memory);
        let bits = self.inner.machine().rows_in(&mut other);
        self.inner.net_sum_forward(gates, net, bits, sums, scratch)?;
        out.copy_from_slice(&self.inner.machine().download(sums));
        open.copy_from_slice(&self.inner.machine().download(bits));
        Ok(())
    }

    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[f32],
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        let mut memory = vec![0.0; image.len()];
        let room = self.inner.machine().rows_in(&mut memory);
        self.with(open, |inner, open| {
            inner.net_sum_normal_at(gates, tangent, open, out, room, scratch)
        })
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [f32]>,
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.with_residual(r, |inner, r| inner.net_gradient(gates, net, r, blocks, out, scratch))
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [f32]>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.with_residual(r, |inner, r| inner.net_gradient_at(gates, net, r, out, scratch))
    }

    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.set(out, |inner, out| inner.net_along(gates, tangent, out, scratch))
    }
}
