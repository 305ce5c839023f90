//! Linear forms of two networks, bounded over a box by back-substitution.
//!
//! A form is `sum_j p_j a_j + q_j b_j` over the sums of a layer in both networks. It is carried to
//! the layer before by the weights, and through each neuron by lines that are nowhere below
//! ([`Neuron::above`]), down to the box. At each layer the intervals known there bound it, too, and
//! the least of all of these counts.
//!
//! Outward rounding: coefficients are 64-bit floats, and what their rounding may change is added up
//! beside them. Carrying weights `p_j` through n rows changes each coefficient by at most
//! `(n + 32) 2^-52 sum_j |p_j w_jk|`, hence the form by that sum with `|h_k|` in place, which is
//! `sum_j |p_j| mass_j`. What 32-bit floats of a device add to a sum is added in the same way, by the
//! `relative` of [`Layer`](super::network::Layer).

use super::input::{Input, InputBox};
use super::network::Params;
use super::pair::{Pair, Side};
use super::relax::{Activation, Interval, Neuron, Ways, Weight};

/// A sum that is never below the exact one.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    sum: f64,
    size: f64,
    slack: f64,
    terms: f64,
}

impl Total {
    fn add(&mut self, term: f64) {
        self.sum += term;
        self.size += term.abs();
        self.terms += 1.0;
    }

    fn with(mut self, terms: impl Iterator<Item = f64>) -> Self {
        terms.for_each(|term| self.add(term));
        self
    }

    /// The sum, rounded upward.
    fn most(&self) -> f64 {
        let rounding = (self.terms + 32.0) * f64::EPSILON;
        let slack = (rounding * self.size + self.slack) * (1.0 + rounding);
        (self.sum + slack).next_up() + 1e-290
    }
}

/// The neurons of a layer on a box.
#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    pub(super) neurons: Vec<Neuron>,
    /// `|bias| + sum_k |w_k h_k|` of each sum.
    mass_a: Vec<f64>,
    mass_b: Vec<f64>,
    /// What 32-bit floats of a device may add to each sum.
    pub(super) round_a: Vec<f64>,
    pub(super) round_b: Vec<f64>,
}

/// Two networks on a box, as far as their layers were bounded.
#[derive(Debug)]
pub(super) struct Analysis<'a> {
    pub(super) pair: &'a Pair,
    pub(super) inputs: Vec<Input>,
    pub(super) stages: Vec<Stage>,
}

/// The most of a form over the box, and the corner where its last line says that it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Bound {
    pub(super) most: f64,
    /// Whether each input is at its upper end.
    pub(super) corner: Vec<bool>,
}

/// Coefficients of all neurons of a layer.
#[derive(Debug, Clone)]
struct Form {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Form {
    fn zeros(width: usize) -> Self {
        Self { a: vec![0.0; width], b: vec![0.0; width] }
    }

    fn weight(&self, k: usize) -> Weight {
        Weight { a: self.a[k], b: self.b[k] }
    }
}

impl<'a> Analysis<'a> {
    /// Bounds every layer of both networks on a box.
    pub(super) fn new(pair: &'a Pair, of: &InputBox) -> Self {
        let mut analysis = Self { pair, inputs: Input::all(pair, of), stages: Vec::new() };
        for at in 0..pair.layers.len() {
            let stage = analysis.stage(at);
            analysis.stages.push(stage);
        }
        analysis
    }

    /// Whether no sum of 32-bit floats can overflow.
    pub(super) fn is_finite(&self) -> bool {
        let fits = |masses: &[f64], side: &Side| {
            let rounded = side.neurons.iter().zip(masses).filter(|(of, _)| of.relative > 0.0);
            rounded.into_iter().all(|(_, mass)| 2.0 * mass < f64::from(f32::MAX))
        };
        self.pair
            .layers
            .iter()
            .zip(&self.stages)
            .all(|(layer, stage)| fits(&stage.mass_a, &layer.a) && fits(&stage.mass_b, &layer.b))
    }

    fn stage(&self, at: usize) -> Stage {
        let layer = &self.pair.layers[at];
        let (sizes_a, sizes_b): (Vec<f64>, Vec<f64>) = match at.checked_sub(1) {
            Some(before) => {
                let neurons = &self.stages[before].neurons;
                neurons.iter().map(|of| (of.out_a.size(), of.out_b.size())).unzip()
            }
            None => self.inputs.iter().map(|of| (of.sizes()[0], of.sizes()[1])).unzip(),
        };
        let more = 1.0 + (layer.inputs as f64 + 64.0) * f64::EPSILON;
        let masses = |side: &Side, sizes: &[f64]| -> Vec<f64> {
            let mass = |j: usize| (side.rows.mass(j, sizes) + side.neurons[j].bias.abs()) * more;
            (0..side.neurons.len()).map(mass).collect()
        };
        let rounding = |side: &Side, masses: &[f64]| -> Vec<f64> {
            let terms = masses.iter().zip(&side.neurons);
            terms.map(|(mass, of)| (mass * of.relative + of.tiny) * more).collect()
        };
        let mut stage = Stage {
            mass_a: masses(&layer.a, &sizes_a),
            mass_b: masses(&layer.b, &sizes_b),
            ..Stage::default()
        };
        stage.round_a = rounding(&layer.a, &stage.mass_a);
        stage.round_b = rounding(&layer.b, &stage.mass_b);
        let neuron = |j: usize| {
            let interval = |a: f64, b: f64| {
                let most = |sign: f64| {
                    let mut form = Form::zeros(layer.a.neurons.len());
                    (form.a[j], form.b[j]) = (sign * a, sign * b);
                    self.above_sums(at, &stage, form, Ways::Least).most
                };
                Interval::new(-most(-1.0), most(1.0))
            };
            let activation = |side: &Side| {
                let Params { cap, half, .. } = side.neurons[j];
                Activation { relu: side.relu, cap, half }
            };
            let mut a = interval(1.0, 0.0);
            if layer.is_same[j] {
                return Neuron::same(a, activation(&layer.a));
            }
            let mut b = interval(0.0, 1.0);
            let d = interval(-1.0, 1.0).meet(b.minus(a).outward(0.0));
            b = b.meet(a.plus(d).outward(0.0));
            a = a.meet(b.minus(d).outward(0.0));
            Neuron::new([a, b, d], activation(&layer.a), activation(&layer.b))
        };
        stage.neurons = (0..layer.a.neurons.len()).map(neuron).collect();
        stage
    }

