//! What a run stands behind: finished layers that its rows go through, and memory that is held beside it.

use tamis::dims::Dims;

use super::Problem;
use crate::Result;
use crate::data::Matrix;
use crate::operator::{Blocked, Layout, Through};

/// What stands before a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// Layers that every row goes through first, a tile at a time; none where rows are the inputs.
    pub(super) through: Option<Through>,
    /// Bytes that are held beside the run and count in its budget.
    pub(super) beside: usize,
}

impl Before {
    /// Nothing but so many bytes.
    pub(super) const fn beside(beside: usize) -> Self {
        Self { through: None, beside }
    }

    /// Rows, and the inputs that the run has of each.
    pub(super) fn shape(&self, problem: &Problem) -> (usize, usize) {
        (problem.data.rows, self.through.as_ref().map_or(problem.data.cols, Through::width))
    }

    /// Whether the inputs are bytes.
    pub(super) fn are_bytes(&self, problem: &Problem) -> bool {
        self.through.is_none() && problem.data.is_bytes()
    }

    /// Bytes of the layers and of what they make of a tile in each group.
    pub(super) fn layers_bytes(&self, dims: Dims, layout: Layout) -> usize {
        self.through.as_ref().map_or(0, |layers| layers.bytes(dims.samples, layout))
    }
}

/// The operator over these rows, or over what layers make of them.
pub(super) fn operator(
    data: Matrix,
    through: Option<Through>,
    (hidden, nnz): (usize, usize),
    layout: Layout,
) -> Result<Blocked> {
    Ok(match through {
        None => Blocked::new(data, hidden, nnz, layout)?,
        Some(layers) => Blocked::through(data, layers, hidden, nnz, layout)?,
    })
}
