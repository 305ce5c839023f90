//! Where a run of any recipe begins, how its observer says whether it continues, and what it leaves.

use crate::network::net::Network;
use core::ops::ControlFlow;

/// Where a run begins; `C` is the recipe's checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start<'a, C> {
    /// Without weights.
    Zero,
    /// Where a run with the same arguments offered this checkpoint: the result and all counts are
    /// those that it would have had, bit for bit, with an operator that has the same bits. The
    /// observer is first called with the step that the checkpoint is of.
    Checkpoint(&'a C),
    /// From these weights, at most s (a *warm start*).
    Network(Network<'a>),
}

/// A finished run of any recipe: the network, borrowed from the memory that it was given, and what
/// was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained<'a, Info> {
    /// The network.
    pub network: Network<'a>,
    /// What was done.
    pub info: Info,
}

/// What an observer returns that wants the run to continue only if `condition` holds.
///
/// ```
/// use core::ops::ControlFlow;
/// assert_eq!(tamis::learn::start::continue_if(true), ControlFlow::Continue(()));
/// ```
pub const fn continue_if(condition: bool) -> ControlFlow<()> {
    if condition { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
