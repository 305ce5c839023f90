//! What a checkpoint is as words: the numbers of its state, its networks and its vectors, one
//! behind the other.
//!
//! | words | content |
//! |---|---|
//! | as many as the recipe has | the numbers of its state, as `to_words` of it gives them |
//! | 2 for each network | entries of W and of Wt |
//! | 1 for each vector | its numbers |
//! | | of each network the indices and the values of W, then those of Wt |
//! | | the numbers of each vector |
//!
//! All recipes are stored so, in a file of the host or in flash, where each word is little-endian.
//! Writing ([`Record::write`](crate::base::record::Record::write)) and reading ([`Form::read`]),
//! which borrows the words, take no memory. Every count, index and number that is read is checked.

use crate::base::error::{self, Result};
use crate::base::record::Put;
use crate::network::net::{Head, Network, Shape};
use crate::network::weights::Weights;

/// Gives the words of a checkpoint with these parts to `put`.
pub(crate) fn write<E>(
    state: &[u32],
    nets: &[Network<'_>],
    vectors: &[&[f32]],
    put: &mut impl FnMut(&[u32]) -> Put<E>,
) -> Put<E> {
    put(state)?;
    for net in nets {
        put(&[net.w().nnz() as u32, net.wt().nnz() as u32])?;
    }
    for vector in vectors {
        put(&[vector.len() as u32])?;
    }
    for side in nets.iter().flat_map(|net| [net.w(), net.wt()]) {
        put(side.index())?;
        put(bytemuck::cast_slice(side.value()))?;
    }
    vectors.iter().try_for_each(|vector| put(bytemuck::cast_slice(vector)))
}

/// The numbers of a state, one by one.
pub(crate) struct Numbers<'a>(core::slice::Iter<'a, u32>);

impl<'a> Numbers<'a> {
    pub(crate) fn new(words: &'a [u32]) -> Self {
        Self(words.iter())
    }

    /// The next one; 0 behind the last.
    pub(crate) fn int(&mut self) -> u32 {
        debug_assert!(!self.0.as_slice().is_empty(), "a state of fewer numbers");
        self.0.next().copied().unwrap_or(0)
    }

    pub(crate) fn float(&mut self) -> f32 {
        f32::from_bits(self.int())
    }

    /// # Errors
    /// [`crate::Error::Range`] for a number that is neither 0 nor 1.
    pub(crate) fn switch(&mut self, what: &'static str) -> Result<bool> {
        let word = self.int();
        error::range(what, word as usize, 0, 1)?;
        Ok(word == 1)
    }
}

/// What the checkpoints of one run look like: all that reading one needs to know, and the most
/// words that one has. Those of a recipe give theirs: [`crate::learn::train::Checkpoint::form`] and
/// its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Numbers of the state.
    pub(crate) state: usize,
    /// Sizes of its networks.
    pub(crate) shape: Shape,
    /// Networks, and entries of each at the most.
    pub(crate) nets: usize,
    pub(crate) entries: [usize; 3],
    /// Vectors, and numbers of each at the most.
    pub(crate) vectors: usize,
    pub(crate) lengths: [usize; 6],
}

impl Form {
    /// Words of the shortest checkpoint, all before the first entry of a network.
    #[must_use]
    pub const fn least_words(&self) -> usize {
        self.state + 2 * self.nets + self.vectors
    }

    /// Words of the longest one.
    #[must_use]
    pub const fn most_words(&self) -> usize {
        let ([a, b, c], [d, e, f, g, h, i]) = (self.entries, self.lengths);
        let entries = a.saturating_add(b).saturating_add(c);
        let numbers = d.saturating_add(e).saturating_add(f).saturating_add(g);
        let numbers = numbers.saturating_add(h).saturating_add(i);
        self.least_words().saturating_add(entries.saturating_mul(2)).saturating_add(numbers)
    }

    /// The contents of a checkpoint in `words`, which are exactly those that
    /// [`Record::write`](crate::base::record::Record::write) gave.
    ///
    /// # Errors
    /// [`crate::Error::Length`] where there are fewer or more words than the counts say,
    /// [`crate::Error::Range`] for more entries than there can be and an index that lies outside,
    /// [`crate::Error::Unsorted`] for indices that do not rise, [`crate::Error::NotFinite`] for
    /// numbers that are none.
    pub fn read<'a>(&self, words: &'a [u32]) -> Result<Contents<'a>> {
        let contents = Contents { form: *self, words };
        let least = self.least_words();
        error::length("words of the checkpoint", words.len().min(least), least)?;
        let mut expected = self.least_words();
        for (net, &most) in self.entries.iter().take(self.nets).enumerate() {
            let [w, wt] = contents.entries(net);
            error::range("weights of the checkpoint", w.saturating_add(wt), 0, most)?;
            expected = expected.saturating_add(w.saturating_add(wt).saturating_mul(2));
        }
        for (vector, &most) in self.lengths.iter().take(self.vectors).enumerate() {
            error::range("numbers of the checkpoint", contents.numbers(vector), 0, most)?;
            expected = expected.saturating_add(contents.numbers(vector));
        }
        error::length("words of the checkpoint", words.len(), expected)?;
        for net in 0..self.nets {
            let net = contents.net(net)?;
            error::finite("weights of the checkpoint", net.w().value())?;
            error::finite("output weights of the checkpoint", net.wt().value())?;
        }
        Ok(contents)
    }
}

/// The contents of a checkpoint, borrowed from its words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contents<'a> {
    form: Form,
    words: &'a [u32],
}

