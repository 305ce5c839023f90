//! Two networks side by side, neuron by neuron.
//!
//! Difference bounds compare neuron j of one network with neuron j of the other, so neurons are
//! matched first: by the cosine of their weights, since quantisation and pruning leave neurons out.
//! A neuron without a partner is beside one that gives 0, and a missing layer is one that hands on
//! what it is given. No order of neurons changes a prediction, so a bad match makes bounds loose and
//! never wrong.

use super::network::{Bytes, Layer, Network, Params};
use super::rows::{Entry, Rows};

/// One layer of one network, as wide as that of the other.
pub(super) type Side = Layer<Rows>;

/// One layer of both networks.
#[derive(Debug, Clone)]
pub(super) struct PairLayer {
    pub(super) inputs: usize,
    pub(super) a: Side,
    pub(super) b: Side,
    /// Weights of `b` less those of `a`.
    pub(super) change: Rows,
    /// The columns of each network, as rows.
    pub(super) columns: [Rows; 2],
    /// Neurons of integers that give the same in both networks for every row.
    pub(super) is_same: Vec<bool>,
}

/// Two networks of the same inputs and outputs.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) a: Ends,
    pub(super) b: Ends,
    pub(super) layers: Vec<PairLayer>,
}

/// What a network does to its inputs and outputs; see [`Network`].
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) bytes: Option<Vec<Bytes>>,
    pub(super) output: f64,
    pub(super) threshold: Option<[f64; 2]>,
}

impl Ends {
    /// How an input becomes a byte, where it does.
    pub(super) fn bytes(&self, input: usize) -> Option<Bytes> {
        self.bytes.as_ref().and_then(|bytes| bytes.get(input)).copied()
    }

    /// What the network makes of a number of an input.
    pub(super) fn number(&self, input: usize, x: f32) -> f64 {
        self.bytes(input).map_or_else(|| f64::from(x), |bytes| bytes.number(x))
    }
}

impl Pair {
    /// Puts two networks side by side.
    pub(super) fn new(mut a: Network, mut b: Network) -> Self {
        let depth = a.layers.len().max(b.layers.len());
        a.deepen(depth);
        b.deepen(depth);
        for at in 0..depth - 1 {
            let partners = partners(&a.layers[at].rows, &b.layers[at].rows);
            let mut width = a.layers[at].rows.len();
            let places: Vec<usize> = partners
                .iter()
                .map(|partner| {
                    partner.unwrap_or_else(|| {
                        width += 1;
                        width - 1
                    })
                })
                .collect();
            if b.is_free() {
                let factors = factors(&a.layers[at], &b.layers[at], &partners);
                b.rescale(at, &factors);
            } else if a.is_free() {
                let factors =
                    factors(&b.layers[at], &a.layers[at], &turned(&partners, &a.layers[at]));
                a.rescale(at, &factors);
            }
            widen(&mut a.layers[at..at + 2], width, None);
            widen(&mut b.layers[at..at + 2], width, Some(&places));
        }
        let ends = |network: &Network| Ends {
            bytes: network.bytes.clone(),
            output: network.output,
            threshold: network.threshold,
        };
        let (ends_a, ends_b) = (ends(&a), ends(&b));
        let inputs = a.layers.first().map_or(0, |layer| layer.inputs);
        let mut is_same = vec![a.bytes.is_some() && a.bytes == b.bytes; inputs];
        let layers = a.layers.into_iter().zip(b.layers).map(|(a, b)| {
            is_same = same_neurons(&a, &b, &is_same);
            both(a, b, is_same.clone())
        });
        let layers: Vec<_> = layers.collect();
        Self {
            inputs,
            outputs: layers.last().map_or(0, |layer| layer.a.neurons.len()),
            a: ends_a,
            b: ends_b,
            layers,
        }
    }
}

/// Which neurons compute the same of the same integers, given which of the layer before do.
fn same_neurons(a: &Layer, b: &Layer, before: &[bool]) -> Vec<bool> {
    let is_same = |j: usize| {
        let (params, row) = (&a.neurons[j], &a.rows[j]);
        let is_equal = a.relu == b.relu && *params == b.neurons[j] && *row == b.rows[j];
        let is_read_alike = || row.iter().all(|entry| before[entry.column as usize]);
        params.integers.is_some() && is_equal && is_read_alike()
    };
    (0..a.rows.len()).map(is_same).collect()
}

fn both(a: Layer, b: Layer, is_same: Vec<bool>) -> PairLayer {
    let inputs = a.inputs;
    let change: Vec<_> = a.rows.iter().zip(&b.rows).map(|(a, b)| change(a, b)).collect();
    let change = Rows::new(&change, inputs);
    let columns = [&a, &b].map(columns);
    let side = |layer: Layer| Side {
        inputs,
        relu: layer.relu,
        rows: Rows::new(&layer.rows, inputs),
        neurons: layer.neurons,
    };
    PairLayer { inputs, change, columns, is_same, a: side(a), b: side(b) }
}

