//! How far a network whose inner layers are pruned is from what it was: `|W - Ŵ|_2` of a layer, and
//! `sup |f(x) - F(x)|` over the unit ball by gradient ascent from many starts.

use rayon::prelude::*;
use tamis::base::rng::{Rng, stream};

use super::super::lanczos::spectral_norm;
use super::entries::{chosen, draw, power, smallest};
use crate::Result;
use crate::lab::experiment::spec::{Entries, Method, Metric, NetworkData, Point};
use crate::operator::Stop;
use crate::train::dense::product::{Mat, product};
use crate::{Error, lab::experiment::theory::measured::Measured};

/// Stream of the starts.
const STARTS: u64 = stream::USER + (0x7e24 << 32);
/// Starts of the ascent, and most steps of each.
const COUNT: usize = 24;
const STEPS: usize = 200;
/// Steps without a gain of this fraction after which the ascent ends.
const STILL: f64 = 1e-4;
const PATIENCE: usize = 10;

/// A layer, outputs×inputs row by row, before and after pruning.
struct Layer {
    inputs: usize,
    outputs: usize,
    weights: Vec<f32>,
    pruned: Vec<f32>,
}

/// A network of these entries, and how its inner layers are pruned.
pub(in super::super) struct Pruned<'a> {
    pub(in super::super) method: Method,
    pub(in super::super) data: &'a NetworkData,
    pub(in super::super) of: Entries,
    pub(in super::super) at: Point,
    pub(in super::super) seed: u64,
}

/// Measures how far pruning moves a network.
pub(in super::super) fn pruned(task: &Pruned<'_>, stop: &Stop) -> Result<Measured> {
    let &Pruned { method, data, ref of, at, seed } = task;
    let mut layers = network(&data.widths(at.d), of, seed);
    let last = layers.len() - 1;
    prune(method, &mut layers[1..last], of, seed);
    let norm = |(l, layer): (usize, &Layer)| {
        let difference: Vec<f32> =
            layer.weights.iter().zip(&layer.pruned).map(|(a, b)| a - b).collect();
        spectral_norm(&difference, layer.inputs, seed + l as u64)
    };
    let norms: Vec<f64> = layers[1..last].par_iter().enumerate().map(norm).collect();
    let largest = norms.into_iter().fold(0.0, f64::max);
    let alpha = of.alpha.unwrap_or(0.0);
    let exponent = if method == Method::PruneMagnitude { alpha } else { alpha / 4.0 };
    let mut measured = Measured::from([
        (Metric::DeltaNorm, largest),
        (Metric::TheoremForm, (at.d as f64).powf(-exponent)),
    ]);
    measured.insert(Metric::SupNorm, supremum(&layers, seed, stop)?);
    Ok(measured)
}

fn network(widths: &[usize], of: &Entries, seed: u64) -> Vec<Layer> {
    let layer = |(l, pair): (usize, &[usize])| {
        let weights = draw(of, pair[1], pair[0], seed, l as u64);
        let pruned = weights.clone();
        Layer { inputs: pair[0], outputs: pair[1], weights, pruned }
    };
    widths.windows(2).enumerate().map(layer).collect()
}

/// Sets the pruned entries of inner layers to 0.
fn prune(method: Method, inner: &mut [Layer], of: &Entries, seed: u64) {
    let exponent = 1.0 - of.alpha.unwrap_or(0.0);
    let places = |entries: &[f32], at: u64| {
        let count = power(entries.len(), exponent);
        match method {
            Method::PruneMagnitude => smallest(entries, count),
            _ => chosen(of.choice, entries.len(), count, seed, at),
        }
    };
    if !of.global {
        for (l, layer) in (0..).zip(inner) {
            for place in places(&layer.weights, l) {
                layer.pruned[place as usize] = 0.0;
            }
        }
        return;
    }
    let all: Vec<f32> = inner.iter().flat_map(|layer| layer.weights.iter().copied()).collect();
    let all = places(&all, 0);
    let (mut first, mut rest) = (0, &all[..]);
    for layer in inner {
        let end = first + layer.weights.len();
        let own = rest.partition_point(|&place| (place as usize) < end);
        for &place in &rest[..own] {
            layer.pruned[place as usize - first] = 0.0;
        }
        (first, rest) = (end, &rest[own..]);
    }
}

/// Activations of a batch, layer by layer, of the weights or of the pruned ones.
struct Pass {
    is_pruned: bool,
    /// The inputs of each layer but the first, after relu.
    hidden: Vec<Vec<f32>>,
    outputs: Vec<f32>,
}

impl Pass {
    fn weights<'l>(&self, layer: &'l Layer) -> Mat<'l> {
        let weights = if self.is_pruned { &layer.pruned } else { &layer.weights };
        Mat::new(weights, layer.outputs, layer.inputs)
    }

    fn forward(&mut self, layers: &[Layer], rows: &[f32]) {
        self.hidden.clear();
        for (l, layer) in layers.iter().enumerate() {
            let mut out = vec![0.0; COUNT * layer.outputs];
            let inputs = self.hidden.last().map_or(rows, Vec::as_slice);
            product(
                &mut out,
                false,
                1.0,
                Mat::new(inputs, COUNT, layer.inputs),
                self.weights(layer).t(),
            );
            if l + 1 == layers.len() {
                self.outputs = out;
            } else {
                out.iter_mut().for_each(|v| *v = v.max(0.0));
                self.hidden.push(out);
            }
        }
    }

    /// Adds `scale` times the gradient by the rows, for one by the outputs.
    fn backward(&self, layers: &[Layer], by_outputs: &[f32], scale: f32, gradient: &mut [f32]) {
        let mut by = by_outputs.to_vec();
        for (l, layer) in layers.iter().enumerate().rev() {
            let by_rows = Mat::new(&by, COUNT, layer.outputs);
            if l == 0 {
                product(gradient, true, scale, by_rows, self.weights(layer));
                return;
            }
            let mut next = vec![0.0; COUNT * layer.inputs];
            product(&mut next, false, 1.0, by_rows, self.weights(layer));
            let active = next.iter_mut().zip(&self.hidden[l - 1]);
            active.filter(|(_, h)| **h <= 0.0).for_each(|(next, _)| *next = 0.0);
            by = next;
        }
    }
}

