//! What was not run of the whole grid of a paper, and what it would cost.

use std::collections::BTreeMap;

use super::super::cell::Cell;
use super::super::record::Record;
use super::super::spec::{Method, Part};
use super::table::{Item, Table, listed};
use super::view::{View, number};

/// A row for each method with cells that were not run.
pub(super) fn table(view: &View) -> Table {
    let rows = view.whole.iter().flat_map(|whole| {
        let run: Vec<&Cell> = view.records.iter().map(|record| &record.cell).collect();
        let cells: Vec<Cell> =
            whole.cells().into_iter().filter(|cell| !run.contains(&cell)).collect();
        whole.methods.iter().filter_map(move |&method| row(view, whole, method, &cells))
    });
    let note = "Of the whole grid of the published figure, and of all its seeds. Hours are those of trainings that each take as long as \
                the nearest that was run, by the factors between their m and their s, on the same machine: larger networks take longer, \
                so there may be more.";
    let head = ["method", "cells", "m", "s", "seeds", "hours"];
    Table::new("Not run", note, head, rows.collect())
}

fn row(view: &View, whole: &Part, method: Method, cells: &[Cell]) -> Option<Vec<Item>> {
    let own: Vec<&Cell> = cells.iter().filter(|cell| cell.method == method).collect();
    if own.is_empty() || method.is_constant() {
        return None;
    }
    let mut trainings = BTreeMap::<String, f64>::new();
    for &cell in &own {
        if let Some(own) = nearest(view, cell) {
            let seconds = trainings.entry(cell.training(whole)).or_default();
            *seconds = seconds.max(own);
        }
    }
    let range = |of: fn(&Cell) -> usize| {
        let numbers = || own.iter().map(|&cell| of(cell));
        match (numbers().min(), numbers().max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
            (least, _) => least.unwrap_or(0).to_string(),
        }
    };
    let mut seeds: Vec<u64> = own.iter().map(|cell| cell.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let hours = match trainings.is_empty() {
        true => "unknown".into(),
        false => number(trainings.into_values().sum::<f64>() / 3600.0, 2),
    };
    let texts =
        [own.len().to_string(), range(|cell| cell.m), range(|cell| cell.s), listed(&seeds), hours];
    Some([method.title().to_owned()].into_iter().chain(texts).map(Item::from).collect())
}

/// Seconds of the nearest cell of the same method that was run.
fn nearest(view: &View, cell: &Cell) -> Option<f64> {
    let apart = |record: &Record| {
        let factor = |a: usize, b: usize| (a.max(1) as f64 / b.max(1) as f64).ln().abs();
        factor(record.cell.m, cell.m) + factor(record.cell.s, cell.s)
    };
    let solved = view.records.iter().filter(|record| record.cell.method == cell.method);
    let timed = solved.filter_map(|record| Some((apart(record), record.solved.as_ref()?.seconds)));
    timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, seconds)| seconds)
}
