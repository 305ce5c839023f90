//! The categories of text in the columns of a table, found in a pass of their own.

use std::collections::HashMap;
use std::path::PathBuf;

use super::cell::{is_missing, number};
use super::columns::{ColumnKind, NO_TEXT, listed, shown};
use super::layout::{Layout, Use, each_file};
use super::request::{Missing, Request};
use crate::{Error, Result};

/// The most categories of a column that have an input of their own.
const CATEGORIES: usize = 50;

/// The most different cells of a column that are counted.
const COUNTED: usize = 20_000;

/// The same of a column of nothing but numbers so far.
const COUNTED_NUMBERS: usize = 1000;

/// The fraction of cells that are text up to which they are taken for errors among numbers.
const FEW: f64 = 0.05;

/// The cells of a column.
#[derive(Debug, Default)]
struct Seen {
    numbers: usize,
    texts: usize,
    missing: usize,
    counts: HashMap<String, usize>,
    /// Whether there are more different ones than are counted.
    is_over: bool,
    /// The first that is text, and where.
    first: Option<(String, String)>,
}

impl Seen {
    fn add(&mut self, cell: &str, is_number: bool, place: impl FnOnce() -> String) {
        if is_missing(cell) {
            self.missing += 1;
            return;
        }
        let cell = cell.trim();
        if is_number {
            self.numbers += 1;
        } else {
            self.texts += 1;
            self.first.get_or_insert_with(|| (cell.to_owned(), place()));
        }
        if let Some(count) = self.counts.get_mut(cell) {
            *count += 1;
        } else if self.counts.len() < if self.texts == 0 { COUNTED_NUMBERS } else { COUNTED } {
            self.counts.insert(cell.to_owned(), 1);
        } else {
            self.is_over = true;
        }
    }

    fn is_text(&self) -> bool {
        self.texts as f64 > FEW * (self.texts + self.numbers) as f64
    }

    /// Whether nearly every cell is another: a name, a number of a ticket, a date.
    fn is_nearly_distinct(&self) -> bool {
        let (cells, different) = (self.texts + self.numbers, self.counts.len());
        self.is_over
            || (different > CATEGORIES && 2 * different > cells)
            || (different >= 10 && 10 * different >= 9 * cells)
    }

    /// The categories, and whether there are others.
    fn categories(&self, missing: Missing) -> (Vec<String>, bool) {
        let mut all: Vec<(&String, &usize)> = self.counts.iter().collect();
        all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let others = all.len() > CATEGORIES;
        all.truncate(CATEGORIES);
        let mut categories: Vec<String> = all.into_iter().map(|(text, _)| text.clone()).collect();
        if self.missing > 0 && missing == Missing::Mean {
            categories.push(NO_TEXT.into());
        }
        categories.sort();
        (categories, others)
    }
}

/// Finds the columns of text and their categories; whether the labels are text.
pub(super) fn survey(
    files: &[PathBuf],
    layout: &mut Layout,
    request: &Request<'_>,
) -> Result<bool> {
    let mut seen: Vec<Seen> = layout.inputs.iter().map(|_| Seen::default()).collect();
    let mut target = Seen::default();
    let (mut cells, mut row) = (Vec::new(), 0);
    each_file(files, layout, |lines, uses, _| {
        while lines.next(&mut cells)? {
            let is_kept = request.keep.is_none_or(|keep| keep.get(row).copied().unwrap_or(false));
            row += 1;
            if !is_kept {
                continue;
            }
            for (at, (cell, what)) in cells.iter().zip(uses).enumerate() {
                let seen = match *what {
                    Use::Input(input) => &mut seen[input],
                    Use::Target => &mut target,
                    Use::Skip => continue,
                };
                let is_number = number(cell, lines.decimal_comma).is_some();
                seen.add(cell, is_number, || lines.place(at));
            }
        }
        Ok(true)
    })?;
    let missing = request.options.missing.unwrap_or(Missing::Mean);
    let (mut wrong, mut distinct, mut merged) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (column, seen)) in layout.inputs.iter_mut().zip(&seen).enumerate() {
        let name = shown(&column.name, at);
        let Some((text, place)) = &seen.first else { continue };
        if !seen.is_text() {
            wrong.push(format!("{text:?} in {place} ({name})"));
        } else if seen.is_nearly_distinct() {
            distinct.push(name);
        } else {
            let (categories, others) = seen.categories(missing);
            if others {
                merged.push(format!("{name} ({} of {})", CATEGORIES, seen.counts.len()));
            }
            column.kind = ColumnKind::Text { categories, others };
        }
    }
    if !wrong.is_empty() {
        return Err(Error::new("a cell is not a number")
            .expected("numbers, as in the other rows of the column")
            .got(listed(&wrong))
            .help("fill or remove the row, or leave the column out with --ignore"));
    }
    if !distinct.is_empty() {
        let flag = distinct.join(",");
        return Err(Error::new("the text of a column is another in nearly every row")
            .expected("text that names categories")
            .got(format_args!("text such as names or dates in {}", listed(&distinct)))
            .help(format!("leave the columns out: --ignore {flag}")));
    }
    if target.texts > 0 && target.counts.len() > 20 && target.is_nearly_distinct() {
        return Err(Error::new("the labels are text, another in nearly every row")
            .expected("text that names classes")
            .got(format_args!("{} or more different texts", target.counts.len()))
            .help("name another column with --target"));
    }
    if !merged.is_empty() {
        let merged = listed(&merged);
        layout
            .notes
            .push(format!("rare categories are taken together as one; kept are of {merged}"));
    }
    Ok(target.texts > 0)
}
