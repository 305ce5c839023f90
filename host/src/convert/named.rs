//! Layers out of arrays that have names.
//!
//! A name is split at its last word that says what the array is (`weight`, `kernel`, `coefs`, `W`,
//! or `bias`, `intercepts`, `b`); the other words are the layer: `fc1.weight` and `fc1.bias` are layer
//! `fc1`, `coefs_0` and `intercepts_0` layer `0`. Where no name says anything, arrays with two axes
//! are weights and those with one are biases, in their order. Numbers in names count as numbers:
//! layer 10 is behind layer 9.

use clap::ValueEnum;
use std::collections::BTreeMap;

use super::{Dense, Network, Tensor, elements, onnx, shape, shown};
use crate::model::LayerName;
use crate::{Error, Result};

/// Which way weights lie in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Layout {
    /// As the sizes fit; where both ways fit, as the names say
    #[default]
    Auto,
    /// Outputs × inputs, as PyTorch has them
    OutIn,
    /// Inputs × outputs, as Keras and scikit-learn have them
    InOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Weights, `outputs × inputs` by their name.
    Weights,
    /// Weights, `inputs × outputs` by their name.
    Kernel,
    /// Weights whose name does not say which way they lie.
    Matrix,
    Biases,
    Unknown,
}

const OTHERS: &str = "name the arrays of the MLP fc1.weight, fc1.bias and so on, and leave others, \
                      such as those of normalisation, out of the file; tamis import can choose \
                      layers with --layers";

struct Pair {
    name: String,
    weights: Tensor,
    bias: Option<Tensor>,
    role: Role,
}

/// The network of `tensors`: all of them, or the layers that `chosen` names, in its order.
///
/// # Errors
/// Arrays that are neither weights nor biases of a layer, layers that do not fit one behind the
/// other, and weights that would fit both ways when neither `layout` nor their names say which.
pub fn network(tensors: Vec<Tensor>, chosen: Option<&[String]>, layout: Layout) -> Result<Network> {
    let Sorted { pairs, skipped, left_out } = sorted(tensors, chosen)?;
    let (in_out, note) = is_in_out(&pairs, layout)?;
    let last = pairs.len().saturating_sub(1);
    let names = pairs.iter().map(|pair| pair.layer_name(in_out)).collect();
    let mut layers = Vec::new();
    for (l, pair) in pairs.into_iter().enumerate() {
        layers.push(pair.dense(in_out, l != last)?);
    }
    let notes = note.into_iter().collect();
    let network = Network { layers, names, notes, skipped, left_out, ..Network::default() };
    network.check()?;
    Ok(network)
}

/// A network by its arrays' names and axes alone.
pub(crate) struct NamedShape {
    pub(crate) names: Vec<LayerName>,
    /// From the inputs to the outputs.
    pub(crate) widths: Vec<usize>,
}

/// The shape of the network of arrays whose values do not matter.
///
/// # Errors
/// As [`network`].
pub(crate) fn shape_of(tensors: Vec<Tensor>) -> Result<NamedShape> {
    let pairs = sorted(tensors, None)?.pairs;
    let (in_out, _) = is_in_out(&pairs, Layout::Auto)?;
    let names = pairs.iter().map(|pair| pair.layer_name(in_out)).collect();
    let layer = |pair: &Pair| {
        let [outputs, inputs] = pair.size(in_out)?;
        let (name, weights, bias) = (pair.name.clone(), Vec::new(), Vec::new());
        Ok(Dense { name, inputs, outputs, weights, bias, relu: true })
    };
    let layers = pairs.iter().map(layer).collect::<Result<_>>()?;
    let network = Network { layers, ..Network::default() };
    network.check_order()?;
    let inputs = network.layers.first().map(|layer| layer.inputs);
    let widths = inputs.into_iter().chain(network.layers.iter().map(|layer| layer.outputs));
    Ok(NamedShape { names, widths: widths.collect() })
}

/// Arrays by what they are for.
struct Sorted {
    pairs: Vec<Pair>,
    /// As [`Network::skipped`].
    skipped: Vec<String>,
    /// As [`Network::left_out`].
    left_out: Vec<String>,
}

/// In names of arrays that an optimiser keeps.
const OPTIMISER: [&str; 6] =
    ["exp_avg", "square_avg", "momentum_buffer", "acc_delta", "optimizer", "optimiser"];

