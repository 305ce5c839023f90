//! Random models of floats.

use super::drawn::*;
use super::rows::*;
use crate::cost::Kernel;
use tamis::base::rng::Rng;
use tamis::infer::model::{self, Activation, Sum, WINDOW};
use tamis::store::wire::View;

pub(super) fn dense_floats(rng: &mut Rng) -> Drawn {
    let (inputs, outputs) = sizes(rng, MOST[1]);
    let (row, weights) = (numbers(rng, inputs), numbers(rng, inputs * outputs));
    let sums = weights.chunks(inputs).map(|weights| {
        let sum = row.iter().zip(weights).fold(0.0_f32, |sum, (x, weight)| sum + x * weight);
        (if sum <= 0.0 { 0.0_f32 } else { sum }).to_bits()
    });
    Drawn {
        name: format!("{inputs}-{outputs}, f32 dense"),
        kernels: vec![Kernel::DenseFloats],
        digest: digest(sums),
        row: bytes_of(&row),
        content: Content::DenseFloats { inputs, outputs, weights: bytes_of(&weights) },
    }
}

/// How a layer of floats is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatLayer {
    Rows,
    Windows,
}

impl FloatLayer {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rows => "f32 rows",
            Self::Windows => "f32 windows",
        }
    }
}

/// What a layer of floats borrows.
pub(super) struct Tables {
    pub(super) rows: Rows,
    pub(super) values: Vec<f32>,
    /// In windows: counts of each row in each, indices, and values in their order.
    pub(super) runs: (Vec<u8>, Vec<u8>, Vec<f32>),
}

impl Tables {
    pub(super) fn new(rng: &mut Rng, rows: Rows) -> Self {
        let values = numbers(rng, rows.nonzeros());
        let mut runs = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..rows.inputs.div_ceil(WINDOW) {
            let start = (window * WINDOW).min(rows.inputs.saturating_sub(WINDOW));
            let mut at = 0;
            for &count in &rows.counts {
                let before = runs.1.len();
                let row = at..at + usize::from(count);
                at = row.end;
                for (&column, &value) in rows.columns[row.clone()].iter().zip(&values[row]) {
                    let column = usize::from(column);
                    if column / WINDOW == window {
                        runs.1.push((column - start) as u8);
                        runs.2.push(value);
                    }
                }
                runs.0
                    .push(u8::try_from(runs.1.len() - before).expect("densities are far below 1"));
            }
        }
        Self { rows, values, runs }
    }

    pub(super) fn layer(&self, kind: FloatLayer, activation: Activation) -> model::Layer<'_> {
        let Rows { inputs, counts, columns } = &self.rows;
        match kind {
            FloatLayer::Rows => {
                let csr = model::Csr::new(*inputs, counts, columns, &self.values, activation);
                model::Layer::Csr(csr.expect("drawn in order"))
            }
            FloatLayer::Windows => {
                let (runs, indices, values) = &self.runs;
                let blocks =
                    model::Blocks::new(*inputs, counts.len(), runs, indices, values, activation);
                model::Layer::Blocks(blocks.expect("drawn in order"))
            }
        }
    }
}

/// One layer with inputs in a range, and perhaps a `sum`.
pub(super) fn floats(rng: &mut Rng, range: [usize; 2], kind: FloatLayer, sum: bool) -> Drawn {
    let (inputs, outputs) = loop {
        let (inputs, outputs) = sizes(rng, MOST[0]);
        if (range[0]..=range[1]).contains(&inputs) {
            break (inputs, outputs);
        }
    };
    let rows = rows(rng, inputs, outputs, if sum { Kind::Hidden } else { Kind::Last });
    let tables = Tables::new(rng, rows);
    let activation = pick(rng, &[Activation::Relu, Activation::Identity]);
    let signs = signs(rng, outputs);
    let mut layers = vec![tables.layer(kind, activation)];
    if sum {
        layers.push(model::Layer::Sum(Sum::new(outputs, &signs).expect("one bit each")));
    }
    float_file(rng, format!("{inputs}-{outputs}, {}", kind.name()), &layers)
}

/// Two layers with so many numbers between them.
pub(super) fn two_of_floats(rng: &mut Rng, range: [usize; 2], kind: FloatLayer) -> Drawn {
    let hidden = about(rng, range[0], range[1]);
    let inputs = about(rng, 8, (MOST[0] / hidden).clamp(8, 800));
    let outputs = about(rng, 2, 16);
    let (first, second) =
        (rows(rng, inputs, hidden, Kind::Hidden), rows(rng, hidden, outputs, Kind::Last));
    let [first, second] = [first, second].map(|rows| Tables::new(rng, rows));
    let layers = [first.layer(kind, Activation::Relu), second.layer(kind, Activation::Identity)];
    float_file(rng, format!("{inputs}-{hidden}-{outputs}, {}", kind.name()), &layers)
}

pub(super) fn float_file(rng: &mut Rng, name: String, layers: &[model::Layer<'_>]) -> Drawn {
    let model = model::Model::new(layers).expect("sizes follow each other");
    let row = numbers(rng, model.inputs());
    let (mut scratch, mut out) = (vec![0.0; model.scratch_len()], vec![0.0; model.outputs()]);
    model.predict(&row, &mut scratch, &mut out).expect("lengths are the model's");
    let view = View::new(model);
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes).expect("as long as it says");
    let kernels = layers.iter().filter_map(Kernel::of_floats);
    Drawn {
        name,
        kernels: kernels.collect(),
        digest: digest(out.iter().map(|y: &f32| y.to_bits())),
        row: bytes_of(&row),
        content: Content::Floats(bytes),
    }
}

/// A model of floats with these widths, in rows or windows, and a sum behind it if wanted.
pub(crate) fn planned_floats(
    rng: &mut Rng,
    widths: &[usize],
    kinds: &[FloatLayer],
    density: f32,
    sum: bool,
) -> Drawn {
    let tables: Vec<_> = widths
        .windows(2)
        .map(|pair| {
            let rows = rows_of(rng, pair[0], pair[1], Kind::Hidden, density, 1.0);
            Tables::new(rng, rows)
        })
        .collect();
    let count = tables.len();
    let mut layers: Vec<_> = (tables.iter().zip(kinds).enumerate())
        .map(|(at, (tables, &kind))| {
            let relu = at + 1 < count || sum;
            tables.layer(kind, if relu { Activation::Relu } else { Activation::Identity })
        })
        .collect();
    let outputs = widths.last().copied().unwrap_or(0);
    let signs = signs(rng, outputs);
    if sum {
        layers.push(model::Layer::Sum(Sum::new(outputs, &signs).expect("one bit each")));
    }
    let names: Vec<_> = widths.iter().map(ToString::to_string).collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    float_file(rng, format!("{}, {}", names.join("-"), kinds.join(" and ")), &layers)
}
