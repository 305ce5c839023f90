//! A difference that is reached: gradient ascent over the box, judged by the predictions of both
//! models themselves.
//!
//! In each step the networks are taken as linear, and each input goes to where that is largest
//! within a trust region, which shrinks. A model of integers is a staircase: within a stair the
//! other network still moves, so an input goes to the end of its stair. At the end single inputs are
//! redrawn, which moves the rounding of hidden neurons. Every row that counts was predicted.

use tamis::base::rng::Rng;
use tamis::infer::{model, quantised};

use super::input::InputBox;
use super::network::Bytes;
use super::pair::{Pair, PairLayer, Side};
use crate::Result;
use crate::model::file::Opened;
use crate::model::predict::number;

/// Trust regions, as fractions of the box.
const STEPS: [f64; 10] = [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.1, 0.1, 0.05, 0.05];
/// Products that redrawing inputs may take behind each ascent.
const PRODUCTS: usize = 10_000_000;
/// The most times that each input is redrawn.
const SWEEPS: usize = 8;
/// Stairs that are looked at, from each end of the trust region.
const STAIRS: usize = 3;

/// A model that predicts, as numbers.
pub(super) struct Predictor<'a> {
    model: Kind<'a>,
    /// Its last prediction.
    pub(super) out: Vec<f32>,
}

enum Kind<'a> {
    Floats { model: &'a model::Model<'a>, scratch: Vec<f32> },
    Integers { model: &'a quantised::Model<'a>, scratch: Vec<i32>, row: Vec<u8>, sums: Vec<i32> },
}

impl<'a> Predictor<'a> {
    pub(super) fn new(model: &'a Opened<'a>) -> Self {
        let out = vec![0.0; model.outputs()];
        let model = match model {
            Opened::Floats(view) => {
                let model = view.model();
                Kind::Floats { model, scratch: vec![0.0; model.scratch_len()] }
            }
            Opened::Integers(view) => {
                let model = view.model();
                Kind::Integers {
                    model,
                    scratch: vec![0; model.scratch_len()],
                    row: vec![0; model.inputs()],
                    sums: vec![0; model.outputs()],
                }
            }
        };
        Self { model, out }
    }

    /// Predicts a row, as `ModelFile::predict` does.
    ///
    /// # Errors
    /// The row has another length.
    pub(super) fn predict(&mut self, x: &[f32]) -> Result<()> {
        match &mut self.model {
            Kind::Floats { model, scratch } => model.predict(x, scratch, &mut self.out)?,
            Kind::Integers { model, scratch, row, sums } => {
                let scales = model.scales();
                model.readings().quantise_input(x, row)?;
                model.predict(row, scratch, sums)?;
                let outputs = self.out.iter_mut().zip(sums);
                outputs.for_each(|(out, sum)| *out = number(*sum, scales.output()));
            }
        }
        Ok(())
    }
}

/// The largest difference of any output of two predictions.
pub(super) fn difference(a: &[f32], b: &[f32]) -> f64 {
    let each = a.iter().zip(b).map(|(&a, &b)| (f64::from(b) - f64::from(a)).abs());
    each.fold(0.0, f64::max)
}

/// An output, and whether that of the second model shall be above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Goal {
    pub(super) output: usize,
    pub(super) sign: f64,
}

/// Looks for a large difference in a box.
pub(super) struct Search<'a> {
    pub(super) pair: &'a Pair,
    pub(super) a: Predictor<'a>,
    pub(super) b: Predictor<'a>,
    pub(super) of: &'a InputBox,
    pub(super) rng: Rng,
    /// The largest difference that was reached.
    pub(super) best: f64,
}

/// A row and how far it is towards a goal.
#[derive(Debug, Clone)]
struct Place {
    x: Vec<f32>,
    value: f64,
}

