//! What stays by its score: neurons and inputs one by one, weights so that exactly so many are left
//! and each lies on a path.

use super::network::Mlp;
use super::paths::Paths;
use crate::{Error, Result};

/// The places of the largest scores, rising; of equal ones the first stay.
pub(super) fn largest(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order.sort_unstable();
    order
}

/// A weight or a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    layer: usize,
    /// Among the weights of the layer and then its biases.
    at: usize,
}

/// Leaves exactly `count` nonzeros, those with the largest scores as far as all of them lie on
/// paths from inputs to outputs: what does not is taken away, and its share of the count goes to
/// the weights that come next.
///
/// Where too few are left, `missing` says whether weights that are trained afterwards take their
/// places.
///
/// # Errors
/// Fewer nonzeros on paths than asked for, or none that can be added or taken one by one.
pub(super) fn keep_weights(
    mlp: &mut Mlp,
    score: fn(&Mlp) -> Vec<Vec<f32>>,
    count: usize,
    missing: Missing,
) -> Result<()> {
    let scores = score(mlp);
    let order = ranked(mlp, &scores);
    let first = |k: usize| {
        let mut cut = mlp.without_counted();
        order[..k].iter().for_each(|&place| cut.set(place, mlp.get(place)));
        cut.fold_constants();
        cut.drop_dead();
        cut
    };
    // The fewest of the largest that hold as many on paths; all of them where none do.
    let (mut low, mut high) = (0, order.len());
    while low < high {
        let middle = low.midpoint(high);
        if first(middle).nnz() < count { low = middle + 1 } else { high = middle }
    }
    // What is left of more of them may be exactly as many where this one is not.
    let mut got = 0;
    for k in (high..=order.len()).take(TRIES) {
        let cut = filled(mlp, first(k), score, &order, count, missing);
        got = cut.nnz();
        if got == count {
            *mlp = cut;
            return Ok(());
        }
    }
    Err(too_few(got, count))
}

/// What becomes of nonzeros that are asked for where fewer are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Others grow again near 0, to be trained.
    Regrown,
    /// No weights are made up.
    Refused,
}

/// Selections of more and more of the largest that are tried for an exact count.
const TRIES: usize = 64;

/// A selection with nonzeros taken away or added one by one, to the count where that can be.
fn filled(
    mlp: &Mlp,
    mut cut: Mlp,
    score: fn(&Mlp) -> Vec<Vec<f32>>,
    order: &[Place],
    count: usize,
    missing: Missing,
) -> Mlp {
    // One weight may complete paths of several: the smallest that others do not need go again.
    while cut.nnz() > count {
        let Some(smaller) = cut.smaller(&score(&cut)) else { break };
        cut = smaller;
    }
    let grows = missing == Missing::Regrown;
    cut = between_live(mlp, cut, order, count, grows);
    // Neurons on paths may not have so many weights between them: others are brought back, each
    // with a weight to it and one from it, and with a bias where that holds means.
    let needed = 2 + usize::from(mlp.is_centred);
    for _ in 0..mlp.hidden().iter().sum() {
        if !grows || cut.nnz() >= count {
            break;
        }
        let mut room = Some(cut.clone());
        for _ in 0..needed {
            let is_full = |room: &mut Mlp| room.nnz() + needed > count;
            room = match room.take_if(is_full) {
                Some(full) => full.smaller(&score(&full)),
                None => break,
            };
        }
        let Some(more) = room.and_then(|cut| cut.with_neuron(mlp)) else { break };
        cut = between_live(mlp, more, order, count, grows);
    }
    cut
}

/// A selection with the largest weights between neurons on paths, to the count; those that rounds
/// before have dropped come last, with a weight to begin with, where weights grow again.
fn between_live(mlp: &Mlp, mut cut: Mlp, order: &[Place], count: usize, grows: bool) -> Mlp {
    let dropped = mlp.places().filter(|&place| grows && mlp.get(place) == 0.0);
    let paths = Paths::of(&cut);
    let mut nnz = cut.nnz();
    for place in order.iter().copied().chain(dropped) {
        if nnz >= count {
            break;
        }
        if cut.get(place) == 0.0 && cut.is_between_live(&paths, place) {
            let value = mlp.get(place);
            cut.set(place, if value == 0.0 { REGROWN } else { value });
            nnz += 1;
        }
    }
    cut
}

/// Where a weight begins that is there again.
const REGROWN: f32 = 1e-6;

fn too_few(got: usize, count: usize) -> Error {
    Error::new("the network cannot have as many nonzeros as asked for")
        .expected(format_args!("{count} weights and biases on paths from inputs to outputs"))
        .got(format_args!("{got}"))
        .help("choose another --nnz, or other --neurons or --inputs")
}

/// All nonzeros that count, the largest scores first; of equal ones the first in the network.
fn ranked(mlp: &Mlp, scores: &[Vec<f32>]) -> Vec<Place> {
    let mut order = Vec::new();
    for (layer, scores) in scores.iter().enumerate() {
        let places = (0..scores.len()).map(|at| Place { layer, at });
        order.extend(places.filter(|&place| mlp.get(place) != 0.0));
    }
    let score = |place: &Place| scores[place.layer][place.at];
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}