/// The columns of a layer, as rows.
fn columns(layer: &Layer) -> Rows {
    let mut columns = vec![Vec::new(); layer.inputs];
    for (j, row) in layer.rows.iter().enumerate() {
        for entry in row {
            columns[entry.column as usize].push(Entry { column: j as u32, value: entry.value });
        }
    }
    Rows::new(&columns, layer.rows.len())
}

/// `b - a`, columns rising.
fn change(a: &[Entry], b: &[Entry]) -> Vec<Entry> {
    let minus = |entry: &Entry| Entry { value: -entry.value, ..*entry };
    let mut all: Vec<Entry> = b.iter().copied().chain(a.iter().map(minus)).collect();
    all.sort_by_key(|entry| entry.column);
    let mut sums: Vec<Entry> = Vec::new();
    for entry in all {
        match sums.last_mut().filter(|last| last.column == entry.column) {
            Some(last) => last.value += entry.value,
            None => sums.push(entry),
        }
    }
    sums
}

/// Moves the neurons of the first of two layers to `places`, or leaves them where they are, and adds
/// neurons that give 0 up to `width`.
fn widen(layers: &mut [Layer], width: usize, places: Option<&[usize]>) {
    let [layer, next] = layers else { return };
    let place = |j: usize| places.map_or(j, |places| places[j]);
    let (rows, neurons) = (vec![Vec::new(); width], vec![Params::default(); width]);
    let mut wide = Layer { rows, neurons, ..*layer };
    for j in 0..layer.rows.len() {
        let at = place(j);
        wide.rows[at] = std::mem::take(&mut layer.rows[j]);
        wide.neurons[at] = layer.neurons[j];
    }
    *layer = wide;
    next.inputs = width;
    for row in &mut next.rows {
        row.iter_mut().for_each(|entry| entry.column = place(entry.column as usize) as u32);
        row.sort_by_key(|entry| entry.column);
    }
}

/// For each row of `b` the row of `a` that it is most like, each at most once.
fn partners(a: &[Vec<Entry>], b: &[Vec<Entry>]) -> Vec<Option<usize>> {
    let (norms_a, norms_b) = (norms(a), norms(b));
    let cosine = |at: usize, bt: usize| {
        let scale = norms_a[at] * norms_b[bt];
        if scale > 0.0 { product(&a[at], &b[bt]) / scale } else { 0.0 }
    };
    let alike = |j: usize| norms_a[j] + norms_b[j] == 0.0 || cosine(j, j) > ALIKE;
    if a.len() == b.len() && (0..a.len()).all(alike) {
        return (0..a.len()).map(Some).collect();
    }
    let mut found = Vec::new();
    for bt in 0..b.len() {
        for at in 0..a.len() {
            let cosine = cosine(at, bt);
            if cosine > RELATED {
                found.push([cosine, at as f64, bt as f64]);
            }
        }
    }
    found.sort_by(|x, y| y[0].total_cmp(&x[0]));
    let (mut taken, mut partners) = (vec![false; a.len()], vec![None; b.len()]);
    for [_, at, bt] in found {
        let (at, bt) = (at as usize, bt as usize);
        if !taken[at] && partners[bt].is_none() {
            (taken[at], partners[bt]) = (true, Some(at));
        }
    }
    partners
}

/// For each row of `a` the row of `b` that is its partner.
fn turned(partners: &[Option<usize>], a: &Layer) -> Vec<Option<usize>> {
    let mut turned = vec![None; a.rows.len()];
    for (bt, at) in partners.iter().enumerate() {
        if let Some(at) = at {
            turned[*at] = Some(bt);
        }
    }
    turned
}

/// The cosine from which neurons in the same place are taken to be the same.
const ALIKE: f64 = 0.5;
/// The least cosine of a match.
const RELATED: f64 = 0.05;

fn norms(rows: &[Vec<Entry>]) -> Vec<f64> {
    rows.iter().map(|row| product(row, row).sqrt()).collect()
}

/// The product of two rows whose columns rise.
fn product(a: &[Entry], b: &[Entry]) -> f64 {
    let (mut sum, mut b) = (0.0, b.iter().peekable());
    for entry in a {
        while b.next_if(|other| other.column < entry.column).is_some() {}
        if let Some(other) = b.next_if(|other| other.column == entry.column) {
            sum += entry.value * other.value;
        }
    }
    sum
}

/// The unit of each neuron of `b` that brings its weights next to those of its partner.
fn factors(a: &Layer, b: &Layer, partners: &[Option<usize>]) -> Vec<f64> {
    let fit = |j: usize| {
        let (own, other) = (&b.rows[j], &a.rows[partners[j]?]);
        if own == other {
            return Some(1.0);
        }
        let factor = product(own, other) / product(own, own);
        (factor.is_normal() && factor > 0.0).then_some(factor)
    };
    let fits: Vec<Option<f64>> = (0..b.rows.len()).map(fit).collect();
    let mut known: Vec<f64> = fits.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let usual = known.get(known.len() / 2).copied().unwrap_or(1.0);
    fits.into_iter().map(|fit| fit.unwrap_or(usual)).collect()
}
