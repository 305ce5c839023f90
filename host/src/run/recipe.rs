//! What the command line and the experiments mean by the name of a recipe.

use tamis::train::Schedule;

use super::{Size, Task};

/// Nonzeros from which two classes are told apart by their log-odds. Fewer than that are too few for weights on both sides of
/// neurons for and against a class; least squares does with one.
const CLASSED: usize = 10;

/// The recipe that `--recipe auto` takes for a task and one hidden layer of so many neurons and weights: `anneal` for classes, but
/// `lm` for two classes with fewer than ten nonzeros or one neuron, which cannot be for one class and for the other; and `lm` for
/// numbers.
///
/// ```
/// use tamis_host::run::{Size, Task, usual_recipe};
/// assert_eq!(usual_recipe(Task::Binary, 10, Size::Nonzeros(100)), "anneal");
/// assert_eq!(usual_recipe(Task::Binary, 10, Size::Nonzeros(1)), "lm");
/// assert_eq!(usual_recipe(Task::Binary, 1, Size::Nonzeros(100)), "lm");
/// ```
#[must_use]
pub const fn usual_recipe(task: Task, hidden: usize, size: Size) -> &'static str {
    match (task, hidden, size) {
        (Task::Binary, 1, _) => "lm",
        (Task::Binary, _, Size::Nonzeros(s)) if s < CLASSED => "lm",
        (Task::Binary | Task::Multiclass, ..) => "anneal",
        (Task::Regression, ..) => "lm",
    }
}

/// The published schedule for one output, without trials, for batches of so many rows (0 for all).
///
/// Generators are random for the first epoch, and for two steps where an epoch is one.
#[must_use]
pub const fn published(epochs: u32, batch: usize, seed: u64) -> Schedule<'static> {
    let convex_epochs = if batch == 0 { Schedule::PAPER.convex_epochs } else { 1 };
    Schedule { epochs, batch, convex_epochs, seed, ..Schedule::PAPER }
}
