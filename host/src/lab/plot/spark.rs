//! Curves in one line of text.

/// Most characters that [`sparkline`] returns.
pub const SPARKLINE_WIDTH: usize = 60;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values as a line of bars from the lowest to the highest, at most [`SPARKLINE_WIDTH`]
/// characters: longer series show the mean of equal stretches. A stretch without a finite value is
/// a dot; where all are equal the bars are of middle height.
///
/// Pass logarithms to see a loss that falls over many decades.
///
/// ```
/// assert_eq!(tamis_host::lab::plot::sparkline(&[0.0, 1.0, f32::NAN, 7.0]), "▁▂·█");
/// ```
#[must_use]
pub fn sparkline(values: &[f32]) -> String {
    let width = values.len().min(SPARKLINE_WIDTH);
    let stretch = |i: usize| &values[i * values.len() / width..(i + 1) * values.len() / width];
    let means: Vec<Option<f64>> = (0..width).map(|i| mean(stretch(i))).collect();
    let low = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let high = means.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    means.iter().map(|mean| mean.map_or('·', |mean| bar(mean, low, high))).collect()
}

fn mean(values: &[f32]) -> Option<f64> {
    let finite = || values.iter().filter(|v| v.is_finite()).map(|&v| f64::from(v));
    let count = finite().count();
    (count > 0).then(|| finite().sum::<f64>() / count as f64)
}

fn bar(value: f64, low: f64, high: f64) -> char {
    let top = BARS.len() - 1;
    if high > low {
        BARS[((value - low) / (high - low) * top as f64).round() as usize]
    } else {
        BARS[top / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_fits_in_a_line() {
        for len in (0..200).chain([100_000]) {
            let line = sparkline(&(0..len).map(|i| i as f32).collect::<Vec<f32>>());
            assert_eq!(line.chars().count(), len.min(SPARKLINE_WIDTH), "{len} values");
            assert!(line.chars().is_sorted(), "{line}");
        }
    }

    #[test]
    fn what_is_not_finite_is_a_dot() {
        assert_eq!(sparkline(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]), "···");
        assert_eq!(sparkline(&[f32::MAX, f32::NAN, -f32::MAX]), "█·▁");
        assert_eq!(sparkline(&[5.0; 3]), "▄▄▄");
        assert_eq!(sparkline(&[]), "");
    }
}
