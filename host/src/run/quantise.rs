//! A model of floats to one of integers: scales from rows, rounded weights, and what it costs in accuracy.

mod biases;

use rayon::prelude::*;
use serde::Serialize;
use tamis::model::{Activation, Layer as FloatLayer, Model as FloatModel, Sum};
use tamis::quantised::{Csr, Layer, Model, Rescale, Scales, Weights};
use tamis::wire::{self, Choice, QuantisedView, View};

use self::biases::Fixed;
use super::predict::{predict_integers, predict_rows};
use super::{ModelFile, Score, Task};
use crate::data::{Matrix, Values};
use crate::file::Aligned;
use crate::{Error, Result};

/// Parts of the activations that are not cut, from which the best is chosen.
const PARTS: [f64; 6] = [1.0, 0.9999, 0.9995, 0.999, 0.995, 0.99];
/// Rows on which that is chosen, evenly spread over all.
const ROWS: usize = 2000;
/// The most of the activations above 0 that a calibration may cut.
const MOST_CUT: f64 = 0.05;
/// A byte more than this part of a step from where it should be is none.
const NEAR: f32 = 1e-3;
/// Factors are below 1/4; sums are so much finer than outputs at least.
const FINER: f32 = 4.2;

/// Whether a layer has one scale or each neuron one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// One for each layer.
    #[default]
    PerLayer,
    /// One for each neuron: finer, for four bytes more each.
    PerNeuron,
}

/// How to make integers of a model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuantiseOptions {
    /// Scales of the weights.
    pub granularity: Granularity,
    /// Part of the activations that is not cut; none for the one with the least error of the outputs.
    pub part: Option<f64>,
    /// How the weights are held.
    pub choice: Choice,
}

/// What became of one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuantisedLayer {
    /// How its weights are held.
    pub encoding: &'static str,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Weights that are not 0.
    pub nnz: usize,
    /// Bytes with everything.
    pub flash_bytes: usize,
}

/// What was done; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantiseReport {
    /// Rows that the scales come from.
    pub samples: usize,
    /// Scales of the weights.
    pub granularity: Granularity,
    /// Part of the activations that is not cut.
    pub part: f64,
    /// What a step of an input byte stands for.
    pub input_scale: f32,
    /// The byte that stands for 0.
    pub input_zero: u8,
    /// Whether the data are bytes as they are, without rounding.
    pub bytes_as_they_are: bool,
    /// Biases of 32 bits, made of the weights from a last input that is 1 in every row, and of what hands it on.
    pub biases: usize,
    /// Nonzeros before.
    pub nnz_before: usize,
    /// Nonzeros: weights that are rounded to 0, and those of neurons without use, are left out.
    pub nnz: usize,
    /// Bytes of the model before.
    pub model_bytes_before: usize,
    /// PSNR of the outputs against those before, in dB; none where they are all 0.
    pub outputs_psnr_db: Option<f64>,
    /// The score before, where there are labels.
    pub before: Option<Score>,
    /// The score.
    pub after: Option<Score>,
    /// Layer by layer.
    pub layers: Vec<QuantisedLayer>,
}

/// A model of integers and how it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantiseOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: QuantiseReport,
}

/// One layer with rounded weights.
#[derive(Debug, Clone)]
struct Rounded {
    inputs: usize,
    requested: usize,
    relu: bool,
    /// Column and weight, row by row.
    rows: Vec<Vec<(usize, i8)>>,
    /// What a 1 of a weight stands for, row by row.
    scales: Vec<f32>,
    /// What is the same for every row of data and goes into the bias, row by row.
    offsets: Vec<f64>,
}

