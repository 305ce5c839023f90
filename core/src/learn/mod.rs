//! The training algorithms: losses, hard thresholding, exact recovery, annealed supports and deep
//! networks.
//!
//! Every recipe has one way in, a function `run` that takes a [`start::Start`] and an observer,
//! which sees each step and ends the run with [`core::ops::ControlFlow::Break`]. A caller that
//! wants to step breaks at a checkpoint and resumes from it, to the same bits.

pub mod anneal;
pub mod checkpoint;
pub mod deep;
pub mod iht;
pub mod lm;
pub mod loss;
pub mod masked;
pub mod optimiser;
pub mod spectrum;
pub mod start;
pub mod train;
