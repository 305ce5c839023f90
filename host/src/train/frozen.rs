//! Frozen earlier layers, and the memory they hold.

use tamis::base::dims::Dims;

use crate::Result;
use crate::data::{Matrix, Problem};
use crate::operator::{Blocked, Layout, Through};

/// Frozen layers that every row goes through before a run sees it, and memory held beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrozenLayers {
    /// The layers, a tile of rows at a time; none where rows are the inputs.
    pub(crate) layers: Option<Through>,
    /// Bytes that are held beside the run and count in its memory budget.
    pub(crate) beside: usize,
}

impl FrozenLayers {
    /// Inputs that the run has of each row.
    pub(crate) fn inputs(&self, problem: &Problem) -> usize {
        self.layers.as_ref().map_or(problem.data.cols, Through::width)
    }

    /// Whether the inputs are bytes.
    pub(crate) fn are_bytes(&self, problem: &Problem) -> bool {
        self.layers.is_none() && problem.data.is_bytes()
    }

    /// Bytes of the layers and of what they make of a tile in each group.
    pub(crate) fn layers_bytes(&self, dims: Dims, layout: Layout) -> usize {
        self.layers.as_ref().map_or(0, |layers| layers.bytes(dims.samples, layout))
    }

    /// The operator over these rows, or over what the layers make of them, for networks of at most
    /// so many neurons and weights.
    pub(crate) fn operator(
        self,
        data: Matrix,
        hidden: usize,
        nnz: usize,
        layout: Layout,
    ) -> Result<Blocked> {
        Ok(match self.layers {
            None => Blocked::new(data, hidden, nnz, layout)?,
            Some(layers) => Blocked::through(data, layers, hidden, nnz, layout)?,
        })
    }
}
