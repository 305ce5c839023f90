//! A mask of an MLP: which weights are kept, and whether paths lead through them.

use serde::Serialize;
use tamis::network::mask::Mlp;
use tamis::network::mask::packed::{self, insert};

use crate::{Error, Result};

/// A layer of weights as files name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerName {
    /// As errors and reports call it, such as `layer1`.
    pub name: String,
    /// The array of its weights, such as `layer1.weight`.
    pub array: String,
    /// Whether that array lies inputs × outputs, as those of Keras and scikit-learn do.
    pub in_out: bool,
}

impl LayerName {
    /// Layers `layer1`, `layer2`, … whose arrays are those of `PyTorch`.
    #[must_use]
    pub fn numbered(count: usize) -> Vec<Self> {
        let name = |number| format!("layer{number}");
        let layer = |number| Self {
            name: name(number),
            array: format!("{}.weight", name(number)),
            in_out: false,
        };
        (1..=count).map(layer).collect()
    }
}

/// A mask of the weights of an MLP.
///
/// ```
/// use tamis_host::model::{LayerName, Mask};
/// // 3 inputs, 2 hidden neurons, 1 output: the second neuron leads nowhere.
/// let mask = Mask::new(LayerName::numbered(2), vec![3, 2, 1], vec![0, 2, 4, 6]).unwrap();
/// let first = &mask.layers()[0];
/// assert_eq!((first.kept, first.live_neurons, first.dead_weights), (3, 1, 1));
/// assert_eq!(mask.collapsed(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    names: Vec<LayerName>,
    widths: Vec<usize>,
    /// Flat indices, rising: layer by layer, each outputs × inputs.
    index: Vec<u32>,
}

/// What a mask has in one layer; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaskedLayer {
    /// As files call it.
    pub name: String,
    /// Its weights in the mask.
    pub kept: usize,
    /// Its outputs that lie on a path from an input to an output.
    pub live_neurons: usize,
    /// Weights in the mask that lie on no such path.
    pub dead_weights: usize,
}

impl Mask {
    /// A mask of these flat indices, which rise, of a network of these widths.
    ///
    /// # Errors
    /// Widths that no network has, another number of names, indices that do not rise or are beyond
    /// the network.
    pub fn new(names: Vec<LayerName>, widths: Vec<usize>, index: Vec<u32>) -> Result<Self> {
        let net = Mlp::new(&widths)?;
        let sorted = index.is_sorted_by(|a, b| a < b);
        let inside = index.last().is_none_or(|&last| (last as usize) < net.weights());
        if names.len() != net.layers().len() || !sorted || !inside {
            return Err(Error::new("the mask is none of the network")
                .expected(format_args!(
                    "names for {} layers, and rising indices below {}",
                    net.layers().len(),
                    net.weights()
                ))
                .got(format_args!("{} names, {} indices", names.len(), index.len())));
        }
        Ok(Self { names, widths, index })
    }

    /// Names of the layers, from the inputs to the outputs.
    #[must_use]
    pub fn names(&self) -> &[LayerName] {
        &self.names
    }

    /// Widths from the inputs to the outputs.
    #[must_use]
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// Flat indices of its weights, rising: layer by layer, each outputs × inputs, row by row.
    #[must_use]
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// The network's shape.
    ///
    /// # Errors
    /// None for a mask that could be made.
    pub(crate) fn net(&self) -> Result<Mlp<'_>> {
        Ok(Mlp::new(&self.widths)?)
    }

    /// Its weights of each layer, as indices within the layer.
    pub(crate) fn by_layer(&self) -> impl DoubleEndedIterator<Item = MaskLayer<'_>> {
        let firsts = self.widths.windows(2).scan(0, |first, pair| {
            let own = *first;
            *first += pair[0] * pair[1];
            Some((own, pair[0], pair[1]))
        });
        let layers: Vec<_> = firsts
            .map(|(first, inputs, outputs)| {
                let at = |end: usize| self.index.partition_point(|&index| (index as usize) < end);
                let range = at(first)..at(first + inputs * outputs);
                MaskLayer { inputs, outputs, first, index: &self.index[range] }
            })
            .collect();
        layers.into_iter()
    }

    /// One bit a weight.
    #[must_use]
    pub fn bits(&self) -> Vec<u32> {
        let weights = self.widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let mut bits = vec![0; packed::words(weights)];
        self.index.iter().for_each(|&index| insert(&mut bits, index));
        bits
    }

    /// What it has in each layer.
    #[must_use]
    pub fn layers(&self) -> Vec<MaskedLayer> {
        let paths = Paths::new(self);
        let layers = self.names.iter().zip(self.by_layer()).enumerate();
        let layer = |(l, (name, layer)): (usize, (&LayerName, MaskLayer<'_>))| {
            let [inputs, outputs] = [&paths.live[l], &paths.live[l + 1]];
            let is_live = |&(output, input): &(usize, usize)| inputs[input] && outputs[output];
            let kept = layer.index.len();
            MaskedLayer {
                name: name.name.clone(),
                kept,
                live_neurons: outputs.iter().filter(|&&live| live).count(),
                dead_weights: kept - layer.entries().filter(is_live).count(),
            }
        };
        layers.map(layer).collect()
    }

    /// The layers in which all paths end, by their numbers from 0; none where some input leads to
    /// some output. They are those without weights, or else the first one that takes nothing of
    /// what the layers before it give.
    #[must_use]
    pub fn collapsed(&self) -> Option<Vec<usize>> {
        let paths = Paths::new(self);
        if paths.live.iter().all(|live| live.contains(&true)) {
            return None;
        }
        let empty: Vec<usize> = self
            .by_layer()
            .enumerate()
            .filter_map(|(l, layer)| layer.index.is_empty().then_some(l))
            .collect();
        if !empty.is_empty() {
            return Some(empty);
        }
        let end = paths.reached.iter().position(|reached| !reached.contains(&true));
        Some(vec![end.unwrap_or(1).saturating_sub(1)])
    }
}

