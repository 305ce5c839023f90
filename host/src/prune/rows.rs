//! Rows as a network is trained on: brought to about 1, with a last 1 where it has biases.

use tamis::base::math::unit_scale;
use tamis::store::wire;

use super::network::Mlp;
use crate::Result;
use crate::convert::Spread;
use crate::data::{Matrix, Problem, Task};
use crate::train::scaling::{Scaling, inverse};

/// Labelled rows to train on.
#[derive(Debug)]
pub(super) struct FitRows {
    pub(super) set: Problem,
    /// Factor of the inputs.
    pub(super) scale: f32,
}

/// What becomes of the numbers of the data where a network is trained.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    /// Of each input.
    inputs: Scaling,
    /// Factor of the labels, a power of 2.
    output: f32,
    /// Whether the data are bytes.
    are_bytes: bool,
}

/// Magnitudes up to which labels are trained on as they are, and down to its inverse.
const UNUSUAL: f32 = 16.0;

impl Units {
    pub(super) fn none(mlp: &Mlp) -> Self {
        let inputs = mlp.layers[0].inputs;
        let inputs = Scaling { shift: vec![0.0; inputs], factor: vec![1.0; inputs] };
        Self { inputs, output: 1.0, are_bytes: false }
    }

    /// As the file of a network scales its inputs: centred where each neuron that reads inputs has a bias, and
    /// brought to 1.
    pub(super) fn of_file(mlp: &Mlp, spreads: &[Spread]) -> Self {
        let of = |of: &Spread| (of.centre, inverse(of.size));
        let (shift, factor) = spreads.iter().map(of).unzip();
        let inputs = Scaling { shift, factor }.for_network(mlp.has_first_biases());
        Self { inputs, ..Self::none(mlp) }
    }

    /// Bytes are fractions of 256. Columns of floats that are far from 0 or not about 1 are centred where each
    /// neuron that reads inputs has a bias, and brought to 1; labels of unusual sizes are brought to about 1.
    pub(super) fn of(mlp: &Mlp, data: &Matrix, labels: Option<&Problem>) -> Self {
        let mut units = Self::none(mlp);
        if data.is_bytes() {
            units.are_bytes = true;
            units.inputs.factor.fill(1.0 / 256.0);
        } else if Scaling::is_needed_for(data, true) {
            units.inputs = Scaling::standard(data).for_network(mlp.has_first_biases());
            // Of a last column of ones there is none.
            units.inputs.shift.truncate(mlp.layers[0].inputs);
            units.inputs.factor.truncate(mlp.layers[0].inputs);
        }
        if let Some(problem) = labels.filter(|problem| problem.task == Task::Regression) {
            let most = problem.labels.iter().fold(0.0_f32, |most, y| most.max(y.abs()));
            if most > UNUSUAL || (most > 0.0 && most < 1.0 / UNUSUAL) {
                units.output = unit_scale(&[most]);
            }
        }
        units
    }

    /// A network for the data as they are, for data in these units. One that takes bytes as
    /// fractions of 256 already has those units of its inputs; all others are applied to it, too.
    pub(super) fn apply(&self, mlp: &mut Mlp, takes_fractions: bool) {
        if !(takes_fractions && self.are_bytes) {
            mlp.map_inputs(|j, w| self.inputs.enter(j, w));
        }
        mlp.scale_outputs(self.output);
        self.enter(mlp);
    }

    /// Says to a network in these units what they are.
    pub(super) fn enter(&self, mlp: &mut Mlp) {
        mlp.is_centred = self.inputs.shift.iter().any(|&shift| shift != 0.0);
    }

    /// A network for data in these units, for the data as they are.
    pub(super) fn undo(&self, mlp: &mut Mlp) {
        mlp.map_inputs(|j, w| self.inputs.leave(j, w));
        mlp.is_centred = false;
        mlp.scale_outputs(1.0 / self.output);
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
        let Scaling { shift, factor } = &self.inputs;
        if data.cols > factor.len() {
            data.take_column(factor.len())?;
        }
        let mut scale = 1.0;
        if data.is_bytes() && !mlp.has_ones {
            scale = factor.first().map_or(1.0, |&factor| factor as f32);
        } else if mlp.has_ones
            || shift.iter().any(|&shift| shift != 0.0)
            || factor.iter().any(|&factor| factor != 1.0)
        {
            data = self.inputs.apply(&data, mlp.has_ones)?;
        }
        // The engine takes log-odds as those of one output of classes.
        let is_odds = own == Task::Binary && task == Some(Task::LOG_ODDS);
        let task = if is_odds { Task::Multiclass } else { own };
        Ok(FitRows { set: Problem { data, labels, task }, scale })
    }
}
