//! The median, the mean and the line of least squares, none of no values; the mean square, 0 of none.

/// Of two in the middle the mean.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| 0.5 * (values[(n - 1) / 2] + values[n / 2]))
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of single precision, in double.
pub(crate) fn mean_square(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / values.len().max(1) as f64
}

/// The line of least squares through points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LeastSquares {
    pub(crate) slope: f64,
    /// r², the fraction of the variance of y that the line explains.
    pub(crate) r_squared: f64,
}

impl LeastSquares {
    /// The line through points `[x, y]`; none where all have one x.
    pub(crate) fn through(points: &[[f64; 2]]) -> Option<Self> {
        let column = |k: usize| points.iter().map(|point| point[k]).collect::<Vec<f64>>();
        let (x, y) = (mean(&column(0))?, mean(&column(1))?);
        let moment = |of: fn(f64, f64) -> f64| {
            points.iter().map(|point| of(point[0] - x, point[1] - y)).sum::<f64>()
        };
        let (xx, xy, yy) = (moment(|x, _| x * x), moment(|x, y| x * y), moment(|_, y| y * y));
        let r_squared = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
        (xx > 0.0).then(|| Self { slope: xy / xx, r_squared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![5.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![5.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!((median(vec![7.0]), median(vec![])), (Some(7.0), None));
        assert_eq!((mean(&[1.0, 3.0]), mean(&[])), (Some(2.0), None));
        assert_eq!((mean_square(&[1.0, -3.0]), mean_square(&[])), (5.0, 0.0));
    }

    #[test]
    fn lines_have_least_squares() {
        let exact = LeastSquares::through(&[[1.0, 5.0], [2.0, 3.0], [4.0, -1.0]]).unwrap();
        assert!((exact.slope + 2.0).abs() < 1e-12 && (exact.r_squared - 1.0).abs() < 1e-12);
        let bent = LeastSquares::through(&[[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]).unwrap();
        assert_eq!((bent.slope, bent.r_squared), (0.0, 0.0));
        let flat = LeastSquares::through(&[[0.0, 3.0], [1.0, 3.0]]).unwrap();
        assert_eq!((flat.slope, flat.r_squared), (0.0, 1.0));
        assert_eq!(LeastSquares::through(&[[1.0, 2.0], [1.0, 3.0]]), None);
        assert_eq!(LeastSquares::through(&[]), None);
    }
}
