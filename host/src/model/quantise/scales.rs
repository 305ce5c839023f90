//! Scales: of weights by the error that rounding and cutting leave, of inputs and activations from
//! rows.
//!
//! A scale `t` of the weights `w_k` of a layer or a neuron makes `q_k = round(w_k / t)`, cut to
//! -127 to 127. With the largest weight as 127 nothing is cut, but one large weight takes the bits
//! of all others, and it may be of an input that is 0 on all but a few rows. [`searched`] takes the
//! `t` of a grid that makes `sum_k p_k (w_k - t q_k)^2` least, with `p_k` the mean square of the
//! input that the weight reads.

use rayon::prelude::*;
use serde::Serialize;
use tamis::infer::model::Model as FloatModel;
use tamis::infer::quantised::Layer;

use super::round::{MOST, Sparse, integer, largest};
use crate::data::{Matrix, Values};
use crate::model::predict::predict_rows;
use crate::{Error, Result};

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

/// Rows on which scales are chosen, evenly spread over all.
const ROWS: usize = 2000;
/// The most of the activations above 0 that a calibration may cut.
const MOST_CUT: f64 = 0.05;
/// A byte more than this fraction of a step from where it should be is none.
const NEAR: f32 = 1e-3;
/// The grid of scales: each is so much of the one before.
const STEP: f64 = 0.97;
/// Scales of the grid; the least is 1e-8 of the largest.
const SCALES: usize = 600;
/// The least scale of a neuron as a fraction of the largest of its layer: what it gives is far below a
/// step of the bytes that the layer's neurons share.
const LEAST: f32 = 1.0 / 4096.0;

/// Scales by the largest weight of each layer or neuron.
pub(super) fn by_largest(layer: &Sparse<f32>, granularity: Granularity) -> Vec<f32> {
    scales(layer, granularity, |rows| {
        rows.iter().map(|row| largest(row)).fold(0.0, f32::max) / MOST
    })
}

/// Scales of the least error, weighted with the mean `squares` of the inputs.
pub(super) fn searched(layer: &Sparse<f32>, granularity: Granularity, squares: &[f64]) -> Vec<f32> {
    scales(layer, granularity, |rows| {
        let most = rows.iter().map(|row| largest(row)).fold(0.0, f32::max) / MOST;
        let error = |scale: f32| -> f64 {
            let entries = rows.iter().flatten();
            let off = entries.map(|&(column, value)| {
                let off = f64::from(value) - f64::from(scale) * f64::from(integer(value, scale));
                squares.get(column).map_or(0.0, |square| square * off * off)
            });
            off.sum()
        };
        let parts = std::iter::successors(Some(1.0), |part| Some(part * STEP)).take(SCALES);
        let grid = parts.map(|part: f64| (f64::from(most) * part) as f32);
        let grid: Vec<f32> = grid.take_while(|scale| scale.is_normal()).collect();
        let errors: Vec<f64> = grid.par_iter().map(|&scale| error(scale)).collect();
        let start = (f64::INFINITY, most);
        let tried = errors.into_iter().zip(grid);
        tried.fold(start, |best, next| if next.0 < best.0 { next } else { best }).1
    })
}

/// One scale for all rows or one for each, by `scale` of rows; bounded from below.
fn scales(
    layer: &Sparse<f32>,
    granularity: Granularity,
    scale: impl Fn(&[Vec<(usize, f32)>]) -> f32 + Sync,
) -> Vec<f32> {
    if granularity == Granularity::PerLayer {
        return vec![scale(&layer.rows); layer.rows.len()];
    }
    let own: Vec<f32> = layer.rows.par_iter().map(|row| scale(std::slice::from_ref(row))).collect();
    let whole = own.iter().copied().fold(0.0, f32::max);
    own.iter().map(|&own| if own == 0.0 { whole } else { own.max(whole * LEAST) }).collect()
}

/// These scales, or coarser ones where biases of 32 bits would not hold the offsets of the layer;
/// `unit` is what a 1 of its inputs stands for.
pub(super) fn fitting(scales: Vec<f32>, layer: &Sparse<f32>, unit: f32) -> Vec<f32> {
    // Half of a bias is for the zeros of the inputs.
    let most = f64::from(Layer::most_bias(layer.inputs)) / 2.0 * f64::from(unit);
    let needed = |offset: &f64| (offset.abs() / most) as f32;
    if scales.windows(2).all(|pair| pair[0] == pair[1]) {
        let needed = layer.offsets.iter().map(needed).fold(0.0, f32::max);
        return scales.into_iter().map(|own| own.max(needed)).collect();
    }
    scales.into_iter().zip(&layer.offsets).map(|(own, offset)| own.max(needed(offset))).collect()
}

pub(super) fn mean_squares(data: &Matrix) -> Vec<f64> {
    means(data, |x| x * x)
}

