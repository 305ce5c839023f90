//! The random support that training starts from.

use super::params::Params;
use crate::base::budget::{self, Workspace};
use crate::base::error::{self, Error, Result};
use crate::base::math;
use crate::base::rng::{CounterRng, stream};
use crate::learn::deep::{Head, Layer, MAX_LAYERS, Stack};
use crate::network::mask::allocate::{Allocation, Bounds};
use crate::network::mask::select::BINS;
use crate::network::mask::{Mlp, simple};

/// Fills an empty stack with random weights: `widths` are the neurons of the hidden layers, if any, then
/// the outputs, without those that hand on a constant. `memory` holds [`BINS`] words.
///
/// # Errors
/// [`Error::Range`] for no layer, too many of them, a width of 0 or more weights than 32 bits
/// can count, or fewer nonzeros than layers; [`Error::Length`] for a stack that is not empty or has
/// too little room; [`Error::Budget`] for too little memory.
pub fn start(
    stack: &mut Stack<'_>,
    widths: &[usize],
    params: &Params,
    memory: &mut [u32],
) -> Result<()> {
    let one = usize::from(params.constant);
    error::range("layers", widths.len(), 1, MAX_LAYERS)?;
    error::length("layers of the stack", stack.layers.len(), 0)?;
    error::range("inputs", stack.inputs, 1 + one, u32::MAX as usize)?;
    let mut all: heapless::Vec<usize, { MAX_LAYERS + 1 }> = heapless::Vec::new();
    for width in [stack.inputs - one].into_iter().chain(widths.iter().copied()) {
        // As many as there is room for, by the range above.
        all.push(width).map_err(|_| Error::Range { what: "layers", min: 2, max: 8, got: 9 })?;
    }
    let net = Mlp::new(&all)?;
    let layers = net.layers().len();
    // Biases are grown.
    let biases = one * widths.iter().fold(0_usize, |sum, &width| sum.saturating_add(width));
    let most = params.most(net.weights());
    error::range("nonzeros", params.nnz, layers, net.weights().saturating_add(biases))?;
    budget::enough(BINS, memory.len())?;
    let mut counts = [0; MAX_LAYERS];
    let counts = counts.get_mut(..layers).unwrap_or_default();
    Allocation::ErdosRenyi.share(&net, most, Bounds::at_least(1), counts)?;
    // Neurons of each hidden layer that begin: no more than there are weights to them and weights from
    // them, as few weights spread over more would lie on no path.
    let mut begin = [usize::MAX; MAX_LAYERS];
    for ((begin, pair), width) in begin.iter_mut().skip(1).zip(counts.windows(2)).zip(widths) {
        *begin = pair.iter().fold(*width, |least, &count| least.min(count));
    }
    let room = stack.index.len().min(stack.value.len());
    error::range("room for weights", room, most + one * (layers - 1), usize::MAX)?;
    let mut space = Workspace::new(memory);
    let bins = space.indices(BINS)?;
    for layer in net.layers() {
        let is_end = layer.number + 1 == layers;
        // The end is laid out input by input; a constant input or neuron is the last of its layer.
        let (blocks, width, own) = match is_end {
            true => (layer.inputs, layer.outputs, layer.outputs),
            false => (layer.outputs, layer.inputs + one, layer.inputs),
        };
        let first = stack.nnz();
        let mut at = first;
        let (l, count) = (layer.number, counts.get(layer.number).copied().unwrap_or(0));
        let place = |flat: usize| {
            let flat = flat - layer.first;
            (flat / own.max(1), flat % own.max(1))
        };
        let [below, above] = [l, l + 1].map(|at| begin.get(at).copied().unwrap_or(usize::MAX));
        let begins = |flat: usize| {
            let (block, within) = place(flat);
            let (from, to) = if is_end { (block, within) } else { (within, block) };
            from < below && to < above
        };
        simple::random_among(layer, count, params.seed, bins, begins, |flat| {
            let (block, within) = place(flat as usize);
            let entry = block * width + within;
            stack.index.get_mut(at).into_iter().for_each(|index| *index = entry as u32);
            at += 1;
        })?;
        let rng = CounterRng::new(params.seed, stream::WEIGHTS + layer.number as u64);
        let entries = stack.index.get(first..at).unwrap_or(&[]);
        let values = stack.value.get_mut(first..at).unwrap_or_default();
        fill(&rng, entries, values, if is_end { Side::Within(width) } else { Side::Block(width) });
        if !is_end && one > 0 {
            // The neuron that hands on the constant.
            let last = (blocks + 1) * width - 1;
            stack.index.get_mut(at).into_iter().for_each(|index| *index = last as u32);
            stack.value.get_mut(at).into_iter().for_each(|value| *value = 1.0);
            at += 1;
        }
        let neurons = blocks + one;
        let layer = Layer { width, neurons, end: at };
        let _ = stack.layers.push(layer);
        if is_end {
            stack.head = Head::Weights(width);
        }
    }
    Ok(())
}

/// Which number of an entry is the neuron that it leads to.
#[derive(Clone, Copy)]
enum Side {
    /// Its block, of so many numbers.
    Block(usize),
    /// Its place within a block of so many.
    Within(usize),
}

impl Side {
    fn neuron(self, entry: u32) -> usize {
        match self {
            Self::Block(width) => entry as usize / width.max(1),
            Self::Within(width) => entry as usize % width.max(1),
        }
    }
}

/// Normal values of variance 2 over the fan-in of each neuron.
fn fill(rng: &CounterRng, entries: &[u32], values: &mut [f32], side: Side) {
    for (at, (&entry, value)) in entries.iter().zip(values).enumerate() {
        let neuron = side.neuron(entry);
        let fan_in = match side {
            // Entries of a block lie together.
            Side::Block(width) => {
                let low = entries.partition_point(|&e| (e as usize) < neuron * width);
                entries.partition_point(|&e| (e as usize) < (neuron + 1) * width) - low
            }
            // Of an output, on average.
            Side::Within(width) => entries.len() / width.max(1),
        };
        *value = math::sqrt(2.0 / fan_in.max(1) as f32) * rng.normal(at as u32);
    }
}
