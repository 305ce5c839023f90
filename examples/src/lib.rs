//! Numbered, runnable examples; see `examples/`.
