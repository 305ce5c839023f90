//! Axes: which range to show, where the ticks go and what they say.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// Letters that fit under a figure.
const MOST_LETTERS: usize = 48;

/// A range and labelled ticks in units of the drawing, logarithms on a logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<(f64, String)>,
    /// Whether the units of the drawing are logarithms.
    pub(super) log: bool,
}

impl Axis {
    /// A linear axis that holds every finite value, with a margin.
    pub(super) fn linear(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        let (low, high) = widen(low, high);
        let margin = 0.05 * (high - low);
        Self::new(name, low - margin, high + margin, roomy_ticks(low - margin, high + margin, 0.0))
    }

    /// An axis of whole numbers. Far from 0 it is as wide as its labels need to differ.
    pub(super) fn count(name: &str, values: impl Iterator<Item = usize>) -> Self {
        let (low, high) = range(values.map(|v| v as f64)).unwrap_or((0.0, 1.0));
        let high = high.max(low + 1.0).max(1.002 * low);
        let margin = 0.03 * (high - low);
        Self::new(name, low - margin, high + margin, roomy_ticks(low, high, 1.0))
    }

    /// A logarithmic axis of all positive values, with a line for 0 below where there are others.
    pub(super) fn log(name: &str, values: impl Iterator<Item = f64> + Clone) -> Self {
        let has_zero = values.clone().any(|v| v <= 0.0 && v.is_finite());
        let logs = values.filter(|&v| v > 0.0).map(f64::log10);
        let (low, high) = range(logs).unwrap_or((-1.0, 0.0));
        let (low, high) = if high - low < 0.02 { (low - 0.1, high + 0.1) } else { (low, high) };
        let margin = 0.05 * (high - low);
        let (bottom, top) = (low - margin, high + margin);
        let mut axis = Self { log: true, ..Self::new(name, bottom, top, log_ticks(bottom, top)) };
        if has_zero {
            let below = 0.12 * (top - bottom);
            axis.ticks.push((bottom - below, "0".to_owned()));
            axis.low -= 1.4 * below;
        }
        axis
    }

    /// Where a value lies, 0 and less on the line marked 0; none where it is not finite.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        match value {
            v if !(v as f32).is_finite() => None,
            v if !self.log => Some(v),
            v if v > 0.0 => Some(v.log10()),
            _ => self.ticks.iter().find(|(_, label)| label == "0").map(|&(at, _)| at),
        }
    }

    fn new(name: &str, low: f64, high: f64, ticks: Vec<(f64, String)>) -> Self {
        Self { name: name.to_owned(), low, high, ticks, log: false }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        (f64::from(from) + share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light lines are those between the ticks; there are none.
        let ticks = self.ticks.iter().filter(|_| !hint.weight().allow_light_points());
        ticks.map(|(at, _)| *at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, at: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == at);
        tick.map_or(String::new(), |(_, label)| label.clone())
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let ranges = values.filter(|v| v.is_finite()).map(|v| (v, v));
    ranges.reduce(|range, v| (range.0.min(v.0), range.1.max(v.1)))
}

/// A range wide enough for its ticks to differ in four digits.
fn widen(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    let least = if size > 0.0 { 2e-3 * size } else { 2.0 };
    if high - low >= least {
        return (low, high);
    }
    let middle = 0.5 * (low + high);
    (middle - 0.5 * least, middle + 0.5 * least)
}

/// Ticks whose labels can stand beside each other under a figure, no closer than `least`.
fn roomy_ticks(low: f64, high: f64, least: f64) -> Vec<(f64, String)> {
    let letters =
        |ticks: &[(f64, String)]| ticks.iter().map(|(_, l)| l.chars().count() + 2).sum::<usize>();
    let mut choices = [6, 4, 3].into_iter().map(|most| linear_ticks(low, high, least, most));
    let roomy = choices.find(|ticks| letters(ticks) <= MOST_LETTERS);
    roomy.unwrap_or_else(|| linear_ticks(low, high, least, 2))
}

/// About `most` multiples of 1, 2 or 5 times a power of ten, no closer than `least`.
fn linear_ticks(low: f64, high: f64, least: f64, most: usize) -> Vec<(f64, String)> {
    let step = nice_step(((high - low) / most as f64).max(least));
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    let largest = step * first.abs().max(last.abs()) as f64;
    (first..=last).map(|i| (i as f64 * step, number(i as f64 * step, step, largest))).collect()
}

/// The least of 1, 2, 5 times a power of ten that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10.0_f64.powf(least.log10().floor());
    let mut steps = [1.0, 2.0, 5.0].into_iter().map(|mantissa| mantissa * power);
    steps.find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// Powers of ten, over few decades with 2 and 5 times them, linear over less than one.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    if high - low < 1.0 {
        let linear = linear_ticks(10.0_f64.powf(low), 10.0_f64.powf(high), 0.0, 6);
        return linear.into_iter().map(|(at, label)| (at.log10(), label)).collect();
    }
    let (first, last) = (low.floor() as i32, high.floor() as i32);
    let mantissas: &[u8] = if high - low < 2.0 { &[1, 2, 5] } else { &[1] };
    let stride = (last - first) / 7 + 1;
    let plain = first >= -4 && last <= 4;
    let decades = (first..=last).filter(|decade| decade % stride == 0);
    let tick = |decade: i32, mantissa: u8| {
        let at = f64::from(decade) + f64::from(mantissa).log10();
        (low..=high).contains(&at).then(|| (at, power(mantissa, decade, plain)))
    };
    decades.flat_map(|decade| mantissas.iter().filter_map(move |&m| tick(decade, m))).collect()
}

