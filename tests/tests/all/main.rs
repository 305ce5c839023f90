//! Tests across crates, in one program. Those that count allocations have a program each: the
//! allocator is theirs alone.

mod anneal;
mod anneal_ends;
mod architecture;
mod checkpoints;
mod conformance;
mod deployed;
mod device;
mod digits;
mod factored;
mod images;
mod learner;
mod learning;
mod monitor;
mod operators;
mod power_cuts;
mod processes;
mod readme;
mod recovery;
mod recovery_deep;
mod recovery_net;
mod selection;
mod slots;
mod streaming;
mod trained;
mod training;
mod training_ends;
mod windows;
