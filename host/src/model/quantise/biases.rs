//! Biases: what a layer adds on every row alike.
//!
//! A model of floats has biases, or weights from a last input that is 1 in every row. They are of another size than the weights from inputs, most of all where
//! these are bytes from 0 to 255: rounded to the same 8 bits, either all others vanish beside them
//! or they do. A layer of integers has biases of 32 bits, which hold them.

use tamis::infer::model::Csr;

use crate::data::{Matrix, Values};

/// The inputs of a layer that are the same on every row: column, rising, and number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fixed(Vec<(usize, f64)>);

impl Fixed {
    /// The last input, where it is 1 in every row and there is another.
    pub(super) fn of(data: &Matrix) -> Self {
        let Some(last) = data.cols.checked_sub(1).filter(|&last| last > 0) else {
            return Self::default();
        };
        let ones = match &data.values {
            Values::F32(values) => values.chunks_exact(data.cols).all(|row| row[last] == 1.0),
            Values::U8(values) => values.chunks_exact(data.cols).all(|row| row[last] == 1),
        };
        Self(if ones { vec![(last, 1.0)] } else { vec![] })
    }

    /// Of each row, column and value of weights that depend on the data, and what the others add.
    pub(super) fn part(&self, csr: &Csr<'_>) -> (Vec<Vec<(usize, f32)>>, Vec<f64>) {
        let mut entries = csr.columns().iter().zip(csr.values());
        let biases = csr.biases().iter().copied().chain(std::iter::repeat(0.0));
        let row = |(&count, bias): (&u16, f32)| {
            let (mut free, mut offset) = (Vec::new(), f64::from(bias));
            for (&column, &value) in entries.by_ref().take(count.into()) {
                match self.0.binary_search_by_key(&usize::from(column), |(column, _)| *column) {
                    Ok(at) => offset += f64::from(value) * self.0[at].1,
                    Err(_) => free.push((usize::from(column), value)),
                }
            }
            (free, offset)
        };
        csr.counts().iter().zip(biases).map(row).unzip()
    }

    /// The outputs of a layer with relu whose rows have no weights left, the same on every row.
    pub(super) fn behind(free: &[Vec<(usize, f32)>], offsets: &[f64]) -> Self {
        let rows = free.iter().zip(offsets).enumerate();
        Self(
            rows.filter(|(_, (row, _))| row.is_empty())
                .map(|(j, (_, b))| (j, b.max(0.0)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::infer::model::Activation;

    fn of(rows: usize, cols: usize, values: Vec<f32>) -> Fixed {
        Fixed::of(&Matrix { rows, cols, values: Values::F32(values) })
    }

    #[test]
    fn only_trailing_column_of_ones_is_fixed() {
        assert_eq!(of(2, 2, vec![7.0, 1.0, 8.0, 1.0]), Fixed(vec![(1, 1.0)]));
        assert_eq!(of(2, 2, vec![1.0, 1.0, 1.0, 0.5]), Fixed::default());
        assert_eq!(of(2, 1, vec![1.0, 1.0]), Fixed::default());
    }

    #[test]
    fn fixed_inputs_fold_into_biases_and_propagate() {
        // Row 0 has both kinds of weights, row 1 hands on the 1, row 2 is negative, row 3 has none.
        let (counts, columns, values) = ([2, 1, 1, 0], [0, 2, 2, 2], [0.5, -3.0, 1.0, -1.0]);
        let csr = Csr::new(3, &counts, &columns, &values, Activation::Relu).unwrap();
        let (free, offsets) = Fixed(vec![(2, 1.0)]).part(&csr);
        assert_eq!(free, [vec![(0, 0.5)], vec![], vec![], vec![]]);
        assert_eq!(offsets, [-3.0, 1.0, -1.0, 0.0]);
        assert_eq!(Fixed::behind(&free, &offsets), Fixed(vec![(1, 1.0), (2, 0.0), (3, 0.0)]));
    }
}
