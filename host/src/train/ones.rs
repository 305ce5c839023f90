//! Biases as weights of one more input that is 1 in every row, and back.
//!
//! Training knows weights alone: a bias is the weight of a last input of ones, and a hidden neuron
//! with the weight 1 to it, the last of its layer, hands it on, since `relu(1) = 1`. Models have
//! biases of their own. Both hold the same numbers.

use tamis::infer::model::{Activation, Layer, Model};

use tamis::learn::deep::Stack;
use tamis::network::weights::Weights;
use tamis::store::wire::View;

use crate::data::Problem;
use crate::model::ModelFile;
use crate::model::rows::rows_of;
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::{Error, Result};

/// A model and rows for it without biases: the same, or with a last input of ones where the model
/// has biases; then also the layers that hand it on.
pub(crate) fn without_biases(
    model: ModelFile,
    problem: Problem,
) -> Result<(ModelFile, Problem, Option<usize>)> {
    let last = |view: &View<'_>| {
        view.model().layers().iter().rposition(|layer| !layer.biases().is_empty())
    };
    let Some(biased) = last(&model.view()?) else { return Ok((model, problem, None)) };
    let bytes = changed(&model.view()?, spread)?;
    let data = problem.data.with_ones(1.0)?;
    Ok((
        ModelFile::from_bytes(&bytes)?.named(model.path()),
        Problem { data, ..problem },
        Some(biased),
    ))
}

/// A trained model and its rows with biases again.
pub(crate) fn with_biases(
    model: &[u8],
    mut problem: Problem,
    handing: usize,
) -> Result<(Vec<u8>, Problem)> {
    let model = ModelFile::from_bytes(model)?;
    let bytes = changed(&model.view()?, |layers| gather(layers, handing))?;
    let ones = problem.data.cols - 1;
    problem.data.take_column(ones)?;
    Ok((bytes, problem))
}

/// A model in rows with other weights and biases in its layers.
pub(crate) fn changed(view: &View<'_>, change: impl FnOnce(&mut [SparseLayer])) -> Result<Vec<u8>> {
    let mut layers = layers_of(view.model())?;
    change(&mut layers);
    let end = match view.model().layers().last() {
        Some(Layer::Sum(sum)) => End::Sum(sum.signs()),
        _ => End::Layer,
    };
    encode_layers(layers, end, view.task())
}

/// The sparse layers of a model in rows.
///
/// # Errors
/// A layer of another kind, or relu where [`encode_layers`] puts none.
pub(crate) fn layers_of(model: &Model<'_>) -> Result<Vec<SparseLayer>> {
    let count = model.layers().len();
    let mut layers = Vec::new();
    for (l, layer) in model.layers().iter().enumerate() {
        let csr = match layer {
            Layer::Csr(csr) => csr,
            Layer::Sum(_) => continue,
            _ => return Err(other_kind()),
        };
        if (csr.activation() == Activation::Relu) != (l + 1 < count) {
            return Err(other_kind());
        }
        let mut neurons = vec![Vec::new(); csr.outputs()];
        let entries = csr.columns().iter().zip(csr.values());
        for (row, (&column, &value)) in rows_of(csr).zip(entries) {
            neurons[row].push((usize::from(column), value));
        }
        let (inputs, requested, biases) = (csr.inputs(), csr.requested(), csr.biases().to_vec());
        layers.push(SparseLayer { inputs, requested, neurons, biases });
    }
    Ok(layers)
}

fn other_kind() -> Error {
    Error::new("the model is of a kind whose biases cannot be trained")
        .mismatch("relu behind every layer but the last", "a model that has it elsewhere")
        .help("pass a model that tamis has trained or imported")
}

