//! An operator around another one: counts what is called, takes another panel, or falls back to
//! provided bodies.

use tamis::Result;
use tamis::operator::sensing::Sensing;
use tamis::operator::wrapper::{Body, Operation, Wrapper};

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

impl Calls {
    fn count(&mut self, operation: Operation, blocks: usize) {
        let (calls, number) = match operation {
            Operation::Apply => (&mut self.apply, 1),
            Operation::Adjoint => (&mut self.adjoint, 1),
            Operation::Hold => (&mut self.hold, 1),
            Operation::Forward => (&mut self.forward, 1),
            Operation::Gradient => (&mut self.gradient_blocks, blocks),
            Operation::GradientAt => (&mut self.gradient_at, 1),
            Operation::NormalAt => (&mut self.normal_at, 1),
            Operation::DiagonalAt => (&mut self.diagonal_at, 1),
            Operation::ColumnNorms => (&mut self.norm_blocks, blocks),
            _ => return,
        };
        *calls += number;
    }
}

/// Passes every call on and counts it.
#[derive(Debug)]
pub struct Spy<'a, S: ?Sized> {
    inner: &'a mut S,
    panel: Option<usize>,
    body: Body,
    /// What was called.
    pub calls: Calls,
}

impl<'a, S: Sensing + ?Sized> Spy<'a, S> {
    /// Counts the calls of `inner`.
    pub fn new(inner: &'a mut S) -> Self {
        Self { inner, panel: None, body: Body::Inner, calls: Calls::default() }
    }

    /// `inner` with another panel.
    pub fn with_panel(inner: &'a mut S, panel: usize) -> Self {
        Self { panel: Some(panel), ..Self::new(inner) }
    }

    /// `inner` with its required operations only; bulk operations run the provided bodies.
    pub fn provided(inner: &'a mut S) -> Self {
        Self { body: Body::Provided, ..Self::new(inner) }
    }
}

impl<S: Sensing + ?Sized> Wrapper for Spy<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        self.inner
    }

    fn panel_blocks(&self) -> usize {
        self.panel.unwrap_or(self.inner.panel())
    }

    fn before(&mut self, operation: Operation, blocks: usize) -> Result<Body, S::Source> {
        self.calls.count(operation, blocks);
        Ok(self.body)
    }
}
