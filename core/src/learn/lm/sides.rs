//! A network in memory of its own: entries of W, then those of Wt, in one buffer, so that one budget
//! holds for both. A network of one output, whose output weights are signs, has no second side.

use crate::base::error::{Error, Result};
use crate::network::net::{Count, EntriesMut, Network, Shape};
use crate::network::weights::{Editable, Weights};
use core::ops::Range;

/// A network under construction in caller-owned buffers, the room for both sides together.
pub(super) struct Sides<'a> {
    shape: Shape,
    /// Entries of W, and of Wt.
    first: usize,
    second: usize,
    index: &'a mut [u32],
    value: &'a mut [f32],
}

impl<'a> Sides<'a> {
    /// No weights yet.
    pub(super) fn new(shape: Shape, index: &'a mut [u32], value: &'a mut [f32]) -> Self {
        Self { shape, first: 0, second: 0, index, value }
    }

    pub(super) fn view(&self) -> Network<'_> {
        self.with(self.all_values())
    }

    /// Other values, as many, on the support.
    pub(super) fn with<'v>(&'v self, values: &'v [f32]) -> Network<'v> {
        Network::cut(self.shape, self.index, values, Count { first: self.first, all: self.nnz() })
    }

    pub(super) fn nnz(&self) -> usize {
        self.first + self.second
    }

    pub(super) fn room(&self) -> usize {
        self.index.len().min(self.value.len())
    }

    /// The values of both sides, to be changed in place.
    pub(super) fn values(&mut self) -> (&mut [f32], &mut [f32]) {
        let (first, len) = (self.first, self.nnz());
        let all = self.value.get_mut(..len).unwrap_or_default();
        all.split_at_mut_checked(first).unwrap_or_default()
    }

    /// The values of both sides, those of W first.
    pub(super) fn all_values(&self) -> &[f32] {
        self.value.get(..self.nnz()).unwrap_or(&[])
    }

    pub(super) fn set_values(&mut self, values: &[f32]) {
        for (to, from) in self.value.iter_mut().zip(values) {
            *to = *from;
        }
    }

    pub(super) fn is_signed(&self) -> bool {
        self.shape.output_weights() == 0
    }

    /// The values of the last side that there is.
    pub(super) fn last_values(&mut self) -> &mut [f32] {
        let is_signed = self.is_signed();
        let (w, wt) = self.values();
        if is_signed { w } else { wt }
    }

    pub(super) fn values_of(&mut self, i: usize) -> (&mut [f32], &mut [f32]) {
        let (first, second) = self.ranges(i);
        let (w, wt) = self.values();
        (w.get_mut(first).unwrap_or_default(), wt.get_mut(second).unwrap_or_default())
    }

    /// The positions of the entries of neuron `i`, each within its side.
    fn ranges(&self, i: usize) -> (Range<usize>, Range<usize>) {
        let range = |w: Weights<'_>| {
            let below = |end: usize| w.index().partition_point(|&j| (j as usize) < end);
            below(i.saturating_mul(w.inputs()))
                ..below(i.saturating_add(1).saturating_mul(w.inputs()))
        };
        (range(self.view().w()), range(self.view().wt()))
    }

    pub(super) fn clear(&mut self) {
        (self.first, self.second) = (0, 0);
    }

    /// Becomes a copy of `from`, which must fit.
    pub(super) fn store<S>(&mut self, from: Network<'_>) -> Result<(), S> {
        let (needed, got) = (from.nnz(), self.room());
        if needed > got {
            return Err(Error::Length { what: "room for weights", expected: needed, got });
        }
        from.copy_to(EntriesMut { index: self.index, value: self.value });
        (self.first, self.second) = (from.w().nnz(), from.wt().nnz());
        Ok(())
    }

    pub(super) fn edit_w<R>(&mut self, edit: impl FnOnce(&mut Editable<'_>) -> R) -> R {
        // What follows waits at the end of the buffer meanwhile.
        let (room, second) = (self.room(), self.second);
        self.shift(self.first, room - second);
        let index = self.index.get_mut(..room - second).unwrap_or_default();
        let value = self.value.get_mut(..room - second).unwrap_or_default();
        let mut side =
            Editable::resumed(self.shape.inputs, self.shape.hidden, self.first, index, value);
        let result = edit(&mut side);
        self.first = side.nnz();
        self.shift(room - second, self.first);
        result
    }

    pub(super) fn edit_wt<R>(&mut self, edit: impl FnOnce(&mut Editable<'_>) -> R) -> R {
        let room = self.room();
        let index = self.index.get_mut(self.first..room).unwrap_or_default();
        let value = self.value.get_mut(self.first..room).unwrap_or_default();
        let (c, m) = (self.shape.output_weights(), self.shape.hidden);
        let mut side = Editable::resumed(c, m, self.second, index, value);
        let result = edit(&mut side);
        self.second = side.nnz();
        result
    }

    fn shift(&mut self, from: usize, to: usize) {
        self.index.copy_within(from..from + self.second, to);
        self.value.copy_within(from..from + self.second, to);
    }

    pub(super) fn remove(&mut self, i: usize) {
        self.edit_w(|w| w.remove(i));
        self.edit_wt(|wt| wt.remove(i));
    }

    /// Gives neuron `to` the entries of neuron `from`; false if they do not fit or it has some.
    pub(super) fn copy(&mut self, from: usize, to: usize) -> bool {
        let (first, second) = self.ranges(from);
        let fits = self.nnz() + first.len() + second.len() <= self.room();
        fits && self.edit_w(|w| w.copy(from, to)) && self.edit_wt(|wt| wt.copy(from, to))
    }

    /// Removes weights that are zero, and neurons that are left with one side of two.
    pub(super) fn compact(&mut self) {
        self.edit_w(|w| w.retain(|_, value| value != 0.0));
        self.edit_wt(|wt| wt.retain(|_, value| value != 0.0));
        self.clear_halves();
    }

    /// Removes neurons that have one side of two. Without a second side nothing changes.
    pub(super) fn clear_halves(&mut self) {
        if self.is_signed() {
            return;
        }
        for i in 0..self.shape.hidden {
            let (first, second) = self.ranges(i);
            if first.is_empty() != second.is_empty() {
                self.remove(i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn net<'a>(w: (&'a [u32], &'a [f32]), wt: (&'a [u32], &'a [f32])) -> Network<'a> {
        Network::new(Weights::new(3, 4, w.0, w.1).unwrap(), Weights::new(2, 4, wt.0, wt.1).unwrap())
            .unwrap()
    }

    #[test]
    fn each_side_may_use_room_left_by_other() {
        let (mut index, mut value) = ([0; 6], [0.0; 6]);
        let mut sides = Sides::new(Shape::weighted(3, 4, 2), &mut index, &mut value);
        assert!(sides.edit_wt(|wt| wt.add(&[0, 3], &[1.0, 2.0])));
        assert!(sides.edit_w(|w| w.add(&[0, 5], &[3.0, 4.0])));
        assert!(sides.edit_wt(|wt| wt.add(&[1], &[5.0])));
        assert!(
            !sides.edit_w(|w| w.add(&[6, 7], &[1.0, 1.0])) && sides.edit_w(|w| w.add(&[1], &[6.0]))
        );
        let expected = net((&[0, 1, 5], &[3.0, 6.0, 4.0]), (&[0, 1, 3], &[1.0, 5.0, 2.0]));
        assert_eq!(sides.view(), expected);
        assert_eq!((sides.nnz(), sides.room()), (6, 6));
        sides.remove(0);
        assert_eq!(sides.view(), net((&[5], &[4.0]), (&[3], &[2.0])));
        assert!(!sides.copy(1, 1) && sides.copy(1, 3));
        assert_eq!(sides.view(), net((&[5, 11], &[4.0, 4.0]), (&[3, 7], &[2.0, 2.0])));
        assert_eq!(sides.values_of(3), (&mut [4.0][..], &mut [2.0][..]));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let (mut index, mut value) = ([0; 3], [0.0; 3]);
        let mut sides = Sides::new(Shape::weighted(3, 4, 2), &mut index, &mut value);
        let small = net((&[0], &[1.0]), (&[1], &[2.0]));
        sides.store::<()>(small).unwrap();
        let large = net((&[0, 1], &[1.0, 1.0]), (&[0, 1], &[1.0, 1.0]));
        assert!(matches!(sides.store::<()>(large), Err(Error::Length { expected: 4, got: 3, .. })));
        assert!(!sides.copy(0, 1));
        assert_eq!(sides.view(), small);
    }

    #[test]
    fn zeros_and_halves_vanish() {
        let (mut index, mut value) = ([0; 8], [0.0; 8]);
        let mut sides = Sides::new(Shape::weighted(3, 4, 2), &mut index, &mut value);
        sides
            .store::<()>(net(
                (&[0, 1, 4, 9], &[1.0, 0.0, 0.0, 2.0]),
                (&[0, 3, 4], &[3.0, 4.0, 5.0]),
            ))
            .unwrap();
        sides.compact();
        assert_eq!(sides.view(), net((&[0], &[1.0]), (&[0], &[3.0])));
    }
}
