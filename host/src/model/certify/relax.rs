//! Linear bounds of what one neuron does, of one network and of the difference of two.
//!
//! With `a`, `b` the sums of neuron j in both networks and `d = b - a`, known to lie in intervals:
//! a single activation has a line above and a line below (CROWN, Zhang et al. 2018), and
//! `D = act(b) - act(a)` has lines in `d`: `min(d, 0) <= D <= max(d, 0)`, since relu neither falls
//! nor rises faster than its input (`ReluDiff`, Paulsen et al. 2020).

/// The numbers from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    pub(super) fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// The largest absolute value.
    pub(super) fn size(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The most of `factor` times a number of the interval.
    pub(super) fn most(self, factor: f64) -> f64 {
        factor * if factor > 0.0 { self.high } else { self.low }
    }

    /// Both intervals hold the number.
    pub(super) fn meet(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { low: self.low - other.high, high: self.high - other.low }
    }

    /// Wider by what a few roundings of 64-bit floats may have taken off, and by `more`.
    pub(super) fn outward(self, more: f64) -> Self {
        let more = more + self.size() * 32.0 * f64::EPSILON;
        Self { low: self.low - more, high: self.high + more }
    }
}

/// `slope * z + at`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) at: f64,
}

impl Line {
    pub(super) const SAME: Self = Self { slope: 1.0, at: 0.0 };
    pub(super) const ZERO: Self = Self { slope: 0.0, at: 0.0 };

    pub(super) fn flat(at: f64) -> Self {
        Self { slope: 0.0, at }
    }

    fn through(x: f64, y: f64, slope: f64) -> Self {
        Self { slope, at: y - slope * x }
    }

    /// The values over an interval.
    fn over(self, z: Interval) -> Interval {
        let (first, last) = (self.slope * z.low + self.at, self.slope * z.high + self.at);
        Interval { low: first.min(last), high: first.max(last) }
    }
}

/// A line below and a line above, and how far each may be from what it bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lines {
    pub(super) low: Line,
    pub(super) high: Line,
    pub(super) low_gap: f64,
    pub(super) high_gap: f64,
}

impl Lines {
    const fn exact(line: Line) -> Self {
        Self { low: line, high: line, low_gap: 0.0, high_gap: 0.0 }
    }

    /// The line above `factor` times what is bounded is `factor` times this line.
    pub(super) fn side(&self, factor: f64) -> Line {
        if factor > 0.0 { self.high } else { self.low }
    }

    /// How far `factor` times that line may be off.
    pub(super) fn gap(&self, factor: f64) -> f64 {
        factor.abs() * if factor > 0.0 { self.high_gap } else { self.low_gap }
    }

    /// What is bounded, over an interval.
    pub(super) fn values(&self, z: Interval) -> Interval {
        Interval { low: self.low.over(z).low, high: self.high.over(z).high }
    }

    /// `relu(z)`.
    pub(super) fn relu(z: Interval) -> Self {
        match z {
            Interval { high, .. } if high <= 0.0 => Self::exact(Line::ZERO),
            Interval { low, .. } if low >= 0.0 => Self::exact(Line::SAME),
            Interval { low, high } => {
                let slope = high / (high - low);
                Self {
                    low: if high > -low { Line::SAME } else { Line::ZERO },
                    high: Line::through(low, 0.0, slope),
                    low_gap: high.min(-low),
                    high_gap: -slope * low,
                }
            }
        }
    }

    /// `relu(z - cap)`: what a cut takes off.
    fn cut(z: Interval, cap: f64) -> Self {
        if z.high <= cap {
            return Self::exact(Line::ZERO);
        }
        let moved = |line: Line| Line { at: line.at - line.slope * cap, ..line };
        let lines = Self::relu(Interval::new(z.low - cap, z.high - cap));
        Self { low: moved(lines.low), high: moved(lines.high), ..lines }
    }

