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
use super::network::{Bytes, Params};
use super::pair::{Pair, PairLayer, Side};
use super::rows::Entry;
use crate::Result;
use crate::model::file::Opened;
use crate::model::predict::number;

/// Trust regions, as fractions of the box.
const STEPS: [f64; 10] = [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.1, 0.1, 0.05, 0.05];
/// Products that redrawing inputs may take behind each ascent.
const PRODUCTS: usize = 3_000_000;
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

/// One network near a row: how much it adds to a goal when single inputs move.
///
/// Beside a network of integers one of floats is taken as linear: all of its neurons change with
/// every input, those of integers only where they are rounded to another one.
struct Near<'a> {
    pair: &'a Pair,
    is_b: bool,
    goal: Goal,
    /// The derivatives by the inputs, where it is taken as linear.
    slopes: Option<&'a [f64]>,
    levels: Vec<Level>,
    value: f64,
    /// Levels and value before the last shift.
    levels_before: Vec<Level>,
    value_before: f64,
    /// Products that shifts have taken.
    products: usize,
}

/// One layer of a network at a row: sums, and what comes out of them.
#[derive(Debug, Clone)]
struct Level {
    sums: Vec<f64>,
    out: Vec<f64>,
}

impl<'a> Near<'a> {
    fn new(pair: &'a Pair, x: &[f32], is_b: bool, slopes: &'a [Vec<f64>; 2], goal: Goal) -> Self {
        let read = reader(pair, is_b);
        let mut given: Vec<f64> = x.iter().enumerate().map(&read).collect();
        let level = |layer: &PairLayer| {
            let side = side(layer, is_b);
            let sum = |j: usize| side.neurons[j].bias + side.rows.dot(j, &given);
            let sums: Vec<f64> = (0..side.neurons.len()).map(sum).collect();
            given = sums.iter().enumerate().map(|(j, &sum)| rounded(side, j, sum)).collect();
            Level { sums, out: given.clone() }
        };
        let levels: Vec<Level> = pair.layers.iter().map(level).collect();
        let [own, other] = if is_b { [&pair.b, &pair.a] } else { [&pair.a, &pair.b] };
        let is_linear = own.bytes.is_none() && other.bytes.is_some();
        let mut near = Self {
            pair,
            is_b,
            goal,
            slopes: is_linear.then_some(&slopes[usize::from(is_b)]),
            levels_before: levels.clone(),
            levels,
            value: 0.0,
            value_before: 0.0,
            products: 0,
        };
        near.value = near.output();
        near
    }

    /// What the network adds to the goal.
    fn output(&self) -> f64 {
        let out = self.levels.last().map_or(0.0, |level| level.out[self.goal.output]);
        self.goal.sign * if self.is_b { out } else { -out }
    }

    /// Moves input i.
    fn shift(&mut self, i: usize, from: f32, to: f32) {
        let read = reader(self.pair, self.is_b);
        let change = read((i, &to)) - read((i, &from));
        self.value_before = self.value;
        if let Some(slopes) = self.slopes {
            self.value += slopes[i] * change;
            return;
        }
        let mut moved = vec![Entry { column: i as u32, value: change }];
        let levels = self.levels.iter_mut().zip(&mut self.levels_before);
        for (layer, (level, before)) in self.pair.layers.iter().zip(levels) {
            before.sums.copy_from_slice(&level.sums);
            before.out.copy_from_slice(&level.out);
            let side = side(layer, self.is_b);
            let columns = &layer.columns[usize::from(self.is_b)];
            self.products += (moved.len() + 1) * level.sums.len();
            for entry in moved.drain(..) {
                columns.add(entry.column as usize, entry.value, &mut level.sums);
            }
            for (j, (&sum, out)) in level.sums.iter().zip(&mut level.out).enumerate() {
                let next = rounded(side, j, sum);
                if next != *out {
                    moved.push(Entry { column: j as u32, value: next - *out });
                    *out = next;
                }
            }
        }
        self.value = self.output();
    }

    fn undo(&mut self) {
        self.value = self.value_before;
        if self.slopes.is_none() {
            std::mem::swap(&mut self.levels, &mut self.levels_before);
        }
    }
}

/// What comes out of a sum, with the rounding of integers.
fn rounded(side: &Side, j: usize, sum: f64) -> f64 {
    let Params { half, cap, .. } = side.neurons[j];
    let sum = if half > 0.0 { 2.0 * half * (sum / (2.0 * half) + 0.5).floor() } else { sum };
    if side.relu { sum.max(0.0).min(cap) } else { sum }
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
        let sums =
            (0..side.neurons.len()).map(|j| side.neurons[j].bias + side.rows.dot(j, &numbers));
        let sums: Vec<f64> = sums.collect();
        let is_open = |j: usize| !side.relu || (0.0 < sums[j] && sums[j] < side.neurons[j].cap);
        open.push((0..sums.len()).map(is_open).collect::<Vec<bool>>());
        let out = |(j, sum): (usize, &f64)| match side.relu {
            true => sum.max(0.0).min(side.neurons[j].cap),
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
