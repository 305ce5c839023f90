//! Some of the rows: by label, and by how often a label has come before. They move within their own
//! memory, which is then cut to size.

use std::ops::Range;

use super::{Matrix, Values, shrink};
use crate::{Error, Result};

/// Keeps the rows whose label is one of `keep`, in the order of the file.
///
/// # Errors
/// `keep` is empty or names a label twice; a label has no rows; labels and rows differ in number.
///
/// ```
/// use tamis_host::data::{Matrix, Values, select};
/// let x = Matrix::new(3, 1, Values::U8(vec![10, 20, 30])).unwrap();
/// let (x, y) = select::keep_labels(x, &[7.0, 1.0, 0.0], &[0.0, 7.0]).unwrap();
/// assert_eq!((x.values, &y[..]), (Values::U8(vec![10, 30]), &[7.0, 0.0][..]));
/// assert_eq!(select::class_indices(&y, &[0.0, 7.0]).unwrap(), [1.0, 0.0]);
/// ```
pub fn keep_labels(matrix: Matrix, labels: &[f32], keep: &[f32]) -> Result<(Matrix, Vec<f32>)> {
    gather_labelled(matrix, labels, rows_with(labels, keep)?)
}

/// The rows `rows` of a matrix, and their labels.
pub(super) fn gather_labelled(
    matrix: Matrix,
    labels: &[f32],
    rows: Vec<usize>,
) -> Result<(Matrix, Vec<f32>)> {
    if matrix.rows != labels.len() {
        return Err(Error::new("the number of labels is not the number of samples")
            .mismatch(format_args!("{} labels", matrix.rows), labels.len())
            .help("pass the labels that belong to the data, in the same order"));
    }
    let labels = rows.iter().map(|&row| labels[row]).collect();
    Ok((gather(matrix, rows)?, labels))
}

/// The rows whose label is one of `keep`, rising.
///
/// # Errors
/// `keep` is empty or names a label twice; a label has no rows.
pub fn rows_with(labels: &[f32], keep: &[f32]) -> Result<Vec<usize>> {
    check_distinct(keep)?;
    if let Some(missing) = keep.iter().find(|label| !labels.contains(label)) {
        return Err(Error::new(format!("no sample has the label {missing}"))
            .mismatch(format_args!("labels among {}", list(labels)), missing)
            .help("keep labels that are there"));
    }
    Ok((0..labels.len()).filter(|&row| keep.contains(&labels[row])).collect())
}

/// Labels as positions in `classes`: the first class becomes 0, the second 1, and so on.
///
/// # Errors
/// A class is named twice, or a label is none of them.
pub fn class_indices(labels: &[f32], classes: &[f32]) -> Result<Vec<f32>> {
    check_distinct(classes)?;
    let index = |(row, label): (usize, &f32)| {
        classes.iter().position(|class| class == label).map(|index| index as f32).ok_or_else(|| {
            Error::new("a label is none of the classes")
                .mismatch(list(classes), format_args!("{label} in row {row} (counted from 0)"))
                .help("name every class that the labels hold")
        })
    };
    labels.iter().enumerate().map(index).collect()
}

/// Of every label, keeps its occurrences `range` (the first is 0), ordered by label and then as in
/// the file; of a label that occurs less often, those there are. The IHT paper trains on `0..5000`
/// of MNIST's 60000 + 10000 images and tests on `5000..6000`.
///
/// # Errors
/// A label has no occurrence in the range; labels and rows differ in number.
///
/// ```
/// use tamis_host::data::{Matrix, Values, select};
/// let x = Matrix::new(4, 1, Values::U8(vec![10, 20, 30, 40])).unwrap();
/// let (x, y) = select::rows_per_label(x, &[1.0, 0.0, 1.0, 0.0], 0..1).unwrap();
/// assert_eq!((x.values, y), (Values::U8(vec![20, 10]), vec![0.0, 1.0]));
/// ```
pub fn rows_per_label(
    matrix: Matrix,
    labels: &[f32],
    range: Range<usize>,
) -> Result<(Matrix, Vec<f32>)> {
    gather_labelled(matrix, labels, occurrences(labels, range)?)
}

/// The rows that [`rows_per_label`] keeps, in its order.
///
/// # Errors
/// A label has no occurrence in the range.
pub fn occurrences(labels: &[f32], range: Range<usize>) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|&a, &b| labels[a].total_cmp(&labels[b])); // stable
    let mut rows = Vec::new();
    for group in order.chunk_by(|&a, &b| labels[a] == labels[b]) {
        let kept = range.start..range.end.min(group.len());
        if kept.is_empty() {
            return Err(Error::new(format!("label {} has no rows in the range", labels[group[0]]))
                .expected(format_args!("more than {} rows, for {range:?}", range.start))
                .got(format_args!("{} rows", group.len()))
                .help("choose an earlier range, or append more files"));
        }
        rows.extend_from_slice(&group[kept]);
    }
    Ok(rows)
}

