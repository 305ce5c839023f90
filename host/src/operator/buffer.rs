//! Floats that start at a line of the cache, so that no vector load of a kernel touches two lines.
//!
//! Restricted products took 1.2 times as long with `Vec<f32>`, which is aligned to 16 bytes or so.

use crate::data::spare;
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use std::ops::{Deref, DerefMut};

const FLOATS: usize = spare::<f32>();

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; FLOATS]);

const _: () = assert!(size_of::<Line>() == size_of::<[f32; FLOATS]>(), "padding");

// SAFETY: a line is floats alone (it has no padding, as asserted above), which may be all zeros.
unsafe impl Zeroable for Line {}

// SAFETY: a line is floats alone (it has no padding, as asserted above), whose bits may be any.
unsafe impl Pod for Line {}

/// A slice of floats of fixed length.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

impl Buffer {
    pub(super) fn zeros(len: usize) -> Self {
        Self { lines: vec![Line::zeroed(); len.div_ceil(FLOATS)], len }
    }
}

/// Floats that buffers of these lengths take in memory.
pub(super) fn floats(lengths: &[usize]) -> usize {
    lengths.iter().map(|len| len.next_multiple_of(FLOATS)).sum()
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl<'a> IntoIterator for &'a Buffer {
    type Item = &'a f32;
    type IntoIter = std::slice::Iter<'a, f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
