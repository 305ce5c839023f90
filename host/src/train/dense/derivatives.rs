//! Derivatives of a dense MLP by its weights: what scores of masks at initialisation are made of.
//!
//! Every vector has one number for each weight, layer by layer. Weights may be 0, as those of an
//! earlier round of pruning: they have derivatives as all others. The time is that of the dense
//! network, and no result depends on the number of threads.

use std::slice::ChunksExact;

use super::device::{DenseNet, NetOnRows, Passed};
use super::pass::{Goal, Measure};
use super::shape::Layer;
use crate::{Error, Result};

impl NetOnRows<'_> {
    /// g, the gradient of the mean loss: cross-entropy over rows for several classes, else squared
    /// error over rows and outputs. Outputs are divided by `temperature` before the softmax;
    /// squared error has none.
    ///
    /// # Errors
    /// A derivative that is not finite, labels that are no classes, or a stop; so of all below.
    pub(crate) fn gradient(&self, temperature: f32) -> Result<Vec<f32>> {
        self.pass(temperature, Goal::Gradient)
    }

    /// `H v`, H being the Hessian of the loss of [`Self::gradient`], exactly. Relu counts as linear
    /// on either side of 0.
    pub(crate) fn hessian_product(&self, temperature: f32, v: &[f32]) -> Result<Vec<f32>> {
        self.pass(temperature, Goal::HessianProduct(v))
    }

    /// The norm of each column of the Jacobian, `|J_i|`: J has a row for each output of each row of
    /// the data, before any softmax. Labels are not used.
    pub(crate) fn jacobian_norms(&self) -> Result<Vec<f32>> {
        self.norms(Goal::JacobianSquares)
    }

    /// For each weight the norm of what it is multiplied by, over the rows: `|a_i|` of input i of
    /// its layer. Labels are not used.
    pub(crate) fn input_norms(&self) -> Result<Vec<f32>> {
        self.norms(Goal::InputSquares)
    }

    fn norms(&self, goal: Goal<'_>) -> Result<Vec<f32>> {
        let mut norms = self.pass(1.0, goal)?;
        norms.iter_mut().for_each(|square| *square = square.sqrt());
        Ok(norms)
    }

    fn pass(&self, temperature: f32, goal: Goal<'_>) -> Result<Vec<f32>> {
        let Passed { measure: Measure { loss, .. }, sum } =
            self.device.pass(self, goal, temperature)?;
        // Where neurons give no numbers, nothing goes back through them.
        let is_finite = loss.is_finite() && sum.iter().all(|x| x.is_finite());
        if !is_finite {
            return Err(Error::new("the network leaves the range of 32-bit floats on these rows")
                .expected("finite losses and derivatives")
                .got(if loss.is_finite() {
                    "a derivative or activation beyond it".into()
                } else {
                    format!("a loss of {loss}")
                })
                .help("scale the data, or start from smaller weights"));
        }
        Ok(sum)
    }
}

impl DenseNet<'_> {
    /// `dR/d|w|` for each weight, where `R = 1^T |W_L| … |W_1| x` sums the magnitudes of all paths
    /// from the inputs; summed in double precision. `x` has a number for each input, 0 or more.
    pub(crate) fn path_derivatives(&self, x: &[f32]) -> Vec<f32> {
        let flows = self.path_sums(x);
        let mut derivatives = vec![0.0; self.weights.len()];
        let mut back = vec![1.0; self.shape.last().outputs];
        for (layer, flow) in self.shape.layers().zip(&flows).rev() {
            let mut next = vec![0.0; layer.inputs];
            let own = derivatives[layer.range.clone()].chunks_exact_mut(layer.inputs);
            for ((weights, own), v) in self.rows(&layer).zip(own).zip(&back) {
                for (i, (w, own)) in magnitudes(weights).zip(own).enumerate() {
                    next[i] += w * v;
                    *own = (v * flow[i]) as f32;
                }
            }
            back = next;
        }
        derivatives
    }

    /// `u_l = |W_l| u_(l-1)` from the inputs on, `u_0 = x`.
    fn path_sums(&self, x: &[f32]) -> Vec<Vec<f64>> {
        let mut sums: Vec<Vec<f64>> = vec![x.iter().map(|&x| f64::from(x)).collect()];
        for layer in self.shape.layers() {
            let u = &sums[sums.len() - 1];
            let sum = |weights| magnitudes(weights).zip(u).map(|(w, u)| w * u).sum();
            let next = self.rows(&layer).map(sum).collect();
            sums.push(next);
        }
        sums
    }

    /// The weights of a layer, for each of its outputs.
    fn rows(&self, layer: &Layer) -> ChunksExact<'_, f32> {
        self.weights[layer.range.clone()].chunks_exact(layer.inputs)
    }
}

