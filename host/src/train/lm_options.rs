//! Settings of recipe `lm`.

use tamis::learn::lm;
use tamis::network::gates::Signs;

use crate::data::Task;
use crate::train::budget::Budget;

/// Settings of recipe `lm`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LmOptions {
    /// The search; its signs, seed and `validation` are set from here and the data, and its ceiling is
    /// 1 with alternations or steps of Adam.
    pub params: lm::Params,
    /// Output signs; none for positive ones where no label is negative, and free ones else.
    pub signs: Option<Signs>,
    /// Share of the rows of the validation split, which chooses the best network of at most s
    /// weights; from 0 up to but not 1.
    pub validation: f64,
    /// Most alternations of published steps and a search from there, after a search without an
    /// exact fit: for one hidden layer and one output with positive signs, and no validation split.
    /// A share of the limits is left for them, and there is no ceiling, since they lower the squared error.
    /// 0 for none.
    pub turns: u32,
    /// Steps of Adam before a search with one output; none for as many as its size asks for.
    pub adam_steps: Option<u32>,
    /// Perturbations of a search for one of several layers trained one by one: only the last one
    /// can fit exactly.
    pub layer_kicks: u32,
}

/// Outputs up to so many times the label of their class are no error, where weights of two classes are few.
const CEILING: f32 = 3.0;

impl Default for LmOptions {
    fn default() -> Self {
        Self {
            params: lm::Params::DEFAULT,
            signs: None,
            validation: 0.0,
            turns: 10,
            adam_steps: None,
            layer_kicks: 2,
        }
    }
}

impl LmOptions {
    /// The default ones for a task. Two classes need only be told apart, which few weights of one hidden
    /// layer ([`lm::EXCHANGED`]), or one neuron, do better where outputs above the label are no error
    /// ([`lm::Params::ceiling`]); they go without restarts and alternations, which take most of the time.
    ///
    /// ```
    /// use tamis_host::{Budget, data::Task, train::LmOptions};
    /// let kicks = |task, hidden: &[usize], nnz| {
    ///     LmOptions::of(task, hidden, Budget::nnz(nnz)).params.perturbations
    /// };
    /// assert_eq!([kicks(Task::Binary, &[5], 9), kicks(Task::Binary, &[5], 90)], [0, 40]);
    /// assert_eq!(kicks(Task::Binary, &[1], 90), 0);
    /// assert_eq!([kicks(Task::Binary, &[5, 5], 9), kicks(Task::Regression, &[5], 9)], [40, 40]);
    /// ```
    #[must_use]
    pub fn of(task: Task, hidden: &[usize], budget: Budget) -> Self {
        let own = Self::default();
        match (task, hidden, budget) {
            (Task::Binary, [1], _) | (Task::Binary, [_], Budget::Nonzeros(..=lm::EXCHANGED)) => {
                let params = lm::Params { perturbations: 0, ceiling: CEILING, ..own.params };
                Self { params, turns: 0, ..own }
            }
            _ => own,
        }
    }
}