impl Search<'_> {
    /// The corner of the box where inputs are at their upper ends or at their lower ones.
    pub(super) fn corner(&self, is_high: &[bool]) -> Vec<f32> {
        let ends = self.of.low.iter().zip(&self.of.high);
        ends.zip(is_high)
            .map(|((&low, &high), &is_high)| if is_high { high } else { low })
            .collect()
    }

    /// A random row of the box.
    pub(super) fn random(&mut self) -> Vec<f32> {
        let (low, high) = (&self.of.low, &self.of.high);
        let rng = &mut self.rng;
        let ends = low.iter().zip(high);
        ends.map(|(&low, &high)| (low + (high - low) * rng.uniform()).clamp(low, high)).collect()
    }

    /// Climbs from a row of the box.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub(super) fn climb(&mut self, start: Vec<f32>, goal: Goal) -> Result<()> {
        let mut place = self.place(start, goal)?;
        let mut slopes = self.slopes(&place.x, goal);
        for step in STEPS {
            let x = self.moved(&place.x, &slopes, step);
            let next = self.place(x, goal)?;
            if next.value > place.value {
                place = next;
                slopes = self.slopes(&place.x, goal);
            }
        }
        let x = self.polished(place.x, &slopes, goal);
        self.place(x, goal)?;
        Ok(())
    }

    fn place(&mut self, x: Vec<f32>, goal: Goal) -> Result<Place> {
        self.a.predict(&x)?;
        self.b.predict(&x)?;
        self.best = self.best.max(difference(&self.a.out, &self.b.out));
        let [a, b] = [&self.a.out, &self.b.out].map(|out| f64::from(out[goal.output]));
        Ok(Place { x, value: goal.sign * (b - a) })
    }

    /// The derivative of the goal by what each network makes of each input.
    fn slopes(&self, x: &[f32], goal: Goal) -> [Vec<f64>; 2] {
        let a = gradient(self.pair, x, goal.output, false);
        let b = gradient(self.pair, x, goal.output, true);
        [
            a.into_iter().map(|slope| -goal.sign * slope).collect(),
            b.into_iter().map(|slope| goal.sign * slope).collect(),
        ]
    }

    /// The row within a trust region where the networks, taken as linear, are best.
    fn moved(&self, x: &[f32], slopes: &[Vec<f64>; 2], step: f64) -> Vec<f32> {
        let [slopes_a, slopes_b] = slopes;
        let (of, ends) = (self.of, [&self.pair.a, &self.pair.b]);
        let mut out = x.to_vec();
        for (i, out) in out.iter_mut().enumerate() {
            let (a, b) = (slopes_a[i], slopes_b[i]);
            if a == 0.0 && b == 0.0 {
                continue;
            }
            let width = step * (f64::from(of.high[i]) - f64::from(of.low[i]));
            let low = of.low[i].max((f64::from(*out) - width) as f32);
            let high = of.high[i].min((f64::from(*out) + width) as f32);
            let value = |x: f32| {
                let [read_a, read_b] = ends.map(|ends| ends.number(i, x));
                a * read_a + b * read_b
            };
            let mut best = value(*out);
            let mut consider = |x: f32| {
                if low <= x && x <= high {
                    let value = value(x);
                    if value > best {
                        (best, *out) = (value, x);
                    }
                }
            };
            consider(low);
            consider(high);
            for bytes in ends.iter().filter_map(|ends| ends.bytes(i)) {
                for k in 0..STAIRS {
                    for end in stairs(bytes, low, k as f64).into_iter().chain(stairs(
                        bytes,
                        high,
                        -(k as f64),
                    )) {
                        consider(end);
                    }
                }
            }
        }
        out
    }
}

impl Search<'_> {
    /// The row once single inputs have been redrawn wherever that helps, which moves the rounding
    /// of hidden neurons. The sums of the first layer are kept, so a trial costs one column of it
    /// and the layers behind.
    fn polished(&mut self, mut x: Vec<f32>, slopes: &[Vec<f64>; 2], goal: Goal) -> Vec<f32> {
        let pair = self.pair;
        let width = pair.layers[0].a.bias.len();
        let behind: usize = pair.layers[1..].iter().map(|of| of.inputs * of.a.bias.len()).sum();
        let trials = PRODUCTS / (2 * (width + behind)).max(1);
        let trials = trials.max(64).min(SWEEPS * x.len());
        let mut tails = [Tail::new(pair, &x, false), Tail::new(pair, &x, true)];
        let value = |tails: &mut [Tail<'_>; 2]| {
            let [a, b] = tails;
            goal.sign * (b.output(goal.output) - a.output(goal.output))
        };
        let mut best = value(&mut tails);
        for _ in 0..trials {
            let i = self.rng.below(x.len() as u32) as usize;
            let (low, high) = (self.of.low[i], self.of.high[i]);
            if low == high || (slopes[0][i] == 0.0 && slopes[1][i] == 0.0) {
                continue;
            }
            let next = self.drawn(i, slopes);
            if next == x[i] {
                continue;
            }
            tails.iter_mut().for_each(|tail| tail.shift(i, x[i], next));
            let value = value(&mut tails);
            if value > best {
                (best, x[i]) = (value, next);
            } else {
                tails.iter_mut().for_each(Tail::undo);
            }
        }
        x
    }

    /// A number for input i: the end of a stair that is better for the network without stairs, or an
    /// end of the box.
    fn drawn(&mut self, i: usize, slopes: &[Vec<f64>; 2]) -> f32 {
        let (low, high) = (self.of.low[i], self.of.high[i]);
        let any = (low + (high - low) * self.rng.uniform()).clamp(low, high);
        let ends = [self.pair.a.bytes(i), self.pair.b.bytes(i)];
        let (bytes, slope) = match ends {
            [None, Some(bytes)] => (bytes, slopes[0][i]),
            [Some(bytes), None] => (bytes, slopes[1][i]),
            [Some(bytes), Some(_)] => (bytes, slopes[0][i]),
            [None, None] => return if any - low < high - any { low } else { high },
        };
        let [first, last] = stairs(bytes, any, 0.0);
        (if slope > 0.0 { last } else { first }).clamp(low, high)
    }
}