/// The weights that a mask has in one layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskLayer<'a> {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// The flat index of the layer's first weight.
    pub(crate) first: usize,
    /// Flat indices over all layers.
    index: &'a [u32],
}

impl MaskLayer<'_> {
    /// Indices within the layer.
    pub(crate) fn own(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.index.iter().map(|&index| index as usize - self.first)
    }

    /// Output and input of each weight.
    fn entries(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.own().map(|own| (own / self.inputs, own % self.inputs))
    }
}

/// Which neurons lie on paths: of the inputs, then of each layer's outputs.
struct Paths {
    /// Some input leads to it.
    reached: Vec<Vec<bool>>,
    /// And it leads to some output.
    live: Vec<Vec<bool>>,
}

impl Paths {
    fn new(mask: &Mask) -> Self {
        let mut reached = vec![vec![true; mask.widths[0]]];
        for layer in mask.by_layer() {
            let mut next = vec![false; layer.outputs];
            let below = &reached[reached.len() - 1];
            layer.entries().for_each(|(output, input)| next[output] |= below[input]);
            reached.push(next);
        }
        let mut live = vec![reached[reached.len() - 1].clone()];
        for (layer, reached) in mask.by_layer().rev().zip(reached.iter().rev().skip(1)) {
            let mut before = vec![false; layer.inputs];
            let above = &live[live.len() - 1];
            layer.entries().for_each(|(output, input)| before[input] |= above[output]);
            before.iter_mut().zip(reached).for_each(|(live, reached)| *live &= reached);
            live.push(before);
        }
        live.reverse();
        Self { reached, live }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(widths: &[usize], index: &[u32]) -> Mask {
        let names = LayerName::numbered(widths.len() - 1);
        Mask::new(names, widths.to_vec(), index.to_vec()).unwrap()
    }

    #[test]
    fn live_neurons_and_dead_weights_follow_paths() {
        // Layer 1: neuron 0 of input 1, neuron 1 of nothing, neuron 2 of inputs 0 and 1; layer 2:
        // neuron 0 of neuron 1, neuron 1 of neurons 0 and 2; layer 3: output 0 of neurons 0 and 1,
        // output 1 of neuron 0.
        let mask = mask(&[2, 3, 2, 2], &[1, 4, 5, 7, 9, 11, 12, 13, 14]);
        let got: Vec<_> = mask
            .layers()
            .iter()
            .map(|layer| [layer.kept, layer.live_neurons, layer.dead_weights])
            .collect();
        assert_eq!(got, [[3, 2, 0], [3, 1, 1], [3, 1, 2]]);
        assert_eq!(mask.collapsed(), None);
    }

    #[test]
    fn layers_in_which_paths_end_are_found() {
        assert_eq!(mask(&[2, 2, 1], &[0, 4]).collapsed(), None);
        assert_eq!(mask(&[2, 2, 1], &[4]).collapsed(), Some(vec![0]));
        assert_eq!(mask(&[2, 2, 1], &[]).collapsed(), Some(vec![0, 1]));
        // Weights in every layer, but the second takes what the first does not give.
        let broken = mask(&[2, 2, 1], &[0, 5]);
        assert_eq!(broken.collapsed(), Some(vec![1]));
        assert!(broken.layers().iter().all(|layer| layer.live_neurons == 0));
        assert_eq!(broken.layers()[1].dead_weights, 1);
    }

    #[test]
    fn masks_that_cannot_be_are_refused() {
        let refused = |names, widths: &[usize], index: &[u32]| {
            Mask::new(LayerName::numbered(names), widths.to_vec(), index.to_vec()).is_err()
        };
        assert!(!refused(2, &[2, 2, 1], &[0, 5]));
        assert!(refused(1, &[2, 2, 1], &[0, 5]) && refused(2, &[2, 0, 1], &[]));
        assert!(refused(2, &[2, 2, 1], &[0, 6]) && refused(2, &[2, 2, 1], &[5, 0]));
    }

    #[test]
    fn bits_are_those_of_the_indices() {
        assert_eq!(mask(&[16, 2, 2], &[0, 31, 32, 35]).bits(), [0x8000_0001, 0b1001]);
    }
}