/// Makes a model of integers of `model`, with scales from the rows of `data`, and compares the two; `labels` with a task score both.
/// Runs on the current rayon pool.
///
/// # Errors
/// The model is one of integers, has a layer without relu before the last, or weights or activations of which no scale can be made:
/// all 0, not finite, or cut in more than a twentieth; the data do not fit it.
pub fn quantise(
    model: &ModelFile,
    data: &Matrix,
    labels: Option<(Task, &[f32])>,
    options: &QuantiseOptions,
) -> Result<QuantiseOutcome> {
    let model = &model.in_rows()?;
    let view = model.view()?;
    let exact = model.predict(data)?;
    if data.rows == 0 {
        return Err(Error::new("there are no rows to find scales from").help("pass rows like those in use"));
    }
    let (mut layers, mut signs) = round(view.model(), options.granularity, Fixed::of(data))?;
    let kept = prune(&mut layers, &mut signs);
    let biased = layers.iter().flat_map(|layer| &layer.offsets).filter(|offset| **offset != 0.0).count();
    let input = input_scale(data, &layers)?;
    let few = spread(data);
    let activations = activations(view.model(), &few, &kept)?;
    let wanted = predict_rows(view.model(), &few)?;
    let parts = options.part.map_or(PARTS.to_vec(), |part| vec![part]);
    let mut best: Option<(f64, f64, Vec<u8>)> = None;
    let mut refused = None;
    for part in parts {
        let made = cuts(&activations, part)
            .and_then(|cuts| build(&view, &layers, &signs, input, &cuts, options.choice));
        let bytes = match made {
            Ok(bytes) => bytes,
            Err(error) => {
                refused = refused.or(Some(error));
                continue;
            }
        };
        let error = squared_error(&wanted, &predict_bytes(&bytes, &few)?);
        if best.as_ref().is_none_or(|(_, least, _)| error < *least) {
            best = Some((part, error, bytes));
        }
    }
    let Some((part, _, bytes)) = best else {
        return Err(refused.unwrap_or_else(|| Error::new("no scale was found").help("pass other rows")));
    };
    let predictions = predict_bytes(&bytes, data)?;
    let peak = exact.iter().fold(0.0_f64, |peak, y| peak.max(f64::from(y.abs())));
    let mean = squared_error(&exact, &predictions) / exact.len().max(1) as f64;
    let aligned = Aligned::new(&bytes);
    let made = QuantisedView::parse(&aligned)?;
    let score = |predictions: &[f32]| -> Result<Option<Score>> {
        labels.map(|(task, labels)| model.score(task, labels, predictions)).transpose()
    };
    let layers: Vec<_> = made
        .model()
        .layers()
        .iter()
        .map(|layer| QuantisedLayer {
            encoding: layer.weights().encoding().name(),
            inputs: layer.inputs(),
            outputs: layer.outputs(),
            nnz: layer.weights().nonzeros(),
            flash_bytes: wire::layer_len(layer, Choice::Keep),
        })
        .collect();
    let report = QuantiseReport {
        samples: data.rows,
        granularity: options.granularity,
        part,
        input_scale: input.scale,
        input_zero: input.zero,
        bytes_as_they_are: input.exact,
        biases: biased,
        nnz_before: view.model().cost().nonzeros,
        nnz: layers.iter().map(|layer| layer.nnz).sum(),
        model_bytes_before: view.encoded_len(),
        outputs_psnr_db: super::score::psnr_db(peak, mean),
        before: score(&exact)?,
        after: score(&predictions)?,
        layers,
    };
    Ok(QuantiseOutcome { model: bytes, report })
}

