//! An operator that ends a run within a step.

use tamis::base::error::{Error, Result};
use tamis::data::samples::Rows;
use tamis::operator::gated::Gated;
use tamis::operator::wrapper::{Body, Operation, Wrapper};

/// An operator that is asked to end at one of its calls, counted over applications and adjoints.
pub(crate) struct Ending<'a> {
    inner: Gated<'a, Rows<'a>>,
    pub(crate) calls: usize,
    at: usize,
}

impl<'a> Ending<'a> {
    /// One that ends at call `at`, the first being 1.
    pub(crate) const fn new(inner: Gated<'a, Rows<'a>>, at: usize) -> Self {
        Self { inner, calls: 0, at }
    }
}

impl<'a> Wrapper for Ending<'a> {
    type Inner = Gated<'a, Rows<'a>>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.inner
    }

    fn before(&mut self, operation: Operation, _: usize) -> Result<Body> {
        if matches!(operation, Operation::Apply | Operation::Adjoint) {
            self.calls += 1;
            if self.calls == self.at {
                return Err(Error::Stopped);
            }
        }
        Ok(Body::Provided)
    }
}
