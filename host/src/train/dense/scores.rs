//! Scores of the weights of a dense MLP, by which a mask at initialisation keeps the largest.
//!
//! A score is one function from a network, on rows where it needs some, to a number for each weight.
//! A weight of 0 has a score of 0, so what a round of pruning has dropped stays behind all others
//! whose scores are positive.

use super::device::{DenseNet, Epoch, NetOnRows, Setup};
use super::job::ImpSettings;
use super::optimiser::default_rate;
use super::training::Training;
use crate::Result;

/// What a number of a network's vector of weights is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A weight, which gets a score.
    Weight,
    /// A bias, which is trained.
    Bias,
    /// Neither: it keeps its value.
    Fixed,
}

/// `|w|`.
pub(crate) fn magnitude(net: DenseNet<'_>) -> Vec<f32> {
    net.weights.iter().map(|w| w.abs()).collect()
}

/// `|w g|`: what the loss changes by without the weight, to first order (N. Lee et al., SNIP,
/// 2019).
pub(crate) fn snip(on: &NetOnRows<'_>) -> Result<Vec<f32>> {
    Ok(each(on.net, &on.gradient(1.0)?, |w, g| (w * g).abs()))
}

/// `w (H g)`, of either sign: what the weight adds to `|g|² / 2`, to first order (C. Wang et al.,
/// `GraSP`, 2020). Kept are the largest, which preserve the flow of gradients; the temperature there
/// is 200. g is the gradient by the weights of the network: 0 for those that are 0, and for biases.
pub(crate) fn grasp(
    on: &NetOnRows<'_>,
    temperature: f32,
    role: impl Fn(usize) -> Role,
) -> Result<Vec<f32>> {
    let mut gradient = on.gradient(temperature)?;
    for (at, (g, w)) in gradient.iter_mut().zip(on.net.weights).enumerate() {
        if *w == 0.0 || role(at) != Role::Weight {
            *g = 0.0;
        }
    }
    Ok(each(on.net, &on.hessian_product(temperature, &gradient)?, |w, hg| w * hg))
}

/// `|J_i| |w_i|`: the optimal sketch of the linearised network, `J w` (N. Bar and R. Giryes,
/// arXiv 2305.17559).
pub(crate) fn ntk(on: &NetOnRows<'_>) -> Result<Vec<f32>> {
    Ok(each(on.net, &on.jacobian_norms()?, |w, norm| norm * w.abs()))
}

/// `|a_i| |w_i|`, `a_i` being what the weight is multiplied by on the rows: the optimal sketch of each
/// layer by itself (Lemma 4.1 there).
pub(crate) fn sketch(on: &NetOnRows<'_>) -> Result<Vec<f32>> {
    Ok(each(on.net, &on.input_norms()?, |w, norm| norm * w.abs()))
}

/// `|w| dR/d|w|` with `R = 1^T |W_L| … |W_1| x`: the paths through the weight (H. Tanaka et al.,
/// `SynFlow`, 2020); there `x` is 1 for every input. The scores of each layer sum to R.
pub(crate) fn synflow(net: DenseNet<'_>, x: &[f32]) -> Vec<f32> {
    each(net, &net.path_derivatives(x), |w, derivative| w.abs() * derivative)
}