/// Rounded weights of every layer, and the signs of the sum behind them; weights from inputs that are `fixed` are biases.
fn round(
    model: &FloatModel<'_>,
    granularity: Granularity,
    mut fixed: Fixed,
) -> Result<(Vec<Rounded>, Option<Vec<bool>>)> {
    let (mut layers, mut signs) = (Vec::new(), None);
    for (at, layer) in model.layers().iter().enumerate() {
        let csr = match layer {
            FloatLayer::Csr(csr) => csr,
            FloatLayer::Sum(sum) => {
                signs = Some((0..sum.inputs()).map(|j| sum.signs()[j / 32] >> (j % 32) & 1 == 1).collect());
                continue;
            }
            _ => {
                return Err(Error::new("the model has a layer that this program cannot make integers of")
                    .help("update tamis"));
            }
        };
        let relu = csr.activation() == Activation::Relu;
        if !relu && at + 1 < model.layers().len() {
            return Err(Error::new("only layers with relu can lie before the last in a model of integers")
                .got(format_args!("layer {} without an activation", at + 1))
                .help("use the model of floats, or train one with relu"));
        }
        let (free, offsets) = fixed.part(csr);
        let most = |row: &[(usize, f32)]| row.iter().fold(0.0_f32, |most, (_, value)| most.max(value.abs()));
        let whole = free.iter().map(|row| most(row)).fold(0.0, f32::max);
        if whole == 0.0 || !(whole / 127.0).is_normal() {
            return Err(Error::new("the weights of a layer have no scale")
                .expected("weights that are not 0")
                .got(format_args!("{whole:e} as the largest of layer {}", at + 1))
                .help("train the model again"));
        }
        let (mut rows, mut scales) = (Vec::new(), Vec::new());
        for row in &free {
            let own = most(row);
            let scale =
                if granularity == Granularity::PerLayer || !(own / 127.0).is_normal() { whole } else { own }
                    / 127.0;
            let rounded = |value: f32| (value / scale).round().clamp(-127.0, 127.0) as i8;
            let entries = row.iter().map(|&(column, value)| (column, rounded(value)));
            rows.push(entries.filter(|(_, weight)| *weight != 0).collect());
            scales.push(scale);
        }
        fixed = Fixed::behind(&free, &offsets);
        layers.push(Rounded {
            inputs: csr.inputs(),
            requested: csr.requested(),
            relu,
            rows,
            scales,
            offsets,
        });
    }
    if layers.is_empty() {
        return Err(Error::new("the model has no layer with weights").help("train one"));
    }
    Ok((layers, signs))
}

/// Leaves out neurons without weights and biases, and those that nothing behind them uses; gives the neurons that stay, of every layer whose
/// outputs are neurons.
fn prune(layers: &mut [Rounded], signs: &mut Option<Vec<bool>>) -> Vec<Vec<usize>> {
    let hidden = layers.len() - usize::from(signs.is_none());
    let mut kept: Vec<Vec<usize>> =
        layers[..hidden].iter().map(|layer| (0..layer.rows.len()).collect()).collect();
    loop {
        let mut changed = false;
        for at in 0..hidden {
            let used = |j: usize| match layers.get(at + 1) {
                Some(next) => next.rows.iter().flatten().any(|&(column, _)| column == j),
                None => true,
            };
            let gives = |j: usize| !layers[at].rows[j].is_empty() || layers[at].offsets[j] > 0.0;
            let alive: Vec<usize> = (0..layers[at].rows.len()).filter(|&j| gives(j) && used(j)).collect();
            if alive.len() == layers[at].rows.len() {
                continue;
            }
            changed = true;
            let layer = &mut layers[at];
            layer.rows = alive.iter().map(|&j| layer.rows[j].clone()).collect();
            layer.scales = alive.iter().map(|&j| layer.scales[j]).collect();
            layer.offsets = alive.iter().map(|&j| layer.offsets[j]).collect();
            kept[at] = alive.iter().map(|&j| kept[at][j]).collect();
            match layers.get_mut(at + 1) {
                Some(next) => {
                    next.inputs = alive.len();
                    for row in &mut next.rows {
                        *row = row
                            .iter()
                            .filter_map(|&(column, w)| Some((alive.binary_search(&column).ok()?, w)))
                            .collect();
                    }
                }
                None => *signs = signs.take().map(|signs| alive.iter().map(|&j| signs[j]).collect()),
            }
        }
        if !changed {
            return kept;
        }
    }
}

/// What input bytes stand for.
#[derive(Debug, Clone, Copy)]
struct InputScale {
    scale: f32,
    zero: u8,
    exact: bool,
}