    /// `min(relu(z), cap)`.
    pub(super) fn capped(z: Interval, cap: f64) -> Self {
        let Interval { low, high } = z;
        if high <= cap || high <= 0.0 {
            return Self::relu(z);
        }
        if low >= cap {
            return Self::exact(Line::flat(cap));
        }
        let above = if low < 0.0 {
            Line::through(low, 0.0, cap / (cap - low))
        } else if cap - low > high - cap {
            Line::SAME
        } else {
            Line::flat(cap)
        };
        let from = low.max(0.0);
        let slope = (cap - from) / (high - from);
        let below = if high > -low { Line::through(from, from, slope) } else { Line::ZERO };
        let gap = |line: Line| (line.over(z).high - line.over(z).low).abs().max(cap);
        Self { low: below, high: above, low_gap: gap(below), high_gap: gap(above) }
    }

    /// The difference of two relu, or of two identities, in terms of the difference of the sums.
    fn difference(relu: bool, a: Interval, b: Interval, d: Interval) -> Self {
        let are_active = a.low >= 0.0 && b.low >= 0.0;
        if !relu || are_active {
            return Self::exact(Line::SAME);
        }
        if a.high <= 0.0 && b.high <= 0.0 {
            return Self::exact(Line::ZERO);
        }
        let width = d.high - d.low;
        // Where a is active D = max(d, -a), where b is D = min(d, b).
        let low = if a.high <= 0.0 || d.low >= 0.0 {
            Line::ZERO
        } else if d.high <= 0.0 || a.low >= 0.0 {
            Line::SAME
        } else {
            Line::through(d.high, 0.0, -d.low / width)
        };
        let high = if b.high <= 0.0 || d.high <= 0.0 {
            Line::ZERO
        } else if d.low >= 0.0 || b.low >= 0.0 {
            Line::SAME
        } else {
            Line::through(d.low, 0.0, d.high / width)
        };
        Self { low, high, low_gap: d.size(), high_gap: d.size() }
    }
}

/// One neuron of both networks on a box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neuron {
    /// The sums, and their difference.
    pub(super) a: Interval,
    pub(super) b: Interval,
    pub(super) d: Interval,
    /// Both networks have the same numbers here.
    is_same: bool,
    /// What the activation makes of each sum, before it is rounded.
    lines_a: Lines,
    lines_b: Lines,
    /// The difference of the activations without cuts; none where they are of different kinds.
    lines_d: Option<Lines>,
    /// What cuts take off.
    cut_a: Lines,
    cut_b: Lines,
    /// What rounding behind the activation may change.
    pub(super) half_a: f64,
    pub(super) half_b: f64,
    /// What comes out.
    pub(super) out_a: Interval,
    pub(super) out_b: Interval,
    pub(super) out_d: Interval,
}

/// The activation of a neuron of one network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activation {
    pub(super) relu: bool,
    pub(super) cap: f64,
    /// What rounding behind it may change.
    pub(super) half: f64,
}

impl Activation {
    fn lines(self, z: Interval) -> Lines {
        if self.relu { Lines::capped(z, self.cap) } else { Lines::exact(Line::SAME) }
    }

    /// Rounding decides nothing where relu or a cut does.
    fn rounding(self, z: Interval) -> f64 {
        let is_fixed = self.relu && (z.high <= 0.0 || z.low >= self.cap);
        if is_fixed { 0.0 } else { self.half }
    }

    /// What comes out of sums in an interval.
    fn out(self, z: Interval) -> Interval {
        if !self.relu {
            return z.outward(self.half);
        }
        let cut = |z: f64| z.max(0.0).min(self.cap);
        let out = Interval::new(cut(z.low), cut(z.high)).outward(self.rounding(z));
        Interval::new(out.low.max(0.0), out.high)
    }
}

/// Which lines bound a neuron of two networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ways {
    /// Those of each network by itself: joint CROWN.
    Apart,
    /// Whichever are the least loose.
    Least,
}

/// Coefficients of the numbers of a neuron in a linear form: of what comes out of it, or of its
/// sums.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    pub(super) a: f64,
    pub(super) b: f64,
}

/// What [`Neuron::above`] makes of a weight of what comes out: a weight of the sums, a constant, and
/// what rounding in here may have changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) weight: Weight,
    pub(super) constant: f64,
    pub(super) slack: f64,
}

