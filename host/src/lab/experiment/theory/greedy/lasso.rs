//! The smooth group lasso of the columns of a matrix, `Σ |u|² / √(|u|² + beta)`.

use faer::{Mat, MatRef};

/// `lambda Σ |u|² / √(|u|² + beta)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lasso {
    pub(super) lambda: f64,
    pub(super) beta: f64,
}

impl Lasso {
    pub(super) const NONE: Self = Self { lambda: 0.0, beta: 1.0 };

    /// Of all columns together.
    pub(super) fn value(&self, u: MatRef<'_, f64>) -> f64 {
        let of = |square: f64| square / (square + self.beta).sqrt();
        self.lambda * u.col_iter().map(|column| of(column.squared_norm_l2())).sum::<f64>()
    }

    /// The gradient of one column of this squared norm is this times the column.
    pub(super) fn slope(&self, square: f64) -> f64 {
        self.lambda * (square + 2.0 * self.beta) / (square + self.beta).powf(1.5)
    }

    /// The same at a column of 0: what its curvature adds to that of the loss.
    pub(super) fn at_zero(&self) -> f64 {
        2.0 * self.lambda / self.beta.sqrt()
    }

    /// Adds the gradient.
    pub(super) fn add_gradient(&self, u: MatRef<'_, f64>, out: &mut Mat<f64>) {
        for (own, out) in u.col_iter().zip(out.col_iter_mut()) {
            let slope = self.slope(own.squared_norm_l2());
            for (out, u) in out.iter_mut().zip(own.iter()) {
                *out += slope * u;
            }
        }
    }

    /// Adds the product of the Hessian with `v`: of a column `slope v + 2 slope' <u, v> u`.
    pub(super) fn add_product(&self, u: MatRef<'_, f64>, v: MatRef<'_, f64>, out: &mut Mat<f64>) {
        for ((own, v), out) in u.col_iter().zip(v.col_iter()).zip(out.col_iter_mut()) {
            let square = own.squared_norm_l2();
            let bend = -self.lambda * (square + 4.0 * self.beta) / (square + self.beta).powf(2.5);
            let along: f64 = own.iter().zip(v.iter()).map(|(u, v)| u * v).sum();
            let slope = self.slope(square);
            for ((out, u), v) in out.iter_mut().zip(own.iter()).zip(v.iter()) {
                *out += slope * v + bend * along * u;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_match_differences() {
        let lasso = Lasso { lambda: 0.7, beta: 0.3 };
        let u = Mat::from_fn(3, 2, |i, j| 0.4 * i as f64 - 0.3 * j as f64 + 0.1);
        let v = Mat::from_fn(3, 2, |i, j| 0.2 * j as f64 - 0.5 * i as f64 + 0.3);
        let step = 1e-5;
        let moved = |by: f64| Mat::from_fn(3, 2, |i, j| u[(i, j)] + by * v[(i, j)]);
        let mut gradient = Mat::zeros(3, 2);
        lasso.add_gradient(u.as_ref(), &mut gradient);
        let along: f64 =
            (0..2).map(|j| (0..3).map(|i| gradient[(i, j)] * v[(i, j)]).sum::<f64>()).sum();
        let difference =
            (lasso.value(moved(step).as_ref()) - lasso.value(moved(-step).as_ref())) / (2.0 * step);
        assert!((along - difference).abs() < 1e-8, "{along} {difference}");
        let mut product = Mat::zeros(3, 2);
        lasso.add_product(u.as_ref(), v.as_ref(), &mut product);
        let [mut above, mut below] = [Mat::zeros(3, 2), Mat::zeros(3, 2)];
        lasso.add_gradient(moved(step).as_ref(), &mut above);
        lasso.add_gradient(moved(-step).as_ref(), &mut below);
        for (i, j) in (0..3).flat_map(|i| [(i, 0), (i, 1)]) {
            let difference = (above[(i, j)] - below[(i, j)]) / (2.0 * step);
            assert!((product[(i, j)] - difference).abs() < 1e-7, "{i} {j}");
        }
        // A column of 0.
        assert!((lasso.slope(0.0) - lasso.at_zero()).abs() < 1e-12);
    }
}
