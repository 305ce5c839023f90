//! What a network in training is: sparse weights, gates, scores and the top-s selection, masks, and
//! the count sketch.

pub mod gates;
pub mod mask;
pub mod net;
pub mod score;
pub mod sketch;
pub mod top;
pub mod weights;
