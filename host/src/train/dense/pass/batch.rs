//! Rows of a batch, and the widths that a pass needs.

use std::ops::Range;

use tamis::base::rng::Permutation;

use crate::data::{Problem, Task};
use crate::train::dense::shape::{Head, Shape};

/// Rows of a set, as a step takes them.
#[derive(Clone)]
pub(in crate::train::dense) struct Batch<'a> {
    pub(in crate::train::dense) set: &'a Problem,
    /// Which rows, as positions in the order.
    pub(in crate::train::dense) rows: Range<usize>,
    /// Where the rows of these positions lie; none for the order of the set.
    pub(in crate::train::dense) order: Option<Permutation>,
    /// Factor of the inputs.
    pub(in crate::train::dense) scale: f32,
}

impl Batch<'_> {
    pub(super) fn place(&self, row: usize) -> usize {
        self.order.map_or(row, |order| order.get(row))
    }
}

/// Widths of what the layers give, and of the sum behind them where there is one.
pub(super) fn acts(shape: &Shape) -> impl Iterator<Item = usize> + '_ {
    let sum = (shape.head == Head::Sum).then_some(1);
    shape.layers().map(|layer| layer.outputs).chain(sum)
}

/// The widest of all layers' outputs.
pub(super) fn widest(shape: &Shape) -> usize {
    acts(shape).max().unwrap_or(1)
}

/// Labels of a row.
pub(super) fn labels_of(shape: &Shape, task: Task) -> usize {
    if task == Task::Multiclass { 1 } else { shape.outputs() }
}
