//! A difference that is reached: gradient ascent over the box, judged by the predictions of both
//! models themselves.
//!
//! In each step the networks are taken as linear, and each input goes to where that is largest
//! within a trust region, which shrinks. A model of integers is a staircase: within a stair the
//! other network still moves, so an input goes to the end of its stair. Then the rounding of hidden bytes is
//! turned towards the goal, and at the end single inputs are redrawn. Every row that counts was predicted.

use tamis::base::rng::Rng;
use tamis::infer::{model, quantised};

use super::align::aligned;
use super::input::InputBox;
use super::near::{Goal, Near, gradients};
use super::network::Bytes;
use super::pair::{Pair, PairLayer};
use crate::Result;
use crate::model::file::Opened;
use crate::model::predict::number;

/// Trust regions, as fractions of the box.
const STEPS: [f64; 10] = [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.1, 0.1, 0.05, 0.05];
/// Products that redrawing inputs may take behind each ascent.
const PRODUCTS: usize = 3_000_000;
/// Rows that are drawn in small networks: the most, the least that are worth it, and products of all.
const SAMPLES: usize = 400;
const LEAST_SAMPLES: usize = 32;
const SAMPLE_PRODUCTS: usize = 4_000_000;
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

    /// Draws rows and corners of the box, as many as small networks have time for, and climbs from that of
    /// the largest difference.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub(super) fn sample(&mut self) -> Result<()> {
        let products = |layer: &PairLayer| layer.inputs * layer.a.neurons.len().max(1);
        let all = 2 * self.pair.layers.iter().map(products).sum::<usize>();
        let count = (SAMPLE_PRODUCTS / all.max(1)).min(SAMPLES);
        if count < LEAST_SAMPLES {
            return Ok(());
        }
        let mut best: Option<(Goal, Place)> = None;
        for draw in 0..count {
            let x = match draw % 2 {
                0 => self.random(),
                _ => {
                    let is_high: Vec<_> =
                        self.of.low.iter().map(|_| self.rng.below(2) == 1).collect();
                    self.corner(&is_high)
                }
            };
            let mut place = self.place(x, Goal { output: 0, sign: 1.0 })?;
            let apart =
                |output: usize| f64::from(self.b.out[output]) - f64::from(self.a.out[output]);
            let of = |output: &usize| apart(*output).abs();
            let far = (0..self.pair.outputs).max_by(|i, j| of(i).total_cmp(&of(j)));
            let Some(output) = far else { continue };
            place.value = of(&output);
            if best.as_ref().is_none_or(|(_, best)| best.value < place.value) {
                best = Some((Goal { output, sign: apart(output).signum() }, place));
            }
        }
        best.map_or(Ok(()), |(goal, place)| self.climb(place.x, goal))
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
        let both: Vec<f64> = slopes[0].iter().zip(&slopes[1]).map(|(a, b)| a + b).collect();
        for is_b in [false, true] {
            let found = aligned(self.pair, &place.x, self.of, goal, &both, is_b);
            let Some(numbers) = found else { continue };
            let near = numbers.iter().enumerate();
            let near = near.map(|(i, &x)| self.stair(i, x as f32, &slopes)).collect();
            let next = self.place(near, goal)?;
            if next.value > place.value {
                place = next;
            }
        }
        slopes = self.slopes(&place.x, goal);
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
        [false, true].map(|is_b| {
            let sign = goal.sign_of(is_b);
            let by_inputs = gradients(self.pair, x, goal.output, is_b).into_iter().next();
            by_inputs.unwrap_or_default().into_iter().map(|slope| sign * slope).collect()
        })
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
    /// The row once single inputs have been redrawn wherever that does not harm, which moves the
    /// rounding of hidden neurons. A trial costs one column of the first layer, and of those behind
    /// it the columns of neurons that change.
    fn polished(&mut self, mut x: Vec<f32>, slopes: &[Vec<f64>; 2], goal: Goal) -> Vec<f32> {
        let moves = |i: &usize| {
            self.of.low[*i] < self.of.high[*i] && (slopes[0][*i] != 0.0 || slopes[1][*i] != 0.0)
        };
        let moving: Vec<usize> = (0..x.len()).filter(moves).collect();
        if moving.is_empty() {
            return x;
        }
        let mut near = [false, true].map(|is_b| Near::new(self.pair, &x, is_b, slopes, goal));
        let mut best = near[0].value + near[1].value;
        for _ in 0..SWEEPS * moving.len() {
            if near.iter().map(|near| near.products).sum::<usize>() > PRODUCTS {
                break;
            }
            let i = moving[self.rng.below(moving.len() as u32) as usize];
            let next = self.drawn(i, slopes);
            if next == x[i] {
                continue;
            }
            near.iter_mut().for_each(|near| near.shift(i, x[i], next));
            let value = near[0].value + near[1].value;
            if value >= best {
                (best, x[i]) = (value, next);
            } else {
                near.iter_mut().for_each(Near::undo);
            }
        }
        x
    }

    /// A random number for input i.
    fn drawn(&mut self, i: usize, slopes: &[Vec<f64>; 2]) -> f32 {
        let (low, high) = (self.of.low[i], self.of.high[i]);
        let any = low + (high - low) * self.rng.uniform();
        self.stair(i, any, slopes)
    }

    /// A number for input i near `any`: the end of its stair that is better for the network without stairs, or
    /// an end of the box.
    fn stair(&self, i: usize, any: f32, slopes: &[Vec<f64>; 2]) -> f32 {
        let (low, high) = (self.of.low[i], self.of.high[i]);
        let any = any.clamp(low, high);
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

/// The first and the last number whose byte is `more` above that of `x`, nearly.
fn stairs(bytes: Bytes, x: f32, more: f64) -> [f32; 2] {
    const INSIDE: f64 = 0.499_99;
    let number = bytes.number(x);
    [-INSIDE, INSIDE].map(|end| (number + (more + end) * bytes.step()) as f32)
}

#[cfg(test)]
mod tests {
    use super::super::network::Network;
    use super::super::tests::{integers, model, random, rows};
    use super::*;
    use crate::data::Values;

    #[test]
    fn moved_inputs_give_what_a_new_row_gives() {
        for (seed, sum) in [(1, false), (2, true), (3, false)] {
            let mut rng = Rng::new(seed, 0);
            let floats = model(&random(&mut rng, &[9, 7, 5, 2]), sum);
            let data = rows(&mut rng, 40, 9, 1.0);
            let own = integers(&floats, &data, seed).unwrap();
            let opened = [floats.open().unwrap(), own.open().unwrap()];
            let [a, b] = opened.each_ref().map(|model| Network::new(model).unwrap());
            let pair = Pair::new(a, b);
            let Values::F32(values) = &data.values else { unreachable!() };
            let goal = Goal { output: 0, sign: -1.0 };
            let mut x = values[..9].to_vec();
            let slopes = [(); 2].map(|()| vec![0.0; 9]);
            let near = |x: &[f32]| Near::new(&pair, x, true, &slopes, goal);
            let mut moved = near(&x);
            for (at, &next) in values[9..300].iter().enumerate() {
                let value = moved.value;
                moved.shift(at % 9, x[at % 9], next);
                if at % 3 == 0 {
                    moved.undo();
                    assert_eq!(moved.value, value);
                    continue;
                }
                x[at % 9] = next;
                assert!((moved.value - near(&x).value).abs() < 1e-9, "{seed} {at}");
            }
            // It is what the model predicts.
            let mut model = Predictor::new(&opened[1]);
            model.predict(&x).unwrap();
            assert!((moved.value + f64::from(model.out[0])).abs() < 1e-5, "{seed}");
        }
    }
}
