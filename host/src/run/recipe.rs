//! What the command line and the experiments mean by the name of a recipe.

use tamis::train::Schedule;

use super::Task;

/// The recipe that `--recipe auto` takes for a task: `anneal` for several classes, else `lm`.
#[must_use]
pub const fn usual_recipe(task: Task) -> &'static str {
    match task {
        Task::Multiclass => "anneal",
        Task::Regression | Task::Binary => "lm",
    }
}

/// The published schedule for one output, without trials, for batches of so many rows (0 for all).
///
/// Generators are random for the first epoch, and for two steps where an epoch is one.
#[must_use]
pub const fn published(epochs: u32, batch: usize, seed: u64) -> Schedule {
    let convex_epochs = if batch == 0 { Schedule::PAPER.convex_epochs } else { 1 };
    Schedule { epochs, batch, convex_epochs, seed, ..Schedule::PAPER }
}