/// One network behind the sums of its first layer.
struct Tail<'a> {
    pair: &'a Pair,
    is_b: bool,
    sums: Vec<f64>,
    before: Vec<f64>,
    given: Vec<f64>,
    next: Vec<f64>,
}

impl<'a> Tail<'a> {
    fn new(pair: &'a Pair, x: &[f32], is_b: bool) -> Self {
        let read = reader(pair, is_b);
        let numbers: Vec<f64> = x.iter().enumerate().map(read).collect();
        let side = side(&pair.layers[0], is_b);
        let sums: Vec<f64> =
            (0..side.bias.len()).map(|j| side.bias[j] + side.rows.dot(j, &numbers)).collect();
        Self { pair, is_b, before: sums.clone(), sums, given: Vec::new(), next: Vec::new() }
    }

    /// Moves input i.
    fn shift(&mut self, i: usize, from: f32, to: f32) {
        let read = reader(self.pair, self.is_b);
        self.before.copy_from_slice(&self.sums);
        let columns = &self.pair.columns[usize::from(self.is_b)];
        columns.add(i, read((i, &to)) - read((i, &from)), &mut self.sums);
    }

    fn undo(&mut self) {
        std::mem::swap(&mut self.sums, &mut self.before);
    }

    /// An output, with the rounding of integers.
    fn output(&mut self, output: usize) -> f64 {
        let layers = &self.pair.layers;
        let out = |side: &Side, j: usize, sum: f64| {
            let step = 2.0 * side.half[j];
            let sum = if step > 0.0 { step * (sum / step + 0.5).floor() } else { sum };
            if side.relu { sum.max(0.0).min(side.cap[j]) } else { sum }
        };
        let first = side(&layers[0], self.is_b);
        self.given.clear();
        self.given.extend(self.sums.iter().enumerate().map(|(j, &sum)| out(first, j, sum)));
        for (at, layer) in layers.iter().enumerate().skip(1) {
            let side = side(layer, self.is_b);
            let rows = if at + 1 == layers.len() { output..output + 1 } else { 0..side.bias.len() };
            self.next.clear();
            for j in rows {
                self.next.push(out(side, j, side.bias[j] + side.rows.dot(j, &self.given)));
            }
            std::mem::swap(&mut self.given, &mut self.next);
        }
        if layers.len() == 1 { self.given[output] } else { self.given[0] }
    }
}

fn side(layer: &PairLayer, is_b: bool) -> &Side {
    if is_b { &layer.b } else { &layer.a }
}

/// What a network makes of an input.
fn reader(pair: &Pair, is_b: bool) -> impl Fn((usize, &f32)) -> f64 {
    let ends = if is_b { &pair.b } else { &pair.a };
    move |(i, &x)| ends.number(i, x)
}

/// The first and the last number whose byte is `more` above that of `x`, nearly.
fn stairs(bytes: Bytes, x: f32, more: f64) -> [f32; 2] {
    const INSIDE: f64 = 0.499_99;
    let number = bytes.number(x);
    [-INSIDE, INSIDE].map(|end| (number + (more + end) * bytes.step()) as f32)
}

/// The derivative of an output by what a network makes of each input, without rounding.
fn gradient(pair: &Pair, x: &[f32], output: usize, is_b: bool) -> Vec<f64> {
    let sides = || pair.layers.iter().map(|layer| if is_b { &layer.b } else { &layer.a });
    let mut numbers: Vec<f64> = x.iter().enumerate().map(reader(pair, is_b)).collect();
    let mut open = Vec::new();
    for side in sides() {
        let sums = (0..side.bias.len()).map(|j| side.bias[j] + side.rows.dot(j, &numbers));
        let sums: Vec<f64> = sums.collect();
        let is_open = |j: usize| !side.relu || (0.0 < sums[j] && sums[j] < side.cap[j]);
        open.push((0..sums.len()).map(is_open).collect::<Vec<bool>>());
        let out = |(j, sum): (usize, &f64)| match side.relu {
            true => sum.max(0.0).min(side.cap[j]),
            false => *sum,
        };
        numbers = sums.iter().enumerate().map(out).collect();
    }
    let mut slopes = vec![0.0; pair.outputs];
    slopes[output] = 1.0;
    let all: Vec<_> = pair.layers.iter().zip(sides()).zip(open).collect();
    for ((layer, side), open) in all.into_iter().rev() {
        let mut below = vec![0.0; layer.inputs];
        for (j, slope) in slopes.iter().enumerate() {
            if open[j] && *slope != 0.0 {
                side.rows.add(j, *slope, &mut below);
            }
        }
        slopes = below;
    }
    slopes
}
