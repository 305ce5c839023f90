//! What the groups of tiles share, and the rooms that they are worked on in.

use super::buffer::Buffer;
use super::held::Held;
use super::hidden_layers::Mapped;
use super::tiles::Tiles;
use crate::base::Stop;
use pulp::Arch;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tiles: Tiles,
    pub(super) batch: Range<usize>,
    pub(super) arch: Arch,
    /// Random generators of a panel, p×d.
    pub(super) generators: Vec<f32>,
    /// Neurons of the panel that are not closed.
    pub(super) live: Vec<u32>,
    /// Outputs with weights, in order, while products along sums over outputs are formed.
    pub(super) used: Vec<u32>,
    pub(super) held: Held,
    pub(super) stop: Option<Stop>,
}

/// The accumulators of the group of tiles that is worked on here, and buffers.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The group's own: a gradient panel, one column per input, or one number per nonzero.
    pub(super) product: Buffer,
    /// `gate ∘ r` of a panel, row by row, for the rows of one matrix product.
    pub(super) gated: Buffer,
    /// Activations of a panel's random generators, then `gate ∘ r`, neuron by neuron.
    pub(super) random: Buffer,
    pub(super) z: Buffer,
    /// One number per row of a tile.
    pub(super) v: Buffer,
    /// `A_S p` on the rows of a tile.
    pub(super) image: Buffer,
    pub(super) expanded: Buffer,
    /// Outputs or residuals on the rows of a tile, output by output.
    pub(super) outputs: Buffer,
    /// `R wt_i` on the rows of a tile.
    pub(super) back: Buffer,
    /// A tile behind the layers before, where there are such.
    pub(super) mapped: Mapped,
}

impl Shared {
    pub(super) fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::asked)
    }

    /// The generator of a single random gate, d numbers.
    pub(super) fn generator(&self) -> &[f32] {
        &self.generators[..self.tiles.cols]
    }
}

/// Rooms to work on groups in, each for one at a time.
#[derive(Debug)]
pub(super) struct Rooms {
    free: Mutex<Vec<Group>>,
    freed: Condvar,
}

impl Rooms {
    pub(super) fn new(rooms: Vec<Group>) -> Self {
        Self { free: Mutex::new(rooms), freed: Condvar::new() }
    }

    /// All of them, while no group is worked on.
    pub(super) fn all(&mut self) -> &mut [Group] {
        self.free.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` in a room, with these accumulators in it; waits while none is free.
    pub(super) fn with(&self, product: &mut Buffer, work: impl FnOnce(&mut Group)) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = loop {
            match free.pop() {
                Some(room) => break room,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(free);
        std::mem::swap(&mut room.product, product);
        let mut lent = Lent { rooms: self, room: Some(room), product };
        if let Some(room) = &mut lent.room {
            work(room);
        }
    }
}

/// A room that is given back whatever happens in it: others may wait for it.
struct Lent<'r> {
    rooms: &'r Rooms,
    room: Option<Group>,
    product: &'r mut Buffer,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(mut room) = self.room.take() else { return };
        std::mem::swap(&mut room.product, self.product);
        self.rooms.free.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        self.rooms.freed.notify_one();
    }
}

/// What is written in parts, one after the other.
pub(super) trait Parts: Send + Sized {
    /// What comes before number `at`, and the rest.
    fn split(self, at: usize) -> (Self, Self);
}

impl<T: Send> Parts for &mut [T] {
    fn split(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

impl Parts for () {
    fn split(self, _: usize) -> (Self, Self) {
        ((), ())
    }
}

/// `work(g, group, out[start(g)..start(g + 1)])` for every group, by halves in parallel.
pub(super) fn fork<G: Send, P: Parts>(
    groups: &mut [G],
    first: usize,
    out: P,
    start: &(impl Fn(usize) -> usize + Sync),
    work: &(impl Fn(usize, &mut G, P) + Sync),
) {
    match groups {
        [] => {}
        [group] => work(first, group, out),
        _ => {
            let half = groups.len() / 2;
            let (left, right) = groups.split_at_mut(half);
            let (top, bottom) = out.split(start(first + half) - start(first));
            rayon::join(
                || fork(left, first, top, start, work),
                || fork(right, first + half, bottom, start, work),
            );
        }
    }
}

/// Calls a generic method on the inputs of piece `k`, whichever element they have, compiled for the
/// widest vectors; a tile of them is borrowed from the group.
macro_rules! with_piece {
    ($shared:expr, $group:expr, $k:expr, $piece:ident => $body:expr) => {{
        let mut mapped = std::mem::take(&mut $group.mapped);
        $shared.tiles.map($shared.arch, &mut mapped, &$shared.batch, $k);
        match $shared.tiles.view(&mapped, &$shared.batch, $k) {
            $crate::operator::tiles::View::F32($piece) => {
                $crate::base::vectorise(
                    $shared.arch,
                    #[inline(always)]
                    || $body,
                );
            }
            $crate::operator::tiles::View::U8($piece) => {
                $crate::base::vectorise(
                    $shared.arch,
                    #[inline(always)]
                    || $body,
                );
            }
        }
        $group.mapped = mapped;
    }};
}

pub(super) use with_piece;

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_room_is_given_back_whatever_happens_in_it() {
        let rooms = Rooms::new(vec![Group::default()]);
        let mut product = Buffer::zeros(3);
        let ends = AssertUnwindSafe(|| rooms.with(&mut product, |_| panic!("what may happen")));
        assert!(catch_unwind(ends).is_err());
        // The accumulators are there again, and so is the room.
        assert_eq!(product.len(), 3);
        rooms.with(&mut product, |group| group.product[2] = 1.0);
        assert_eq!(product[..], [0.0, 0.0, 1.0]);
    }
}
