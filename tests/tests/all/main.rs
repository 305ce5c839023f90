//! Tests across crates, in one program. Those that count allocations have a program each: the
//! allocator is theirs alone.

mod anneal;
mod architecture;
mod checkpoints;
mod conformance;
mod deployed;
mod device;
mod digits;
mod images;
mod learner;
mod learning;
mod monitor;
mod power_cuts;
mod readme;
mod recovery;
mod recovery_deep;
mod recovery_net;
mod streaming;
mod training;
mod windows;
