//! Loops for the widest vectors of a machine.

/// Runs `work` compiled for the widest vectors of this machine.
///
/// The bound matters: only a closure whose kind is `FnOnce` is inlined into the vector code, and
/// the compiler takes the kind from here. Mark the closure `#[inline(always)]`.
#[inline(always)]
pub(crate) fn vectorise<R, F: FnOnce() -> R>(arch: pulp::Arch, work: F) -> R {
    arch.dispatch(work)
}
