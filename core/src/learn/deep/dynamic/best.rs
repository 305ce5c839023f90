//! The best network on the validation rows so far, of those with the nonzeros asked for.

use super::checkpoint::State;
use crate::base::budget::Workspace;
use crate::base::error::{self, Result};
use crate::learn::deep::Stack;

#[derive(Debug)]
pub(super) struct Best<'m> {
    index: &'m mut [u32],
    value: &'m mut [f32],
}

impl<'m> Best<'m> {
    /// With room for so many weights.
    pub(super) fn new(room: usize, space: &mut Workspace<'m>) -> Result<Self> {
        Ok(Self { index: space.indices(room)?, value: space.floats(room)? })
    }

    /// The support; empty before there is one.
    pub(super) fn index(&self, at: &State) -> &[u32] {
        self.index.get(..at.best_nnz()).unwrap_or(&[])
    }

    /// The weights on it.
    pub(super) fn value(&self, at: &State) -> &[f32] {
        self.value.get(..at.best_nnz()).unwrap_or(&[])
    }

    /// Takes note of a network's loss on the validation rows, and keeps it where none was less.
    pub(super) fn see(&mut self, stack: &Stack<'_>, at: &mut State, loss: f32) {
        let is_better = loss < at.best_loss || at.best_nnz() == 0;
        if !loss.is_finite() || !is_better {
            at.waited = at.waited.saturating_add(1);
            return;
        }
        debug_assert!(stack.nnz() <= self.index.len(), "room for the network");
        (at.best_loss, at.waited) = (loss, 0);
        copy(stack.index, self.index);
        copy(stack.value, self.value);
        for (end, layer) in at.best_ends.iter_mut().zip(&stack.layers) {
            *end = layer.end as u32;
        }
    }

    /// Puts it in place of the network, where there is one.
    pub(super) fn restore(&self, stack: &mut Stack<'_>, at: &State) {
        if at.best_nnz() > 0 {
            copy(self.index, stack.index);
            copy(self.value, stack.value);
            for (layer, &end) in stack.layers.iter_mut().zip(&at.best_ends) {
                layer.end = end as usize;
            }
        }
    }

    /// Takes over that of a checkpoint, whose counters are `at`.
    pub(super) fn resume(&mut self, index: &[u32], value: &[f32], at: &State) -> Result<()> {
        error::length("weights of the best network", index.len().min(value.len()), at.best_nnz())?;
        error::range("weights of the best network", index.len(), 0, self.index.len())?;
        copy(index, self.index);
        copy(value, self.value);
        Ok(())
    }
}

/// The first numbers, as many as there are of both.
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}