    /// The most of a weighted sum of outputs: `(output, weight)` of at most a few outputs. [`Ways::Apart`]
    /// is joint CROWN.
    pub(super) fn above(&self, weights: &[OutputWeight], ways: Ways) -> Bound {
        let Some((last, stage)) = self.stages.len().checked_sub(1).zip(self.stages.last()) else {
            return Bound::default();
        };
        let mut form = Form::zeros(stage.neurons.len());
        for of in weights {
            form.a[of.output] += of.weight.a;
            form.b[of.output] += of.weight.b;
        }
        let mut total = Total::default();
        // Outputs of integers are rounded to 32-bit floats at the end.
        for (k, neuron) in stage.neurons.iter().enumerate() {
            let weight = form.weight(k);
            let (a, b) = (self.pair.a.output, self.pair.b.output);
            total.slack += neuron.out_size(Weight { a: weight.a * a, b: weight.b * b });
            // Outputs below the normal range of 32-bit floats.
            total.slack += (weight.a.abs() + weight.b.abs()) * f64::from(f32::MIN_POSITIVE);
        }
        let first = total.with((0..stage.neurons.len()).map(|k| {
            let weight = form.weight(k);
            stage.neurons[k].most(weight, ways)
        }));
        through(stage, &mut form, &mut total, ways);
        let mut bound = self.carry(last, stage, form, total, ways);
        bound.most = bound.most.min(first.most());
        bound
    }

    /// The most of a form of the sums of a layer that is not complete yet.
    fn above_sums(&self, at: usize, stage: &Stage, form: Form, ways: Ways) -> Bound {
        self.carry(at, stage, form, Total::default(), ways)
    }

    fn carry(
        &self,
        mut at: usize,
        stage: &Stage,
        mut form: Form,
        mut total: Total,
        ways: Ways,
    ) -> Bound {
        let (mut stage, mut best) = (stage, f64::INFINITY);
        loop {
            let layer = &self.pair.layers[at];
            let mut next = Form::zeros(layer.inputs);
            let rounding = (form.a.len() as f64 + 32.0) * f64::EPSILON;
            for (j, &p) in form.a.iter().enumerate().filter(|(_, p)| **p != 0.0) {
                total.add(p * layer.a.neurons[j].bias);
                total.slack += p.abs() * (stage.mass_a[j] * rounding + stage.round_a[j]);
                layer.a.rows.add(j, p, &mut next.a);
            }
            for (j, &q) in form.b.iter().enumerate().filter(|(_, q)| **q != 0.0) {
                total.add(q * layer.b.neurons[j].bias);
                total.slack += q.abs() * (stage.mass_b[j] * rounding + stage.round_b[j]);
                layer.b.rows.add(j, q, &mut next.b);
            }
            form = next;
            let Some(before) = at.checked_sub(1) else { break };
            (at, stage) = (before, &self.stages[before]);
            let most = (0..layer.inputs).map(|k| stage.neurons[k].most(form.weight(k), ways));
            best = total.with(most).most().min(best);
            through(stage, &mut form, &mut total, ways);
        }
        let mut corner = Vec::with_capacity(self.inputs.len());
        for (k, input) in self.inputs.iter().enumerate() {
            let most = input.most(form.weight(k));
            total.add(most.value);
            total.slack += most.slack;
            corner.push(most.is_high);
        }
        Bound { most: total.most().min(best), corner }
    }
}

/// The weight of one output in a form.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputWeight {
    pub(super) output: usize,
    pub(super) weight: Weight,
}

/// A form of what comes out of a layer becomes one of its sums.
fn through(stage: &Stage, form: &mut Form, total: &mut Total, ways: Ways) {
    for (k, neuron) in stage.neurons.iter().enumerate() {
        let weight = form.weight(k);
        if weight.a == 0.0 && weight.b == 0.0 {
            continue;
        }
        let step = neuron.above(weight, ways);
        total.add(step.constant);
        total.slack += step.slack;
        (form.a[k], form.b[k]) = (step.weight.a, step.weight.b);
    }
}
