//! Between which neurons a weight is, and which neurons are on a path from an input to an output.

use crate::base::bits::is_set;
use crate::learn::deep::{Head, Stack};

/// Which neurons some input reaches, and which reach some output; inputs and outputs are neurons.
pub(super) struct Live<'m> {
    pub(super) reached: &'m mut [u32],
    pub(super) leads: &'m mut [u32],
}

fn set(bits: &mut [u32], i: usize) {
    bits.get_mut(i / 32).into_iter().for_each(|word| *word |= 1 << (i % 32));
}

/// An entry of a layer: the neurons that it is between, counted over all layers from the inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Layer `l` of a network, for its entries' ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    width: u32,
    /// The first neuron below, and the first above.
    pub(super) below: usize,
    above: usize,
    pub(super) is_end: bool,
}

impl Place {
    pub(super) fn of(stack: &Stack<'_>, l: usize) -> Self {
        let mut below = 0;
        for layer in stack.layers.iter().take(l) {
            below += layer.width;
        }
        let layer = stack.layers.get(l);
        let width = layer.map_or(1, |layer| layer.width);
        let is_end = l + 1 == stack.layers.len() && matches!(stack.head, Head::Weights(_));
        let inputs = if is_end { layer.map_or(0, |layer| layer.neurons) } else { width };
        // Entries are numbers of 32 bits, which are divided faster than those of 64.
        Self { width: width.max(1) as u32, below, above: below + inputs, is_end }
    }

    pub(super) fn ends(self, entry: u32) -> Ends {
        let (block, within) = ((entry / self.width) as usize, (entry % self.width) as usize);
        let (from, to) = if self.is_end { (block, within) } else { (within, block) };
        Ends { from: self.below + from, to: self.above + to }
    }
}

impl Live<'_> {
    /// Those of the entries that `is_kept` says so of, by their places.
    pub(super) fn find(&mut self, stack: &Stack<'_>, is_kept: impl Fn(usize) -> bool) {
        self.reached.fill(0);
        self.leads.fill(0);
        (0..stack.inputs).for_each(|i| set(self.reached, i));
        let layers = stack.layers.len();
        for l in 0..layers {
            let place = Place::of(stack, l);
            for at in stack.range(l).filter(|&at| is_kept(at)) {
                let Ends { from, to } = place.ends(stack.index.get(at).copied().unwrap_or(0));
                if is_set(self.reached, from) {
                    set(self.reached, to);
                }
            }
        }
        let outputs = stack.activations();
        (outputs..outputs + stack.outputs()).for_each(|i| set(self.leads, i));
        for l in (0..layers).rev() {
            let place = Place::of(stack, l);
            for at in stack.range(l).filter(|&at| is_kept(at)) {
                let Ends { from, to } = place.ends(stack.index.get(at).copied().unwrap_or(0));
                if is_set(self.leads, to) {
                    set(self.leads, from);
                }
            }
        }
    }

    pub(super) fn has(&self, ends: Ends) -> bool {
        is_set(self.reached, ends.from) && is_set(self.leads, ends.to)
    }
}
