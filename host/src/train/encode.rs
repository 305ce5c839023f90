//! Model bytes of sparse layers, from the weights of each neuron.

use tamis::base::bits::is_set;
use tamis::infer::model::{self, Activation, Csr, Model, Sum};
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::store::wire;

use crate::{Error, Result};

/// A layer that a model is made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SparseLayer {
    /// Numbers that it takes.
    pub(crate) inputs: usize,
    /// Requested neurons.
    pub(crate) requested: usize,
    /// (input, weight) of each neuron, inputs rising.
    pub(crate) neurons: Vec<Vec<(usize, f32)>>,
    /// The bias of each neuron; empty for none.
    pub(crate) biases: Vec<f32>,
}

impl SparseLayer {
    pub(crate) fn new(w: Weights<'_>, requested: usize) -> Self {
        let mut neurons = vec![Vec::new(); w.hidden()];
        for block in w.blocks() {
            // No more memory than for these.
            let own = &mut neurons[block.neuron()];
            own.reserve_exact(block.values().len());
            own.extend(block.entries());
        }
        Self { inputs: w.inputs(), requested, neurons, biases: Vec::new() }
    }

    /// The layer behind neurons whose weights to it these are, neuron by neuron.
    pub(crate) fn behind(wt: Weights<'_>, requested: usize) -> Self {
        let mut counts = vec![0; wt.inputs()];
        wt.blocks().flat_map(|block| block.entries()).for_each(|(k, _)| counts[k] += 1);
        let mut neurons: Vec<_> = counts.into_iter().map(Vec::with_capacity).collect();
        for block in wt.blocks() {
            block.entries().for_each(|(k, value)| neurons[k].push((block.neuron(), value)));
        }
        Self { inputs: wt.hidden(), requested, neurons, biases: Vec::new() }
    }
}

/// How the outputs come from the last layer that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End<'a> {
    /// The last layer gives them, without relu.
    Layer,
    /// They are the sum of its neurons, those with their bit set taken away.
    Sum(&'a [u32]),
}

/// The arrays of a layer of a model.
#[derive(Default)]
struct LayerArrays {
    inputs: usize,
    requested: usize,
    counts: Vec<u16>,
    columns: Vec<u16>,
    values: Vec<f32>,
    biases: Vec<f32>,
}

/// The bytes of a model of these layers. Hidden neurons that have no bias and weights neither from
/// below nor to above are left out. Layers whose biases are all 0 have
/// none.
pub(crate) fn encode_layers(
    layers: Vec<SparseLayer>,
    end: End<'_>,
    task: Option<wire::Task>,
) -> Result<Vec<u8>> {
    let mut arrays: Vec<LayerArrays> = Vec::new();
    // Which inputs of a layer there are, and where they are in the model.
    let mut places: Vec<Option<usize>> =
        (0..layers.first().map_or(0, |layer| layer.inputs)).map(Some).collect();
    let mut layers = layers.into_iter().peekable();
    // Each goes as its arrays come.
    while let Some(layer) = layers.next() {
        let above = layers.peek();
        let mut used = vec![end == End::Layer && above.is_none(); layer.neurons.len()];
        for &(input, _) in above.iter().flat_map(|above| above.neurons.iter().flatten()) {
            used[input] = true;
        }
        let inputs = places.iter().flatten().count();
        let mut array =
            LayerArrays { inputs, requested: layer.requested, ..LayerArrays::default() };
        let weights = layer.neurons.iter().map(Vec::len).sum();
        array.columns.reserve_exact(weights);
        array.values.reserve_exact(weights);
        let mut own = Vec::with_capacity(layer.neurons.len());
        let biases = layer.biases.iter().copied().chain(std::iter::repeat(0.0));
        for ((neuron, used), bias) in layer.neurons.iter().zip(used).zip(biases) {
            let before = array.columns.len();
            for &(input, weight) in neuron {
                if let Some(column) = places[input] {
                    array.columns.push(u16::try_from(column).map_err(|_| too_wide(column))?);
                    array.values.push(weight);
                }
            }
            let count = array.columns.len() - before;
            let is_there = used || count > 0 || bias != 0.0;
            own.push(is_there.then_some(array.counts.len()));
            if is_there {
                array.counts.push(u16::try_from(count).map_err(|_| too_wide(count))?);
                array.biases.push(bias);
            }
        }
        if array.biases.iter().all(|&bias| bias == 0.0) {
            array.biases.clear();
        }
        places = own;
        arrays.push(array);
    }
    let neurons = places.iter().flatten().count();
    let mut signs = vec![0_u32; neurons.div_ceil(32)];
    if let End::Sum(bits) = end {
        for (i, place) in places.iter().enumerate() {
            if let Some(place) = place.filter(|_| is_set(bits, i)) {
                signs[place / 32] |= 1 << (place % 32);
            }
        }
    }
    let mut chain = Vec::new();
    for (l, array) in arrays.iter().enumerate() {
        let is_last = l + 1 == arrays.len() && end == End::Layer;
        let activation = if is_last { Activation::Identity } else { Activation::Relu };
        let csr = Csr::new(array.inputs, &array.counts, &array.columns, &array.values, activation)?;
        let csr = csr.with_biases(&array.biases)?;
        chain.push(model::Layer::Csr(csr.with_requested(array.requested.max(array.counts.len()))?));
    }
    if end != End::Layer {
        chain.push(model::Layer::Sum(Sum::new(neurons, &signs)?));
    }
    let view = wire::View::new(Model::new(&chain)?);
    let view = if let Some(task) = task { view.with_task(task)? } else { view };
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes)?;
    Ok(bytes)
}

fn too_wide(got: usize) -> Error {
    Error::new("a neuron has too many weights for a model")
        .expected(format_args!("at most {} each", u16::MAX))
        .got(got)
        .help("choose fewer --nnz, or fewer inputs")
}

/// The model of a network of one hidden layer, of `hidden` requested neurons.
pub(crate) fn encode(network: Network<'_>, hidden: usize, task: wire::Task) -> Result<Vec<u8>> {
    let mut model = vec![0; wire::trained_len(network, Some(task))?];
    wire::encode(network, hidden, Some(task), &mut model)?;
    Ok(model)
}
