//! Whole files or nothing: what is written appears under its name only when it is complete.
