//! Columns in different units: an affine map of each column before training, and what it makes of
//! the trained network.
//!
//! Rows are mapped and get a last column of ones, so that neurons have biases. The network that is
//! trained on them becomes one for the rows as they are: for `x' = (x - shift) factor` a weight
//! `w'` becomes `w' factor`, and a bias `b'` becomes `b' - sum_j w'_j factor_j shift_j`, added up in
//! double precision and rounded once. A neuron with a bias alone gives the same on every row, and
//! becomes part of the biases behind it. So the model takes raw rows at 4 bytes a neuron and no
//! instruction a column, where a map in the model would take 8 bytes and a multiplication for each
//! column that is read.

use clap::ValueEnum;
use serde::Serialize;

use crate::data::{Matrix, Problem, Task, Values};
use crate::train::encode::SparseLayer;
use crate::{Error, Result};

/// How columns are mapped before training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Standard where columns of floats are far from 0, else none
    #[default]
    Auto,
    /// As they are, without biases
    None,
    /// To mean 0 and standard deviation 1
    Standard,
    /// To 0 for the least and 1 for the largest number
    Minmax,
}

impl Scale {
    /// As `--scale` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Standard => "standard",
            Self::Minmax => "minmax",
        }
    }
}

/// An affine map of each column: `x' = (x - shift) factor`.
///
/// ```
/// use tamis_host::{data::{Matrix, Values}, train::Scaling};
/// let data = Matrix::new(2, 2, Values::F32(vec![1.0, 500.0, 3.0, 500.0]))?;
/// let scaling = Scaling::standard(&data);
/// assert_eq!((scaling.shift, scaling.factor), (vec![2.0, 500.0], vec![1.0, 0.0]));
/// # Ok::<(), tamis_host::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// What is taken off each column first.
    pub shift: Vec<f64>,
    /// What is left is multiplied by this: 0 for a column that is the same in every row.
    pub factor: Vec<f64>,
}

/// What a weight from a column becomes, and what it adds to the bias of its neuron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mapped {
    pub(crate) weight: f64,
    pub(crate) bias: f64,
}

/// Mean and standard deviation of a column, and the largest magnitude in it.
#[derive(Debug, Clone, Copy)]
struct Spread {
    mean: f64,
    deviation: f64,
    most: f64,
}

impl Spread {
    fn size(&self) -> f64 {
        self.mean.hypot(self.deviation)
    }

    /// Whether it is not about 1.
    fn is_large(&self) -> bool {
        !(0.01..=4.0).contains(&self.size())
    }

    /// The same of a column that may be 0 in most rows, such as a pixel near the margin: it is not small where some
    /// row has a number of about 1, nor where as good as all are 0.
    fn has_another_unit(&self) -> bool {
        let is_small = self.most < 0.01 && self.size() > 0.01 * self.most;
        is_small || self.size() > 4.0
    }
}

/// Adds to a number of each column what each row has in it.
fn each_column<T>(data: &Matrix, mut columns: Vec<T>, add: impl Fn(&mut T, f64)) -> Vec<T> {
    let cols = data.cols.max(1);
    match &data.values {
        Values::F32(values) => values.chunks_exact(cols).for_each(|row| {
            columns.iter_mut().zip(row).for_each(|(column, &x)| add(column, x.into()));
        }),
        Values::U8(values) => values.chunks_exact(cols).for_each(|row| {
            columns.iter_mut().zip(row).for_each(|(column, &x)| add(column, x.into()));
        }),
    }
    columns
}

fn spreads(data: &Matrix) -> Vec<Spread> {
    let n = data.rows.max(1) as f64;
    let sums = each_column(data, vec![0.0; data.cols], |sum, x| *sum += x);
    let means: Vec<_> = sums.iter().map(|sum| [sum / n, 0.0, 0.0]).collect();
    let squares = each_column(data, means, |[mean, sum, most], x| {
        *sum += (x - *mean).powi(2);
        *most = x.abs().max(*most);
    });
    let spread = |&[mean, sum, most]: &[f64; 3]| Spread { mean, deviation: (sum / n).sqrt(), most };
    squares.iter().map(spread).collect()
}