/// The mean of a function of each column.
pub(super) fn means(data: &Matrix, of: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; data.cols];
    fn add<T: Copy + Into<f64>>(values: &[T], sums: &mut [f64], of: impl Fn(f64) -> f64) {
        for row in values.chunks_exact(sums.len().max(1)) {
            row.iter().zip(&mut *sums).for_each(|(&x, sum)| *sum += of(x.into()));
        }
    }
    match &data.values {
        Values::F32(values) => add(values, &mut sums, of),
        Values::U8(values) => add(values, &mut sums, of),
    }
    let rows = data.rows.max(1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= rows);
    sums
}

#[derive(Debug, Clone, Copy)]
pub(super) struct InputScale {
    pub(super) scale: f32,
    pub(super) zero: u8,
    pub(super) exact: bool,
}

/// Bytes, or floats in steps of 1 or 1/255, stand for themselves; else the range of used columns.
pub(super) fn input_scale<W: Copy>(data: &Matrix, layers: &[Sparse<W>]) -> Result<InputScale> {
    let Values::F32(all) = &data.values else {
        return Ok(InputScale { scale: 1.0, zero: 0, exact: true });
    };
    let mut used = vec![false; data.cols];
    let weights = layers.iter().take(1).flat_map(|layer| layer.rows.iter().flatten());
    weights.for_each(|&(column, _)| used[column] = true);
    let values =
        || all.iter().zip(used.iter().cycle()).filter(|(_, used)| **used).map(|(value, _)| *value);
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
    let (n, cols) = (used.iter().filter(|used| **used).count(), data.cols);
    if !scale.is_normal() && n < cols && all.iter().any(|value| *value != 0.0) {
        return Err(Error::new("the weights of the first layer are too far apart for 8 bits")
            .expected("weights that are left of inputs that are not always 0")
            .got(format_args!(
                "weights that are left after rounding of {n} of {cols} inputs, all 0 in these rows"
            ))
            .help(
                "leave out or rescale the columns with the largest weights, or pass rows in \
                 which they are not 0",
            ));
    }
    if !scale.is_normal() {
        return Err(Error::new("the inputs have no scale")
            .expected("inputs that are not all 0, and finite")
            .got(format_args!("{low:e} to {high:e} in the columns that the model uses"))
            .help("pass rows like those in use"));
    }
    Ok(InputScale { scale, zero: (-low / scale).round().clamp(0.0, 255.0) as u8, exact: false })
}

/// Steps from the least number of a column to 0, at most: a float holds each of so many.
const FARTHEST: f32 = 4_194_304.0;

/// A scale and a zero for each input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnScales {
    pub(super) scales: Vec<f32>,
    pub(super) zeros: Vec<i32>,
}

impl ColumnScales {
    /// From the range of each column without so much of either tail; a column that is the same in
    /// every row has a step of its own size. None where a column is no such range.
    pub(super) fn of(data: &Matrix, tail: f64) -> Option<Self> {
        let Values::F32(values) = &data.values else { return None };
        let column = |j: usize| {
            let mut column: Vec<f32> = values.iter().skip(j).step_by(data.cols).copied().collect();
            column.sort_by(f32::total_cmp);
            let last = column.len().checked_sub(1)?;
            let cut = (tail * last as f64) as usize;
            // Where the tails are all there is, as with a column that is mostly 0, nothing is cut.
            let [low, high] = match [column[cut], column[last - cut]] {
                [low, high] if low < high => [low, high],
                _ => [column[0], column[last]],
            };
            let scale = high / 255.0 - low / 255.0;
            let scale = if scale.is_normal() { scale } else { high.abs().max(1.0) };
            // Farther from 0 a coarser step reaches as far.
            let scale = scale.max(low.abs() / FARTHEST);
            Some((scale, (-low / scale).round() as i32))
        };
        let (scales, zeros) =
            (0..data.cols).map(column).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Self { scales, zeros })
    }
}

