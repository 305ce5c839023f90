//! The data set after a run: shuffled by it, and restored to its original order.

use tamis::base::rng::{Permutation, stream};

use crate::data::{Problem, Task, select};
use crate::operator::Blocked;

/// Puts the rows and their labels in a random order, in place.
pub(crate) fn shuffle(problem: &mut Problem, seed: u64) {
    let order = Permutation::new(seed, stream::ROWS, problem.data.rows);
    select::reorder(&mut problem.data, &mut problem.labels, |row| order.get(row));
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
}