/// `1 / size`, and 0 where it is 0 or too small for that.
pub(crate) fn inverse(size: f64) -> f64 {
    let inverse = 1.0 / size;
    if inverse.is_finite() { inverse } else { 0.0 }
}

impl Scaling {
    /// To mean 0 and standard deviation 1.
    #[must_use]
    pub fn standard(data: &Matrix) -> Self {
        let of = |spread: Spread| {
            // What is left of the same number in every row is rounding.
            let is_constant = spread.deviation <= 1e-7 * spread.mean.abs();
            (spread.mean, if is_constant { 0.0 } else { inverse(spread.deviation) })
        };
        let (shift, factor) = spreads(data).into_iter().map(of).unzip();
        Self { shift, factor }
    }

    /// To 0 for the least and 1 for the largest number.
    #[must_use]
    pub fn minmax(data: &Matrix) -> Self {
        let ends = vec![[f64::INFINITY, f64::NEG_INFINITY]; data.cols];
        let ends =
            each_column(data, ends, |[low, high], x| (*low, *high) = (low.min(x), high.max(x)));
        let of = |&[low, high]: &[f64; 2]| (low, inverse(high - low));
        let (shift, factor) = ends.iter().map(of).unzip();
        Self { shift, factor }
    }

    /// A weight for rows as they are, for mapped ones, from column j; its factor is not 0.
    pub(crate) fn enter(&self, j: usize, w: f64) -> Mapped {
        Mapped { weight: w / self.factor[j], bias: w * self.shift[j] }
    }

    /// A weight for mapped rows, for rows as they are, from column j.
    pub(crate) fn leave(&self, j: usize, w: f64) -> Mapped {
        let weight = w * self.factor[j];
        Mapped { weight, bias: -weight * self.shift[j] }
    }

    /// A map to mean 0 and deviation 1 for a network that is there: columns that do not move stay as they are.
    /// Where its neurons have no biases for what is shifted, root mean squares become 1.
    pub(crate) fn for_network(mut self, has_biases: bool) -> Self {
        for (shift, factor) in self.shift.iter_mut().zip(&mut self.factor) {
            match (*factor == 0.0, has_biases) {
                (true, _) => (*shift, *factor) = (0.0, 1.0),
                (false, true) => {}
                (false, false) => {
                    *factor = 1.0 / (1.0 / *factor).hypot(*shift);
                    *shift = 0.0;
                }
            }
        }
        self
    }

    /// Whether columns are so far from 0 that a network without biases cannot tell their rows
    /// apart: more than a tenth of them by more than three deviations. Sizes alone need no map where a
    /// recipe weighs columns of any size alike; where `has_units` it takes inputs to be about 1, and one
    /// column or label of another size is enough.
    pub(crate) fn is_needed(problem: &Problem, has_units: bool) -> bool {
        if has_units && problem.task == Task::Regression {
            // Labels as well: one at 1e5 is out of reach.
            let (outputs, labels) = (problem.outputs().max(1), problem.labels.clone());
            let labels = Matrix::new(labels.len() / outputs, outputs, Values::F32(labels));
            if labels.is_ok_and(|labels| spreads(&labels).iter().any(Spread::is_large)) {
                return true;
            }
        }
        Self::is_needed_for(&problem.data, has_units)
    }

