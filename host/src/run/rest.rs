//! What a run leaves of the problem that it was given.

use tamis::rng::{Permutation, stream};

use super::{Problem, Task};
use crate::data::select;
use crate::operator::Blocked;

/// What a run leaves of its problem.
pub(super) struct Rest {
    pub(super) operator: Blocked,
    pub(super) labels: Vec<f32>,
    pub(super) task: Task,
    /// The seed of the order that the run put the rows in, if it did.
    pub(super) order: Option<u64>,
}

impl Rest {
    /// The problem again, its rows perhaps in another order; in the time of a pass, and the memory of a tile.
    pub(super) fn problem(self) -> Problem {
        Problem { data: self.operator.into_data(), labels: self.labels, task: self.task }
    }

    /// The problem as it was given to the run, in its order.
    pub(super) fn given(self) -> Problem {
        let order = self.order;
        let mut problem = self.problem();
        if let Some(seed) = order {
            let order = Permutation::new(seed, stream::ROWS, problem.data.rows);
            select::restore(&mut problem.data, &mut problem.labels, |row| order.get(row));
        }
        problem
    }

    /// The labels of so many rows as they were given to the run; the rows themselves are let go.
    pub(super) fn given_labels(self, rows: usize) -> Vec<f32> {
        let Self { operator, mut labels, order, .. } = self;
        drop(operator);
        if let Some(seed) = order {
            let order = Permutation::new(seed, stream::ROWS, rows);
            select::restore_labels(&mut labels, rows, |row| order.get(row));
        }
        labels
    }
}