/// The rows `rows` of `matrix`, in that order, within the memory of `matrix`.
///
/// # Errors
/// A row is named twice or does not exist.
pub fn gather(mut matrix: Matrix, rows: Vec<usize>) -> Result<Matrix> {
    fn first<T>(values: &mut Vec<T>, cols: usize, kept: usize, order: &[usize]) {
        permute(values, cols, order.len(), Way::There, |place| order[place]);
        values.truncate(kept * cols);
        shrink(values);
    }
    let chosen = mask(&rows, matrix.rows)?;
    let (kept, mut order) = (rows.len(), rows);
    order.extend((0..matrix.rows).filter(|&row| !chosen[row]));
    match &mut matrix.values {
        Values::F32(v) => first(v, matrix.cols, kept, &order),
        Values::U8(v) => first(v, matrix.cols, kept, &order),
    }
    matrix.rows = kept;
    Ok(matrix)
}

/// Row `from(i)` and its labels go to place `i`; `from` is a permutation.
pub(crate) fn reorder(matrix: &mut Matrix, labels: &mut [f32], from: impl Fn(usize) -> usize) {
    permute_rows(matrix, Way::There, &from);
    permute(labels, labels.len() / matrix.rows.max(1), matrix.rows, Way::There, &from);
}

/// The way back of [`reorder`]: row `i` and its labels go to place `from(i)`.
pub(crate) fn restore(matrix: &mut Matrix, labels: &mut [f32], from: impl Fn(usize) -> usize) {
    permute_rows(matrix, Way::Back, &from);
    restore_labels(labels, matrix.rows, &from);
}

/// The labels alone.
pub(crate) fn restore_labels(labels: &mut [f32], rows: usize, from: impl Fn(usize) -> usize) {
    permute(labels, labels.len() / rows.max(1), rows, Way::Back, &from);
}

fn permute_rows(matrix: &mut Matrix, way: Way, from: impl Fn(usize) -> usize) {
    match &mut matrix.values {
        Values::F32(v) => permute(v, matrix.cols, matrix.rows, way, from),
        Values::U8(v) => permute(v, matrix.cols, matrix.rows, way, from),
    }
}

pub(super) fn mask(rows: &[usize], n: usize) -> Result<Vec<bool>> {
    let mut seen = vec![false; n];
    for &row in rows {
        match seen.get_mut(row) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(Error::new("a row is chosen twice").got(row)),
            None => {
                return Err(Error::new("no such row").expected(format_args!("below {n}")).got(row));
            }
        }
    }
    Ok(seen)
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Row `from(i)` goes to place `i`.
    There,
    /// Row `i` goes to place `from(i)`.
    Back,
}

/// Permutes rows of `cols` values in place, cycle by cycle. Takes a bit per row.
fn permute<T>(values: &mut [T], cols: usize, rows: usize, way: Way, from: impl Fn(usize) -> usize) {
    let mut done = vec![0_u64; rows.div_ceil(64)];
    for start in 0..rows {
        let mut place = start;
        while done[place / 64] >> (place % 64) & 1 == 0 {
            done[place / 64] |= 1 << (place % 64);
            let next = from(place);
            // There the row of the start moves along the cycle, back it stays and takes each row
            // to its place.
            let other = if way == Way::There { place } else { start };
            if next != start {
                let (low, high) = values.split_at_mut(next.max(other) * cols);
                low[next.min(other) * cols..][..cols].swap_with_slice(&mut high[..cols]);
            }
            place = next;
        }
    }
}

fn check_distinct(labels: &[f32]) -> Result<()> {
    if labels.is_empty() {
        return Err(Error::new("the list of labels is empty")
            .mismatch("at least one label, such as 0,1", "none")
            .help("name the labels to keep"));
    }
    match (0..labels.len()).find(|&i| labels[..i].contains(&labels[i])) {
        Some(i) => Err(Error::new(format!("label {} is in the list twice", labels[i]))
            .expected("different labels")
            .got(labels.iter().map(f32::to_string).collect::<Vec<_>>().join(","))
            .help("name every label once")),
        None => Ok(()),
    }
}

/// The first distinct labels, sorted, as errors show them.
fn list(labels: &[f32]) -> String {
    let mut distinct: Vec<f32> = labels.to_vec();
    distinct.sort_by(f32::total_cmp);
    distinct.dedup();
    let shown = distinct.iter().take(20).map(f32::to_string).collect::<Vec<_>>().join(", ");
    if distinct.len() > 20 { shown + ", …" } else { shown }
}
