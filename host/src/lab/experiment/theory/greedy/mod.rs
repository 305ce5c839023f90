//! Matrix sensing with group lasso and greedy pruning of columns (paper GREEDY: N. Rajaraman, Devvrit,
//! A. Mokhtari and K. Ramchandran, 2023).
//!
//! ```text
//! loss        population |U Uᵀ - U* U*ᵀ|_F²,  or (1/n) Σ (<A_i, U Uᵀ> - y_i)²
//! objective   loss + lambda Σ |u|² / √(|u|² + beta), over the columns u of U
//! descent     momentum; columns near 0 are dropped once all that is left of them shrinks
//! pruned      columns of norm above 2 √beta stay
//! tuned       plain descent on the loss from there
//! ```

mod certificate;
mod descent;
mod lasso;
mod problem;
mod run;

pub(super) use run::{Task, sense};
