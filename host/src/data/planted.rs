//! Planted problems: labels from a network or linear measurement of known sparse weights.

use super::{Matrix, Values, spare};
use rayon::prelude::*;
use tamis::base::dims::Dims;
use tamis::base::error::Result;
use tamis::base::rng::{Rng, stream};
use tamis::data::samples::{NormalRows, Samples};
use tamis::network::gates::Signs;
use tamis::network::net::Network;
use tamis::network::weights::{Block, Weights};

const WEIGHTS: u64 = stream::USER;
const OUTPUTS: u64 = stream::USER + 1;
const DEEP: u64 = stream::USER + (0xd3 << 32);
const NOISE: u64 = stream::USER + (0xd6 << 32);

/// A data set and the weights that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planted {
    /// n×d standard normal samples.
    pub data: Matrix,
    /// n labels, rounded once from double precision.
    pub labels: Vec<f32>,
    /// Flat indices of the planted weights, rising.
    pub index: Vec<u32>,
    /// Their values.
    pub value: Vec<f32>,
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Output signs.
    pub signs: Signs,
}

impl Planted {
    /// The planted weights.
    ///
    /// # Errors
    /// None for what [`network`] and [`linear`] make.
    pub fn weights(&self) -> Result<Weights<'_>> {
        Weights::new(self.data.cols, self.hidden, &self.index, &self.value)
    }
}

/// `y = sum_i v_i relu(w_i · x)`: s weights N(0, 1) at random places of m×d, x standard normal
/// (paper IHT, 5.1).
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
pub fn network(dims: Dims, signs: Signs, seed: u64) -> Result<Planted> {
    label(samples(&dims, seed)?, dims, signs, seed, relu)
}

/// `y = w · x` with one block: the Gaussian sensing problem.
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
pub fn linear(samples: usize, inputs: usize, nnz: usize, seed: u64) -> Result<Planted> {
    let dims = Dims::new(samples, inputs, 1, nnz);
    label(self::samples(&dims, seed)?, dims, Signs::Positive, seed, |z, _| z)
}

/// The network of [`network`] on other rows: the weights depend on the seed and the sizes alone.
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds, and another error if a label is not finite.
///
/// ```
/// use tamis::network::gates::Signs;
/// use tamis_host::data::{Matrix, Values, planted};
/// let rows = Matrix::new(2, 3, Values::F32(vec![1.0, 0.0, 2.0, 0.5, 1.0, 0.0]))?;
/// let planted = planted::network_on(rows, 2, 6, Signs::Positive, 0)?;
/// assert_eq!((planted.labels.len(), planted.value.len()), (2, 6));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn network_on(
    data: Matrix,
    hidden: usize,
    nnz: usize,
    signs: Signs,
    seed: u64,
) -> crate::Result<Planted> {
    let dims = Dims::new(data.rows, data.cols, hidden, nnz);
    let planted = label(data, dims, signs, seed, relu)?;
    tamis::base::error::finite::<std::convert::Infallible>("labels", &planted.labels)?;
    Ok(planted)
}

/// A data set of several outputs and the network that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedNet {
    /// n×d standard normal samples.
    pub data: Matrix,
    /// n×c labels, row by row, rounded once from double precision.
    pub labels: Vec<f32>,
    /// Flat indices of the weights from the inputs, rising.
    pub index: Vec<u32>,
    /// Their values.
    pub value: Vec<f32>,
    /// Flat indices of the weights to the outputs, rising: output k of neuron i is `i c + k`.
    pub out_index: Vec<u32>,
    /// Their values.
    pub out_value: Vec<f32>,
    /// Hidden neurons, m.
    pub hidden: usize,
    /// Outputs, c.
    pub outputs: usize,
}

impl PlantedNet {
    /// The planted network.
    ///
    /// # Errors
    /// None for what [`factored`] makes.
    pub fn net(&self) -> Result<Network<'_>> {
        Network::new(
            Weights::new(self.data.cols, self.hidden, &self.index, &self.value)?,
            Weights::new(self.outputs, self.hidden, &self.out_index, &self.out_value)?,
        )
    }
}