fn sorted(tensors: Vec<Tensor>, chosen: Option<&[String]>) -> Result<Sorted> {
    let is_optimiser = |name: &str| OPTIMISER.iter().any(|word| name.contains(word));
    let (skipped, tensors): (Vec<_>, Vec<_>) =
        tensors.into_iter().partition(|tensor| is_optimiser(&tensor.name));
    let name = |tensor: Tensor| tensor.name;
    let skipped = skipped.into_iter().map(name).collect();
    let is_unnamed = |tensor: &Tensor| role(&tensor.name).0 == Role::Unknown;
    if chosen.is_some() || tensors.iter().all(is_unnamed) {
        return Ok(Sorted { pairs: pairs(tensors, chosen)?, skipped, left_out: Vec::new() });
    }
    // Layers have a matrix of weights, perhaps with biases; normalisation has lists alone.
    let mut is_layer = BTreeMap::new();
    for tensor in &tensors {
        let (role, layer) = role(&tensor.name);
        let own: &mut [bool; 2] = is_layer.entry(layer).or_default();
        own[0] |= tensor.dims.len() > 1;
        own[1] |= role != Role::Biases;
    }
    let is_left_out = |tensor: &Tensor| is_layer[&role(&tensor.name).1] == [false, true];
    let (left_out, own): (Vec<_>, Vec<_>) = tensors.into_iter().partition(is_left_out);
    if own.is_empty() {
        return Ok(Sorted { pairs: pairs(left_out, None)?, skipped, left_out: Vec::new() });
    }
    let left_out = left_out.into_iter().map(name).collect();
    Ok(Sorted { pairs: pairs(own, None)?, skipped, left_out })
}

/// Names of arrays in a line, the first of many; none of none.
pub(crate) fn listed(names: &[String]) -> Option<String> {
    const MOST: usize = 8;
    let first: Vec<_> = names.iter().take(MOST).map(|name| shown(name)).collect();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}

fn pairs(tensors: Vec<Tensor>, chosen: Option<&[String]>) -> Result<Vec<Pair>> {
    let mut by_layer: BTreeMap<String, Vec<(Role, Tensor)>> = BTreeMap::new();
    let nameless =
        chosen.is_none() && tensors.iter().all(|tensor| role(&tensor.name).0 == Role::Unknown);
    if nameless {
        return in_order(tensors);
    }
    for tensor in tensors {
        let (role, layer) = role(&tensor.name);
        by_layer.entry(layer).or_default().push((role, tensor));
    }
    let Some(chosen) = chosen else {
        let mut layers: Vec<_> = by_layer.into_iter().collect();
        layers.sort_by(|(a, _), (b, _)| natural(a).cmp(&natural(b)));
        let others = others(&layers);
        let pair = |(layer, arrays): (String, _)| {
            pair(&layer, arrays).map_err(|error| match others.is_empty() {
                true => error,
                false => error.got(format_args!("arrays of no such layer: {}", others.join(", "))),
            })
        };
        return layers.into_iter().map(pair).collect();
    };
    let mut pairs = Vec::new();
    for name in chosen {
        // A layer's name, or the name of its weights.
        let Some(arrays) = by_layer.remove(name).or_else(|| by_layer.remove(&role(name).1)) else {
            let mut names: Vec<_> = by_layer.keys().collect();
            names.sort_by_key(|name| natural(name));
            let names: Vec<_> = names.into_iter().take(20).map(|name| shown(name)).collect();
            let name = shown(name);
            return Err(Error::new(format!("the file has no layer {name}, or it is named twice"))
                .expected("layers of the file, such as fc1 for fc1.weight")
                .got(format_args!("the file has {}", names.join(", ")))
                .help("name each layer once, in the order in which they run: --layers fc1,fc2"));
        };
        pairs.push(pair(name, arrays)?);
    }
    Ok(pairs)
}

/// Names of arrays that are not the weights, with two axes, and biases of a layer.
fn others(layers: &[(String, Vec<(Role, Tensor)>)]) -> Vec<String> {
    let is_other = |arrays: &[(Role, Tensor)]| {
        let mut weights = arrays.iter().filter(|(role, _)| *role != Role::Biases);
        let is_matrix = weights.next().is_some_and(|(_, tensor)| tensor.dims.len() == 2);
        !is_matrix || weights.next().is_some()
    };
    let arrays = layers.iter().filter(|(_, arrays)| is_other(arrays)).flat_map(|(_, own)| own);
    arrays.take(12).map(|(_, tensor)| shown(&tensor.name)).collect()
}

