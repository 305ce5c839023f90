//! Rows as a network is trained on: brought to about 1, with a last 1 where it has biases.

use tamis::base::math::unit_scale;
use tamis::store::wire;

use super::network::{Mlp, scale_nonzero};
use crate::Result;
use crate::data::{Matrix, Problem, Task, Values};

/// Labelled rows to train on.
#[derive(Debug)]
pub(super) struct FitRows {
    pub(super) set: Problem,
    /// Factor of the inputs.
    pub(super) scale: f32,
}

/// What numbers of the data are multiplied by where a network is trained, powers of 2.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    /// Of each input.
    inputs: Vec<f32>,
    /// Of the labels.
    output: f32,
    /// Whether the data are bytes.
    are_bytes: bool,
}

/// Magnitudes up to which columns are trained on as they are, and down to its inverse.
const UNUSUAL: f32 = 16.0;

impl Units {
    pub(super) fn none(mlp: &Mlp) -> Self {
        Self { inputs: vec![1.0; mlp.layers[0].inputs], output: 1.0, are_bytes: false }
    }

    /// Bytes are fractions of 256; columns of floats and labels of unusual sizes are brought to
    /// about 1.
    pub(super) fn of(mlp: &Mlp, data: &Matrix, labels: Option<&Problem>) -> Self {
        let mut units = Self::none(mlp);
        match &data.values {
            Values::U8(_) => {
                units.are_bytes = true;
                units.inputs.fill(1.0 / 256.0);
            }
            Values::F32(values) => {
                let mut most = vec![0.0_f32; data.cols];
                for row in values.chunks_exact(data.cols.max(1)) {
                    most.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.abs()));
                }
                for (unit, most) in units.inputs.iter_mut().zip(most) {
                    if is_unusual(most) {
                        *unit = unit_scale(&[most]);
                    }
                }
            }
        }
        if let Some(problem) = labels.filter(|problem| problem.task == Task::Regression) {
            let most = problem.labels.iter().fold(0.0_f32, |most, y| most.max(y.abs()));
            if is_unusual(most) {
                units.output = unit_scale(&[most]);
            }
        }
        units
    }

    /// A network for the data as they are, for data in these units. One that takes bytes as
    /// fractions of 256 already has those units of its inputs; all others are applied to it, too.
    pub(super) fn apply(&self, mlp: &mut Mlp, takes_fractions: bool) {
        let has_units = takes_fractions && self.are_bytes;
        self.scale(mlp, |unit| if has_units { 1.0 } else { 1.0 / unit }, self.output);
    }

    /// A network for data in these units, for the data as they are.
    pub(super) fn undo(&self, mlp: &mut Mlp) {
        self.scale(mlp, |unit| unit, 1.0 / self.output);
    }

    fn scale(&self, mlp: &mut Mlp, factor: impl Fn(f32) -> f32, output: f32) {
        let inputs = mlp.layers[0].inputs;
        for row in mlp.layers[0].weights.chunks_exact_mut(inputs) {
            row.iter_mut().zip(&self.inputs).for_each(|(w, &unit)| scale_nonzero(w, factor(unit)));
        }
        if let Some(last) = mlp.layers.last_mut() {
            let all = last.weights.iter_mut().chain(&mut last.bias);
            all.for_each(|w| scale_nonzero(w, output));
        }
    }

    /// Samples in these units, for a network.
    pub(super) fn samples(&self, mlp: &Mlp, data: &Matrix) -> Result<FitRows> {
        let rows = data.rows;
        let set = Problem { data: data.clone(), labels: vec![0.0; rows], task: Task::Regression };
        self.rows(mlp, set, None)
    }

    /// Labelled rows in these units, for a network whose model file says this of its task.
    pub(super) fn rows(
        &self,
        mlp: &Mlp,
        set: Problem,
        task: Option<wire::Task>,
    ) -> Result<FitRows> {
        let Problem { mut data, mut labels, task: own } = set;
        labels.iter_mut().for_each(|y| *y *= self.output);
        let mut scale = 1.0;
        let is_bytes = data.is_bytes();
        if is_bytes && !mlp.has_ones {
            scale = self.inputs.first().copied().unwrap_or(1.0);
        } else if mlp.has_ones || self.inputs.iter().any(|&unit| unit != 1.0) {
            let (cols, inputs) = (data.cols.max(1), self.inputs.len());
            let values = data.values.into_f32();
            let ones = usize::from(mlp.has_ones);
            let mut scaled = Vec::with_capacity(data.rows * (inputs + ones));
            for row in values.chunks_exact(cols) {
                scaled.extend(row.iter().zip(&self.inputs).map(|(x, unit)| x * unit));
                scaled.extend(std::iter::repeat_n(1.0, ones));
            }
            data = Matrix::new(data.rows, inputs + ones, Values::F32(scaled))?;
        }
        // The engine takes log-odds as those of one output of classes.
        let is_odds = own == Task::Binary && task == Some(Task::LOG_ODDS);
        let task = if is_odds { Task::Multiclass } else { own };
        Ok(FitRows { set: Problem { data, labels, task }, scale })
    }
}

fn is_unusual(most: f32) -> bool {
    most > UNUSUAL || (most > 0.0 && most < 1.0 / UNUSUAL)
}