/// `y = sum_i relu(w_i · x) wt_i` with c outputs: half of s weights N(0, 1) at random places of
/// m×d, of an odd number the larger half, the others of m×c, x standard normal (paper IHT, 5.1).
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
///
/// ```
/// use tamis::base::dims::Dims;
/// let planted = tamis_host::data::planted::factored(Dims::new(20, 6, 4, 9), 3, 0)?;
/// assert_eq!((planted.labels.len(), planted.index.len(), planted.out_index.len()), (60, 5, 4));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn factored(dims: Dims, outputs: usize, seed: u64) -> Result<PlantedNet> {
    let Dims { samples: n, inputs: d, hidden: m, nnz, .. } = dims;
    let (w, wt) = (Dims::new(n, d, m, nnz - nnz / 2), Dims::new(n, outputs, m, nnz / 2));
    w.check()?;
    tamis::base::error::range("outputs", outputs, 1, u32::MAX as usize / m)?;
    tamis::base::error::range("nonzero weights of the outputs", wt.nnz, 0, m * outputs)?;
    let data = samples(&w, seed)?;
    let (index, value) = draw_weights(&w, seed, WEIGHTS);
    let (out_index, out_value) = draw_weights(&wt, seed, OUTPUTS);
    let w = Weights::new(d, m, &index, &value)?;
    let net = Network::new(w, Weights::new(outputs, m, &out_index, &out_value)?)?;
    let mut labels = vec![0.0; n * outputs];
    labels.par_chunks_mut(outputs).enumerate().for_each(|(row, labels)| {
        let mut sums = vec![0.0; outputs];
        for block in net.w().blocks() {
            let a = relu(activation(&data, row, block), 1.0);
            for (k, v) in net.wt().block(block.neuron()).entries() {
                sums[k] += a * f64::from(v);
            }
        }
        labels.iter_mut().zip(sums).for_each(|(label, sum)| *label = sum as f32);
    });
    Ok(PlantedNet { data, labels, index, value, out_index, out_value, hidden: m, outputs })
}

/// A network of several hidden layers and the data set that it labels.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedDeep {
    /// n×d standard normal samples.
    pub data: Matrix,
    /// n×c labels, row by row, rounded once from double precision.
    pub labels: Vec<f32>,
    /// Each layer's weights as flat indices, rising, and values; input j of neuron i is
    /// `i · inputs of the layer + j`.
    pub layers: Vec<(Vec<u32>, Vec<f32>)>,
    /// Numbers from the inputs to the last layer that has weights: d, the hidden neurons, and c if
    /// that is more than 1.
    pub widths: Vec<usize>,
}

/// `y = sum relu(W_k … relu(W_1 x))` for one output, `y = W_(k+1) relu(W_k … relu(W_1 x))` for
/// several (paper IHT, 5.1): s weights N(0, 1), split by [`share`] over the layers that have
/// weights, at random places of each; x standard normal. Weights that lead to neurons without
/// weights in the next layer give nothing: few weights may give 0 for every row.
///
/// # Errors
/// [`tamis::Error::Range`] if a size is out of bounds.
///
/// ```
/// use tamis_host::data::planted;
/// let planted = planted::deep(20, 6, &[4, 4], 1, 9, 0)?;
/// assert_eq!((planted.labels.len(), planted.widths), (20, vec![6, 4, 4]));
/// let split: Vec<usize> = planted.layers.iter().map(|(index, _)| index.len()).collect();
/// assert_eq!(split, [5, 4]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn deep(
    samples_n: usize,
    inputs: usize,
    hidden: &[usize],
    outputs: usize,
    nnz: usize,
    seed: u64,
) -> Result<PlantedDeep> {
    let mut widths = [&[inputs], hidden].concat();
    if outputs > 1 {
        widths.push(outputs);
    }
    let count = widths.len() - 1;
    tamis::base::error::range("hidden layers", hidden.len(), 1, 64)?;
    let mut layers = Vec::with_capacity(count);
    for (l, pair) in widths.windows(2).enumerate() {
        let dims = Dims::new(samples_n, pair[0], pair[1], share(nnz, count, l));
        dims.check()?;
        layers.push(draw_weights(&dims, seed, DEEP + l as u64));
    }
    let data = samples(&Dims::new(samples_n, inputs, 1, 1), seed)?;
    let labels = answers(&data, &layers, &widths, outputs)?;
    Ok(PlantedDeep { data, labels, layers, widths })
}

/// Adds normal noise of standard deviation `sigma` to labels, from a seed.
///
/// ```
/// let mut labels = vec![2.0; 10_000];
/// tamis_host::data::planted::add_noise(&mut labels, 0.5, 1);
/// let variance = labels.iter().map(|y| (y - 2.0) * (y - 2.0)).sum::<f32>() / 1e4;
/// assert!((variance - 0.25).abs() < 0.02);
/// ```
pub fn add_noise(labels: &mut [f32], sigma: f32, seed: u64) {
    if sigma > 0.0 {
        let mut rng = Rng::new(seed, NOISE);
        labels.iter_mut().for_each(|label| *label += sigma * rng.normal());
    }
}

