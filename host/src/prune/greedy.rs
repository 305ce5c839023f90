//! Neurons one by one, each the one with which the next layer can best give what it gave before,
//! and then the next layer fitted to those that are left, by least squares on the rows.
//!
//! With the activations A of a hidden layer (n×m, a column of 1 behind them where there are biases)
//! and what the next layer gave in the whole network, T = A₀ Wᵀ + b, forward selection needs the
//! products `AᵀA` and `AᵀT` alone: a step takes the neuron i with the largest `|c_i|² / g_ii`, the sum
//! of squares that it explains of what is left, and takes its share out of both. The fit solves
//! `(AᵀA)_SS X = (AᵀT)_S`.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Solve;
use faer::{Accum, MatMut, Par, Side};
use rayon::prelude::*;

use super::network::Mlp;
use super::rows::FitRows;
use super::select::largest;
use crate::convert::Dense;
use crate::data::{Matrix, Values};
use crate::operator::Stop;
use crate::train::dense::product::{Mat, product};
use crate::{Error, Result};

/// Rows that go through the layers together.
const TILE: usize = 512;
/// Groups of tiles, whose sums are added in order: threads change no bit.
const GROUPS: usize = 16;
/// What is added to the diagonal of the products, as a share of its mean: few rows and neurons that
/// give the same have no one solution. Ten times as much until there is one, and at the most.
const RIDGE: f64 = 1e-7;
const MOST_RIDGE: f64 = 1e-1;

/// Leaves so many neurons in each hidden layer, and fits what follows each.
pub(super) fn select(mlp: &mut Mlp, hidden: &[usize], rows: &FitRows, stop: &Stop) -> Result<()> {
    let whole = mlp.clone();
    for (l, &count) in hidden.iter().enumerate() {
        if count == mlp.layers[l].outputs && l == 0 {
            continue;
        }
        if stop.asked() {
            return Err(Error::interrupted());
        }
        let products = Products::of(mlp, &whole, l, rows);
        let chosen = products.choose(count);
        let weights = products.fit(&chosen)?;
        mlp.keep_neurons(l, &chosen);
        let next = &mut mlp.layers[l + 1];
        let outputs = next.outputs;
        for k in 0..outputs {
            for (at, w) in next.weights[k * count..(k + 1) * count].iter_mut().enumerate() {
                *w = weights[at * outputs + k] as f32;
            }
        }
        if mlp.has_ones && !mlp.is_sum_above(l) {
            let bias = (0..outputs).map(|k| weights[count * outputs + k] as f32);
            mlp.layers[l + 1].bias = bias.collect();
            mlp.layers[l + 1].trim_bias();
        }
    }
    Ok(())
}

impl Mlp {
    /// Whether the outputs behind a hidden layer are its sum, which has no biases.
    fn is_sum_above(&self, hidden: usize) -> bool {
        self.is_sum && hidden + 2 == self.layers.len()
    }
}

/// Products of the activations of a layer with each other and with what follows, row by row.
struct Products {
    /// Neurons, and the column of 1.
    size: usize,
    neurons: usize,
    outputs: usize,
    gram: Vec<f64>,
    cross: Vec<f64>,
}

impl Products {
    fn of(mlp: &Mlp, whole: &Mlp, hidden: usize, rows: &FitRows) -> Self {
        let neurons = mlp.layers[hidden].outputs;
        let ones = usize::from(mlp.has_ones && !mlp.is_sum_above(hidden));
        let size = neurons + ones;
        let outputs = whole.layers[hidden + 1].outputs;
        let data = &rows.set.data;
        let tiles = data.rows.div_ceil(TILE);
        let groups = GROUPS.min(tiles.max(1));
        let sums = (0..groups).into_par_iter().map(|group| {
            let mut own = Self::zero(size, neurons, outputs);
            for tile in group * tiles / groups..(group + 1) * tiles / groups {
                let range = tile * TILE..((tile + 1) * TILE).min(data.rows);
                let n = range.len();
                let x = gathered(data, range, rows.scale, mlp.layers[0].inputs);
                let acts = forward(&mlp.layers[..=hidden], &x, n);
                let acts = with_ones(&acts, neurons, ones);
                let targets = forward(&whole.layers[..=hidden], &x, n);
                let targets = linear(&whole.layers[hidden + 1], &targets, n);
                own.add(&acts, &targets, n);
            }
            own
        });
        let sums: Vec<Self> = sums.collect();
        let mut all = Self::zero(size, neurons, outputs);
        for own in sums {
            all.gram.iter_mut().zip(own.gram).for_each(|(sum, own)| *sum += own);
            all.cross.iter_mut().zip(own.cross).for_each(|(sum, own)| *sum += own);
        }
        all
    }

    fn zero(size: usize, neurons: usize, outputs: usize) -> Self {
        let (gram, cross) = (vec![0.0; size * size], vec![0.0; size * outputs]);
        Self { size, neurons, outputs, gram, cross }
    }

    fn add(&mut self, acts: &[f32], targets: &[f32], n: usize) {
        let Self { size, outputs, .. } = *self;
        // Sums of f32 would hide which neurons give the same.
        let wide = |values: &[f32], cols: usize| {
            faer::Mat::<f64>::from_fn(n, cols, |i, j| f64::from(values[i * cols + j]))
        };
        let (acts, targets) = (wide(acts, size), wide(targets, outputs));
        let gram = MatMut::from_row_major_slice_mut(&mut self.gram, size, size);
        matmul(gram, Accum::Add, acts.transpose(), &acts, 1.0, Par::Seq);
        let cross = MatMut::from_row_major_slice_mut(&mut self.cross, size, outputs);
        matmul(cross, Accum::Add, acts.transpose(), &targets, 1.0, Par::Seq);
    }