/// Arrays without telling names: weights have two axes, biases one.
fn in_order(mut tensors: Vec<Tensor>) -> Result<Vec<Pair>> {
    tensors.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
    let (weights, biases): (Vec<_>, Vec<_>) =
        tensors.into_iter().partition(|tensor| tensor.dims.len() == 2);
    if weights.is_empty() || ![0, weights.len()].contains(&biases.len()) {
        let names: Vec<_> = biases.iter().take(8).map(|tensor| shown(&tensor.name)).collect();
        let (matrices, others, names) = (weights.len(), biases.len(), names.join(", "));
        return Err(Error::new("the arrays are not the weights and biases of layers")
            .expected(
                "an array with two axes for each layer, and one with one axis for each or for none",
            )
            .got(format_args!("{matrices} with two axes, {others} others: {names}"))
            .help(OTHERS));
    }
    let mut biases = biases.into_iter();
    let pairs = weights.into_iter().map(|weights| {
        let name = shown(&weights.name);
        Pair { name, weights, bias: biases.next(), role: Role::Matrix }
    });
    Ok(pairs.collect())
}

fn pair(layer: &str, arrays: Vec<(Role, Tensor)>) -> Result<Pair> {
    let (mut biases, mut weights): (Vec<_>, Vec<_>) =
        arrays.into_iter().partition(|(role, _)| *role == Role::Biases);
    let (name, counts) = (shown(layer), (weights.len(), biases.len()));
    let names = weights.iter().chain(&biases).take(8).map(|(_, tensor)| shown(&tensor.name));
    let names: Vec<_> = names.collect();
    match (weights.pop(), biases.pop().map(|(_, tensor)| tensor)) {
        (Some((role, weights)), bias) if counts.0 == 1 && counts.1 <= 1 => {
            Ok(Pair { name, weights, bias, role })
        }
        _ => Err(Error::new(format!("layer {name} is not one of weights and perhaps biases"))
            .expected(
                "one array of weights, as NAME.weight, and one of biases, as NAME.bias, or none",
            )
            .got(format_args!(
                "{} of weights, {} of biases: {}",
                counts.0,
                counts.1,
                names.join(", ")
            ))
            .help(OTHERS)),
    }
}

impl Pair {
    fn layer_name(&self, in_out: bool) -> LayerName {
        LayerName { name: self.name.clone(), array: self.weights.name.clone(), in_out }
    }

    fn axes(&self) -> Result<[usize; 2]> {
        match self.weights.dims[..] {
            [a, b] if self.weights.values.is_some() && elements(&[a, b]).is_some() => Ok([a, b]),
            _ => {
                let (name, array) = (&self.name, shown(&self.weights.name));
                let what = format!("the weights of layer {name}, {array}, are no matrix of floats");
                let other = if self.weights.values.is_none() { ", of another type" } else { "" };
                Err(Error::new(what)
                    .expected("two axes, and floats of 16, 32 or 64 bits")
                    .got(format_args!("axes {}{other}", shape(&self.weights.dims)))
                    .help(OTHERS))
            }
        }
    }

    /// The length of the biases, where there are some: `[n]` or `[1, n]`.
    fn biases(&self) -> Result<Option<usize>> {
        let Some(bias) = &self.bias else { return Ok(None) };
        match bias.dims[..] {
            [n] | [1, n] if bias.values.is_some() && n > 0 => Ok(Some(n)),
            _ => {
                Err(Error::new(format!("the biases of layer {} are no list of floats", self.name))
                    .expected("one axis, and floats of 16, 32 or 64 bits")
                    .got(format_args!("axes {}", shape(&bias.dims)))
                    .help(OTHERS))
            }
        }
    }

    /// Outputs and inputs of the layer.
    fn size(&self, in_out: bool) -> Result<[usize; 2]> {
        let [rows, cols] = self.axes()?;
        let biases = self.biases()?;
        let (outputs, inputs) = if in_out { (cols, rows) } else { (rows, cols) };
        if let Some(n) = biases.filter(|&n| n != outputs) {
            let what = format!("the biases of layer {} do not fit its weights", self.name);
            return Err(Error::new(what)
                .expected(format_args!("{outputs} biases"))
                .got(format_args!("{n}, with weights {}", shape(&self.weights.dims)))
                .help("pass --layout in-out or out-in if the weights lie the other way"));
        }
        Ok([outputs, inputs])
    }

