//! How a network is pruned.

use clap::ValueEnum;
use serde::Serialize;

use crate::train::Budget;

/// How neurons are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Structured {
    /// The largest norms of incoming and outgoing weights, at once: no data
    Norm,
    /// Training under a group lasso, then the largest norms: labelled rows
    Lasso,
    /// One by one, each with which the next layer fits best by least squares: rows without labels
    Greedy,
}

/// How many neurons stay in each hidden layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Neurons {
    /// All of them.
    All,
    /// As many as suit the nonzeros asked for, where rows are there to train on; else all.
    Auto,
    /// So many.
    Each(Vec<usize>),
}

/// Settings of the group lasso.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LassoOptions {
    /// Factor of the penalty.
    pub lambda: f32,
    /// What makes it smooth at 0.
    pub beta: f32,
}

impl Default for LassoOptions {
    fn default() -> Self {
        Self { lambda: 3e-3, beta: 1e-4 }
    }
}

/// A dense network that is trained from nothing before it is pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenseStart {
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// Passes over all rows before anything is cut.
    pub epochs: u32,
}

/// What is asked for, and how it is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneOptions {
    /// How neurons are chosen; none for `lasso` with labelled rows, else `norm`.
    pub structured: Option<Structured>,
    /// Neurons that stay.
    pub neurons: Neurons,
    /// Inputs that are read; none for all.
    pub inputs: Option<usize>,
    /// Nonzeros of the model, biases included; none for all that are left.
    pub nnz: Option<Budget>,
    /// The group lasso.
    pub lasso: LassoOptions,
    /// Epochs under it; none for 6, or as many as make 2000 steps.
    pub lasso_epochs: Option<u32>,
    /// Epochs of fine-tuning, 0 for no fine-tuning; none for 6, or as many as make 2000 steps.
    pub epochs: Option<u32>,
    /// Rows of a batch.
    pub batch: usize,
    /// The first rate of Adam.
    pub rate: f32,
    /// Whether the weights of an imported network are for bytes as 0 to 255, not as fractions of 256.
    pub raw: bool,
    /// Whether networks to compare with are trained, too.
    pub compare: bool,
    /// Seed of the orders of the rows and of initial weights.
    pub seed: u64,
    /// Threads; 0 for one a core.
    pub threads: usize,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self {
            structured: None,
            neurons: Neurons::Auto,
            inputs: None,
            nnz: None,
            lasso: LassoOptions::default(),
            lasso_epochs: None,
            epochs: None,
            batch: 128,
            rate: 5e-3,
            raw: false,
            compare: true,
            seed: 0,
            threads: 0,
        }
    }
}
