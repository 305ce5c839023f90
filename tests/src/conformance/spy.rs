//! An operator around another one: counts what is called, takes another panel, or falls back to provided bodies.

use core::ops::Range;
use tamis::Result;
use tamis::gates::Gates;
use tamis::sensing::{Sensing, provided};
use tamis::weights::{Block, Weights};

/// How often each operation was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// [`Sensing::apply`].
    pub apply: usize,
    /// [`Sensing::adjoint`].
    pub adjoint: usize,
    /// [`Sensing::hold`].
    pub hold: usize,
    /// [`Sensing::forward`].
    pub forward: usize,
    /// Blocks of which [`Sensing::gradient`] was asked for; m of them are one read.
    pub gradient_blocks: usize,
    /// [`Sensing::gradient_at`].
    pub gradient_at: usize,
    /// [`Sensing::normal_at`].
    pub normal_at: usize,
    /// [`Sensing::diagonal_at`].
    pub diagonal_at: usize,
    /// Blocks of which [`Sensing::column_norms`] was asked for.
    pub norm_blocks: usize,
}

/// Passes every call on and counts it.
#[derive(Debug)]
pub struct Spy<'a, S: ?Sized> {
    inner: &'a mut S,
    panel: Option<usize>,
    provided: bool,
    /// What was called.
    pub calls: Calls,
}

impl<'a, S: Sensing + ?Sized> Spy<'a, S> {
    /// Counts the calls of `inner`.
    pub fn new(inner: &'a mut S) -> Self {
        Self { inner, panel: None, provided: false, calls: Calls::default() }
    }

    /// `inner` with another panel.
    pub fn with_panel(inner: &'a mut S, panel: usize) -> Self {
        Self { panel: Some(panel), ..Self::new(inner) }
    }

    /// `inner` with its required operations only; bulk operations run the provided bodies.
    pub fn provided(inner: &'a mut S) -> Self {
        Self { provided: true, ..Self::new(inner) }
    }
}

impl<S: Sensing + ?Sized> Sensing for Spy<'_, S> {
    type Source = S::Source;

    fn rows(&self) -> usize {
        self.inner.rows()
    }

    fn samples(&self) -> usize {
        self.inner.samples()
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn panel(&self) -> usize {
        self.panel.unwrap_or(self.inner.panel())
    }

    fn scratch(&self, batch: usize) -> usize {
        self.inner.scratch(batch).max(batch + self.inputs())
    }

    fn select(&mut self, rows: Range<usize>) -> Result<(), Self::Source> {
        self.inner.select(rows)
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<(), Self::Source> {
        self.calls.apply += 1;
        self.inner.apply(gates, w, out)
    }

    fn adjoint(
        &mut self,
        gates: Gates<'_>,
        i: usize,
        v: &[f32],
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.adjoint += 1;
        self.inner.adjoint(gates, i, v, out)
    }

    fn hold(&mut self, gates: Gates<'_>, support: &[u32]) -> Result<(), Self::Source> {
        self.calls.hold += 1;
        if self.provided { Ok(()) } else { self.inner.hold(gates, support) }
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<(), Self::Source> {
        self.calls.forward += 1;
        if self.provided {
            return provided::forward(self, gates, w, out);
        }
        self.inner.forward(gates, w, out)
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.gradient_blocks += blocks.len();
        if self.provided {
            return provided::gradient(self, gates, r, blocks, out);
        }
        self.inner.gradient(gates, r, blocks, out)
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.gradient_at += 1;
        if self.provided {
            return provided::gradient_at(self, gates, support, r, out, scratch);
        }
        self.inner.gradient_at(gates, support, r, out, scratch)
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.normal_at += 1;
        if self.provided {
            return provided::normal_at(self, gates, p, out, scratch);
        }
        self.inner.normal_at(gates, p, out, scratch)
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.diagonal_at += 1;
        if self.provided {
            return provided::diagonal_at(self, gates, support, out, scratch);
        }
        self.inner.diagonal_at(gates, support, out, scratch)
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Self::Source> {
        self.calls.norm_blocks += blocks.len();
        if self.provided {
            return provided::column_norms(self, gates, blocks, out, scratch);
        }
        self.inner.column_norms(gates, blocks, out, scratch)
    }
}