/// The layers of a trained stack, for inputs before they were multiplied by `unit`: those of a last
/// input of ones become biases, where `handing` layers hand it on.
pub(crate) fn layers_of_stack(
    stack: &Stack<'_>,
    unit: f32,
    handing: Option<usize>,
) -> Vec<SparseLayer> {
    let last = stack.layers().count() - 1;
    let layer = |(l, weights): (usize, Weights<'_>)| match l == last {
        false => SparseLayer::new(weights, weights.hidden()),
        true => SparseLayer::behind(weights, weights.inputs()),
    };
    let mut layers: Vec<SparseLayer> = stack.layers().enumerate().map(layer).collect();
    let inputs = stack.inputs() - usize::from(handing.is_some());
    let first = layers.iter_mut().take(1).flat_map(|layer| layer.neurons.iter_mut().flatten());
    first.filter(|(input, _)| *input < inputs).for_each(|(_, weight)| *weight *= unit);
    if let Some(handing) = handing {
        gather(&mut layers, handing);
    }
    layers
}

/// Makes biases weights of a last input of ones, and adds what hands it on.
pub(crate) fn spread(layers: &mut [SparseLayer]) {
    let Some(last) = layers.iter().rposition(|layer| !layer.biases.is_empty()) else { return };
    for (l, layer) in layers[..=last].iter_mut().enumerate() {
        let ones = layer.inputs;
        layer.inputs += 1;
        for (neuron, bias) in layer.neurons.iter_mut().zip(std::mem::take(&mut layer.biases)) {
            if bias != 0.0 {
                neuron.push((ones, bias));
            }
        }
        if l < last {
            layer.neurons.push(vec![(ones, 1.0)]);
            layer.requested += 1;
        }
    }
}

/// Makes weights of a last input of ones biases, and takes away the neurons that hand it on, which
/// `handing` layers have as their last.
pub(crate) fn gather(layers: &mut [SparseLayer], handing: usize) {
    let mut one = 1.0;
    for (l, layer) in layers.iter_mut().take(handing + 1).enumerate() {
        layer.inputs -= 1;
        let ones = layer.inputs;
        let bias = |neuron: &mut Vec<(usize, f32)>| match neuron.pop_if(|(input, _)| *input == ones)
        {
            Some((_, weight)) => f64::from(weight) * one,
            None => 0.0,
        };
        let biases: Vec<f64> = layer.neurons.iter_mut().map(bias).collect();
        layer.biases = biases.iter().map(|&bias| bias as f32).collect();
        if l < handing {
            layer.neurons.pop();
            layer.biases.pop();
            layer.requested = layer.requested.saturating_sub(1).max(layer.neurons.len());
            one = biases.last().map_or(0.0, |one| one.max(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_biases_gather_to_the_same() {
        let layer = |inputs, neurons: Vec<Vec<(usize, f32)>>, biases: &[f32]| SparseLayer {
            inputs,
            requested: neurons.len(),
            neurons,
            biases: biases.to_vec(),
        };
        let layers = vec![
            layer(2, vec![vec![(0, 1.0)], vec![(0, 0.1), (1, 2.0)]], &[0.0, 0.3]),
            layer(2, vec![vec![(1, 3.0)]], &[]),
            layer(1, vec![vec![], vec![(0, 0.7)]], &[-4.0, 0.1]),
        ];
        let mut ones = layers.clone();
        spread(&mut ones);
        assert_eq!(
            ones[0].neurons,
            [vec![(0, 1.0)], vec![(0, 0.1), (1, 2.0), (2, 0.3)], vec![(2, 1.0)]]
        );
        assert_eq!(ones[1].neurons, [vec![(1, 3.0)], vec![(2, 1.0)]]);
        assert_eq!(ones[2].neurons, [vec![(1, -4.0)], vec![(0, 0.7), (1, 0.1)]]);
        gather(&mut ones, 2);
        assert_eq!((&ones[0], &ones[2]), (&layers[0], &layers[2]));
        assert_eq!((ones[1].inputs, &ones[1].biases[..]), (2, &[0.0][..]));
    }
}
