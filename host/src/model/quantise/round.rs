//! Layers row by row: weights as floats with a scale, then as 8-bit integers.

use tamis::base::bits::is_set;
use tamis::infer::model::{Activation, Layer as FloatLayer, Model as FloatModel};

use super::biases::Fixed;
use crate::{Error, Result};

/// The largest weight as an integer.
pub(super) const MOST: f32 = 127.0;

/// One layer with weights of floats or of integers.
#[derive(Debug, Clone)]
pub(super) struct Sparse<W> {
    pub(super) inputs: usize,
    pub(super) requested: usize,
    pub(super) relu: bool,
    /// Column and weight, row by row.
    pub(super) rows: Vec<Vec<(usize, W)>>,
    /// What a 1 of a weight stands for, row by row.
    pub(super) scales: Vec<f32>,
    /// What is the same for every row of data and goes into the bias, row by row.
    pub(super) offsets: Vec<f64>,
}

/// Layers, and the signs of the sum behind them, where there is one: true for what is taken away.
pub(super) type Layers = (Vec<Sparse<f32>>, Option<Vec<bool>>);

/// The layers of a model with scales by their largest weight; weights from `fixed` are biases.
pub(super) fn layers_of(model: &FloatModel<'_>, mut fixed: Fixed) -> Result<Layers> {
    let (mut layers, mut signs) = (Vec::new(), None);
    for (at, layer) in model.layers().iter().enumerate() {
        let csr = match layer {
            FloatLayer::Csr(csr) => csr,
            FloatLayer::Sum(sum) => {
                let is_minus = |j| is_set(sum.signs(), j);
                signs = Some((0..sum.inputs()).map(is_minus).collect());
                continue;
            }
            _ => {
                let what = "the model has a layer that this program cannot make integers of";
                return Err(Error::new(what).help("update tamis"));
            }
        };
        let relu = csr.activation() == Activation::Relu;
        if !relu && at + 1 < model.layers().len() {
            let what = "only layers with relu can lie before the last in a model of integers";
            return Err(Error::new(what)
                .got(format_args!("layer {} without an activation", at + 1))
                .help("use the model of floats, or train one with relu"));
        }
        let (rows, offsets) = fixed.part(csr);
        let whole = rows.iter().map(|row| largest(row)).fold(0.0, f32::max);
        if whole == 0.0 || !(whole / MOST).is_normal() {
            return Err(Error::new("the weights of a layer have no scale")
                .expected("weights that are not 0")
                .got(format_args!("{whole:e} as the largest of layer {}", at + 1))
                .help("train the model again"));
        }
        fixed = Fixed::behind(&rows, &offsets);
        let scales = vec![whole / MOST; rows.len()];
        let (inputs, requested) = (csr.inputs(), csr.requested());
        layers.push(Sparse { inputs, requested, relu, rows, scales, offsets });
    }
    if layers.is_empty() {
        return Err(Error::new("the model has no layer with weights").help("train one"));
    }
    Ok((layers, signs))
}

pub(super) fn largest(row: &[(usize, f32)]) -> f32 {
    row.iter().fold(0.0_f32, |most, (_, value)| most.max(value.abs()))
}

pub(super) fn integer(value: f32, scale: f32) -> i8 {
    (value / scale).round().clamp(-MOST, MOST) as i8
}

impl Sparse<f32> {
    /// The same with integers; those that are 0 are kept where it is asked for.
    pub(super) fn rounded(&self, zeros: bool) -> Sparse<i8> {
        let row = |(row, &scale): (&Vec<(usize, f32)>, &f32)| {
            let entries = row.iter().map(|&(column, value)| (column, integer(value, scale)));
            entries.filter(|(_, weight)| zeros || *weight != 0).collect()
        };
        Sparse {
            inputs: self.inputs,
            requested: self.requested,
            relu: self.relu,
            rows: self.rows.iter().zip(&self.scales).map(row).collect(),
            scales: self.scales.clone(),
            offsets: self.offsets.clone(),
        }
    }

    /// Gives the offsets of a layer that was rounded, and may have fewer neurons, what it lost by that
    /// where each input is at its mean: the zero of a column may lie far from its numbers, and rounding times so much.
    pub(super) fn keep_means(
        &self,
        rounded: &mut Sparse<i8>,
        kept: Option<&[usize]>,
        means: &[f64],
    ) {
        let Sparse { rows, scales, offsets, .. } = rounded;
        for (k, ((row, &scale), offset)) in rows.iter().zip(&*scales).zip(offsets).enumerate() {
            let before = &self.rows[kept.map_or(k, |kept| kept[k])];
            let exact = before.iter().map(|&(column, w)| f64::from(w) * means[column]);
            let own =
                row.iter().map(|&(column, w)| f64::from(w) * f64::from(scale) * means[column]);
            *offset += exact.sum::<f64>() - own.sum::<f64>();
        }
    }

    pub(super) fn cut(&self) -> usize {
        let is_cut = |value: f32, scale: f32| (value / scale).abs().round() > MOST;
        let rows = self.rows.iter().zip(&self.scales);
        rows.map(|(row, &scale)| row.iter().filter(|(_, value)| is_cut(*value, scale)).count())
            .sum()
    }
}

/// Leaves out neurons without weights and biases, and those that nothing uses; gives the others.
pub(super) fn prune<W: Copy>(
    layers: &mut [Sparse<W>],
    signs: &mut Option<Vec<bool>>,
) -> Vec<Vec<usize>> {
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
            let alive: Vec<usize> =
                (0..layers[at].rows.len()).filter(|&j| gives(j) && used(j)).collect();
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
                    let moved =
                        |&(column, w): &(usize, W)| Some((alive.binary_search(&column).ok()?, w));
                    for row in &mut next.rows {
                        *row = row.iter().filter_map(moved).collect();
                    }
                }
                None => {
                    *signs = signs.take().map(|signs| alive.iter().map(|&j| signs[j]).collect());
                }
            }
        }
        if !changed {
            return kept;
        }
    }
}