/// Bytes, or floats that are steps of 1 or 1/255 from 0 to 255, stand for themselves; else the range of the columns that are used.
fn input_scale(data: &Matrix, layers: &[Rounded]) -> Result<InputScale> {
    let Values::F32(values) = &data.values else {
        return Ok(InputScale { scale: 1.0, zero: 0, exact: true });
    };
    let mut used = vec![false; data.cols];
    layers
        .iter()
        .take(1)
        .flat_map(|layer| layer.rows.iter().flatten())
        .for_each(|&(column, _)| used[column] = true);
    let values =
        || values.iter().zip(used.iter().cycle()).filter(|(_, used)| **used).map(|(value, _)| *value);
    for scale in [1.0, 1.0 / 255.0] {
        let is_step = |value: f32| {
            let steps = value / scale;
            (0.0..=255.5).contains(&steps) && (steps - steps.round()).abs() < NEAR
        };
        if values().all(is_step) && values().any(|value| value > 0.0) {
            return Ok(InputScale { scale, zero: 0, exact: true });
        }
    }
    let (low, high) =
        values().fold((0.0_f32, 0.0_f32), |(low, high), value| (low.min(value), high.max(value)));
    let scale = high / 255.0 - low / 255.0;
    if !scale.is_normal() {
        return Err(Error::new("the inputs have no scale")
            .expected("inputs that are not all 0, and finite")
            .got(format_args!("{low:e} to {high:e} in the columns that the model uses"))
            .help("pass rows like those in use"));
    }
    Ok(InputScale { scale, zero: (-low / scale).round().clamp(0.0, 255.0) as u8, exact: false })
}

/// At most [`ROWS`] rows, evenly spread.
fn spread(data: &Matrix) -> Matrix {
    let rows = data.rows.min(ROWS);
    let chosen = (0..rows).map(|k| k * data.rows / rows.max(1));
    fn take<T: Copy>(values: &[T], cols: usize, chosen: impl Iterator<Item = usize>) -> Vec<T> {
        chosen.flat_map(|row| values[row * cols..(row + 1) * cols].iter().copied()).collect()
    }
    let values = match &data.values {
        Values::F32(values) => Values::F32(take(values, data.cols, chosen)),
        Values::U8(values) => Values::U8(take(values, data.cols, chosen)),
    };
    Matrix { rows, cols: data.cols, values }
}

/// Activations above 0 of the neurons that stay, sorted, of every hidden layer.
fn activations(model: &FloatModel<'_>, data: &Matrix, kept: &[Vec<usize>]) -> Result<Vec<Vec<f32>>> {
    let mut all = Vec::new();
    for (at, kept) in kept.iter().enumerate() {
        let front = FloatModel::new(&model.layers()[..=at])?;
        let outputs = front.outputs();
        let rows = predict_rows(&front, data)?;
        let mut positive: Vec<f32> = rows
            .par_chunks(outputs.max(1))
            .flat_map_iter(|row| kept.iter().map(|&j| row[j]).filter(|a| *a > 0.0))
            .collect();
        positive.par_sort_unstable_by(f32::total_cmp);
        if positive.is_empty() {
            return Err(Error::new("no neuron is active on these rows, so there is no scale for them")
                .got(format_args!("activations of layer {} that are all 0", at + 1))
                .help("pass rows like those that the model was trained on"));
        }
        all.push(positive);
    }
    Ok(all)
}

/// The activation of each hidden layer that becomes 255.
fn cuts(activations: &[Vec<f32>], part: f64) -> Result<Vec<f32>> {
    let cut = |(at, sorted): (usize, &Vec<f32>)| {
        let last = (sorted.len() as f64 * part).ceil() as usize;
        let cut = sorted[last.clamp(1, sorted.len()) - 1];
        let above = sorted.len() - sorted.partition_point(|&a| a <= cut);
        let saturated = above as f64 / sorted.len() as f64;
        if saturated > MOST_CUT {
            return Err(Error::new("the calibration would cut too many activations")
                .expected(format_args!("at most {MOST_CUT} of those above 0"))
                .got(format_args!("{saturated:.3} in layer {}", at + 1))
                .help("pass a larger --part, or leave it out"));
        }
        Ok(cut)
    };
    activations.iter().enumerate().map(cut).collect()
}

