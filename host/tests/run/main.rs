//! Training, checkpoints and pictures through the library.

mod deep;
mod held;
mod imp;
mod keep;
mod keep_steps;
mod path;
mod plot;
mod refit;
mod strips;
mod turns;