impl Neuron {
    /// A neuron whose sums lie in these intervals.
    pub(super) fn new(
        sums: [Interval; 3],
        activation_a: Activation,
        activation_b: Activation,
    ) -> Self {
        let [a, b, d] = sums;
        let relu = activation_a.relu;
        let lines_d = (relu == activation_b.relu).then(|| Lines::difference(relu, a, b, d));
        let cut = |activation: Activation, z| match activation.relu {
            true => Lines::cut(z, activation.cap),
            false => Lines::exact(Line::ZERO),
        };
        let (cut_a, cut_b) = (cut(activation_a, a), cut(activation_b, b));
        let (half_a, half_b) = (activation_a.rounding(a), activation_b.rounding(b));
        let (out_a, out_b) = (activation_a.out(a), activation_b.out(b));
        let mut out_d = out_b.minus(out_a).outward(0.0);
        if let Some(lines) = &lines_d {
            let (over_a, over_b) = (cut_a.values(a), cut_b.values(b));
            let (over_a, over_b) = (
                Interval::new(over_a.low.max(0.0), over_a.high.max(0.0)),
                Interval::new(over_b.low.max(0.0), over_b.high.max(0.0)),
            );
            let between = match relu {
                true => lines.values(d).meet(Interval::new(d.low.min(0.0), d.high.max(0.0))),
                false => d,
            };
            let size = a.size() + b.size();
            let slack = half_a + half_b + size * 64.0 * f64::EPSILON;
            out_d = out_d.meet(between.minus(over_b).plus(over_a).outward(slack));
        }
        Self {
            a,
            b,
            d,
            is_same: false,
            lines_a: activation_a.lines(a),
            lines_b: activation_b.lines(b),
            lines_d,
            cut_a,
            cut_b,
            half_a,
            half_b,
            out_a,
            out_b,
            out_d,
        }
    }

    /// One that has the same numbers in both networks.
    pub(super) fn same(sum: Interval, activation: Activation) -> Self {
        let zero = Interval::new(0.0, 0.0);
        let neuron = Self::new([sum, sum, zero], activation, activation);
        Self { is_same: true, out_d: zero, ..neuron }
    }

    /// The weight itself, or as one of the first network alone where both are the same.
    fn joined(&self, weight: Weight) -> Weight {
        if self.is_same { Weight { a: weight.a + weight.b, b: 0.0 } } else { weight }
    }

    /// The most that a weighted sum of what comes out can be.
    pub(super) fn most(&self, weight: Weight, ways: Ways) -> f64 {
        let Weight { a, b } = self.joined(weight);
        let apart = self.out_a.most(a) + self.out_b.most(b);
        let by_a = self.out_d.most(b) + self.out_a.most(a + b);
        let by_b = self.out_d.most(-a) + self.out_b.most(a + b);
        let least = match ways {
            Ways::Apart => apart,
            Ways::Least => apart.min(by_a).min(by_b),
        };
        least + 16.0 * f64::EPSILON * self.out_size(weight)
    }

    /// The largest numbers that come out.
    pub(super) fn out_size(&self, weight: Weight) -> f64 {
        weight.a.abs() * self.out_a.size() + weight.b.abs() * self.out_b.size()
    }

    /// A weighted sum of the sums, and a constant, that is nowhere below a weighted sum of what comes
    /// out: by lines for each network, or by those of the difference beside one of the networks.
    pub(super) fn above(&self, weight: Weight, ways: Ways) -> Step {
        let Weight { a, b } = self.joined(weight);
        let both = a + b;
        let mut step = Step { weight: Weight::default(), constant: 0.0, slack: 0.0 };
        let cost = self.lines_a.gap(a) + self.lines_b.gap(b);
        let by = |d: f64, rest: f64, lines: &Lines| match &self.lines_d {
            Some(of) => {
                let cuts = self.cut_a.gap(d) + self.cut_b.gap(-d);
                of.gap(d) + lines.gap(rest) + cuts
            }
            None => f64::INFINITY,
        };
        let (by_a, by_b) = (by(b, both, &self.lines_a), by(-a, both, &self.lines_b));
        match &self.lines_d {
            Some(lines) if ways != Ways::Apart && by_a.min(by_b) < cost => {
                let is_a = by_a <= by_b;
                let d = if is_a { b } else { -a };
                step.add_difference(lines.side(d), d);
                step.add_b(self.cut_b.side(-d), -d);
                step.add_a(self.cut_a.side(d), d);
                if is_a {
                    step.add_a(self.lines_a.side(both), both);
                } else {
                    step.add_b(self.lines_b.side(both), both);
                }
            }
            _ => {
                step.add_a(self.lines_a.side(a), a);
                step.add_b(self.lines_b.side(b), b);
            }
        }
        step.constant += a.abs() * self.half_a + b.abs() * self.half_b;
        let size = self.a.size() + self.b.size() + self.d.size() + self.half_a + self.half_b;
        step.slack = 128.0 * f64::EPSILON * (weight.a.abs() + weight.b.abs()) * size;
        step
    }
}