/// The largest `|f(x) - F(x)|_2` found with `|x|_2 = 1`. Without biases both are homogeneous, so it
/// is that of the ball; each step goes to the direction of the gradient, which cannot lose where the
/// gates stay.
fn supremum(layers: &[Layer], seed: u64, stop: &Stop) -> Result<f64> {
    let inputs = layers[0].inputs;
    let mut rows = vec![0.0; COUNT * inputs];
    Rng::new(seed, STARTS).fill_normal(&mut rows);
    let mut passes =
        [false, true].map(|is_pruned| Pass { is_pruned, hidden: Vec::new(), outputs: Vec::new() });
    let (mut best, mut since) = (0.0_f64, 0);
    for _ in 0..STEPS {
        if stop.asked() {
            return Err(Error::interrupted());
        }
        for row in rows.chunks_exact_mut(inputs) {
            let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let scale = if norm > 0.0 { (1.0 / norm) as f32 } else { 0.0 };
            row.iter_mut().for_each(|x| *x *= scale);
        }
        passes.iter_mut().for_each(|pass| pass.forward(layers, &rows));
        let [whole, cut] = &passes;
        let difference: Vec<f32> =
            whole.outputs.iter().zip(&cut.outputs).map(|(f, g)| f - g).collect();
        let square = |row: &[f32]| row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        let outputs = difference.len() / COUNT;
        let found = difference.chunks_exact(outputs).map(square).fold(0.0, f64::max).sqrt();
        since = if found > best * (1.0 + STILL) { 0 } else { since + 1 };
        best = best.max(found);
        if since == PATIENCE {
            break;
        }
        rows.fill(0.0);
        whole.backward(layers, &difference, 1.0, &mut rows);
        cut.backward(layers, &difference, -1.0, &mut rows);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::experiment::spec::Choice;

    const DATA: NetworkData = NetworkData { width: 48, layers: 4, inputs: None, outputs: Some(3) };

    fn removed(layers: &[Layer]) -> Vec<usize> {
        let zeros = |layer: &Layer| layer.pruned.iter().filter(|w| **w == 0.0).count();
        layers.iter().map(zeros).collect()
    }

    #[test]
    fn only_inner_layers_are_pruned() {
        let of = Entries { alpha: Some(0.2), choice: Choice::Distinct, ..Entries::default() };
        let count = (48.0_f64 * 48.0).powf(0.8).floor() as usize;
        for method in [Method::PruneMagnitude, Method::PruneRandom] {
            let mut layers = network(&DATA.widths(48), &of, 1);
            prune(method, &mut layers[1..3], &of, 1);
            assert_eq!(removed(&layers), [0, count, count, 0], "{method:?}");
        }
        let global = Entries { global: true, ..of };
        let mut layers = network(&DATA.widths(48), &global, 1);
        prune(Method::PruneMagnitude, &mut layers[1..3], &global, 1);
        let all = removed(&layers);
        assert_eq!(all[1] + all[2], (2.0 * 48.0_f64 * 48.0).powf(0.8).floor() as usize);
        assert!(all[0] == 0 && all[3] == 0 && all[1] != all[2], "{all:?}");
    }

    /// No point of the sphere is above what the ascent finds, and none found is above the product
    /// of norms.
    #[test]
    fn ascent_finds_more_than_random_points() {
        let of = Entries { alpha: Some(0.1), ..Entries::default() };
        let stop = Stop::new();
        let at = Point { m: 0, s: 0, n: 0, d: 48, variant: 0 };
        let task = Pruned { method: Method::PruneRandom, data: &DATA, of, at, seed: 2 };
        let own = pruned(&task, &stop).unwrap();
        let mut layers = network(&DATA.widths(48), &of, 2);
        prune(Method::PruneRandom, &mut layers[1..3], &of, 2);
        let mut rng = Rng::new(9, 0);
        let mut most = 0.0_f64;
        for _ in 0..100 {
            let mut rows = vec![0.0; COUNT * 48];
            rng.fill_normal(&mut rows);
            let mut passes = [false, true].map(|is_pruned| Pass {
                is_pruned,
                hidden: Vec::new(),
                outputs: Vec::new(),
            });
            passes.iter_mut().for_each(|pass| pass.forward(&layers, &rows));
            for (k, row) in rows.chunks_exact(48).enumerate() {
                let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                let [f, g] = &passes;
                let square =
                    (0..3).map(|o| f64::from(f.outputs[3 * k + o] - g.outputs[3 * k + o]).powi(2));
                most = most.max(square.sum::<f64>().sqrt() / norm);
            }
        }
        let found = own[&Metric::SupNorm];
        assert!(found > most, "{found} {most}");
        let norm = |weights: &[f32], inputs: usize| spectral_norm(weights, inputs, 1);
        let whole: f64 = layers.iter().map(|layer| norm(&layer.weights, layer.inputs)).product();
        let cut: f64 = layers.iter().map(|layer| norm(&layer.pruned, layer.inputs)).product();
        assert!(found < whole + cut, "{found} {whole} {cut}");
    }
}
