//! Data and settings of every kind.

use tamis::base::rng::Rng;
use tamis::learn::lm::Params;

/// Standard normal samples, row by row.
pub(crate) fn normal_rows(rows: usize, inputs: usize, seed: u64) -> Vec<f32> {
    let mut x = vec![0.0; rows * inputs];
    Rng::new(seed, 0).fill_normal(&mut x);
    x
}

/// Columns of rows, each of a kind of its own.
pub(crate) struct Data {
    rows: usize,
    d: usize,
    /// One column after the other.
    columns: Vec<f32>,
}

impl Data {
    /// `d` columns of `rows` numbers, each of a kind that the generator picks.
    pub(crate) fn draw(rows: usize, d: usize, rng: &mut Rng) -> Self {
        let mut columns = Vec::new();
        for _ in 0..d {
            let kind = rng.below(12);
            columns.extend(column(kind, rows, &columns.clone(), rng));
        }
        Self { rows, d, columns }
    }

    /// Row by row.
    pub(crate) fn x(&self) -> Vec<f32> {
        (0..self.rows * self.d)
            .map(|at| self.columns[at % self.d * self.rows + at / self.d])
            .collect()
    }

    /// `a · row`, each column measured by its largest magnitude.
    pub(crate) fn dot(&self, a: &[f32], row: &[f32]) -> f32 {
        let column = |j: usize| &self.columns[j * self.rows..][..self.rows];
        let size = |j: usize| column(j).iter().fold(f32::MIN_POSITIVE, |m, x| m.max(x.abs()));
        row.iter().enumerate().map(|(j, x)| a[j] * x / size(j)).sum::<f32>()
    }
}

/// Short searches of any kind on so many rows.
pub(crate) fn params(seed: u64, rows: usize, rng: &mut Rng) -> Params {
    Params {
        seed,
        rows: rng.below(40) as usize,
        perturbations: rng.below(4),
        steps: rng.below(80),
        random_neurons: rng.below(4),
        validation: if rng.below(2) == 0 { rng.below(rows as u32) as usize } else { 0 },
        validation_patience: rng.below(3),
        ceiling: [1.0, 1.0, 3.0][rng.below(3) as usize],
        exchange_rows: [rows, rows / 3 + 1][rng.below(2) as usize],
        ..Params::DEFAULT
    }
}

/// A column, by the number of its kind.
fn column(kind: u32, rows: usize, before: &[f32], rng: &mut Rng) -> Vec<f32> {
    match kind {
        0 => vec![0.0; rows],
        1 => vec![1.0; rows],
        2 if before.len() >= rows => before[..rows].to_vec(),
        3 if before.len() >= 2 * rows => {
            (0..rows).map(|k| before[k] - 2.0 * before[rows + k]).collect()
        }
        4 => (0..rows).map(|_| rng.uniform()).collect(),
        5 => (0..rows).map(|_| if rng.below(rows as u32) == 0 { 1.0 } else { 0.0 }).collect(),
        _ => {
            let scale = 10.0_f32.powi(rng.below(13) as i32 - 6);
            (0..rows).map(|_| scale * rng.normal()).collect()
        }
    }
}