/// The bytes of the model with these scales.
fn build(
    view: &View<'_>,
    layers: &[Rounded],
    signs: &Option<Vec<bool>>,
    input: InputScale,
    cuts: &[f32],
    choice: Choice,
) -> Result<Vec<u8>> {
    struct Parts {
        counts: Vec<u16>,
        columns: Vec<u16>,
        values: Vec<i8>,
        factors: Vec<u32>,
        bias: Vec<i32>,
    }
    let (mut parts, mut scale) = (Vec::new(), input.scale);
    for (at, layer) in layers.iter().enumerate() {
        let zero = if at == 0 { i32::from(input.zero) } else { 0 };
        let entries = || layer.rows.iter().flatten();
        let sums: Vec<f32> = layer.scales.iter().map(|own| own * scale).collect();
        let most = sums.iter().copied().fold(0.0, f32::max);
        let one = layer.scales.windows(2).all(|pair| pair[0] == pair[1]);
        let next = match cuts.get(at) {
            Some(cut) => Some((cut / 255.0).max(FINER * most)),
            // The last layer: sums as they are where they all stand for the same.
            None if one => None,
            None => Some(FINER * most),
        };
        let factors = match next {
            None => vec![],
            Some(next) => {
                let taken = if one { sums.get(..1).unwrap_or_default() } else { &sums };
                taken.iter().map(|sum| factor(sum / next)).collect::<Result<_>>()?
            }
        };
        let bias = |(j, row): (usize, &Vec<(usize, i8)>)| {
            let shifted: i32 = row.iter().map(|&(_, w)| -zero * i32::from(w)).sum();
            // Beyond what an `i32` holds it stays at the end of them, and the layer refuses it.
            shifted.saturating_add((layer.offsets[j] / f64::from(sums[j])).round() as i32)
        };
        let biased = zero != 0 || layer.offsets.iter().any(|offset| *offset != 0.0);
        parts.push(Parts {
            counts: layer.rows.iter().map(|row| row.len() as u16).collect(),
            columns: entries().map(|&(column, _)| column as u16).collect(),
            values: entries().map(|&(_, weight)| weight).collect(),
            factors,
            bias: if biased { layer.rows.iter().enumerate().map(bias).collect() } else { vec![] },
        });
        scale = next.unwrap_or(most);
    }
    let mut words = vec![0_u32; signs.as_ref().map_or(0, |signs| signs.len().div_ceil(32))];
    for (j, _) in signs.iter().flatten().enumerate().filter(|(_, minus)| **minus) {
        words[j / 32] |= 1 << (j % 32);
    }
    let built = layers.iter().zip(&parts).map(|(layer, parts)| {
        let weights = Weights::Csr(Csr::new(layer.inputs, &parts.counts, &parts.columns, &parts.values)?);
        let activation = if layer.relu { Activation::Relu } else { Activation::Identity };
        Layer::new(weights, &parts.factors, &parts.bias, activation)?.with_requested(layer.requested)
    });
    let built = built.collect::<tamis::Result<Vec<_>>>()?;
    let sum = signs.as_ref().map(|signs| Sum::new(signs.len(), &words)).transpose()?;
    let threshold = match view.task() {
        Some(wire::Task::Binary { threshold }) => least(threshold, scale),
        _ => 0,
    };
    let scales = Scales::new(input.scale, scale, input.zero, threshold)?;
    let mut made = QuantisedView::new(Model::new(&built, sum, scales)?);
    if let Some(task) = view.task() {
        made = made.with_task(task)?;
    }
    let mut bytes = vec![0; made.encoded_len(choice)];
    made.encode(choice, &mut bytes)?;
    Ok(bytes)
}

fn factor(factor: f32) -> Result<u32> {
    Rescale::near(factor).map(Rescale::bits).map_err(|error| {
        Error::from(error).got(format_args!("a factor of {factor:e} between two layers")).help(
            "the sizes of weights and activations are too far apart for 8 bits: use the model of floats",
        )
    })
}

/// The least integer that stands for at least `threshold`.
fn least(threshold: f32, scale: f32) -> i32 {
    let steps =
        (f64::from(threshold) / f64::from(scale)).ceil().clamp(f64::from(i32::MIN + 1), f64::from(i32::MAX));
    let reaches = |steps: i32| super::predict::number(steps, scale) >= threshold;
    let steps = steps as i32;
    [steps - 1, steps].into_iter().find(|&steps| reaches(steps)).unwrap_or(steps.saturating_add(1))
}

fn predict_bytes(bytes: &[u8], data: &Matrix) -> Result<Vec<f32>> {
    let aligned = Aligned::new(bytes);
    predict_integers(QuantisedView::parse(&aligned)?.model(), data)
}

fn squared_error(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
}