    /// The neurons, rising; the column of 1 is taken first.
    fn choose(&self, count: usize) -> Vec<usize> {
        let &Self { size, neurons, outputs, .. } = self;
        let (mut gram, mut cross) = (self.gram.clone(), self.cross.clone());
        let mut chosen = vec![false; size];
        let mut order = Vec::new();
        for step in 0..count + (size - neurons) {
            let gain = |i: usize| {
                let own = gram[i * size + i];
                // What the chosen ones give already.
                let is_new = own > 1e-9 * self.gram[i * size + i];
                let squares: f64 =
                    cross[i * outputs..(i + 1) * outputs].iter().map(|c| c * c).sum();
                if is_new && !chosen[i] { squares / own } else { 0.0 }
            };
            let best = match step {
                0 if size > neurons => neurons,
                _ => {
                    let gains: Vec<f64> = (0..neurons).map(gain).collect();
                    largest(&gains, 1)[0]
                }
            };
            if chosen[best] || gram[best * size + best] <= 0.0 {
                break;
            }
            chosen[best] = true;
            order.push(best);
            let own = gram[best * size + best];
            let row: Vec<f64> = gram[best * size..(best + 1) * size].to_vec();
            let given: Vec<f64> = cross[best * outputs..(best + 1) * outputs].to_vec();
            for j in 0..size {
                let share = row[j] / own;
                let line = gram[j * size..(j + 1) * size].iter_mut();
                line.zip(&row).for_each(|(g, r)| *g -= share * r);
                let line = cross[j * outputs..(j + 1) * outputs].iter_mut();
                line.zip(&given).for_each(|(c, g)| *c -= share * g);
            }
        }
        // Where the chosen ones give all there is, the first of the others.
        let more = (0..neurons).filter(|&i| !chosen[i]);
        let taken = order.iter().copied().filter(|&i| i < neurons);
        let mut kept: Vec<usize> = taken.chain(more).take(count).collect();
        kept.sort_unstable();
        kept
    }

    /// Weights from the chosen neurons, and the column of 1, to what follows, neuron by neuron.
    fn fit(&self, chosen: &[usize]) -> Result<Vec<f64>> {
        let &Self { size, neurons, outputs, .. } = self;
        let places: Vec<usize> = chosen.iter().copied().chain(neurons..size).collect();
        let count = places.len();
        let trace: f64 = places.iter().map(|&i| self.gram[i * size + i]).sum();
        let mean = trace / count as f64;
        if mean == 0.0 {
            return Ok(vec![0.0; count * outputs]);
        }
        let gram = |share: f64| {
            faer::Mat::from_fn(count, count, |a, b| {
                let own = self.gram[places[a] * size + places[b]];
                if a == b { own + share * mean } else { own }
            })
        };
        let cross = faer::Mat::from_fn(count, outputs, |a, k| self.cross[places[a] * outputs + k]);
        let unsolved = || {
            Error::new("the activations leave the range of numbers on these rows")
                .mismatch("finite activations", "sums of squares that are none")
                .help("scale the data as it was for training")
        };
        let shares = std::iter::successors(Some(RIDGE), |share| Some(10.0 * share));
        let solved = shares
            .take_while(|&share| mean.is_finite() && share <= MOST_RIDGE)
            .find_map(|share| gram(share).llt(Side::Lower).ok())
            .ok_or_else(unsolved)?
            .solve(&cross);
        let values: Vec<f64> = (0..count)
            .flat_map(|a| (0..outputs).map(move |k| (a, k)))
            .map(|(a, k)| solved[(a, k)])
            .collect();
        if values.iter().all(|value| value.is_finite()) { Ok(values) } else { Err(unsolved()) }
    }
}

/// The first numbers of these rows, scaled.
fn gathered(data: &Matrix, rows: std::ops::Range<usize>, scale: f32, inputs: usize) -> Vec<f32> {
    let values = rows.start * data.cols..rows.end * data.cols;
    match &data.values {
        Values::F32(all) => {
            let rows = all[values].chunks_exact(data.cols);
            rows.flat_map(|row| row[..inputs].iter().map(|x| scale * x)).collect()
        }
        Values::U8(all) => {
            let rows = all[values].chunks_exact(data.cols);
            rows.flat_map(|row| row[..inputs].iter().map(|&x| scale * f32::from(x))).collect()
        }
    }
}

fn with_ones(acts: &[f32], width: usize, ones: usize) -> Vec<f32> {
    let rows = acts.chunks_exact(width);
    rows.flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(1.0, ones))).collect()
}

/// What hidden layers give for n rows.
fn forward(layers: &[Dense], x: &[f32], n: usize) -> Vec<f32> {
    let mut acts = x.to_vec();
    for layer in layers {
        acts = linear(layer, &acts, n);
        acts.iter_mut().for_each(|z| *z = z.max(0.0));
    }
    acts
}

/// A layer without its relu.
fn linear(layer: &Dense, x: &[f32], n: usize) -> Vec<f32> {
    let Dense { inputs, outputs, weights, bias, .. } = layer;
    let mut out = vec![0.0; n * outputs];
    let (x, weights) = (Mat::new(x, n, *inputs), Mat::new(weights, *outputs, *inputs));
    product(&mut out, false, 1.0, x, weights.t());
    if !bias.is_empty() {
        for row in out.chunks_exact_mut(*outputs) {
            row.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
        }
    }
    out
}