    fn dense(self, in_out: bool, relu: bool) -> Result<Dense> {
        let [outputs, inputs] = self.size(in_out)?;
        let [rows, cols] = self.axes()?;
        let values = self.weights.values.unwrap_or_default();
        let weights = if in_out { onnx::transposed(&values, rows, cols) } else { values };
        let bias = self.bias.and_then(|bias| bias.values).unwrap_or_default();
        Ok(Dense { name: self.name, inputs, outputs, weights, bias, relu })
    }
}

/// Whether weights are `inputs × outputs`, and what to tell of it.
fn is_in_out(pairs: &[Pair], layout: Layout) -> Result<(bool, Option<String>)> {
    let fits = |in_out: bool| -> Result<bool> {
        let mut before = None;
        for pair in pairs {
            let [rows, cols] = pair.axes()?;
            let (outputs, inputs) = if in_out { (cols, rows) } else { (rows, cols) };
            if before.is_some_and(|before| before != inputs)
                || pair.biases()?.is_some_and(|n| n != outputs)
            {
                return Ok(false);
            }
            before = Some(outputs);
        }
        Ok(true)
    };
    if layout != Layout::Auto {
        return Ok((layout == Layout::InOut, None));
    }
    let all = |role: Role| !pairs.is_empty() && pairs.iter().all(|pair| pair.role == role);
    let said = match (all(Role::Weights), all(Role::Kernel)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    };
    match (fits(false)?, fits(true)?, said) {
        (true, true, Some(in_out)) => Ok((in_out, None)),
        (true, true, None) => Err(Error::new("the weights fit both ways round")
            .expected(
                "arrays whose sizes or names say whether they are outputs × inputs or inputs \
                × outputs",
            )
            .got(format_args!(
                "square or single weights, such as layer {:?}",
                pairs.first().map_or("", |pair| &pair.name)
            ))
            .help("pass --layout out-in (PyTorch) or --layout in-out (Keras, scikit-learn)")),
        (out_in, in_out, said) if out_in != in_out => {
            let way = if in_out { "inputs × outputs" } else { "outputs × inputs" };
            let note = format!("weights were read as {way}: the sizes fit no other way");
            Ok((in_out, said.filter(|said| *said != in_out).map(|_| note)))
        }
        // Neither: the checks of the layers say where, in the way that the names say.
        (_, _, said) => Ok((said.unwrap_or(false), None)),
    }
}

/// What the name of an array says: what it is, and which layer it is of.
fn role(name: &str) -> (Role, String) {
    let mut end = name.len();
    for word in name.rsplit(|c: char| !c.is_alphabetic()) {
        let (from, to) = (end - word.len(), end);
        // The next word ends before the separator.
        let separator = name.get(..from).and_then(|head| head.char_indices().next_back());
        end = separator.map_or(0, |(at, _)| at);
        let role = match word.to_ascii_lowercase().as_str() {
            "weight" | "weights" => Role::Weights,
            "kernel" | "coef" | "coefs" => Role::Kernel,
            "w" => Role::Matrix,
            "bias" | "biases" | "intercept" | "intercepts" | "b" => Role::Biases,
            _ => continue,
        };
        let (before, after) = (name.get(..from).unwrap_or(""), name.get(to..).unwrap_or(""));
        let edge = |c: char| !c.is_alphanumeric();
        let layer = match (before.trim_matches(edge), after.trim_matches(edge)) {
            (before, "") => before.to_owned(),
            ("", after) => after.to_owned(),
            (before, after) => format!("{before}.{after}"),
        };
        return (role, layer);
    }
    (Role::Unknown, name.to_owned())
}

/// A key that sorts names as people count: runs of digits as numbers, all else as bytes; equal only
/// where the texts are.
fn natural(name: &str) -> impl Ord {
    fn key(run: &[u8]) -> (u8, usize, &[u8]) {
        let is_number = run[0].is_ascii_digit();
        let zeros = run.iter().take_while(|c| **c == b'0' || !is_number).count();
        (if is_number { b'0' } else { run[0] }, run.len() - zeros, &run[zeros..])
    }
    let runs = name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() && b.is_ascii_digit());
    (runs.map(key).collect::<Vec<_>>(), name)
}

#[cfg(test)]
mod tests;
