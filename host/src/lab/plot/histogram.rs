//! Histograms of several samples over one axis, as outlines.

use serde::{Deserialize, Serialize};

use super::figures::{Line, Measure, lines};

/// The bins of a histogram: of one width in units of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// The lower end of the first bin.
    pub low: f64,
    /// The upper end of the last one.
    pub high: f64,
    /// How many there are.
    pub count: usize,
    /// Whether they are of one width in logarithms, of numbers above 0.
    pub log: bool,
}

/// A sample, counted in bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Name in the legend.
    pub label: String,
    /// Where the counts lie.
    pub bins: Bins,
    /// Values in each bin.
    pub counts: Vec<u64>,
    /// Values outside the bins, or not finite.
    pub outside: u64,
}

impl Bins {
    /// The bin of a value; the upper end belongs to the last one. None outside.
    fn of(&self, value: f64) -> Option<usize> {
        let scale = |x: f64| if self.log { x.log10() } else { x };
        let [value, low, high] = [value, self.low, self.high].map(scale);
        let place = (value - low) / (high - low) * self.count as f64;
        let is_inside = value >= low && value <= high && place.is_finite();
        is_inside.then(|| (place as usize).min(self.count.saturating_sub(1)))
    }

    /// The lower end of a bin, and of the last one its upper end.
    fn edge(&self, bin: usize) -> f64 {
        let share = bin as f64 / self.count.max(1) as f64;
        if self.log {
            self.low * (self.high / self.low).powf(share)
        } else {
            self.low + (self.high - self.low) * share
        }
    }
}

impl Histogram {
    /// Counts values.
    ///
    /// ```
    /// use tamis_host::lab::plot::{Bins, Histogram};
    /// let bins = Bins { low: 0.0, high: 1.0, count: 4, log: false };
    /// let found = Histogram::of("sample", bins, [0.0, 0.1, 0.5, 1.0, 7.0]);
    /// assert_eq!((found.counts, found.outside), (vec![2, 0, 1, 1], 1));
    /// ```
    #[must_use]
    pub fn of(label: &str, bins: Bins, values: impl IntoIterator<Item = f32>) -> Self {
        let (mut counts, mut outside) = (vec![0; bins.count], 0);
        for value in values {
            match bins.of(value.into()).and_then(|bin| counts.get_mut(bin)) {
                Some(count) => *count += 1,
                None => outside += 1,
            }
        }
        Self { label: label.to_owned(), bins, counts, outside }
    }

    /// The outline in fractions of all values, from the axis up and down to it.
    fn outline(&self) -> Vec<(f64, f64)> {
        let all = self.counts.iter().sum::<u64>() + self.outside;
        let height = |&count: &u64| count as f64 / all.max(1) as f64;
        let mut points = vec![(self.bins.edge(0), 0.0)];
        for (bin, count) in self.counts.iter().enumerate() {
            points.extend([bin, bin + 1].map(|end| (self.bins.edge(end), height(count))));
        }
        points.push((self.bins.edge(self.counts.len()), 0.0));
        points
    }
}

/// Histograms over one axis: the fraction of its values that a sample has in each bin.
///
/// ```
/// use tamis_host::lab::plot::{Bins, Histogram, histograms};
/// let bins = Bins { low: 0.0, high: 1.0, count: 10, log: false };
/// let svg = histograms("Weights", "magnitude", &[Histogram::of("all", bins, [0.25, 0.5])]);
/// assert!(svg.starts_with("<svg") && svg.contains("magnitude"));
/// ```
#[must_use]
pub fn histograms(title: &str, value: &str, samples: &[Histogram]) -> String {
    let is_empty = |sample: &Histogram| sample.counts.iter().all(|&count| count == 0);
    let line = |(colour, sample): (usize, &Histogram)| {
        let points = if is_empty(sample) { Vec::new() } else { sample.outline() };
        let outside = match sample.outside {
            0 => String::new(),
            count => format!(", {count} outside"),
        };
        let label = sample.label.clone() + &outside;
        Line { label, points, colour, dashed: false }
    };
    let outlines: Vec<Line> = samples.iter().enumerate().map(line).collect();
    let x = Measure { name: value, log: samples.iter().any(|sample| sample.bins.log) };
    lines(title, [x, Measure { name: "fraction of the values", log: false }], &outlines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let bins = Bins { low: 1e-4, high: 1.0, count: 8, log: true };
        let values = [0.0, -1.0, 1e-5, 1e-4, 2e-4, 0.5, 1.0, 2.0, f32::NAN, f32::INFINITY];
        let found = Histogram::of("", bins, values);
        // 1e-4 is a little below in single precision.
        assert_eq!(found.counts.iter().sum::<u64>() + found.outside, 10);
        assert_eq!((found.counts[7], found.counts[0]), (2, 1));
        let none = Bins { count: 0, ..bins };
        assert_eq!(Histogram::of("", none, [0.5]).outside, 1);
    }

    #[test]
    fn outlines_are_fractions_at_the_edges() {
        let bins = Bins { low: 0.0, high: 4.0, count: 2, log: false };
        let found = Histogram::of("", bins, [1.0, 1.0, 3.0, 9.0]);
        let wanted = [(0.0, 0.0), (0.0, 0.5), (2.0, 0.5), (2.0, 0.25), (4.0, 0.25), (4.0, 0.0)];
        assert_eq!(found.outline(), wanted);
        let log = Bins { low: 0.01, high: 100.0, count: 4, log: true };
        assert!((log.edge(2) - 1.0).abs() < 1e-12 && log.of(1.0) == Some(2));
    }
}