/// Weights of layer `l` of so many, where `nnz` are split evenly.
#[must_use]
pub const fn share(nnz: usize, layers: usize, l: usize) -> usize {
    nnz / layers + if l < nnz % layers { 1 } else { 0 }
}

fn answers(
    data: &Matrix,
    layers: &[(Vec<u32>, Vec<f32>)],
    widths: &[usize],
    outputs: usize,
) -> Result<Vec<f32>> {
    let layers = layers.iter().zip(widths.windows(2));
    let weights = layers.map(|((index, value), pair)| Weights::new(pair[0], pair[1], index, value));
    let weights = weights.collect::<Result<Vec<_>>>()?;
    let mut labels = vec![0.0; data.rows * outputs];
    labels.par_chunks_mut(outputs).enumerate().for_each(|(row, labels)| {
        let mut now: Vec<f64> = (0..data.cols).map(|j| at(data, row, j)).collect();
        for (l, w) in weights.iter().enumerate() {
            let mut next = vec![0.0; widths[l + 1]];
            for block in w.blocks() {
                let sum: f64 = block.entries().map(|(j, v)| f64::from(v) * now[j]).sum();
                // The weights to several outputs are the last layer, which has no activation.
                let linear = outputs > 1 && l + 1 == weights.len();
                next[block.neuron()] = if linear { sum } else { relu(sum, 1.0) };
            }
            now = next;
        }
        match labels {
            [label] => *label = now.iter().sum::<f64>() as f32,
            labels => labels.iter_mut().zip(now).for_each(|(label, out)| *label = out as f32),
        }
    });
    Ok(labels)
}

fn relu(z: f64, sign: f64) -> f64 {
    sign * (sign * z).max(0.0)
}

/// n×d standard normal samples.
pub(crate) fn samples(dims: &Dims, seed: u64) -> Result<Matrix> {
    dims.check()?;
    let rows = NormalRows::new(seed, dims.samples, dims.inputs);
    let mut values = Vec::with_capacity(dims.samples * dims.inputs + spare::<f32>());
    values.resize(dims.samples * dims.inputs, 0.0_f32);
    values.par_chunks_mut(dims.inputs).enumerate().try_for_each(|(k, row)| { rows }.row(k, row))?;
    Ok(Matrix { rows: dims.samples, cols: dims.inputs, values: Values::F32(values) })
}

/// `w · x` of one row in double precision.
fn activation(data: &Matrix, row: usize, block: Block<'_>) -> f64 {
    block.entries().map(|(j, v)| f64::from(v) * at(data, row, j)).sum()
}

fn at(data: &Matrix, row: usize, j: usize) -> f64 {
    match &data.values {
        Values::F32(v) => f64::from(v[row * data.cols + j]),
        Values::U8(v) => f64::from(v[row * data.cols + j]),
    }
}

fn label(
    data: Matrix,
    dims: Dims,
    signs: Signs,
    seed: u64,
    unit: impl Fn(f64, f64) -> f64 + Sync,
) -> Result<Planted> {
    dims.check()?;
    let (index, value) = draw_weights(&dims, seed, WEIGHTS);
    let w = Weights::new(dims.inputs, dims.hidden, &index, &value)?;
    let answer = |row: usize| {
        let output = |block: Block<'_>| {
            unit(activation(&data, row, block), f64::from(signs.sign(block.neuron())))
        };
        w.blocks().map(output).sum::<f64>() as f32
    };
    let labels = (0..dims.samples).into_par_iter().map(answer).collect();
    Ok(Planted { data, labels, index, value, hidden: dims.hidden, signs })
}

