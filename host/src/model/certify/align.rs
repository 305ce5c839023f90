//! The rounding of hidden bytes turned towards a goal.
//!
//! With `t = sum / unit` a hidden byte is off by `r = floor(t + 1/2) - t`, and the goal by `slope unit r`: bytes at
//! random give about the root of their number, bytes that are all off to the right side their number. The sums of
//! the first layer's neurons are linear in the inputs, so there is a row nearby where they stand right, nearly: the
//! least squares within the box, each weighed by what it is worth.

use super::input::InputBox;
use super::near::{Goal, gradients, reader, side};
use super::network::Params;
use super::pair::{Pair, Side};
use super::rows::Rows;

/// How far off a byte shall be: what the inputs' own rounding moves must not turn it.
const OFF: f64 = 0.42;
/// Times that each input is set.
const SWEEPS: usize = 5;

/// What the inputs of a network of integers are to be; none where it rounds no hidden neuron.
pub(super) fn aligned(
    pair: &Pair,
    x: &[f32],
    of: &InputBox,
    goal: Goal,
    slope: &[f64],
    is_b: bool,
) -> Option<Vec<f64>> {
    let [first, _, ..] = &pair.layers[..] else { return None };
    let own = side(first, is_b);
    let slopes = gradients(pair, x, goal.output, is_b);
    let sign = goal.sign_of(is_b);
    let read = reader(pair, is_b);
    let numbers: Vec<f64> = x.iter().enumerate().map(&read).collect();
    let wanted = turns(own, &numbers, &slopes[1], sign);
    if wanted.is_empty() {
        return None;
    }
    let ends = |ends: &[f32]| -> Vec<f64> {
        ends.iter().enumerate().zip(&numbers).map(|(end, own)| read(end) - own).collect()
    };
    let bounds = Bounds { low: ends(&of.low), high: ends(&of.high) };
    let changes = solved(&first.columns[usize::from(is_b)], &wanted, slope, &bounds);
    Some(numbers.iter().zip(changes).map(|(number, change)| number + change).collect())
}

/// How the sum of a neuron shall change.
struct Wanted {
    row: usize,
    change: f64,
    /// What a square of the error costs.
    weight: f64,
}

/// The least changes that turn the rounding of open neurons.
fn turns(side: &Side, numbers: &[f64], slopes: &[f64], sign: f64) -> Vec<Wanted> {
    let turn = |(row, own): (usize, &Params)| {
        let (sum, slope) = (own.bias + side.rows.dot(row, numbers), sign * slopes[row]);
        let unit = 2.0 * own.half;
        let is_open = !side.relu || 0.0 < sum && sum < own.cap;
        if unit <= 0.0 || slope == 0.0 || !is_open {
            return None;
        }
        let t = sum / unit;
        let more = (t + 0.5).floor() - t - OFF * slope.signum();
        let weight = slope.abs() / unit;
        Some(Wanted { row, change: unit * (more - more.round()), weight })
    };
    side.neurons.iter().enumerate().filter_map(turn).collect()
}

/// What inputs may change by.
struct Bounds {
    low: Vec<f64>,
    high: Vec<f64>,
}

/// Changes of inputs x within their bounds that are best: the least `Σ weight (w_j · x - change_j)² - slope · x`, by one
/// input after the other, given the columns of weights.
fn solved(
    columns: &Rows,
    wanted: &[Wanted],
    slope: &[f64],
    Bounds { low, high }: &Bounds,
) -> Vec<f64> {
    let most = wanted.iter().map(|own| own.row + 1).max().unwrap_or(0);
    let (mut weight, mut error) = (vec![0.0; most], vec![0.0; most]);
    for own in wanted {
        (weight[own.row], error[own.row]) = (own.weight, -own.change);
    }
    let mut x = vec![0.0; low.len()];
    for _ in 0..SWEEPS {
        for (i, x) in x.iter_mut().enumerate().filter(|(i, _)| low[*i] < high[*i]) {
            let (mut down, mut curved) = (slope[i], 0.0);
            columns.each(i, |j, w| {
                if j < most {
                    down -= 2.0 * weight[j] * w * error[j];
                    curved += 2.0 * weight[j] * w * w;
                }
            });
            if curved <= 0.0 {
                continue;
            }
            let next = (*x + down / curved).clamp(low[i], high[i]);
            let step = next - *x;
            if step != 0.0 {
                *x = next;
                columns.each(i, |j, w| {
                    if j < most {
                        error[j] += w * step;
                    }
                });
            }
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::network::Network;
    use super::super::tests::{integers, model, random, rows};
    use super::*;
    use crate::data::Values;
    use tamis::base::rng::Rng;

    #[test]
    fn hidden_bytes_are_rounded_to_the_side_of_the_goal() {
        for seed in 0..3 {
            let mut rng = Rng::new(seed, 0);
            let floats = model(&random(&mut rng, &[200, 40, 3]), false);
            let data = rows(&mut rng, 40, 200, 1.0);
            let own = integers(&floats, &data, seed).unwrap();
            let opened = [floats.open().unwrap(), own.open().unwrap()];
            let [a, b] = opened.each_ref().map(|model| Network::new(model).unwrap());
            let pair = Pair::new(a, b);
            let Values::F32(values) = &data.values else { unreachable!() };
            let x = &values[..200];
            let ends = |by: f32| x.iter().map(|x| x + by).collect();
            let of = InputBox { low: ends(-0.1), high: ends(0.1) };
            let goal = Goal { output: 1, sign: -1.0 };
            // How far off the bytes are towards the goal, of half a byte.
            let off = |numbers: &[f64]| {
                let slopes = gradients(&pair, x, 1, true);
                let own = turns(&pair.layers[0].b, numbers, &slopes[1], 1.0);
                let all = own.iter().map(|own| {
                    let params = &pair.layers[0].b.neurons[own.row];
                    let t = (params.bias + pair.layers[0].b.rows.dot(own.row, numbers))
                        / (2.0 * params.half);
                    -2.0 * ((t + 0.5).floor() - t) * slopes[1][own.row].signum()
                });
                let all: Vec<f64> = all.collect();
                assert!(all.len() > 5, "{}", all.len());
                all.iter().sum::<f64>() / all.len() as f64
            };
            let flat = vec![0.0; 200];
            assert_eq!(aligned(&pair, x, &of, goal, &flat, false), None);
            let numbers = aligned(&pair, x, &of, goal, &flat, true).unwrap();
            let read = reader(&pair, true);
            let before: Vec<f64> = x.iter().enumerate().map(&read).collect();
            let within = numbers.iter().enumerate().all(|(i, x)| {
                (read((i, &of.low[i])) - 1e-9..=read((i, &of.high[i])) + 1e-9).contains(x)
            });
            assert!(
                within && off(&before) < 0.5 && off(&numbers) > 0.75,
                "{} {}",
                off(&before),
                off(&numbers)
            );
        }
    }
}