impl Mlp {
    /// All places of weights that count, and of biases of layers that have some.
    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.counted().iter().enumerate().flat_map(|(layer, own)| {
            (0..own.weights.len() + own.bias.len()).map(move |at| Place { layer, at })
        })
    }

    /// The same without the nonzero of the least score that no other one needs; where there is
    /// none, without the least one that leaves a path.
    fn smaller(&self, scores: &[Vec<f32>]) -> Option<Self> {
        let mut order = ranked(self, scores);
        order.retain(|&place| !(self.is_centred && place.layer == 0 && self.is_bias(place)));
        let mut from: Vec<_> = self.layers.iter().map(|layer| vec![0; layer.inputs]).collect();
        let mut to: Vec<_> = self.layers.iter().map(|layer| vec![0; layer.outputs]).collect();
        for (l, layer) in self.layers.iter().enumerate() {
            for (at, _) in layer.weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                from[l][at % layer.inputs] += 1;
                to[l][at / layer.inputs] += 1;
            }
        }
        let last = self.layers.len() - 1;
        let is_free = |place: &&Place| {
            let layer = &self.layers[place.layer];
            let [output, input] = [place.at / layer.inputs, place.at % layer.inputs];
            self.is_bias(**place)
                || (place.layer == last || to[place.layer][output] > 1)
                    && (place.layer == 0 || from[place.layer][input] > 1)
        };
        let without = |place: &Place| {
            let mut smaller = self.clone();
            smaller.set(*place, 0.0);
            smaller.fold_constants();
            smaller.drop_dead();
            smaller
        };
        let free =
            order.iter().rev().filter(is_free).map(without).find(|cut| cut.nnz() < self.nnz());
        let leaves_path = |cut: &Self| Paths::of(cut).live.iter().all(|live| live.contains(&true));
        free.or_else(|| order.iter().rev().map(without).find(leaves_path))
    }

    /// The same with a neuron of `mlp` that no path leads through, and its largest weights to and
    /// from neurons on paths.
    fn with_neuron(mut self, mlp: &Self) -> Option<Self> {
        let live = Paths::of(&self).live;
        let hidden = 1..self.layers.len();
        let mut dead = hidden.flat_map(|l| (0..live[l].len()).map(move |at| (l, at)));
        let (l, neuron) = dead.find(|&(l, at)| !live[l][at])?;
        let inputs = self.layers[l - 1].inputs;
        let from = (0..inputs).filter(|&i| live[l - 1][i]);
        let from = from.map(|i| Place { layer: l - 1, at: neuron * inputs + i });
        let layer = &self.layers[l];
        let to = (0..layer.outputs).filter(|&o| live[l + 1][o]);
        let to = to.map(|o| Place { layer: l, at: o * layer.inputs + neuron });
        let size = |place: &Place| mlp.get(*place).abs();
        let largest = |a: &Place, b: &Place| size(a).total_cmp(&size(b));
        for place in [from.max_by(largest)?, to.max_by(largest)?] {
            let value = mlp.get(place);
            self.set(place, if value == 0.0 { REGROWN } else { value });
        }
        if self.is_centred && l == 1 {
            let bias = Place { layer: 0, at: self.layers[0].weights.len() + neuron };
            let value = mlp.get(bias);
            self.set(bias, if value == 0.0 { REGROWN } else { value });
        }
        Some(self)
    }

    fn get(&self, place: Place) -> f32 {
        let layer = &self.layers[place.layer];
        match place.at.checked_sub(layer.weights.len()) {
            None => layer.weights[place.at],
            Some(bias) => layer.bias.get(bias).copied().unwrap_or(0.0),
        }
    }

    fn set(&mut self, place: Place, value: f32) {
        let layer = &mut self.layers[place.layer];
        match place.at.checked_sub(layer.weights.len()) {
            None => layer.weights[place.at] = value,
            Some(bias) => {
                layer.bias.resize(layer.outputs, 0.0);
                layer.bias[bias] = value;
                layer.trim_bias();
            }
        }
    }

    /// The same network without the weights and biases that count.
    fn without_counted(&self) -> Self {
        let mut blank = self.clone();
        let counted = self.counted().len();
        for layer in &mut blank.layers[..counted] {
            layer.weights.fill(0.0);
            layer.bias.clear();
        }
        blank
    }

    fn is_bias(&self, place: Place) -> bool {
        place.at >= self.layers[place.layer].weights.len()
    }

    /// Whether a weight or bias that is not there would lie on a path, one of these.
    fn is_between_live(&self, Paths { live }: &Paths, place: Place) -> bool {
        let layer = &self.layers[place.layer];
        match place.at.checked_sub(layer.weights.len()) {
            Some(bias) => live[place.layer + 1][bias],
            None => {
                let input = place.at % layer.inputs;
                let is_live = match place.layer {
                    0 => self.readable.get(input).copied().unwrap_or(true),
                    l => live[l][input],
                };
                is_live && live[place.layer + 1][place.at / layer.inputs]
            }
        }
    }
}
