//! Means with 95 % confidence intervals by Student's t.

use super::view::number;

/// 97.5 % quantiles of Student's t with 1 to 30 degrees of freedom.
#[rustfmt::skip]
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
    2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
    2.045, 2.042,
];

/// The mean of independent values, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) mean: f64,
    /// Half of the width; infinite of one value.
    pub(super) half: f64,
    /// Values.
    pub(super) count: usize,
}

impl Interval {
    /// None of no values.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = crate::base::statistics::mean(values)?;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let half = match values.len() - 1 {
            0 => f64::INFINITY,
            free => {
                // Beyond the table by its expansion, to 0.001.
                let t = QUANTILES.get(free - 1).copied();
                t.unwrap_or(1.96 + 2.4 / free as f64) * (square / (n - 1.0) / n).sqrt()
            }
        };
        Some(Self { mean, half, count: values.len() })
    }

    pub(super) fn low(&self) -> f64 {
        self.mean - self.half
    }

    pub(super) fn high(&self) -> f64 {
        self.mean + self.half
    }

    /// The mean, and the half width where there is one.
    pub(super) fn text(&self, digits: usize) -> String {
        let half = self.half.is_finite().then(|| format!(" ± {}", number(self.half, digits)));
        number(self.mean, digits) + &half.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_student() {
        let of = |values: &[f64]| Interval::of(values).unwrap();
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(of(&[3.0]).text(1), "3.0");
        // Deviation 1, of three values.
        let three = of(&[1.0, 2.0, 3.0]);
        assert!((three.half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9 && three.mean == 2.0);
        assert_eq!(of(&[1.0, 2.0, 3.0]).text(1), "2.0 ± 2.5");
        let many: Vec<f64> = (0..200).map(|k| f64::from(k % 2)).collect();
        assert!((of(&many).half - 1.972 * 0.5 / 199.0_f64.sqrt()).abs() < 1e-4);
    }
}
