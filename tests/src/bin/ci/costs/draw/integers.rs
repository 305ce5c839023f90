//! Random models of integers.

use super::drawn::*;
use super::rows::*;
use crate::cost::Kernel;
use tamis::base::rng::Rng;
use tamis::infer::model::{Activation, Sum};
use tamis::infer::quantised::{self, Encoding, Mask, Scales, Weights};
use tamis::store::wire::{Choice, QuantisedView};

/// A model of one layer or two in these encodings.
pub(super) fn integers(rng: &mut Rng, encodings: &[Encoding]) -> Drawn {
    loop {
        let (inputs, hidden) = sizes(rng, MOST[0]);
        let widths = [inputs, hidden, about(rng, 2, 16)];
        let sum = rng.below(4) == 0;
        let drawn: Vec<_> = encodings
            .iter()
            .zip(widths.windows(2))
            .enumerate()
            .map(|(at, (&encoding, pair))| {
                let kind = match encoding {
                    _ if at + 1 < encodings.len() || sum => Kind::Hidden,
                    _ => Kind::Last,
                };
                weights(rng, [pair[0], pair[1]], kind, encoding)
            })
            .collect();
        // A layer that this encoding cannot hold is drawn again.
        let plan: Vec<_> = encodings.iter().map(|_| Besides::drawn(rng)).collect();
        if let Some(model) = integer_file(rng, &drawn, encodings, sum, &plan) {
            return model;
        }
    }
}

/// A file of one layer in an encoding, or in another where that cannot hold it.
pub(super) fn weights(
    rng: &mut Rng,
    [inputs, outputs]: [usize; 2],
    kind: Kind,
    encoding: Encoding,
) -> Vec<u8> {
    let rows = rows(rng, inputs, outputs, kind);
    weights_of(rng, &rows, encoding, false)
}

/// A weight that is not 0, any of 8 bits or, as training leaves them, most of them small.
pub(super) fn weight(rng: &mut Rng, trained: bool) -> i8 {
    if !trained {
        return rng.bits() as i8 | 1;
    }
    let size = (127.0 * rng.uniform().powi(3)).max(1.0) as i8;
    if rng.below(2) == 0 { size } else { -size }
}

pub(super) fn weights_of(rng: &mut Rng, rows: &Rows, encoding: Encoding, trained: bool) -> Vec<u8> {
    let values: Vec<i8> = (0..rows.nonzeros()).map(|_| weight(rng, trained)).collect();
    let mut bits = vec![0; Mask::words(rows.inputs, rows.counts.len())];
    Mask::mark(rows.inputs, &rows.counts, &rows.columns, &mut bits);
    let mask = Mask::new(rows.inputs, rows.counts.len(), &bits, &values).expect("drawn in order");
    let layer = quantised::Layer::new(Weights::Mask(mask), &[], &[], Activation::Identity);
    let layer = layer.expect("sums cannot overflow");
    let model = quantised::Model::new(&[layer], None, scales()).expect("one layer");
    encoded(&QuantisedView::new(model), Choice::Prefer(encoding))
}

pub(super) fn scales() -> Scales {
    Scales::new(1.0, 1.0, 0, 0).expect("positive")
}

pub(super) fn encoded(view: &QuantisedView<'_>, choice: Choice) -> Vec<u8> {
    let mut bytes = vec![0; view.encoded_len(choice)];
    view.encode(choice, &mut bytes).expect("as long as it says");
    bytes
}

/// What layers of integers have besides weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Besides {
    /// Factors of a hidden layer for each output, not one for all.
    pub(crate) own_factors: bool,
    pub(crate) biases: bool,
    /// A last layer that is scaled, and one with `ReLU`.
    pub(crate) scaled: bool,
    pub(crate) relu: bool,
    pub(crate) sum: bool,
    /// Most weights are small, as training leaves them.
    pub(crate) trained: bool,
}

impl Besides {
    /// As `tamis quantize` leaves models for several classes: one factor for each hidden layer.
    pub(crate) const PLAIN: Self = Self {
        own_factors: false,
        biases: false,
        scaled: false,
        relu: false,
        sum: false,
        trained: false,
    };