fn magnitudes(weights: &[f32]) -> impl Iterator<Item = f64> + '_ {
    weights.iter().map(|&w| f64::from(w.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Problem, Task};
    use crate::operator::Stop;
    use crate::train::dense::pass::Batch;
    use crate::train::dense::reference::{Definition, problem, shapes, weights};
    use crate::train::dense::shape::Head;
    use crate::train::dense::shape::Shape;
    use crate::train::dense::threads::Threads;
    use tamis::base::rng::{Permutation, Rng, stream};

    const TEMPERATURES: [f32; 3] = [1.0, 0.5, 20.0];

    fn multiclass(outputs: usize) -> Shape {
        Shape::new(5, &[9, 4], outputs, Head::Weights).unwrap()
    }

    fn vector(shape: &Shape, seed: u64) -> Vec<f32> {
        let mut v = vec![0.0; shape.weights()];
        Rng::new(seed, stream::USER).fill_normal(&mut v);
        v
    }

    /// Weights of a network that was pruned.
    fn pruned(shape: &Shape) -> Vec<f32> {
        let mut weights = weights(shape);
        weights.iter_mut().step_by(4).for_each(|w| *w = 0.0);
        weights
    }

    fn batch(set: &Problem, skip: usize) -> Batch<'_> {
        let order = Some(Permutation::new(1, 2, set.data.rows));
        Batch { set, rows: skip..set.data.rows, order, scale: 0.5 }
    }

    /// Checks every `step`-th number against its definition.
    fn check(found: &[f32], step: usize, wanted: impl Fn(usize) -> f64) {
        let largest = found.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
        assert!(largest > 1e-5, "{found:?}");
        for (j, found) in found.iter().enumerate().step_by(step) {
            let (found, wanted) = (f64::from(*found), wanted(j));
            let error = (found - wanted).abs() / f64::from(largest);
            assert!(error < 2e-5, "{j}: {found} for {wanted}, largest {largest}");
        }
    }

    /// Checks all derivatives on so many rows, of every `step`-th weight.
    fn check_all(shape: &Shape, task: Task, weights: &[f32], rows: usize, step: usize) {
        let set = &problem(rows, shape, task);
        let (rows, stop) = (batch(set, 3), &Stop::new());
        let net = DenseNet { shape, weights };
        let on = NetOnRows { net, rows: rows.clone(), stop, device: &Threads };
        let mut definition = Definition::new(shape, &rows, weights);
        check(&on.jacobian_norms().unwrap(), step, |j| definition.jacobian_norm(j));
        for temperature in TEMPERATURES {
            definition.temperature = temperature.into();
            check(&on.gradient(temperature).unwrap(), step, |j| definition.slope(j));
            let v = vector(shape, 1);
            let product = on.hessian_product(temperature, &v).unwrap();
            check(&product, step, |j| definition.curvature(j, &v));
        }
    }

    #[test]
    fn derivatives_are_those_of_the_definition() {
        for (shape, task) in shapes() {
            // One tile, and three.
            for rows in [20, 603] {
                check_all(&shape, task, &weights(&shape), rows, 5);
            }
        }
    }

    #[test]
    fn derivatives_hold_for_many_tiles_and_log_odds() {
        // More tiles than groups.
        check_all(&multiclass(3), Task::Multiclass, &weights(&multiclass(3)), 2500, 13);
        check_all(&multiclass(1), Task::Multiclass, &weights(&multiclass(1)), 300, 5);
    }

    #[test]
    fn pruned_weights_have_derivatives_as_all_others() {
        let shape = multiclass(3);
        for task in [Task::Multiclass, Task::Regression] {
            check_all(&shape, task, &pruned(&shape), 100, 1);
        }
    }

    #[test]
    fn the_hessian_is_symmetric() {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        for (shape, task) in shapes() {
            let (set, weights) = (&problem(700, &shape, task), &weights(&shape));
            let net = DenseNet { shape: &shape, weights };
            let on = NetOnRows { net, rows: batch(set, 0), stop: &Stop::new(), device: &Threads };
            let [u, v] = [1, 2].map(|seed| vector(&shape, seed));
            let [hu, hv] = [&u, &v].map(|v| on.hessian_product(2.0, v).unwrap());
            let (one, other) = (dot(&u, &hv), dot(&v, &hu));
            let size = (dot(&u, &u) * dot(&hv, &hv)).sqrt();
            assert!((one - other).abs() < 1e-6 * size, "{one} {other} {size}");
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let shape = multiclass(3);
        let (set, weights) = (&problem(3000, &shape, Task::Multiclass), &weights(&shape));
        let v = vector(&shape, 1);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let net = DenseNet { shape: &shape, weights };
                let on =
                    NetOnRows { net, rows: batch(set, 0), stop: &Stop::new(), device: &Threads };
                let all = [on.gradient(2.0), on.hessian_product(2.0, &v), on.jacobian_norms()];
                all.map(|found| found.unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>())
            })
        };
        let one = run(1);
        assert!([2, 3].into_iter().all(|threads| run(threads) == one));
    }

    #[test]
    fn a_stop_and_overflow_are_errors() {
        let shape = multiclass(3);
        let (set, stop) = (&problem(50, &shape, Task::Multiclass), &Stop::new());
        let all = |weights: &[f32]| {
            let net = DenseNet { shape: &shape, weights };
            let on = NetOnRows { net, rows: batch(set, 0), stop, device: &Threads };
            [on.gradient(1.0), on.hessian_product(1.0, weights), on.jacobian_norms()]
        };
        let huge = vec![1e30; shape.weights()];
        assert!(all(&huge).iter().all(|found| found.is_err()));
        stop.ask();
        let stopped = all(&weights(&shape)).map(Result::unwrap_err);
        assert!(stopped.iter().all(|error| error.is_interrupted()));
    }

    /// The sum of all paths is linear in each weight's magnitude, so a difference is its slope.
    #[test]
    fn path_derivatives_are_differences_of_the_paths() {
        for (shape, _) in shapes() {
            let weights = pruned(&shape);
            let x = [0.5, 0.0, 2.0, 1.0, 3.0];
            let paths = |weights: &[f32]| -> f64 {
                let net = DenseNet { shape: &shape, weights };
                net.path_sums(&x).last().unwrap().iter().sum()
            };
            let derivatives = DenseNet { shape: &shape, weights: &weights }.path_derivatives(&x);
            for (j, found) in derivatives.into_iter().enumerate() {
                let mut moved = weights.clone();
                moved[j] = moved[j].abs() + 1.0;
                let step = f64::from(moved[j]) - f64::from(weights[j].abs());
                let slope = (paths(&moved) - paths(&weights)) / step;
                assert!((f64::from(found) - slope).abs() < 1e-5 * slope.max(1e-3), "{j}");
            }
        }
    }
}