    /// The same of the columns alone.
    pub(crate) fn is_needed_for(data: &Matrix, has_units: bool) -> bool {
        if data.is_bytes() {
            return false;
        }
        let spreads = spreads(data);
        let is_moving = |of: &Spread| of.deviation > 1e-7 * of.mean.abs();
        // One large number in every row is a bias beside which nothing else is heard.
        let is_loud = |of: &Spread| !is_moving(of) && of.mean.abs() > 4.0;
        let moving = spreads.iter().filter(|of| is_moving(of));
        if has_units && moving.clone().next().is_some() && spreads.iter().any(is_loud) {
            return true;
        }
        let far = moving.clone().filter(|of| of.mean.abs() > 3.0 * of.deviation);
        10 * far.count() > moving.clone().count()
            || has_units && moving.into_iter().any(Spread::has_another_unit)
    }

    /// The rows mapped, with a last column of ones where there shall be one.
    pub(crate) fn apply(&self, data: &Matrix, has_ones: bool) -> Result<Matrix> {
        let cols = data.cols.max(1);
        let width = data.cols + usize::from(has_ones);
        let mut values = Vec::with_capacity(data.rows * width);
        let mut row = |row: &mut dyn Iterator<Item = f32>| {
            let maps = self.shift.iter().zip(&self.factor);
            values.extend(row.zip(maps).map(|(x, (s, f))| ((f64::from(x) - s) * f) as f32));
            if has_ones {
                values.push(1.0);
            }
        };
        match &data.values {
            Values::F32(all) => all.chunks_exact(cols).for_each(|x| row(&mut x.iter().copied())),
            Values::U8(all) => {
                all.chunks_exact(cols).for_each(|x| row(&mut x.iter().map(|&x| f32::from(x))));
            }
        }
        Matrix::new(data.rows, width, Values::F32(values))
    }
}

/// The map of the inputs and of the outputs of a network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Maps {
    pub(crate) inputs: Scaling,
    /// Whether the mapped rows have a last column of ones.
    pub(crate) has_ones: bool,
    /// Of labels that are numbers; of classes none.
    pub(crate) outputs: Option<Scaling>,
}

/// Sparse layers of a network, and the signs of the sum behind them where there is one: true for
/// what is taken away.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<SparseLayer>,
    pub(crate) signs: Option<Vec<bool>>,
}

impl Layers {
    /// Nonzeros: weights and biases.
    pub(crate) fn nnz(&self) -> usize {
        let weights = self.layers.iter().flat_map(|layer| &layer.neurons).map(Vec::len);
        weights.sum::<usize>() + self.biases()
    }

    /// Numbers in one prediction.
    pub(crate) fn outputs(&self) -> usize {
        match (&self.signs, self.layers.last()) {
            (None, Some(last)) => last.neurons.len(),
            _ => 1,
        }
    }

    /// Biases that are not 0.
    pub(crate) fn biases(&self) -> usize {
        let biases = self.layers.iter().flat_map(|layer| &layer.biases);
        biases.filter(|&&bias| bias != 0.0).count()
    }

