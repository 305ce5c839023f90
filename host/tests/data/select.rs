//! Row selection against a plain copy of the rows.

use proptest::prelude::*;
use tamis_host::data::{Matrix, Values, select};

/// A matrix whose every value says its row and column.
fn numbered(rows: usize, cols: usize) -> Matrix {
    Matrix::new(rows, cols, Values::F32((0..rows * cols).map(|i| i as f32).collect())).unwrap()
}

fn copied(matrix: &Matrix, rows: &[usize]) -> Matrix {
    let Values::F32(values) = &matrix.values else { panic!("floats expected") };
    let values =
        rows.iter().flat_map(|&row| values[row * matrix.cols..][..matrix.cols].to_vec()).collect();
    Matrix::new(rows.len(), matrix.cols, Values::F32(values)).unwrap()
}

fn assert_error<T: std::fmt::Debug>(result: tamis_host::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in:\n{error}");
    }
}

/// Rows of a matrix in any order, some left out.
fn chosen() -> impl Strategy<Value = (usize, Vec<usize>)> {
    (1usize..40).prop_flat_map(|n| {
        (Just(n), Just((0..n).collect::<Vec<_>>()).prop_shuffle(), 0..=n).prop_map(
            |(n, mut rows, kept)| {
                rows.truncate(kept);
                (n, rows)
            },
        )
    })
}

proptest! {
    #[test]
    fn gathered_in_place_is_copied((n, rows) in chosen(), cols in 1usize..5) {
        let matrix = numbered(n, cols);
        let expected = copied(&matrix, &rows);
        let values = matrix.values.clone().into_f32().iter().map(|&v| v as u8).collect();
        let bytes = Matrix::new(n, cols, Values::U8(values)).unwrap();
        let gathered = select::gather(bytes, rows.clone()).unwrap();
        prop_assert_eq!(gathered.values.into_f32(), expected.values.clone().into_f32());
        prop_assert_eq!(select::gather(matrix, rows).unwrap(), expected);
    }

    #[test]
    fn occurrences_are_those_of_a_plain_count(
        labels in prop::collection::vec(0u8..4, 1..60),
        start in 0usize..3,
        len in 1usize..20,
    ) {
        let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
        let matrix = numbered(labels.len(), 2);
        let mut expected = Vec::new();
        let mut enough = true;
        for label in 0..4 {
            let rows = (0..labels.len()).filter(|&row| labels[row] == label as f32);
            let all = rows.clone().count();
            enough &= all == 0 || all > start;
            expected.extend(rows.skip(start).take(len));
        }
        let result = select::rows_per_label(matrix.clone(), &labels, start..start + len);
        prop_assert_eq!(result.is_ok(), enough);
        if let Ok((kept, kept_labels)) = result {
            prop_assert_eq!(kept, copied(&matrix, &expected));
            prop_assert_eq!(kept_labels, expected.iter().map(|&row| labels[row]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn kept_labels_stay_in_order(labels in prop::collection::vec(0u8..4, 1..60)) {
        let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
        let matrix = numbered(labels.len(), 3);
        let rows: Vec<usize> = (0..labels.len()).filter(|&row| [3.0, 1.0].contains(&labels[row])).collect();
        match select::keep_labels(matrix.clone(), &labels, &[3.0, 1.0]) {
            Ok((kept, kept_labels)) => {
                prop_assert_eq!(kept, copied(&matrix, &rows));
                let indices = select::class_indices(&kept_labels, &[3.0, 1.0]).unwrap();
                for (index, &row) in indices.iter().zip(&rows) {
                    prop_assert_eq!([3.0, 1.0][*index as usize], labels[row]);
                }
            }
            Err(_) => prop_assert!(!labels.contains(&1.0) || !labels.contains(&3.0)),
        }
    }
}

#[test]
fn errors_name_the_label() {
    let x = || numbered(3, 1);
    let labels = [0.0, 1.0, 1.0];
    assert_error(
        select::keep_labels(x(), &labels, &[0.0, 7.0]),
        &["no sample has the label 7", "0, 1"],
    );
    assert_error(select::keep_labels(x(), &labels, &[]), &["empty"]);
    assert_error(
        select::keep_labels(x(), &labels, &[1.0, 0.0, 1.0]),
        &["label 1 is in the list twice"],
    );
    assert_error(
        select::keep_labels(x(), &labels[1..], &[1.0]),
        &["number of labels", "3 labels", "got: 2"],
    );
    assert_error(select::rows_per_label(x(), &labels[1..], 0..1), &["number of labels"]);
    assert_error(
        select::rows_per_label(x(), &labels, 1..2),
        &["label 0 has no rows", "more than 1", "got: 1 rows"],
    );
    assert_error(select::class_indices(&labels, &[1.0]), &["none of the classes", "0 in row 0"]);
    assert_error(select::gather(x(), vec![1, 1]), &["chosen twice", "got: 1"]);
    assert_error(select::gather(x(), vec![3]), &["no such row", "below 3"]);
}

#[test]
fn memory_is_given_back() {
    let labels: Vec<f32> = (0..1000).map(|i| if i % 10 == 0 { 1.0 } else { 0.0 }).collect();
    let (kept, _) = select::keep_labels(numbered(1000, 10), &labels, &[1.0]).unwrap();
    let Values::F32(values) = kept.values else { panic!("floats expected") };
    // But a line of the cache.
    assert_eq!((values.len(), values.capacity()), (1000, 1016));
}