    pub(super) fn drawn(rng: &mut Rng) -> Self {
        let mut coin = || rng.below(2) == 0;
        let [own_factors, biases, scaled, relu] = [coin(), coin(), coin(), coin()];
        Self { own_factors, biases, scaled, relu, ..Self::PLAIN }
    }
}

/// A model of integers with these widths and encodings.
pub(crate) fn planned(
    rng: &mut Rng,
    widths: &[usize],
    encodings: &[Encoding],
    density: f32,
    besides: Besides,
) -> Drawn {
    loop {
        let drawn: Vec<_> = encodings
            .iter()
            .zip(widths.windows(2))
            .enumerate()
            .map(|(at, (&encoding, pair))| {
                // Of what no later layer reads the compiler would leave code out.
                let density = if at > 0 { density.max(0.6) } else { density };
                let rows = rows_of(rng, pair[0], pair[1], Kind::Hidden, density, 1.0);
                weights_of(rng, &rows, encoding, besides.trained)
            })
            .collect();
        let plan = vec![besides; encodings.len()];
        if let Some(model) = integer_file(rng, &drawn, encodings, besides.sum, &plan) {
            return model;
        }
    }
}

/// The layers of these files with factors and biases at random, one after the other, and a `sum`
/// behind them.
pub(super) fn integer_file(
    rng: &mut Rng,
    files: &[Vec<u8>],
    encodings: &[Encoding],
    sum: bool,
    plan: &[Besides],
) -> Option<Drawn> {
    let buffers: Vec<_> = files.iter().map(|file| (aligned(file), file.len())).collect();
    let views: Vec<_> = buffers
        .iter()
        .map(|(buffer, len)| QuantisedView::parse(&buffer.0[..*len]).expect("written here"))
        .collect();
    let weights: Vec<Weights<'_>> =
        views.iter().map(|view| *view.model().layers()[0].weights()).collect();
    if weights.iter().zip(encodings).any(|(weights, encoding)| weights.encoding() != *encoding) {
        return None;
    }
    let outputs = weights.last()?.outputs();
    let signs = signs(rng, outputs);
    let sum = sum.then(|| Sum::new(outputs, &signs).expect("one bit each"));
    let mut tables = Vec::new();
    for (at, weights) in weights.iter().enumerate() {
        let hidden = at + 1 < files.len() || sum.is_some();
        let many = weights.outputs();
        let besides = plan.get(at)?;
        let count = match (hidden || besides.scaled, besides.own_factors) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => many,
        };
        let factors: Vec<u32> =
            (0..count).map(|_| (30 + rng.below(6)) << 24 | 1 << 23 | rng.below(1 << 23)).collect();
        let biases: Vec<i32> = (0..if besides.biases { many } else { 0 })
            .map(|_| rng.below(20_000) as i32 - 10_000)
            .collect();
        let relu = hidden || besides.relu;
        tables.push((factors, biases, if relu { Activation::Relu } else { Activation::Identity }));
    }
    let layers: Vec<_> = weights
        .iter()
        .zip(&tables)
        .map(|(&weights, (factors, biases, activation))| {
            quantised::Layer::new(weights, factors, biases, *activation)
                .expect("drawn within bounds")
        })
        .collect();
    let model = quantised::Model::new(&layers, sum, scales()).ok()?;
    let row: Vec<u8> = (0..model.inputs()).map(|_| rng.bits() as u8).collect();
    let (mut scratch, mut out) = (vec![0; model.scratch_len()], vec![0; model.outputs()]);
    model.predict(&row, &mut scratch, &mut out).expect("lengths are the model's");
    let widths: Vec<String> = std::iter::once(model.inputs())
        .chain(layers.iter().map(quantised::Layer::outputs))
        .map(|width| width.to_string())
        .collect();
    let names: Vec<_> = encodings.iter().map(|encoding| encoding.name()).collect();
    Some(Drawn {
        name: format!("{}, {}", widths.join("-"), names.join(" and ")),
        kernels: weights.iter().map(Kernel::of_integers).collect(),
        digest: digest(out.iter().map(|y: &i32| *y as u32)),
        row,
        content: Content::Integers(encoded(&QuantisedView::new(model), Choice::Keep)),
    })
}
