//! The data set after a run: shuffled by it, and restored to its original order.

use tamis::base::rng::{Permutation, stream};

use crate::data::select;
use crate::data::{Matrix, Problem, Task};
use crate::operator::Blocked;

/// The rows in a random order, in place; there are as many labels for every row.
pub(crate) fn shuffle(data: &mut Matrix, labels: &mut [f32], seed: u64) {
    let order = Permutation::new(seed, stream::ROWS, data.rows);
    select::reorder(data, labels, |row| order.get(row));
}

/// The data set after a run.
pub(crate) struct ReturnedData {
    pub(crate) operator: Blocked,
    pub(crate) labels: Vec<f32>,
    pub(crate) task: Task,
    /// The seed of the order that the run put the rows in, if it did.
    pub(crate) order: Option<u64>,
}

impl ReturnedData {
    /// The data set, its rows perhaps in another order; in the time of a pass, and the memory of a
    /// tile.
    pub(crate) fn shuffled(self) -> Problem {
        Problem { data: self.operator.into_data(), labels: self.labels, task: self.task }
    }

    /// The data set in its original order.
    pub(crate) fn restored(self) -> Problem {
        let order = self.order;
        let mut problem = self.shuffled();
        if let Some(seed) = order {
            let order = Permutation::new(seed, stream::ROWS, problem.data.rows);
            select::restore(&mut problem.data, &mut problem.labels, |row| order.get(row));
        }
        problem
    }

    /// The labels of so many rows in their original order; the rows themselves are let go.
    pub(crate) fn restored_labels(self, rows: usize) -> Vec<f32> {
        let Self { operator, mut labels, order, .. } = self;
        drop(operator);
        if let Some(seed) = order {
            let order = Permutation::new(seed, stream::ROWS, rows);
            select::restore_labels(&mut labels, rows, |row| order.get(row));
        }
        labels
    }
}
