//! What every matrix that a reader gives must satisfy.

use tamis_host::data::{Matrix, Values};

/// Panics unless the shape fits the values and all are finite.
pub fn check(matrix: &Matrix) {
    assert!(matrix.rows > 0 && matrix.cols > 0);
    assert_eq!(matrix.rows * matrix.cols, matrix.values.len());
    if let Values::F32(values) = &matrix.values {
        assert!(values.iter().all(|v| v.is_finite()));
    }
}
