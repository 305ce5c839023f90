//! A box of input rows, and what either network makes of each input.

use super::network::Bytes;
use super::pair::Pair;
use super::relax::{Interval, Line, Weight};

/// A box of rows of 32-bit floats: every row `x` with `low_i <= x_i <= high_i`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InputBox {
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
}

/// What one network makes of one input, between two lines and in an interval.
#[derive(Debug, Clone, Copy)]
struct Reading {
    low: Line,
    high: Line,
    out: Interval,
}

/// One input of the box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    x: Interval,
    a: Reading,
    b: Reading,
    /// Both networks make the same of it.
    is_shared: bool,
}

/// The most of one term of a linear form over the box, and where the line that says so ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) value: f64,
    pub(super) slack: f64,
    pub(super) is_high: bool,
}

impl Input {
    /// Every input of a box.
    pub(super) fn all(pair: &Pair, of: &InputBox) -> Vec<Self> {
        let is_shared = pair.a.bytes == pair.b.bytes;
        let ends = of.low.iter().zip(&of.high).enumerate();
        ends.map(|(j, (&low, &high))| {
            let x = Interval::new(low.into(), high.into());
            let [a, b] = [&pair.a, &pair.b].map(|ends| reading(ends.bytes(j), low, high));
            Self { x, a, b, is_shared }
        })
        .collect()
    }

    /// The largest number that each network makes of it, and the largest difference.
    pub(super) fn sizes(&self) -> [f64; 3] {
        let (ones, minus) = (Weight { a: -1.0, b: 1.0 }, Weight { a: 1.0, b: -1.0 });
        let change = [ones, minus].map(|weight| {
            let most = self.most(weight);
            most.value + most.slack
        });
        [self.a.out.size(), self.b.out.size(), change[0].max(change[1]).max(0.0)]
    }

    /// The most that a weighted sum of what both networks make of it can be.
    pub(super) fn most(&self, weight: Weight) -> Most {
        let Weight { a, b } = weight;
        let side = |reading: &Reading, factor: f64| {
            let line = if factor > 0.0 { reading.high } else { reading.low };
            Line { slope: factor * line.slope, at: factor * line.at }
        };
        let (line, apart) = if self.is_shared {
            (side(&self.a, a + b), self.a.out.most(a + b))
        } else {
            let (line_a, line_b) = (side(&self.a, a), side(&self.b, b));
            let line = Line { slope: line_a.slope + line_b.slope, at: line_a.at + line_b.at };
            (line, self.a.out.most(a) + self.b.out.most(b))
        };
        let is_high = line.slope > 0.0;
        let end = if is_high { self.x.high } else { self.x.low };
        let size = self.x.size() + self.a.out.size() + self.b.out.size();
        Most {
            value: (line.slope * end + line.at).min(apart),
            slack: 32.0 * f64::EPSILON * (a.abs() + b.abs()) * size,
            is_high,
        }
    }
}

/// What a network makes of `low` to `high`: the same, or the number of a byte.
///
/// `byte(x)` rounds `x / step` to a 32-bit float and that to a whole number, halves away from zero,
/// and cuts the sum with `zero` to 0 to 255. All of it rises with x, so the bytes of the ends bound
/// it exactly; and between the cuts it is off by half a step, and the error of the division: of
/// `x / step` the share 2^-24. Columns far from 0 have large quotients.
fn reading(bytes: Option<Bytes>, low: f32, high: f32) -> Reading {
    let x = Interval::new(low.into(), high.into());
    let Some(bytes) = bytes else {
        return Reading { low: Line::SAME, high: Line::SAME, out: x };
    };
    let out = Interval::new(bytes.number(low), bytes.number(high));
    if out.low == out.high {
        return Reading { low: Line::flat(out.low), high: Line::flat(out.low), out };
    }
    let (step, [least, most]) = (bytes.step(), bytes.ends());
    // Beyond the cuts no division counts.
    let size = |x: f64| x.clamp(least - step, most + step).abs();
    let half = bytes.rounding(size(x.low).max(size(x.high)));
    // Cut below it is max(x, least), above min(x, most).
    let high_line = if x.low < least {
        let slope = (x.high.min(most) - least) / (x.high.min(most) - x.low);
        Line { slope, at: least - slope * x.low }
    } else {
        Line::SAME
    };
    let low_line = if x.high > most {
        let from = x.low.max(least);
        let slope = (most - from) / (x.high - from);
        Line { slope, at: most - slope * x.high }
    } else {
        Line::SAME
    };
    let moved = |line: Line, by: f64| Line { at: line.at + by, ..line };
    Reading { low: moved(low_line, -half), high: moved(high_line, half), out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::base::rng::Rng;
    use tamis::infer::quantised::Reading as Unit;

    /// Every float of small boxes, of columns far from 0 too, whose quotients have no digits to spare.
    #[test]
    fn bytes_lie_between_the_lines() {
        let mut rng = Rng::new(1, 0);
        let mut seen = 0;
        for case in 0..3000 {
            let scale = 10.0_f32.powf(4.0 * rng.uniform() - 3.0);
            let far = 10.0_f32.powf(8.5 * rng.uniform());
            let zero = if case % 4 == 0 { 128 } else { (far * (rng.uniform() - 0.5)) as i32 };
            let bytes = Bytes(Unit { scale, zero });
            let byte = 280.0 * f64::from(rng.uniform()) - 12.0;
            let low = (f64::from(scale) * (byte - f64::from(zero))) as f32;
            let mut high = low;
            (0..1 + rng.below(300)).for_each(|_| high = high.next_up());
            let reading = reading(Some(bytes), low, high);
            let mut x = low;
            while x <= high {
                let (number, at) = (bytes.number(x), f64::from(x));
                let of = |line: Line| line.slope * at + line.at;
                let slack = 1e-15 * at.abs();
                assert!(
                    of(reading.low) <= number + slack && number <= of(reading.high) + slack,
                    "{x} {bytes:?}"
                );
                assert!(reading.out.low <= number && number <= reading.out.high);
                x = x.next_up();
                seen += 1;
            }
        }
        assert!(seen > 100_000);
    }
}
