//! Cross-validation: rows without those of a fold, and these.

use tamis::base::rng::{Permutation, stream};

use crate::Result;
use crate::data::{Problem, Task};

/// The stream that cuts rows into folds.
const FOLDS: u64 = stream::USER + (0xd5 << 32);

/// The rows without those of a fold, and these; of each class as many in each fold, or one more. The
/// only row of a class is in none.
pub(crate) fn cut(
    problem: &Problem,
    folds: usize,
    seed: u64,
    fold: usize,
) -> Result<(Problem, Problem)> {
    let rows = problem.data.rows;
    let random = Permutation::new(seed, FOLDS, rows);
    let mut order: Vec<usize> = (0..rows).map(|at| random.get(at)).collect();
    if problem.task != Task::Regression {
        order.sort_by(|&a, &b| problem.labels[a].total_cmp(&problem.labels[b]));
    }
    let counts = problem.class_rows();
    let is_alone = |row: usize| counts.get(problem.labels[row] as usize) == Some(&1);
    let is_held = |at: usize| at % folds == fold && !is_alone(order[at]);
    let side = |held: bool| {
        problem.rows((0..rows).filter(|&at| is_held(at) == held).map(|at| order[at]).collect())
    };
    Ok((side(false)?, side(true)?))
}