impl Step {
    fn add_a(&mut self, line: Line, factor: f64) {
        self.weight.a += factor * line.slope;
        self.constant += factor * line.at;
    }

    fn add_b(&mut self, line: Line, factor: f64) {
        self.weight.b += factor * line.slope;
        self.constant += factor * line.at;
    }

    fn add_difference(&mut self, line: Line, factor: f64) {
        self.weight.b += factor * line.slope;
        self.weight.a -= factor * line.slope;
        self.constant += factor * line.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::base::rng::Rng;

    /// What an activation gives for a sum, without rounding.
    fn act(of: Activation, z: f64) -> f64 {
        if of.relu { z.max(0.0).min(of.cap) } else { z }
    }

    #[test]
    fn lines_are_above_every_pair_of_sums() {
        let mut rng = Rng::new(1, 0);
        let mut random = |scale: f64| scale * f64::from(rng.normal());
        let mut gaps = [0.0; 2];
        for case in 0..4000 {
            let (a, d) = (random(2.0), random([0.1, 2.0][case % 2]));
            let (width_a, width_d) = (random(1.0).abs(), random([0.1, 2.0][case / 2 % 2]).abs());
            let a = Interval::new(a - width_a, a + width_a);
            let d = Interval::new(d - width_d, d + width_d);
            let cap = |k: usize| if case % k == 0 { 1.5 } else { f64::INFINITY };
            let activation = |relu: bool, cap: f64| Activation { relu, cap, half: 0.0 };
            let of_a = activation(case % 11 > 1, cap(3));
            let of_b = activation(case % 13 > 1, cap(5));
            let neuron = Neuron::new([a, a.plus(d), d], of_a, of_b);
            let weight = match case % 3 {
                0 => Weight { a: random(1.0), b: random(1.0) },
                1 => Weight { a: 1.0, b: -0.9 },
                _ => Weight { a: -0.9, b: 1.0 },
            };
            for (place, ways) in [Ways::Apart, Ways::Least].into_iter().enumerate() {
                let (step, most) = (neuron.above(weight, ways), neuron.most(weight, ways));
                for k in 0..64 {
                    let at = |of: Interval, k: usize| of.low + (of.high - of.low) * k as f64 / 7.0;
                    let (sum_a, change) = (at(a, k % 8), at(d, k / 8));
                    let sum_b = sum_a + change;
                    let (out_a, out_b) = (act(of_a, sum_a), act(of_b, sum_b));
                    let value = weight.a * out_a + weight.b * out_b;
                    let line = step.weight.a * sum_a + step.weight.b * sum_b + step.constant;
                    assert!(line >= value - 1e-12, "{case} {ways:?} {neuron:?} {weight:?}");
                    assert!(most >= value - 1e-12, "{case} {ways:?} {neuron:?} {weight:?}");
                    gaps[place] += line - value;
                    let out_d = neuron.out_d;
                    let is_inside = |d: f64| out_d.low - 1e-12 <= d && d <= out_d.high + 1e-12;
                    assert!(is_inside(out_b - out_a), "{case} {neuron:?}");
                }
            }
        }
        assert!(gaps[1] < gaps[0], "differences are tighter on the whole: {gaps:?}");
    }
}
