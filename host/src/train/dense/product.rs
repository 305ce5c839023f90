//! Matrix products on slices, on one thread: what runs in parallel are the groups of rows.

/// A matrix that lies row by row without gaps, or its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    /// Steps from one row to the next and from one column to the next.
    steps: [isize; 2],
}

impl<'a> Mat<'a> {
    /// `rows`×`cols` numbers, row by row.
    pub(crate) fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(
            Some(data.len()),
            rows.checked_mul(cols),
            "numbers of a matrix of {rows}×{cols}"
        );
        Self { data, rows, cols, steps: [cols as isize, 1] }
    }

    /// The transpose, in place.
    pub(crate) fn t(self) -> Self {
        let [down, along] = self.steps;
        Self { rows: self.cols, cols: self.rows, steps: [along, down], ..self }
    }
}

/// `out = scale a b`, row by row; with `add`, `out += scale a b`.
pub(crate) fn product(out: &mut [f32], add: bool, scale: f32, a: Mat<'_>, b: Mat<'_>) {
    assert_eq!(a.cols, b.rows, "columns of the left factor");
    assert_eq!(Some(out.len()), a.rows.checked_mul(b.cols), "numbers of the product");
    // The kernels go down the columns of the result, so they make its transpose.
    let (left, right) = if b.cols > 1 { (b.t(), a.t()) } else { (a, b) };
    // SAFETY: each matrix has exactly rows × cols numbers (asserted here and in `Mat::new`), and
    // the strides reach each of them once; `out` is borrowed alone.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            left.rows,
            right.cols,
            left.cols,
            out.as_mut_ptr(),
            b.cols as isize,
            1,
            add,
            left.data.as_ptr(),
            left.steps[1],
            left.steps[0],
            right.data.as_ptr(),
            right.steps[1],
            right.steps[0],
            1.0,
            scale,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let a: Vec<f32> = (0..7 * 5).map(|i| (i % 11) as f32 - 4.0).collect();
        let b: Vec<f32> = (0..5 * 3).map(|i| (i % 7) as f32 - 2.0).collect();
        let mut out = vec![1.0; 7 * 3];
        product(&mut out, true, -0.5, Mat::new(&a, 7, 5), Mat::new(&b, 5, 3));
        let mut turned = vec![f32::NAN; 3 * 7];
        product(&mut turned, false, 2.0, Mat::new(&b, 5, 3).t(), Mat::new(&a, 7, 5).t());
        for i in 0..7 {
            for k in 0..3 {
                let sum: f32 = (0..5).map(|j| a[i * 5 + j] * b[j * 3 + k]).sum();
                assert_eq!((out[i * 3 + k], turned[k * 7 + i]), (1.0 - 0.5 * sum, 2.0 * sum));
            }
        }
        // One column.
        let mut column = vec![0.0; 7];
        product(&mut column, false, 1.0, Mat::new(&a, 7, 5), Mat::new(&b[..5], 5, 1));
        for (i, got) in column.iter().enumerate() {
            assert_eq!(*got, (0..5).map(|j| a[i * 5 + j] * b[j]).sum::<f32>());
        }
    }
}
