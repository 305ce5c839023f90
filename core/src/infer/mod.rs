//! Prediction with a finished model, of floats or of integers. Uses nothing of training.

pub mod model;
pub mod price;
pub mod quantised;
pub mod trace;