/// `mantissa · 10^exponent` in words of the axis.
fn power(mantissa: u8, exponent: i32, plain: bool) -> String {
    match (plain, mantissa) {
        (true, _) => {
            let value = f64::from(mantissa) * 10.0_f64.powi(exponent);
            format!("{value:.*}", (-exponent).max(0) as usize)
        }
        (false, 1) => format!("10{}", superscript(exponent)),
        (false, _) => format!("{mantissa}×10{}", superscript(exponent)),
    }
}

/// A tick of a linear axis whose step is `step` and whose largest tick is `largest`.
fn number(value: f64, step: f64, largest: f64) -> String {
    let digits = step.log10().floor();
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = if (-3.0..=0.0).contains(&digits) && largest < 1e5 || digits > 0.0 && largest < 1e6 {
        format!("{value:.*}", (-digits).max(0.0) as usize)
    } else {
        // One exponent for the whole axis, so that the mantissas can be compared.
        let exponent = largest.log10().floor();
        let (mantissa, raised) = (value / 10.0_f64.powf(exponent), superscript(exponent as i32));
        format!("{mantissa:.*}×10{raised}", (exponent - digits).max(0.0) as usize)
    };
    // The sign that is as wide as a digit.
    text.replace('-', "−")
}

fn superscript(exponent: i32) -> String {
    let raise = |c: char| c.to_digit(10).and_then(|d| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(d as usize));
    exponent.to_string().chars().map(|c| raise(c).unwrap_or('⁻')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn values_lie_at_the_ticks_that_name_them() {
        let values = || [0.0, 20.0, 100.0, 40.0].into_iter();
        for axis in [
            Axis::linear("", values()),
            Axis::log("", values()),
            Axis::count("", values().map(|v| v as usize)),
        ] {
            let named =
                axis.ticks.iter().filter_map(|(at, label)| Some((*at, label.parse::<f64>().ok()?)));
            let named: Vec<(f64, f64)> = named.collect();
            assert!(named.len() >= 3, "{axis:?}");
            for (at, value) in named {
                assert!((axis.place(value).unwrap() - at).abs() < 1e-6, "{value}: {axis:?}");
            }
        }
        assert_eq!(Axis::linear("", values()).place(f64::NAN), None);
    }

    #[test]
    fn linear_ticks_are_round_numbers() {
        assert_eq!(labels(&linear_ticks(-1.2, 1.1, 0.0, 6)), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(
            labels(&linear_ticks(0.0, 52_000.0, 0.0, 6)),
            ["0", "10000", "20000", "30000", "40000", "50000"]
        );
        assert_eq!(labels(&linear_ticks(0.0, 2.5e-7, 0.0, 3)), ["0", "1×10⁻⁷", "2×10⁻⁷"]);
        assert_eq!(
            labels(&linear_ticks(9.99e6, 1.001e7, 0.0, 2)),
            ["0.999×10⁷", "1.000×10⁷", "1.001×10⁷"]
        );
    }

    #[test]
    fn log_ticks_thin_out_over_many_decades() {
        assert_eq!(labels(&log_ticks(-2.1, 1.2)), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(&log_ticks(-0.5, 0.8)), ["0.5", "1", "2", "5"]);
        assert_eq!(labels(&log_ticks(-13.0, 1.0)), ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "10⁰"]);
        assert_eq!(labels(&log_ticks(0.0, 0.5)), ["1.0", "1.5", "2.0", "2.5", "3.0"]);
    }

    #[test]
    fn ticks_are_few_distinct_and_within_range() {
        let sizes = [0.0, 1e-45, 1e-38, 1e-7, 0.3, 1.0, 1.000_000_1, 99.0, 16_777_216.0, f32::MAX];
        let signed = || sizes.into_iter().chain(sizes.map(|s| -s));
        for (a, b) in signed().flat_map(|a| signed().map(move |b| (a, b))) {
            let whole = |v: f32| v.abs().min(1e18) as usize;
            let axes = [
                Axis::linear("", [a, b].map(f64::from).into_iter()),
                Axis::log("", [a, b].map(f64::from).into_iter()),
                Axis::log("", [a, b].map(|v| f64::from(v.abs())).into_iter()),
                Axis::count("", [whole(a), whole(b)].into_iter()),
            ];
            for axis in axes {
                assert!(
                    axis.low < axis.high && (axis.high - axis.low).is_finite(),
                    "{a} {b}: {axis:?}"
                );
                assert!((1..=10).contains(&axis.ticks.len()), "{a} {b}: {axis:?}");
                assert!(
                    axis.ticks.iter().all(|(at, _)| (axis.low..=axis.high).contains(at)),
                    "{a} {b}: {axis:?}"
                );
                assert!(
                    axis.ticks.iter().all(|(_, label)| label.chars().count() <= 13),
                    "{a} {b}: {axis:?}"
                );
                let letters: usize =
                    labels(&axis.ticks).iter().map(|l| l.chars().count() + 2).sum();
                assert!(letters <= 60, "{a} {b}: {axis:?}");
                let mut names = labels(&axis.ticks);
                names.sort_unstable();
                assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{a} {b}: {axis:?}");
            }
        }
    }

    #[test]
    fn an_axis_without_values_still_has_ticks() {
        for axis in [Axis::linear("", [f64::NAN].into_iter()), Axis::log("", std::iter::empty())] {
            assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{axis:?}");
        }
        assert!(Axis::count("", std::iter::empty()).ticks.len() == 2);
    }

    #[test]
    fn log_axis_places_zero_lowest_and_omits_infinity() {
        let axis = Axis::log("", [1e-3, 0.0, 10.0].into_iter());
        assert!(axis.place(0.0).unwrap() < axis.place(1e-3).unwrap());
        assert_eq!(axis.place(-1.0), axis.place(0.0));
        assert_eq!((axis.place(f64::NAN), axis.place(f64::INFINITY)), (None, None));
        assert_eq!(axis.place(100.0), Some(2.0));
    }
}