/// s distinct places of m·d, each set of places as likely as any other, and their values.
fn draw_weights(dims: &Dims, seed: u64, stream: u64) -> (Vec<u32>, Vec<f32>) {
    let mut rng = Rng::new(seed, stream);
    let mut places = std::collections::BTreeSet::new();
    let len = dims.parameters() as u32;
    for top in len - dims.nnz as u32..len {
        let pick = rng.below(top + 1);
        if !places.insert(pick) {
            places.insert(top);
        }
    }
    (places.into_iter().collect(), (0..dims.nnz).map(|_| rng.normal()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_planted_network() {
        let made = network(Dims::new(30, 7, 4, 9), Signs::Balanced, 3).unwrap();
        let Values::F32(x) = &made.data.values else { panic!("floats") };
        assert_eq!((made.index.len(), made.value.len()), (9, 9));
        let mut dense = vec![0.0_f64; 4 * 7];
        for (&j, &v) in made.index.iter().zip(&made.value) {
            dense[j as usize] = f64::from(v);
        }
        for (row, label) in x.chunks(7).zip(&made.labels) {
            let neuron = |w: &[f64]| w.iter().zip(row).map(|(w, &x)| w * f64::from(x)).sum::<f64>();
            let z: Vec<f64> = dense.chunks(7).map(neuron).collect();
            // Odd neurons count negatively: u = v w, so the unit is v relu(u·x) = -relu(-w·x).
            let y = z[0].max(0.0) + z[1].min(0.0) + z[2].max(0.0) + z[3].min(0.0);
            assert!((y - f64::from(*label)).abs() <= 1e-6 * y.abs().max(1.0), "{y} {label}");
        }
    }

    #[test]
    fn sampled_support_reaches_every_index() {
        let full = network(Dims::new(1, 5, 3, 15), Signs::Positive, 0).unwrap();
        assert_eq!(full.index, (0..15).collect::<Vec<u32>>());
        let mut seen = [0; 15];
        for seed in 0..300 {
            seen[network(Dims::new(1, 5, 3, 1), Signs::Positive, seed).unwrap().index[0]
                as usize] += 1;
        }
        assert!(seen.iter().all(|&c| c > 5), "{seen:?}");
    }

    #[test]
    fn rows_of_the_callers_get_the_same_network() {
        let made = network(Dims::new(20, 6, 3, 8), Signs::Balanced, 4).unwrap();
        assert_eq!(network_on(made.data.clone(), 3, 8, Signs::Balanced, 4).unwrap(), made);
        let bytes = Matrix::new(1, 2, Values::U8(vec![3, 0])).unwrap();
        let planted = network_on(bytes, 1, 2, Signs::Positive, 1).unwrap();
        assert_eq!(planted.labels, [(3.0 * planted.value[0]).max(0.0)]);
        let huge = Matrix::new(1, 1, Values::F32(vec![f32::MAX])).unwrap();
        let infinite =
            (0..20).filter(|&seed| network_on(huge.clone(), 1, 1, Signs::Positive, seed).is_err());
        assert!(infinite.count() > 0);
    }

    #[test]
    fn deep_labels_are_those_of_the_dense_network() {
        for (hidden, outputs, nnz) in
            [(&[5, 4][..], 1, 23), (&[4, 3], 3, 25), (&[6], 1, 11), (&[6], 2, 11)]
        {
            let made = deep(9, 7, hidden, outputs, nnz, 5).unwrap();
            let Values::F32(x) = &made.data.values else { panic!("floats") };
            assert_eq!(made.layers.iter().map(|(index, _)| index.len()).sum::<usize>(), nnz);
            assert!(made.labels.iter().any(|y| *y != 0.0), "{hidden:?}");
            for (row, labels) in x.chunks(7).zip(made.labels.chunks(outputs)) {
                let mut now: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
                for (l, ((index, value), &wide)) in
                    made.layers.iter().zip(&made.widths[1..]).enumerate()
                {
                    let mut dense = vec![0.0; wide * now.len()];
                    index.iter().zip(value).for_each(|(&j, &v)| dense[j as usize] = f64::from(v));
                    let last = outputs > 1 && l + 1 == made.layers.len();
                    let dot = |w: &[f64]| w.iter().zip(&now).map(|(w, x)| w * x).sum::<f64>();
                    let floor = if last { f64::MIN } else { 0.0 };
                    now = dense.chunks(now.len()).map(|w| dot(w).max(floor)).collect();
                }
                let expected = if outputs == 1 { vec![now.iter().sum()] } else { now };
                for (y, label) in expected.iter().zip(labels) {
                    assert!(
                        (y - f64::from(*label)).abs() <= 1e-6 * y.abs().max(1.0),
                        "{y} {label}"
                    );
                }
            }
        }
        assert!(
            deep(5, 4, &[2, 2], 1, 10, 0).is_err(),
            "five weights, four places in the second layer"
        );
    }

    #[test]
    fn more_samples_begin_with_the_same_rows() {
        let make = |n| network(Dims::new(n, 6, 2, 4), Signs::Positive, 8).unwrap();
        assert_eq!(make(20).labels[..10], make(10).labels);
    }
}
