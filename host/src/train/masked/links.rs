//! The places of a layer's weights, grouped by one of their two ends.

use tamis::base::error::{self, Result};
use tamis::network::weights::Weights;

/// Weights of a layer, grouped by neurons on one side: for each its links to the other side.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Where the links of each neuron begin; and the end of the last.
    starts: Vec<u32>,
    /// Neurons of the other side.
    others: Vec<u16>,
    /// Places of the weights; empty where they lie in this order.
    places: Vec<u32>,
}

impl Links {
    /// Links in the order of the weights: of each neuron to its inputs.
    ///
    /// # Errors
    /// [`error::Error::Range`] for more than 65536 neurons on a side.
    pub(super) fn of(w: Weights<'_>) -> Result<Self> {
        const MOST: usize = 1 << 16;
        error::range("inputs of a layer", w.inputs(), 0, MOST)?;
        error::range("neurons of a layer", w.hidden(), 0, MOST)?;
        let mut starts = Vec::with_capacity(w.hidden() + 1);
        let mut others = Vec::with_capacity(w.nnz());
        for block in w.blocks() {
            starts.resize(block.neuron() + 1, others.len() as u32);
            others.extend(block.entries().map(|(j, _)| j as u16));
        }
        starts.resize(w.hidden() + 1, others.len() as u32);
        Ok(Self { starts, others, places: Vec::new() })
    }

    /// The same links, grouped by the other side of `width` neurons.
    pub(super) fn turned(&self, width: usize) -> Self {
        let mut starts = vec![0_u32; width + 1];
        for &j in &self.others {
            starts[usize::from(j) + 1] += 1;
        }
        for j in 0..width {
            starts[j + 1] += starts[j];
        }
        let (mut others, mut places) = (vec![0; self.others.len()], vec![0; self.others.len()]);
        // Each start moves to the end of its links, which is the next one's start.
        for i in 0..self.starts.len() - 1 {
            for place in self.starts[i]..self.starts[i + 1] {
                let start = &mut starts[usize::from(self.others[place as usize])];
                others[*start as usize] = i as u16;
                places[*start as usize] = place;
                *start += 1;
            }
        }
        starts.rotate_right(1);
        starts[0] = 0;
        Self { starts, others, places }
    }

    /// Whether these are the links of `w` in its order.
    pub(super) fn are_of(&self, w: Weights<'_>) -> bool {
        self.starts.len() == w.hidden() + 1
            && self.others.len() == w.nnz()
            && w.blocks().all(|block| {
                let own = self.of_neuron(block.neuron()).map(|(_, &other)| other);
                own.eq(block.entries().map(|(j, _)| j as u16))
            })
    }

    pub(super) fn len(&self) -> usize {
        self.others.len()
    }

    /// Neurons of the other side that have links.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        self.others.iter().copied().map(usize::from)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.starts[..])
            + size_of_val(&self.others[..])
            + size_of_val(&self.places[..])
    }

    /// The links of `neuron`, numbered in their order, and their other ends.
    #[inline(always)]
    pub(super) fn of_neuron(&self, neuron: usize) -> impl Iterator<Item = (usize, &u16)> {
        let range = self.starts[neuron] as usize..self.starts[neuron + 1] as usize;
        range.clone().zip(&self.others[range])
    }

    /// Where the weight of link `at` lies.
    #[inline(always)]
    pub(super) fn place(&self, at: usize) -> usize {
        self.places.get(at).map_or(at, |&place| place as usize)
    }
}