/// `|w|` after so many epochs of training on the rows, which must be all of their set: a level of
/// iterative magnitude pruning (J. Frankle and M. Carbin, the lottery ticket hypothesis, 2019), with
/// the defaults of [`ImpSettings`]. Weights that are 0 are not trained.
pub(crate) fn trained(
    on: &NetOnRows<'_>,
    epochs: TrainedEpochs,
    role: impl Fn(usize) -> Role,
) -> Result<Vec<f32>> {
    let (DenseNet { shape, weights }, rows) = (on.net, &on.rows);
    let ImpSettings { optimiser, batch, .. } = ImpSettings::default();
    let batch = batch.min(rows.rows.len());
    let setup = Setup { shape, task: rows.set.task, optimiser, batch, stop: on.stop };
    let mut training = Training::on(on.device, weights.to_vec(), &setup)?;
    let is_trained = |(at, w): (usize, &f32)| match role(at) {
        Role::Weight => *w != 0.0,
        Role::Bias => true,
        Role::Fixed => false,
    };
    training.mask = weights.iter().enumerate().map(is_trained).collect();
    let TrainedEpochs { count, seed, before } = epochs;
    for epoch in 0..count {
        training.epoch(&Epoch {
            set: rows.set,
            rows: 0..rows.set.data.rows,
            scale: rows.scale,
            batch,
            seed,
            number: before + u64::from(epoch),
            rate: default_rate(&optimiser),
            decay: 0.0,
            warmup: 0,
            penalty: None,
        })?;
    }
    Ok(each(on.net, &training.weights, |w, trained| if w == 0.0 { 0.0 } else { trained.abs() }))
}

/// Epochs of a training that gives scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrainedEpochs {
    pub(crate) count: u32,
    /// Of the orders of the rows.
    pub(crate) seed: u64,
    /// Epochs of trainings before.
    pub(crate) before: u64,
}

/// A score of each weight and what was computed for it.
fn each(net: DenseNet<'_>, values: &[f32], score: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    net.weights.iter().zip(values).map(|(&w, &value)| score(w, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Problem, Task, Values};
    use crate::operator::Stop;
    use crate::train::dense::Threads;
    use crate::train::dense::pass::Batch;
    use crate::train::dense::shape::{Head, Shape};

    /// `y = b relu(a x)` with the loss `(b a x - y)²`, whose derivatives are found by hand.
    #[test]
    fn scores_of_two_weights_are_those_by_hand() {
        let shape = Shape::new(1, &[1], 1, Head::Weights).unwrap();
        let data = Matrix::new(1, 1, Values::F32(vec![2.0])).unwrap();
        let set = Problem { data, labels: vec![5.0], task: Task::Regression };
        for sign in [1.0, -1.0] {
            // The label and the output weight change their signs together: so does the error.
            let set = &Problem { labels: vec![5.0 * sign], ..set.clone() };
            let net = DenseNet { shape: &shape, weights: &[1.0, 3.0 * sign] };
            let rows = Batch { set, rows: 0..1, order: None, scale: 1.0 };
            let on = NetOnRows { net, rows, stop: &Stop::new(), device: &Threads };
            // g = 2 (6 - 5) (6, 2), H = [72 28; 28 8], J = (6, 2) for the sign +1.
            assert_eq!(magnitude(net), [1.0, 3.0]);
            assert_eq!(snip(&on).unwrap(), [12.0, 12.0]);
            assert_eq!(grasp(&on, 1.0, |_| Role::Weight).unwrap(), [976.0, 1104.0]);
            assert_eq!(ntk(&on).unwrap(), [6.0, 6.0]);
            assert_eq!(synflow(net, &[2.0]), [6.0, 6.0]);
        }
    }

    #[test]
    fn scores_of_synflow_are_conserved() {
        let shape = Shape::new(20, &[30, 10, 15], 4, Head::Weights).unwrap();
        let mut weights = shape.initial(2);
        // 7 divides no width, so that every neuron keeps a path.
        weights.iter_mut().step_by(7).for_each(|w| *w = 0.0);
        let scores = synflow(DenseNet { shape: &shape, weights: &weights }, &[1.0; 20]);
        let sum = |layer: usize| -> f64 {
            scores[shape.layer(layer).range].iter().map(|&score| f64::from(score)).sum()
        };
        let first = sum(0);
        assert!(first > 1.0);
        assert!((1..4).all(|layer| (sum(layer) / first - 1.0).abs() < 1e-6));
        assert!(weights.iter().zip(&scores).all(|(w, score)| (*w == 0.0) == (*score == 0.0)));
    }
}