/// At most [`ROWS`] rows, evenly spread.
pub(super) fn spread(data: &Matrix) -> Matrix {
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

/// What every neuron of every hidden layer gives on these rows, layer by layer.
pub(super) fn given(model: &FloatModel<'_>, data: &Matrix, hidden: usize) -> Result<Vec<Matrix>> {
    let layer = |at: usize| {
        let front = FloatModel::new(&model.layers()[..=at])?;
        let values = Values::F32(predict_rows(&front, data)?);
        Ok(Matrix { rows: data.rows, cols: front.outputs(), values })
    };
    (0..hidden).map(layer).collect()
}

/// Activations above 0 of the neurons that stay, sorted, of every hidden layer.
pub(super) fn activations(given: &[Matrix], kept: &[Vec<usize>]) -> Result<Vec<Vec<f32>>> {
    let mut all = Vec::new();
    for (at, (given, kept)) in given.iter().zip(kept).enumerate() {
        let Values::F32(rows) = &given.values else { continue };
        let mut positive: Vec<f32> = rows
            .par_chunks(given.cols.max(1))
            .flat_map_iter(|row| kept.iter().map(|&j| row[j]).filter(|a| *a > 0.0))
            .collect();
        positive.par_sort_unstable_by(f32::total_cmp);
        if positive.is_empty() {
            let what = "no neuron is active on these rows, so there is no scale for them";
            return Err(Error::new(what)
                .got(format_args!("activations of layer {} that are all 0", at + 1))
                .help("pass rows like those that the model was trained on"));
        }
        all.push(positive);
    }
    Ok(all)
}

/// The activation of each hidden layer that becomes 255.
pub(super) fn cuts(activations: &[Vec<f32>], fraction: f64) -> Result<Vec<f32>> {
    let cut = |(at, sorted): (usize, &Vec<f32>)| {
        let last = (sorted.len() as f64 * fraction).ceil() as usize;
        let cut = sorted[last.clamp(1, sorted.len()) - 1];
        let above = sorted.len() - sorted.partition_point(|&a| a <= cut);
        let saturated = above as f64 / sorted.len() as f64;
        if saturated > MOST_CUT {
            return Err(Error::new("the calibration would cut too many activations")
                .expected(format_args!("at most {MOST_CUT} of those above 0"))
                .got(format_args!("{saturated:.3} in layer {}", at + 1))
                .help("pass a larger --fraction, or leave it out"));
        }
        Ok(cut)
    };
    activations.iter().enumerate().map(cut).collect()
}

/// Fraction of the activations above 0 that these scales cut.
pub(super) fn fraction_cut(activations: &[Vec<f32>], cuts: &[f32]) -> f64 {
    let above =
        |(sorted, cut): (&Vec<f32>, &f32)| sorted.len() - sorted.partition_point(|a| a <= cut);
    let cut: usize = activations.iter().zip(cuts).map(above).sum();
    cut as f64 / activations.iter().map(Vec::len).sum::<usize>().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(rows: &[&[f32]]) -> Sparse<f32> {
        let row =
            |row: &&[f32]| row.iter().copied().enumerate().filter(|(_, w)| *w != 0.0).collect();
        let rows: Vec<Vec<(usize, f32)>> = rows.iter().map(row).collect();
        let (scales, offsets) = (vec![1.0; rows.len()], vec![0.0; rows.len()]);
        Sparse { inputs: 3, requested: rows.len(), relu: true, rows, scales, offsets }
    }

    #[test]
    fn largest_weight_sets_scale_where_that_is_best() {
        let layer = layer(&[&[127.0, -3.0, 8.0], &[0.0, 64.0, -127.0]]);
        for granularity in [Granularity::PerLayer, Granularity::PerNeuron] {
            assert_eq!(searched(&layer, granularity, &[1.0, 1.0, 1.0]), [1.0, 1.0]);
            assert_eq!(by_largest(&layer, granularity), [1.0, 1.0]);
        }
    }

    #[test]
    fn weight_of_near_zero_input_never_sets_scale() {
        let layer = layer(&[&[1e6, 1.0, -0.4], &[0.0, 0.7, 0.2]]);
        for granularity in [Granularity::PerLayer, Granularity::PerNeuron] {
            let scales = searched(&layer, granularity, &[1e-18, 4.0, 1.0]);
            assert!(
                scales.iter().all(|scale| (0.5 / 127.0..3.0 / 127.0).contains(scale)),
                "{scales:?}"
            );
            // Were the input as large as the others, the weight would count.
            let scales = searched(&layer, granularity, &[1.0, 1.0, 1.0]);
            assert!(scales[0] > 0.9e6 / 127.0, "{scales:?}");
        }
    }

    #[test]
    fn neuron_scales_are_bounded_below_by_layer_scale() {
        let layer =
            layer(&[&[127.0, 1.0, 0.0], &[1e-9, 0.0, 0.0], &[0.0, 12.7, 0.0], &[0.0, 0.0, 0.0]]);
        assert_eq!(by_largest(&layer, Granularity::PerNeuron), [1.0, LEAST, 0.1, 1.0]);
    }

    #[test]
    fn scales_are_coarse_enough_for_offsets() {
        let mut layer = layer(&[&[127.0, 1.0, 0.0], &[0.5, 0.0, 0.0]]);
        layer.offsets = vec![0.0, -1e9];
        let least = 2e9 / f64::from(Layer::most_bias(3)) / 0.25;
        let fits = |scale: f32| (f64::from(scale) / least - 1.0).abs() < 1e-6;
        assert!(fitting(vec![1.0, 1.0], &layer, 0.25).into_iter().all(fits));
        let own = fitting(vec![1.0, 0.5], &layer, 0.25);
        assert!(own[0] == 1.0 && fits(own[1]), "{own:?}");
        assert_eq!(fitting(vec![9.0, 9.0], &layer, 0.25), [9.0, 9.0]);
    }

    #[test]
    fn squares_are_means_over_rows() {
        let data = |values| Matrix { rows: 2, cols: 2, values };
        assert_eq!(mean_squares(&data(Values::U8(vec![1, 2, 3, 200]))), [5.0, 20002.0]);
        assert_eq!(mean_squares(&data(Values::F32(vec![-1.0, 0.0, 1.0, 0.5]))), [1.0, 0.125]);
    }
}
