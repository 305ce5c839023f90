//! Data of every kind, for the tests of the search.
#![allow(clippy::indexing_slicing, reason = "a test fails by it")]

use tamis::rng::Rng;

/// `d` columns of `rows` numbers, each of a kind that the generator picks, one after the other.
pub(crate) fn columns(rows: usize, d: usize, rng: &mut Rng) -> Vec<f32> {
    let mut columns = Vec::new();
    for _ in 0..d {
        let kind = rng.below(12);
        columns.extend(column(kind, rows, &columns.clone(), rng));
    }
    columns
}

/// A column, by the number of its kind.
fn column(kind: u32, rows: usize, before: &[f32], rng: &mut Rng) -> Vec<f32> {
    match kind {
        0 => vec![0.0; rows],
        1 => vec![1.0; rows],
        2 if before.len() >= rows => before[..rows].to_vec(),
        3 if before.len() >= 2 * rows => (0..rows).map(|k| before[k] - 2.0 * before[rows + k]).collect(),
        4 => (0..rows).map(|_| rng.uniform()).collect(),
        5 => (0..rows).map(|_| if rng.below(rows as u32) == 0 { 1.0 } else { 0.0 }).collect(),
        _ => {
            let scale = 10.0_f32.powi(rng.below(13) as i32 - 6);
            (0..rows).map(|_| scale * rng.normal()).collect()
        }
    }
}
