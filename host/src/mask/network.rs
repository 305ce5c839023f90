//! The network that a mask is made for: its shape, names and initial weights.

use std::path::Path;

use tamis::network::mask::initial::Initial;
use tamis::network::mask::{LayerShape, Mlp};

use crate::convert::import::read;
use crate::convert::named::{Layout, listed};
use crate::model::{LayerName, Mask};
use crate::train::masked::MaskedStart;
use crate::{Error, Result};

/// A dense MLP before it is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceNetwork {
    /// Names of the layers.
    pub names: Vec<LayerName>,
    /// Widths from the inputs to the outputs.
    pub widths: Vec<usize>,
    /// The weights.
    pub weights: InitialWeights,
    /// Arrays of the file that are of no layer, by their names.
    pub skipped: Vec<String>,
}

/// A row of an array of weights, for the network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) row: usize,
    /// Of an array inputs × outputs.
    pub(super) is_input: bool,
}

/// Where initial weights come from.
#[derive(Debug, Clone, PartialEq)]
pub enum InitialWeights {
    /// Computed from a seed wherever they are needed.
    Seed(Initial),
    /// Those of a file.
    Dense(DenseLayers),
}

/// Weights in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseLayers {
    /// Layer by layer, each outputs × inputs, row by row.
    pub weights: Vec<f32>,
    /// Of each layer one for each output, or none where it has none.
    pub biases: Vec<Vec<f32>>,
}

impl DenseLayers {
    /// Whether some layer has biases.
    #[must_use]
    pub fn has_biases(&self) -> bool {
        self.biases.iter().any(|biases| !biases.is_empty())
    }
}

impl SourceNetwork {
    /// A network of these widths with weights from a seed.
    ///
    /// # Errors
    /// Widths that no network has.
    pub fn from_seed(widths: &[usize], initial: Initial) -> Result<Self> {
        let Ok(net) = Mlp::new(widths) else {
            return Err(Error::new("no network has these layers")
                .expected(format_args!(
                    "two or more widths from the inputs to the outputs, each 1 or more, and at \
                     most {} weights in all",
                    u32::MAX
                ))
                .got(format_args!("{widths:?}, which make {} weights", weights(widths)))
                .help(
                    "pass --layers 784,300,100,10 for 784 inputs, two hidden layers, 10 outputs",
                ));
        };
        Ok(Self {
            names: LayerName::numbered(net.layers().len()),
            widths: widths.to_vec(),
            weights: InitialWeights::Seed(initial),
            skipped: Vec::new(),
        })
    }

    /// The network of a file of weights: NPZ, safetensors or ONNX. Arrays that are of no layer, such
    /// as those of normalisation and of optimisers, are skipped.
    ///
    /// # Errors
    /// A file that is none of them, or is damaged, or holds no MLP of relu between layers.
    pub fn from_file(path: &Path, layers: Option<&[String]>, layout: Layout) -> Result<Self> {
        let (_, network) = read(path, layers, layout)?;
        let names = if network.names.is_empty() {
            let name = |name: &String| LayerName {
                name: name.clone(),
                array: format!("{name}.weight"),
                in_out: false,
            };
            network.layers.iter().map(|layer| name(&layer.name)).collect()
        } else {
            network.names
        };
        let inputs = network.layers.first().map_or(0, |layer| layer.inputs);
        let outputs = network.layers.iter().map(|layer| layer.outputs);
        let widths: Vec<usize> = std::iter::once(inputs).chain(outputs).collect();
        Mlp::new(&widths).map_err(|error| Error::from(error).at(path))?;
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for mut layer in network.layers {
            weights.append(&mut layer.weights);
            biases.push(layer.bias);
        }
        let weights = InitialWeights::Dense(DenseLayers { weights, biases });
        Ok(Self { names, widths, weights, skipped: [network.left_out, network.skipped].concat() })
    }

    /// A line that names the arrays of the file that are of no layer; none of none.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        listed(&self.skipped).map(|names| format!("skipped arrays that are of no layer: {names}"))
    }

    /// The network's shape.
    ///
    /// # Errors
    /// None for a network that could be made.
    pub(crate) fn net(&self) -> Result<Mlp<'_>> {
        Ok(Mlp::new(&self.widths)?)
    }

    /// What is trained under a mask of it: from a seed in memory for the kept weights alone.
    ///
    /// # Errors
    /// A mask of another network.
    pub fn start(&self, mask: Mask) -> Result<MaskedStart> {
        if mask.widths() != self.widths {
            return Err(Error::new("the mask is of another network")
                .mismatch(
                    format_args!("layers {:?}", self.widths),
                    format_args!("{:?}", mask.widths()),
                )
                .help("pass the mask that was made for these weights"));
        }
        let (values, biases) = match &self.weights {
            InitialWeights::Dense(dense) => {
                let values = mask.index().iter().map(|&at| dense.weights[at as usize]);
                (values.collect(), dense.biases.clone())
            }
            InitialWeights::Seed(initial) => {
                let mut values = Vec::with_capacity(mask.index().len());
                let net = self.net()?;
                for (shape, layer) in net.layers().zip(mask.by_layer()) {
                    let own = initial.layer(&shape);
                    let place =
                        |at: usize| [at / layer.inputs, at % layer.inputs].map(|x| x as u32);
                    values.extend(layer.own().map(place).map(|[row, col]| own.weight(row, col)));
                }
                (values, vec![Vec::new(); self.widths.len() - 1])
            }
        };
        Ok(MaskedStart { mask, values, biases })
    }

    /// The weights of a layer to one of its outputs, or from one of its inputs.
    pub(super) fn line(&self, layer: &LayerShape, line: Line, out: &mut [f32]) {
        let Line { row, is_input } = line;
        match &self.weights {
            InitialWeights::Dense(dense) => {
                let own = &dense.weights[layer.weights()];
                let step = if is_input { layer.inputs } else { 1 };
                let first = if is_input { row } else { row * layer.inputs };
                let values = own[first..].iter().step_by(step);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = *value);
            }
            InitialWeights::Seed(initial) => {
                let own = initial.layer(layer);
                match is_input {
                    false => own.fill(row as u32, 0, out),
                    true => (0..).zip(out).for_each(|(k, out)| *out = own.weight(k, row as u32)),
                }
            }
        }
    }

    /// Its weights and biases in memory.
    ///
    /// # Errors
    /// None for a network that could be made.
    pub fn dense(&self) -> Result<DenseLayers> {
        match &self.weights {
            InitialWeights::Dense(dense) => Ok(dense.clone()),
            InitialWeights::Seed(initial) => {
                let net = self.net()?;
                let mut weights = vec![0.0; net.weights()];
                for layer in net.layers() {
                    let own = initial.layer(&layer);
                    let rows = weights[layer.weights()].chunks_exact_mut(layer.inputs);
                    (0..).zip(rows).for_each(|(row, out)| own.fill(row, 0, out));
                }
                Ok(DenseLayers { weights, biases: vec![Vec::new(); net.layers().len()] })
            }
        }
    }
}

/// Weights of a network of these widths, as far as they can be counted.
fn weights(widths: &[usize]) -> u128 {
    let layer = |pair: &[usize]| pair[0] as u128 * pair[1] as u128;
    widths.windows(2).map(layer).fold(0, u128::saturating_add)
}
