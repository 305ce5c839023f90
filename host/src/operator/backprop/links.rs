//! The places of a layer's weights, grouped by one of their two ends.
//!
//! Grouped as they lie in a stack, by block, the other ends are the stack's own indices less where
//! the block begins; grouped by the other side, a weight takes 2 bytes, those of its block.

use std::ops::Range;

use tamis::base::error::{self, Result};
use tamis::network::weights::Weights;

/// A weight of a neuron.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Where the weight lies in its layer.
    pub(super) place: usize,
    /// The neuron at its other end.
    pub(super) other: usize,
}

/// Weights of a layer, grouped by the neurons of one side.
pub(super) trait Links {
    /// Those of a neuron; neurons are asked for in their order, each once, and all of their weights are taken.
    fn of_neuron(&mut self, neuron: usize) -> impl Iterator<Item = Link>;
}

/// The most neurons of a side of a layer: their numbers take 2 bytes.
pub(crate) const MOST_NEURONS: usize = 1 << 16;

/// Where the weights of each block of a layer begin; and the end of the last.
#[derive(Debug, PartialEq)]
pub(super) struct Starts(Vec<u32>);

impl Starts {
    /// # Errors
    /// [`error::Error::Range`] for more than 65536 neurons on a side.
    pub(super) fn of(w: Weights<'_>) -> Result<Self> {
        error::range("inputs of a layer", w.inputs(), 0, MOST_NEURONS)?;
        error::range("neurons of a layer", w.hidden(), 0, MOST_NEURONS)?;
        let mut starts = Vec::with_capacity(w.hidden() + 1);
        let mut end = 0;
        for block in w.blocks() {
            starts.resize(block.neuron() + 1, end);
            end += block.values().len() as u32;
        }
        starts.resize(w.hidden() + 1, end);
        Ok(Self(starts))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    /// The weights of a block.
    #[inline(always)]
    fn range(&self, block: usize) -> Range<usize> {
        self.0[block] as usize..self.0[block + 1] as usize
    }

    pub(super) fn blocks(&self) -> usize {
        self.0.len() - 1
    }

    /// Weights of the blocks before this one.
    pub(super) fn before(&self, block: usize) -> usize {
        self.0[block] as usize
    }

    /// The first of some blocks that has this share of their weights before it.
    pub(super) fn split(&self, blocks: &Range<usize>, share: f64) -> usize {
        let (first, end) = (self.before(blocks.start), self.before(blocks.end));
        let at = first + ((end - first) as f64 * share) as usize;
        blocks.start + self.0[blocks.clone()].partition_point(|&start| (start as usize) < at)
    }
}

/// Weights by their blocks, in the order in which they lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub(super) starts: &'a Starts,
    /// Flat indices of the layer, of blocks of `width`.
    pub(super) index: &'a [u32],
    pub(super) width: usize,
}

impl Blocks<'_> {
    #[inline(always)]
    fn of_block(&self, neuron: usize) -> impl Iterator<Item = Link> {
        let range = self.starts.range(neuron);
        let base = (neuron * self.width) as u32;
        let others = self.index[range.clone()].iter();
        range.zip(others).map(move |(place, entry)| Link { place, other: (entry - base) as usize })
    }
}

impl Links for Blocks<'_> {
    #[inline(always)]
    fn of_neuron(&mut self, neuron: usize) -> impl Iterator<Item = Link> {
        self.of_block(neuron)
    }
}

/// The order of the weights by their other ends.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Where those of each neuron begin; and the end of the last.
    starts: Vec<u32>,
    /// Block of each weight, those of a neuron in their order.
    blocks: Vec<u16>,
}

impl Turns {
    pub(super) fn of(blocks: Blocks<'_>) -> Self {
        let mut starts = vec![0_u32; blocks.width + 1];
        let all = blocks.starts.blocks();
        for i in 0..all {
            blocks.of_block(i).for_each(|link| starts[link.other + 1] += 1);
        }
        for j in 0..blocks.width {
            starts[j + 1] += starts[j];
        }
        let mut turned = vec![0; blocks.index.len()];
        // Each start moves to the end of its links, which is the next one's start.
        for i in 0..all {
            for link in blocks.of_block(i) {
                let start = &mut starts[link.other];
                turned[*start as usize] = i as u16;
                *start += 1;
            }
        }
        starts.rotate_right(1);
        starts[0] = 0;
        Self { starts, blocks: turned }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.blocks[..])
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Whether these are the weights of `blocks`, of which there were as many when these were made.
    pub(super) fn are_of(&self, blocks: Blocks<'_>) -> bool {
        let mut next = vec![0; blocks.starts.blocks()];
        let mut links = self.links(blocks.starts, &mut next);
        self.blocks.len() == blocks.index.len()
            && self.starts.len() == blocks.width + 1
            && (0..blocks.width).all(|j| {
                links.of_neuron(j).all(|Link { place, other }| {
                    let entry = blocks.index.get(place).map(|&entry| entry as usize);
                    entry == Some(other * blocks.width + j)
                })
            })
    }

    /// To be asked for, with memory for a number of each block.
    pub(super) fn links<'a>(&'a self, starts: &Starts, next: &'a mut [u32]) -> TurnedBlocks<'a> {
        let blocks = starts.blocks();
        next[..blocks].copy_from_slice(&starts.0[..blocks]);
        TurnedBlocks { turns: self, next }
    }
}

/// Weights by their other ends. Those of a block are met in the order in which they lie.
#[derive(Debug)]
pub(super) struct TurnedBlocks<'a> {
    turns: &'a Turns,
    /// Place of the next weight of each block.
    next: &'a mut [u32],
}

impl Links for TurnedBlocks<'_> {
    #[inline(always)]
    fn of_neuron(&mut self, neuron: usize) -> impl Iterator<Item = Link> {
        let Turns { starts, blocks } = self.turns;
        let range = starts[neuron] as usize..starts[neuron + 1] as usize;
        let next = &mut *self.next;
        blocks[range].iter().map(move |&block| {
            let other = usize::from(block);
            let place = next[other] as usize;
            next[other] += 1;
            Link { place, other }
        })
    }
}
