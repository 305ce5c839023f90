//! Pruning of trained networks: whole neurons and inputs first, then weights, with fine-tuning.
//!
//! Things that do not know of each other, so that a new method is one function:
//!
//! | thing | where | what it is |
//! |---|---|---|
//! | score | `scores` | a number for each neuron, input or weight |
//! | selection | `select`, `widths` | what has the largest scores; weights so that each lies on a path |
//! | cut | `cut` | neurons go, and constants are folded into biases |
//! | schedule | `schedule` | how many weights stay from round to round |
//! | training | `fit`, `lasso` | epochs with fewer weights from round to round, or under a penalty |
//! | `greedy` | `greedy` | neurons by least squares on the rows |
//!
//! [`prune`] is the one way in. A network of other programs is imported first.

mod check;
mod cut;
mod fit;
mod greedy;
mod lasso;
mod network;
mod notes;
mod options;
mod paths;
mod report;
mod rows;
mod run;
mod schedule;
mod scores;
mod select;
mod source;
mod widths;

pub use network::LastInput;
pub use options::{DenseStart, LassoOptions, Neurons, PruneOptions, Structured};
pub use report::{Compared, PruneOutcome, PruneReport, Quality};
pub use run::{group, prune};
pub use source::{PruneRows, PruneSource};

#[cfg(test)]
mod tests;
