//! The integration tests of the core, in one program: linking many takes longer than running them.

mod deep;
mod deep_shrink;
mod must_keep;
mod quantised;
mod recovery;
mod recovery_deep;
mod recovery_ends;
mod recovery_net;
mod refused;
mod shared;
mod strips;
mod training_net;
mod wire;
mod wire_format;
