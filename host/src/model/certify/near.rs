//! One network near a row: its numbers, its derivatives, and what single inputs change.

use super::network::Params;
use super::pair::{Pair, PairLayer, Side};
use super::rows::Entry;

/// An output, and whether that of the second model shall be above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Goal {
    pub(super) output: usize,
    pub(super) sign: f64,
}

impl Goal {
    /// Whether the output of a network shall be above, 1, or below, -1.
    pub(super) fn sign_of(self, is_b: bool) -> f64 {
        if is_b { self.sign } else { -self.sign }
    }
}

/// One network near a row: how much it adds to a goal when single inputs move.
///
/// Beside a network of integers one of floats is taken as linear: all of its neurons change with
/// every input, those of integers only where they are rounded to another one.
pub(super) struct Near<'a> {
    pair: &'a Pair,
    is_b: bool,
    goal: Goal,
    /// The derivatives by the inputs, where it is taken as linear.
    slopes: Option<&'a [f64]>,
    levels: Vec<Level>,
    pub(super) value: f64,
    /// Levels and value before the last shift.
    levels_before: Vec<Level>,
    value_before: f64,
    /// Products that shifts have taken.
    pub(super) products: usize,
}

/// One layer of a network at a row: sums, and what comes out of them.
#[derive(Debug, Clone)]
struct Level {
    sums: Vec<f64>,
    out: Vec<f64>,
}

impl<'a> Near<'a> {
    pub(super) fn new(
        pair: &'a Pair,
        x: &[f32],
        is_b: bool,
        slopes: &'a [Vec<f64>; 2],
        goal: Goal,
    ) -> Self {
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
        self.goal.sign_of(self.is_b) * out
    }

    /// Moves input i.
    pub(super) fn shift(&mut self, i: usize, from: f32, to: f32) {
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

    pub(super) fn undo(&mut self) {
        self.value = self.value_before;
        if self.slopes.is_none() {
            std::mem::swap(&mut self.levels, &mut self.levels_before);
        }
    }
}

/// What comes out of a sum, with the rounding of integers.
pub(super) fn rounded(side: &Side, j: usize, sum: f64) -> f64 {
    let Params { half, cap, .. } = side.neurons[j];
    let sum = if half > 0.0 { 2.0 * half * (sum / (2.0 * half) + 0.5).floor() } else { sum };
    if side.relu { sum.max(0.0).min(cap) } else { sum }
}

pub(super) fn side(layer: &PairLayer, is_b: bool) -> &Side {
    if is_b { &layer.b } else { &layer.a }
}

/// What a network makes of an input.
pub(super) fn reader(pair: &Pair, is_b: bool) -> impl Fn((usize, &f32)) -> f64 {
    let ends = if is_b { &pair.b } else { &pair.a };
    move |(i, &x)| ends.number(i, x)
}

/// The derivatives of an output by what comes out of each layer, the inputs first, without rounding.
pub(super) fn gradients(pair: &Pair, x: &[f32], output: usize, is_b: bool) -> Vec<Vec<f64>> {
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
    let mut slopes = vec![vec![0.0; pair.outputs]];
    slopes[0][output] = 1.0;
    let all: Vec<_> = pair.layers.iter().zip(sides()).zip(open).collect();
    for ((layer, side), open) in all.into_iter().rev() {
        let mut below = vec![0.0; layer.inputs];
        for (j, slope) in slopes[slopes.len() - 1].iter().enumerate() {
            if open[j] && *slope != 0.0 {
                side.rows.add(j, *slope, &mut below);
            }
        }
        slopes.push(below);
    }
    slopes.reverse();
    slopes
}