impl<'a> Contents<'a> {
    /// The numbers of the state.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for another number of them.
    pub fn state<const N: usize>(&self) -> Result<[u32; N]> {
        let state = self.words.get(..self.form.state).and_then(|words| words.try_into().ok());
        let got = self.form.state;
        state.ok_or(crate::Error::Length { what: "numbers of the state", expected: N, got })
    }

    /// The network of this number, from 0.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for one that there is not, and where indices lie outside;
    /// [`crate::Error::Unsorted`] where they do not rise.
    pub fn net(&self, net: usize) -> Result<Network<'a>> {
        error::range("network of the checkpoint", net + 1, 1, self.form.nets)?;
        let before: usize = (0..net).flat_map(|net| self.entries(net)).sum();
        let (shape, [w, wt]) = (self.form.shape, self.entries(net));
        let at = self.form.least_words() + 2 * before;
        let side = |width, at: usize, count| {
            Weights::new(
                width,
                shape.hidden,
                self.cut(at, count),
                bytemuck::cast_slice(self.cut(at + count, count)),
            )
        };
        let (w, wt) = (side(shape.inputs, at, w)?, side(shape.output_weights(), at + 2 * w, wt)?);
        match shape.head {
            Head::Signs(signs) => Ok(Network::signed(w, signs)),
            Head::Weights(_) => Network::new(w, wt),
        }
    }

    /// The vector of this number, from 0; empty where there is none.
    #[must_use]
    pub fn vector(&self, vector: usize) -> &'a [f32] {
        let entries: usize = (0..self.form.nets).flat_map(|net| self.entries(net)).sum();
        let before: usize = (0..vector).map(|vector| self.numbers(vector)).sum();
        let at = self.form.least_words() + 2 * entries + before;
        bytemuck::cast_slice(self.cut(at, self.numbers(vector)))
    }

    /// Entries of both sides of a network.
    fn entries(&self, net: usize) -> [usize; 2] {
        let at = self.form.state + 2 * net;
        [self.word(at), self.word(at + 1)]
    }

    /// Numbers of a vector.
    fn numbers(&self, vector: usize) -> usize {
        if vector < self.form.vectors {
            self.word(self.form.state + 2 * self.form.nets + vector)
        } else {
            0
        }
    }

    fn word(&self, at: usize) -> usize {
        self.words.get(at).map_or(0, |&word| word as usize)
    }

    fn cut(&self, at: usize, len: usize) -> &'a [u32] {
        self.words.get(at..at.saturating_add(len)).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Error;
    use std::vec::Vec;

    const FORM: Form = Form {
        state: 2,
        shape: Shape::weighted(4, 3, 2),
        nets: 2,
        entries: [5, 3, 0],
        vectors: 1,
        lengths: [2, 0, 0, 0, 0, 0],
    };

    fn words() -> Vec<u32> {
        let w = Weights::new(4, 3, &[1, 6, 11], &[0.5, 2.0, -1.0]).unwrap();
        let wt = Weights::new(2, 3, &[0, 5], &[4.0, 8.0]).unwrap();
        let nets = [Network::new(w, wt).unwrap(), Network::empty(FORM.shape)];
        let mut all = Vec::new();
        write::<()>(&[7, 9], &nets, &[&[0.25]], &mut |piece| {
            all.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let words = words();
        assert_eq!(words[..7], [7, 9, 3, 2, 0, 0, 1]);
        assert_eq!(words.len(), FORM.least_words() + 2 * 5 + 1);
        let contents = FORM.read(&words).unwrap();
        assert_eq!(contents.state(), Ok([7, 9]));
        let net = contents.net(0).unwrap();
        assert_eq!((net.w().index(), net.w().value()), (&[1, 6, 11][..], &[0.5, 2.0, -1.0][..]));
        assert_eq!((net.wt().index(), net.wt().value()), (&[0, 5][..], &[4.0, 8.0][..]));
        assert_eq!(contents.net(1), Ok(Network::empty(FORM.shape)));
        assert_eq!((contents.vector(0), contents.vector(1)), (&[0.25][..], &[][..]));
        assert!(matches!(contents.net(2), Err(Error::Range { max: 2, got: 3, .. })));
        assert!(matches!(contents.state::<3>(), Err(Error::Length { expected: 3, got: 2, .. })));
    }

    #[test]
    fn no_count_index_or_number_is_believed() {
        let whole = words();
        let refused = |at: usize, word: u32| {
            let mut words = whole.clone();
            words[at] = word;
            FORM.read(&words).unwrap_err()
        };
        for (at, &right) in whole.iter().enumerate().take(7).skip(2) {
            for count in [u32::MAX, u32::MAX / 2, right + 1] {
                refused(at, count);
            }
        }
        assert!(matches!(refused(2, 4), Error::Range { max: 5, got: 6, .. }));
        assert!(matches!(refused(7, 6), Error::Unsorted { at: 1 }));
        assert!(matches!(refused(9, 12), Error::Range { .. }));
        assert!(matches!(refused(10, f32::NAN.to_bits()), Error::NotFinite { at: 0, .. }));
        for len in 0..whole.len() {
            assert!(matches!(FORM.read(&whole[..len]), Err(Error::Length { .. })), "{len}");
        }
    }

    #[test]
    fn the_longest_is_one_of_all_entries() {
        assert_eq!(FORM.most_words(), 2 + 4 + 1 + 2 * 8 + 2);
    }
}
