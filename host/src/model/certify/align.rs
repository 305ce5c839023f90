//! The rounding of hidden bytes turned towards a goal.
//!
//! With `t = sum / unit` a hidden byte is off by `r = floor(t + 1/2) - t`, and the goal by `slope unit r`: bytes at
//! random give about the root of their number, bytes that are all off to the right side their number. The sums of
//! the neurons that are open are linear in the inputs, of which there are more, so there is a row nearby where they
//! stand right: of least change by projections on one sum after the other, within the box (S. Kaczmarz, 1937).
//! Bytes of a first layer of two may move by one, which sets those of the second.

use super::input::InputBox;
use super::near::{Goal, gradients, reader, rounded, side};
use super::pair::{Pair, Side};
use super::rows::Rows;

/// How far off a byte shall be: what the inputs' own rounding moves must not turn it.
const OFF: f64 = 0.42;
/// Projections on each sum.
const SWEEPS: usize = 12;
/// Errors of sums, as fractions of a byte, that are small enough.
const SMALL: f64 = 0.02;

/// What the inputs of a network of integers are to be; none where it rounds no hidden neuron.
pub(super) fn aligned(
    pair: &Pair,
    x: &[f32],
    of: &InputBox,
    goal: Goal,
    is_b: bool,
) -> Option<Vec<f64>> {
    let sides: Vec<&Side> = pair.layers.iter().map(|layer| side(layer, is_b)).collect();
    let (first, second) = match sides[..] {
        [first, second, _, ..] => (first, Some(second)),
        [first, _] => (first, None),
        _ => return None,
    };
    let slopes = gradients(pair, x, goal.output, is_b);
    let sign = goal.sign_of(is_b);
    let read = reader(pair, is_b);
    let numbers: Vec<f64> = x.iter().enumerate().map(&read).collect();
    let mut sums = sums(first, &numbers);
    let mut wanted = turns(first, &sums, &slopes[1], sign);
    if wanted.is_empty() {
        return None;
    }
    if let Some(second) = second {
        let moved = |wanted: &[Wanted]| {
            let mut moved = sums.clone();
            wanted.iter().for_each(|own| moved[own.row] += own.change);
            moved
        };
        let aligned = moved(&wanted);
        let bytes = aligned.iter().enumerate().map(|(j, &sum)| rounded(first, j, sum));
        let bytes: Vec<f64> = bytes.collect();
        let behind = turns(second, &self::sums(second, &bytes), &slopes[2], sign);
        let mut most = vec![0.0; bytes.len()];
        wanted.iter().for_each(|own| most[own.row] = own.unit);
        let least: Vec<f64> = most.iter().map(|most| -most).collect();
        let changes = solved(&second.rows, &behind, &least, &most);
        for own in &mut wanted {
            own.change += own.unit * (changes[own.row] / own.unit).round();
        }
    }
    sums.clear();
    let ends = |ends: &[f32]| -> Vec<f64> {
        ends.iter().enumerate().zip(&numbers).map(|(end, own)| read(end) - own).collect()
    };
    let (low, high) = (ends(&of.low), ends(&of.high));
    let changes = solved(&first.rows, &wanted, &low, &high);
    Some(numbers.iter().zip(changes).map(|(number, change)| number + change).collect())
}

fn sums(side: &Side, given: &[f64]) -> Vec<f64> {
    side.neurons.iter().enumerate().map(|(j, own)| own.bias + side.rows.dot(j, given)).collect()
}

/// How the sum of a neuron shall change.
struct Wanted {
    row: usize,
    change: f64,
    /// Of its byte.
    unit: f64,
}

/// The least changes that turn the rounding of open neurons.
fn turns(side: &Side, sums: &[f64], slopes: &[f64], sign: f64) -> Vec<Wanted> {
    let turn = |(row, &sum): (usize, &f64)| {
        let (own, slope) = (&side.neurons[row], sign * slopes[row]);
        let unit = 2.0 * own.half;
        let is_open = !side.relu || 0.0 < sum && sum < own.cap;
        if unit <= 0.0 || slope == 0.0 || !is_open {
            return None;
        }
        let t = sum / unit;
        let more = (t + 0.5).floor() - t - OFF * slope.signum();
        Some(Wanted { row, change: unit * (more - more.round()), unit })
    };
    sums.iter().enumerate().filter_map(turn).collect()
}

/// Changes within their bounds by which the sums change nearly as wanted.
fn solved(rows: &Rows, wanted: &[Wanted], low: &[f64], high: &[f64]) -> Vec<f64> {
    let square = |own: &Wanted| {
        let mut square = 0.0;
        rows.each(own.row, |at, w| {
            if low[at] < high[at] {
                square += w * w;
            }
        });
        square
    };
    let squares: Vec<f64> = wanted.iter().map(square).collect();
    let mut x = vec![0.0; low.len()];
    for _ in 0..SWEEPS {
        let mut is_done = true;
        for (own, &square) in wanted.iter().zip(&squares).filter(|(_, square)| **square > 0.0) {
            let error = own.change - rows.dot(own.row, &x);
            if error.abs() <= SMALL * own.unit {
                continue;
            }
            is_done = false;
            rows.add(own.row, error / square, &mut x);
            let ends = low.iter().zip(high);
            x.iter_mut().zip(ends).for_each(|(x, (low, high))| *x = x.clamp(*low, *high));
        }
        if is_done {
            break;
        }
    }
    x
}