    /// The network for mapped rows as one for the rows as they are;
    /// `offsets` are added to its outputs, one to each, or none to any.
    ///
    /// # Errors
    /// A weight or bias leaves the range of 32-bit floats.
    pub(crate) fn fold(mut self, maps: &Maps, offsets: &[f64]) -> Result<Self> {
        let Maps { inputs: map, has_ones, outputs } = maps;
        let depth = self.layers.len();
        // What inputs of a layer are the same on every row.
        let mut constants = vec![None; map.shift.len()];
        constants.extend(has_ones.then_some(Some(1.0)));
        for (l, layer) in self.layers.iter_mut().enumerate() {
            let is_hidden = l + 1 < depth || self.signs.is_some();
            layer.inputs -= usize::from(l == 0 && *has_ones);
            let mut biases = Vec::with_capacity(layer.neurons.len());
            for (k, neuron) in layer.neurons.iter_mut().enumerate() {
                let mut bias = layer.biases.get(k).copied().map_or(0.0, f64::from);
                let mut kept = Vec::with_capacity(neuron.len());
                for &(input, weight) in &*neuron {
                    let mut w = f64::from(weight);
                    if let Some(constant) = constants[input] {
                        bias += w * constant;
                        continue;
                    }
                    if l == 0 {
                        w *= map.factor[input];
                        bias -= w * map.shift[input];
                    }
                    kept.push((input, w));
                }
                // The last weights take the units of the outputs, those under a sum as well.
                let unit = outputs.as_ref().filter(|_| l + 1 == depth);
                let at = if self.signs.is_some() { 0 } else { k };
                let unit = unit.and_then(|map| map.factor.get(at)).map_or(1.0, |f| 1.0 / f);
                bias *= unit;
                if let (Some(map), None) =
                    (outputs.as_ref().filter(|_| l + 1 == depth), &self.signs)
                {
                    bias += map.shift[k];
                }
                if !is_hidden {
                    bias += offsets.get(k).unwrap_or(&0.0);
                }
                *neuron = kept.iter().map(|&(input, w)| (input, (w * unit) as f32)).collect();
                neuron.retain(|&(_, w)| w != 0.0);
                biases.push(bias);
            }
            constants = vec![None; layer.neurons.len()];
            if is_hidden {
                for ((constant, neuron), bias) in
                    constants.iter_mut().zip(&layer.neurons).zip(&mut biases)
                {
                    if neuron.is_empty() {
                        *constant = Some(std::mem::take(bias).max(0.0));
                    }
                }
            }
            layer.biases = biases.iter().map(|&bias| bias as f32).collect();
        }
        if let Some(signs) = &mut self.signs {
            let signed = constants.iter().zip(&*signs);
            let sum: f64 = signed
                .filter_map(|(constant, minus)| constant.map(|c| if *minus { -c } else { c }))
                .sum();
            let bias = sum
                + outputs.as_ref().map_or(0.0, |map| map.shift[0])
                + offsets.first().unwrap_or(&0.0);
            add_constant(self.layers.last_mut(), signs, bias);
        }
        let numbers = self.layers.iter().flat_map(|layer| {
            layer.neurons.iter().flatten().map(|&(_, w)| w).chain(layer.biases.iter().copied())
        });
        match numbers.into_iter().find(|number| !number.is_finite()) {
            None => Ok(self),
            Some(number) => Err(Error::new("the units of a column are too far from 1")
                .expected("weights within the range of 32-bit floats")
                .got(number)
                .help("bring the columns to sizes from about 1e-15 to 1e15")),
        }
    }

    /// Takes away the weights of the first layer that are the smallest on mapped rows, of `inputs`
    /// columns before any ones.
    pub(crate) fn trim(&mut self, count: usize, inputs: usize) {
        let Some(first) = self.layers.first_mut() else { return };
        let weights = first.neurons.iter().flatten().filter(|(input, _)| *input < inputs);
        let mut sizes: Vec<f32> = weights.map(|(_, w)| w.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        let Some(&edge) = sizes.get(count.saturating_sub(1)).or(sizes.last()) else { return };
        let mut left = count;
        for neuron in &mut first.neurons {
            neuron.retain(|&(input, w)| {
                let goes = input < inputs && w.abs() <= edge && left > 0;
                left -= usize::from(goes);
                !goes
            });
        }
    }
}

/// Adds what is the same on every row to a sum with signs: as a neuron with a bias alone.
fn add_constant(last: Option<&mut SparseLayer>, signs: &mut Vec<bool>, bias: f64) {
    let Some(layer) = last.filter(|_| bias as f32 != 0.0) else { return };
    let own = |k: &usize| layer.neurons[*k].is_empty() && signs[*k] == (bias < 0.0);
    let at = (0..layer.neurons.len()).find(own).unwrap_or(layer.neurons.len());
    if at == layer.neurons.len() {
        layer.neurons.push(Vec::new());
        layer.biases.push(0.0);
        signs.push(bias < 0.0);
    }
    layer.biases[at] = bias.abs() as f32;
}

#[cfg(test)]
mod tests;
