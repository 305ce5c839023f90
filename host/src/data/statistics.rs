//! What is said of the columns of a table: means, missing cells, what carries nothing.

use std::collections::HashMap;

use super::columns::{Column, ColumnKind, Columns, listed, shown};
use super::{Matrix, Values};
use crate::Error;

/// Sums over an input, row by row; NaN stands for a missing cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputStatistics {
    pub(super) count: usize,
    sum: f64,
    least: f32,
    most: f32,
    /// Equal for inputs that are equal in all rows.
    hash: u64,
}

impl InputStatistics {
    pub(super) const NEW: Self =
        Self { count: 0, sum: 0.0, least: f32::INFINITY, most: f32::NEG_INFINITY, hash: 0 };

    pub(super) fn add(&mut self, value: f32) {
        let bits = u64::from(value.to_bits());
        self.hash = (self.hash.rotate_left(5) ^ bits).wrapping_mul(0x517c_c1b7_2722_0a95);
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.sum += f64::from(value);
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
    }

    pub(super) fn mean(&self) -> f32 {
        (self.sum / self.count.max(1) as f64) as f32
    }
}

/// The error of missing cells: all columns that have them.
pub(super) fn missing_error(columns: &Columns, holes: &[(usize, u64)]) -> Error {
    let holes = columns.inputs.iter().zip(holes).enumerate();
    let holes = holes.filter(|(_, (_, hole))| hole.0 > 0).map(|(at, (column, (cells, line)))| {
        format!("{} {cells} (first in line {line})", shown(&column.name, at))
    });
    Error::new("cells are missing")
        .expected("a value in every cell, as --missing error says")
        .got(listed(&holes.collect::<Vec<_>>()))
        .help("pass --missing mean, zero or drop, or leave the columns out with --ignore")
}

/// What there is to say of the columns to learn from.
pub(super) fn notes(
    columns: &Columns,
    statistics: &[InputStatistics],
    matrix: &Matrix,
) -> Vec<String> {
    let mut notes = Vec::new();
    let is_text = |column: &&Column| matches!(column.kind, ColumnKind::Text { .. });
    let texts = columns.inputs.iter().filter(is_text);
    let texts = texts.map(|column| format!("{} ({})", column.name, column.width()));
    let texts: Vec<String> = texts.collect();
    if !texts.is_empty() {
        let (of, to) = (columns.inputs.len(), columns.width());
        let texts = listed(&texts);
        notes.push(format!(
            "{of} columns become {to} inputs, one for each category of text: {texts}"
        ));
    }
    let (mut first, mut constant, mut same) = (0, Vec::new(), Vec::new());
    let mut seen: HashMap<u64, (usize, String)> = HashMap::new();
    for (at, column) in columns.inputs.iter().enumerate() {
        let own = &statistics[first..first + column.width()];
        let is_constant = own.iter().all(|own| own.least >= own.most && own.count == matrix.rows);
        if is_constant {
            constant.push(shown(&column.name, at));
        } else if let [own] = own {
            let twin = seen.get(&own.hash).filter(|twin| are_equal(matrix, twin.0, first));
            match twin {
                Some((_, name)) => same.push(format!("{name} = {}", shown(&column.name, at))),
                None => drop(seen.insert(own.hash, (first, shown(&column.name, at)))),
            }
        }
        first += column.width();
    }
    if !constant.is_empty() && matrix.rows > 1 {
        notes.push(format!("columns that are the same in every row: {}", listed(&constant)));
    }
    if !same.is_empty() {
        notes.push(format!("columns with equal cells: {}", listed(&same)));
    }
    notes
}

fn are_equal(matrix: &Matrix, a: usize, b: usize) -> bool {
    match &matrix.values {
        Values::F32(values) => values.chunks(matrix.cols.max(1)).all(|row| row[a] == row[b]),
        Values::U8(values) => values.chunks(matrix.cols.max(1)).all(|row| row[a] == row[b]),
    }
}
