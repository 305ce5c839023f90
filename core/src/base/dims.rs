//! The sizes of one problem and the lengths that follow from them, all `const fn`.

use crate::base::error::{self, Result};

/// The most entries that indices of 32 bits count: a product that saturates is more, on every target.
pub(crate) const MOST_ENTRIES: usize = u32::MAX as usize - 1;

/// Sizes of a network with one hidden layer and one output: m·d weights, of which s stay.
///
/// ```
/// let dims = tamis::base::dims::Dims::new(50_000, 100, 10, 50);
/// assert_eq!(dims.parameters(), 1000);
/// assert!(dims.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dims {
    /// n, rows of the data.
    pub samples: usize,
    /// d, columns of the data.
    pub inputs: usize,
    /// m, hidden neurons, one block of d weights each.
    pub hidden: usize,
    /// s, nonzero weights that the network may have.
    pub nnz: usize,
}

impl Dims {
    /// Puts the four sizes together; [`Dims::check`] says whether they fit.
    #[must_use]
    pub const fn new(samples: usize, inputs: usize, hidden: usize, nnz: usize) -> Self {
        Self { samples, inputs, hidden, nnz }
    }

    /// m·d, the length of the weight vector.
    pub const fn parameters(&self) -> usize {
        self.hidden.saturating_mul(self.inputs)
    }

    /// Checks every size: none zero, s at most m·d, and m·d within 32-bit indices.
    ///
    /// # Errors
    /// [`error::Error::Range`] names the size that is out of bounds.
    pub fn check(&self) -> Result<()> {
        error::range("samples", self.samples, 1, u32::MAX as usize)?;
        error::range("inputs", self.inputs, 1, u32::MAX as usize)?;
        error::range("hidden neurons", self.hidden, 1, u32::MAX as usize)?;
        error::range("hidden neurons × inputs", self.parameters(), 1, MOST_ENTRIES)?;
        error::range("nonzero weights (nnz)", self.nnz, 1, self.parameters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn every_size_out_of_bounds_is_named() {
        let bad = |n, d, m, s| match Dims::new(n, d, m, s).check() {
            Err(Error::Range { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(bad(0, 1, 1, 1), "samples");
        assert_eq!(bad(1, 0, 1, 1), "inputs");
        assert_eq!(bad(1, 1, 0, 1), "hidden neurons");
        assert_eq!(bad(1, 1 << 20, 1 << 20, 1), "hidden neurons × inputs");
        assert_eq!(bad(1, 3, 4, 0), "nonzero weights (nnz)");
        assert_eq!(bad(1, 3, 4, 13), "nonzero weights (nnz)");
        assert!(Dims::new(1, 3, 4, 12).check().is_ok());
    }
}
