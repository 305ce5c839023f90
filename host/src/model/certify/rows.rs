//! The weights of one layer in 64-bit floats, row after row.

/// Rows of a matrix, dense where that is the faster form.
#[derive(Debug, Clone)]
pub(super) enum Rows {
    /// Every weight.
    Dense {
        /// Columns.
        width: usize,
        /// `rows * width` numbers.
        values: Vec<f64>,
    },
    /// Nonzeros only.
    Sparse {
        /// The first entry of each row, and the end of the last.
        starts: Vec<usize>,
        /// The column of each entry.
        columns: Vec<u32>,
        /// The value of each entry.
        values: Vec<f64>,
    },
}

/// A nonzero of a row under construction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) column: u32,
    pub(super) value: f64,
}

impl Rows {
    /// These rows over `width` columns; dense from a density of 1/3 on.
    pub(super) fn new(rows: &[Vec<Entry>], width: usize) -> Self {
        let entries: usize = rows.iter().map(Vec::len).sum();
        if 3 * entries >= rows.len() * width {
            let mut values = vec![0.0; rows.len() * width];
            for (row, out) in rows.iter().zip(values.chunks_mut(width.max(1))) {
                row.iter().for_each(|entry| out[entry.column as usize] += entry.value);
            }
            return Self::Dense { width, values };
        }
        let mut starts = vec![0];
        for row in rows {
            starts.push(starts[starts.len() - 1] + row.len());
        }
        let all = || rows.iter().flatten();
        Self::Sparse {
            starts,
            columns: all().map(|entry| entry.column).collect(),
            values: all().map(|entry| entry.value).collect(),
        }
    }

    /// `out += factor * row`
    pub(super) fn add(&self, row: usize, factor: f64, out: &mut [f64]) {
        match self {
            Self::Dense { width, values } => {
                let values = &values[row * width..(row + 1) * width];
                out.iter_mut().zip(values).for_each(|(out, value)| *out += factor * value);
            }
            Self::Sparse { starts, columns, values } => {
                let range = starts[row]..starts[row + 1];
                for (&column, value) in columns[range.clone()].iter().zip(&values[range]) {
                    out[column as usize] += factor * value;
                }
            }
        }
    }

    /// Calls `entry` with the column and the value of each entry of a row.
    pub(super) fn each(&self, row: usize, mut entry: impl FnMut(usize, f64)) {
        match self {
            Self::Dense { width, values } => {
                let values = &values[row * width..(row + 1) * width];
                values.iter().enumerate().for_each(|(column, &value)| entry(column, value));
            }
            Self::Sparse { starts, columns, values } => {
                let range = starts[row]..starts[row + 1];
                let entries = columns[range.clone()].iter().zip(&values[range]);
                entries.for_each(|(&column, &value)| entry(column as usize, value));
            }
        }
    }

    /// The product of a row and `x`.
    pub(super) fn dot(&self, row: usize, x: &[f64]) -> f64 {
        self.fold(row, x, |value, x| value * x)
    }

    /// `sum_k |w_k| x_k`
    pub(super) fn mass(&self, row: usize, x: &[f64]) -> f64 {
        self.fold(row, x, |value, x| value.abs() * x)
    }

    fn fold(&self, row: usize, x: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
        match self {
            Self::Dense { width, values } => {
                let values = &values[row * width..(row + 1) * width];
                let (mut sums, chunks) = ([0.0; 4], values.chunks_exact(4));
                let last = chunks.remainder();
                for (values, x) in chunks.zip(x.chunks_exact(4)) {
                    for lane in 0..4 {
                        sums[lane] += term(values[lane], x[lane]);
                    }
                }
                let rest = last.iter().zip(&x[values.len() - last.len()..]);
                sums.iter().sum::<f64>() + rest.map(|(&value, &x)| term(value, x)).sum::<f64>()
            }
            Self::Sparse { starts, columns, values } => {
                let range = starts[row]..starts[row + 1];
                let entries = columns[range.clone()].iter().zip(&values[range]);
                entries.map(|(&column, &value)| term(value, x[column as usize])).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same_products() {
        let entry = |column, value| Entry { column, value };
        let rows = [vec![entry(0, 2.0), entry(4, -1.0)], vec![], vec![entry(3, 0.5)]];
        let (sparse, dense) = (Rows::new(&rows, 30), Rows::new(&rows, 5));
        assert!(matches!(sparse, Rows::Sparse { .. }) && matches!(dense, Rows::Sparse { .. }));
        let full: Vec<Vec<Entry>> =
            rows.iter().map(|row| (0..5).map(|k| entry(k, value(row, k))).collect()).collect();
        fn value(row: &[Entry], k: u32) -> f64 {
            row.iter().find(|entry| entry.column == k).map_or(0.0, |entry| entry.value)
        }
        let dense = Rows::new(&full, 5);
        assert!(matches!(dense, Rows::Dense { .. }));
        let x = [1.0, 10.0, 100.0, 1000.0, 10_000.0];
        for row in 0..3 {
            assert_eq!(sparse.dot(row, &x), dense.dot(row, &x));
            assert_eq!(sparse.mass(row, &x), dense.mass(row, &x));
            let (mut a, mut b) = ([1.0; 5], [1.0; 5]);
            sparse.add(row, 3.0, &mut a);
            dense.add(row, 3.0, &mut b);
            assert_eq!(a, b);
        }
        assert_eq!([0, 1, 2].map(|row| dense.dot(row, &x)), [2.0 - 10_000.0, 0.0, 500.0]);
        assert_eq!(dense.mass(0, &x), 10_002.0);
    }
}
