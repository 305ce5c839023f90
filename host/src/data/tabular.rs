//! Tables as people have them: columns by name, text, missing cells; read row by row.
//!
//! A table of numbers is read in one pass. Where a cell is text, all files are first surveyed for
//! the categories of their columns, then read again: memory grows with the numbers of the result,
//! never with the text.

use std::path::PathBuf;

use super::cell::{is_missing, number};
use super::columns::{Column, ColumnKind, Columns, NO_TEXT, listed, shown};
use super::csv::Lines;
use super::element::not_finite;
use super::layout::{Head, Layout, Use, each_file};
use super::matrix::Incoming;
use super::request::{Missing, RawLabels, Reading, Request, Unseen};
use super::statistics::{InputStatistics, missing_error, notes};
use super::survey::survey;
use super::{Matrix, Source, Values, load};
use crate::{Error, Result};

/// A table that was read.
#[derive(Debug)]
pub(super) struct ReadTable {
    pub(super) matrix: Matrix,
    pub(super) labels: Option<RawLabels>,
    pub(super) columns: Columns,
    /// Rows that came, in all.
    pub(super) seen: usize,
    /// Rows that were left out for a missing cell, rising.
    pub(super) dropped: Vec<usize>,
    pub(super) notes: Vec<String>,
}

/// Reads all files of a table; none where the first is no CSV.
pub(super) fn read(files: &[PathBuf], request: &Request<'_>) -> Result<Option<ReadTable>> {
    let Some(first) = files.first() else { return Ok(None) };
    let Some(source) = load::text(first).map_err(|error| error.at(first))? else {
        return Ok(None);
    };
    let head = Lines::new(source).and_then(|lines| Head::new(&lines));
    let mut layout = Layout::new(&head.map_err(|error| error.at(first))?, request)
        .map_err(|error| error.at(first))?;
    let mut pass = Pass::new(&layout, request, false);
    if let Ended::AtText = pass.run(files, &layout)? {
        let target_is_text = survey(files, &mut layout, request)?;
        pass = Pass::new(&layout, request, target_is_text);
        if let Ended::AtText = pass.run(files, &layout)? {
            return Err(Error::new("the file changed while it was read").at(first));
        }
    }
    pass.finish(layout).map(Some).map_err(|error| error.at(first))
}

enum Ended {
    Whole,
    /// At text in a column that is taken for one of numbers.
    AtText,
}

/// One pass over all rows.
struct Pass<'a> {
    request: Request<'a>,
    missing: Missing,
    rows: Incoming<'a>,
    /// Where the inputs of each column begin.
    first: Vec<usize>,
    statistics: Vec<InputStatistics>,
    /// Cells of each column that are missing, and the line of the first.
    holes: Vec<(usize, u64)>,
    unseen: Vec<usize>,
    labels: RawLabels,
    texts: std::collections::HashMap<String, usize>,
    target_is_text: bool,
    unlabelled: usize,
    dropped: Vec<usize>,
    notes: Vec<String>,
}

impl<'a> Pass<'a> {
    fn new(layout: &Layout, request: &Request<'a>, target_is_text: bool) -> Self {
        let mut width = 0;
        let first = layout.inputs.iter().map(|column| {
            width += column.width();
            width - column.width()
        });
        let first = first.collect();
        let missing = request.options.missing.unwrap_or(match request.reading {
            Reading::Numbers => Missing::Error,
            _ => Missing::Mean,
        });
        Self {
            request: *request,
            missing,
            rows: Incoming::new(request.keep),
            first,
            statistics: vec![InputStatistics::NEW; width],
            holes: vec![(0, 0); layout.inputs.len()],
            unseen: vec![0; layout.inputs.len()],
            labels: RawLabels::default(),
            texts: std::collections::HashMap::new(),
            target_is_text,
            unlabelled: 0,
            dropped: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn run(&mut self, files: &[PathBuf], layout: &Layout) -> Result<Ended> {
        let mut row = vec![0.0; self.statistics.len()];
        let mut ended = Ended::Whole;
        let mut cells = Vec::new();
        let categories = layout.categories();
        let notes = each_file(files, layout, |lines, uses, _| {
            self.rows.announce(0, row.len(), false)?;
            let before = self.rows.seen;
            while lines.next(&mut cells)? {
                let is_kept = self.rows.keeps(0);
                row.fill(0.0);
                let mut takes = true;
                let mut label = None;
                for (at, (cell, what)) in cells.iter().zip(uses).enumerate() {
                    let done = match *what {
                        Use::Skip => true,
                        Use::Target if is_kept => self.label(lines, cell, at, &mut label)?,
                        Use::Target => true,
                        Use::Input(input) => {
                            let column = &layout.inputs[input];
                            let known = &categories[input];
                            let own = self.first[input];
                            let row = &mut row[own..own + column.width()];
                            match self.cell(lines, cell, at, column, known, row)? {
                                Taken::Whole => true,
                                Taken::Text => false,
                                Taken::Hole => {
                                    if is_kept {
                                        let hole = &mut self.holes[input];
                                        *hole = (
                                            hole.0 + 1,
                                            if hole.0 == 0 { lines.line } else { hole.1 },
                                        );
                                    }
                                    takes &= self.missing != Missing::Drop;
                                    true
                                }
                                Taken::Unseen => {
                                    self.unseen[input] += usize::from(is_kept);
                                    true
                                }
                            }
                        }
                    };
                    if !done {
                        ended = Ended::AtText;
                        return Ok(false);
                    }
                }
                let is_unlabelled = label.is_some_and(f32::is_nan);
                self.unlabelled += usize::from(is_unlabelled);
                if !takes || is_unlabelled {
                    self.dropped.push(self.rows.seen);
                    self.rows.seen += 1;
                    continue;
                }
                if is_kept {
                    self.statistics.iter_mut().zip(&row).for_each(|(own, x)| own.add(*x));
                    self.labels.values.extend(label);
                }
                self.rows.push(&row)?;
            }
            if self.rows.seen == before { Err(lines.no_rows()) } else { Ok(true) }
        })?;
        self.notes.extend(notes);
        Ok(ended)
    }

    /// Takes a label: NaN where it is missing; false at text where there were numbers.
    fn label(
        &mut self,
        lines: &Lines<Source<load::Text>>,
        cell: &str,
        at: usize,
        label: &mut Option<f32>,
    ) -> Result<bool> {
        let value = number(cell, lines.decimal_comma).filter(|_| !self.target_is_text);
        let value = match value {
            Some(value) if value.is_finite() => {
                if !self.labels.texts.is_empty() {
                    return Ok(false);
                }
                value
            }
            _ if is_missing(cell) => {
                if self.missing == Missing::Error {
                    return Err(lines.not_a_number(cell, at));
                }
                f32::NAN
            }
            Some(_) => return Err(not_finite(cell.trim(), lines.place(at))),
            None if self.labels.texts.is_empty() && !self.labels.values.is_empty() => {
                return Ok(false);
            }
            None => {
                let next = self.texts.len();
                let text = *self.texts.entry(cell.trim().to_owned()).or_insert(next);
                if text == next {
                    self.labels.texts.push(cell.trim().to_owned());
                }
                text as f32
            }
        };
        *label = Some(value);
        Ok(true)
    }

    /// Takes a cell of an input.
    fn cell(
        &self,
        lines: &Lines<Source<load::Text>>,
        cell: &str,
        at: usize,
        column: &Column,
        categories: &std::collections::HashMap<&str, usize>,
        row: &mut [f32],
    ) -> Result<Taken> {
        let ColumnKind::Text { others, .. } = &column.kind else {
            return match number(cell, lines.decimal_comma) {
                Some(value) if value.is_finite() => {
                    row[0] = value;
                    Ok(Taken::Whole)
                }
                _ if is_missing(cell) && self.missing == Missing::Error => {
                    // Where all columns are known to be numbers, the first hole is the error.
                    match self.request.reading {
                        Reading::Numbers => Err(match number(cell, false) {
                            Some(_) => not_finite(cell.trim(), lines.place(at)),
                            None => lines.not_a_number(cell, at),
                        }),
                        _ => Ok(Taken::Hole),
                    }
                }
                _ if is_missing(cell) => {
                    row[0] = f32::NAN;
                    Ok(Taken::Hole)
                }
                Some(_) => Err(not_finite(cell.trim(), lines.place(at))),
                None if matches!(self.request.reading, Reading::Learn) => Ok(Taken::Text),
                None => Err(lines.not_a_number(cell, at)),
            };
        };
        let hole = is_missing(cell);
        let text = if hole { NO_TEXT } else { cell.trim() };
        match categories.get(text) {
            Some(&category) => row[category] = 1.0,
            None if hole => {}
            None if *others => row[row.len() - 1] = 1.0,
            None if self.request.options.unseen == Unseen::Other => return Ok(Taken::Unseen),
            None => return Err(unseen(text, column, &lines.place(at))),
        }
        Ok(if hole { Taken::Hole } else { Taken::Whole })
    }

    fn finish(mut self, layout: Layout) -> Result<ReadTable> {
        let mut columns = Columns { inputs: layout.inputs, ..Columns::default() };
        columns.target = layout.target.clone().unwrap_or_default();
        if self.missing == Missing::Error && self.holes.iter().any(|hole| hole.0 > 0) {
            return Err(missing_error(&columns, &self.holes));
        }
        if self.rows.matrix.rows == 0 && self.request.keep.is_none() {
            return Err(Error::new("no rows are left")
                .expected("a row without missing cells")
                .got(format_args!("{} rows, each with one", self.rows.seen))
                .help("choose --missing mean, or leave the columns out with --ignore"));
        }
        self.fill(&mut columns)?;
        self.rows.shrink();
        let is_learnt = matches!(self.request.reading, Reading::Learn);
        self.say_holes(&columns);
        if is_learnt {
            self.notes.extend(notes(&columns, &self.statistics, &self.rows.matrix));
            self.notes.extend(layout.notes);
        }
        if self.unlabelled > 0 {
            let rows = self.unlabelled;
            self.notes.push(format!("{rows} rows have no label and are left out"));
        }
        let unseen = columns.inputs.iter().zip(&self.unseen).filter(|(_, cells)| **cells > 0);
        let unseen = unseen.map(|(column, cells)| format!("{} {cells}", column.name));
        let unseen: Vec<String> = unseen.collect();
        if !unseen.is_empty() {
            let cells = listed(&unseen);
            self.notes
                .push(format!("cells with text that training did not see count as none: {cells}"));
        }
        Ok(ReadTable {
            matrix: self.rows.matrix,
            labels: self.request.labelled.then_some(self.labels).filter(|_| layout.has_target),
            columns,
            seen: self.rows.seen,
            dropped: self.dropped,
            notes: self.notes,
        })
    }

    /// Puts numbers in place of missing ones; when learning, says in the columns which.
    fn fill(&mut self, columns: &mut Columns) -> Result<()> {
        let mut fills = vec![0.0; self.statistics.len()];
        for ((column, first), hole) in columns.inputs.iter_mut().zip(&self.first).zip(&self.holes) {
            let ColumnKind::Number { fill } = &mut column.kind else { continue };
            let own = &self.statistics[*first];
            if self.missing == Missing::Zero {
                *fill = 0.0;
            } else if self.missing == Missing::Mean
                && matches!(self.request.reading, Reading::Numbers)
                && hole.0 > 0
            {
                return Err(Error::new("the model does not hold the means of its columns")
                    .expected("no missing cells, or a model of a table with names of columns")
                    .got(format_args!("{} missing cells", hole.0))
                    .help("pass --missing zero, or train on a table that begins with names"));
            } else if !matches!(self.request.reading, Reading::Known(_)) {
                if hole.0 > 0 && own.count == 0 {
                    return Err(Error::new(format!(
                        "all cells of column {:?} are missing",
                        column.name
                    ))
                    .expected("at least one number")
                    .got(format_args!("{} missing cells", hole.0))
                    .help("leave the column out with --ignore, or pass --missing zero"));
                }
                let is_said = hole.0 > 0 || !column.name.is_empty();
                *fill = if is_said { own.mean() } else { 0.0 };
            }
            fills[*first] = *fill;
        }
        if self.holes.iter().all(|hole| hole.0 == 0) {
            return Ok(());
        }
        if let Values::F32(values) = &mut self.rows.matrix.values {
            for row in values.chunks_exact_mut(fills.len().max(1)) {
                let holes = row.iter_mut().zip(&fills).filter(|(x, _)| x.is_nan());
                holes.for_each(|(x, fill)| *x = *fill);
            }
        }
        Ok(())
    }

    fn say_holes(&mut self, columns: &Columns) {
        let holes = columns.inputs.iter().zip(&self.holes).enumerate();
        let holes =
            holes.filter(|(_, (_, hole))| hole.0 > 0).map(|(at, (column, (cells, line)))| {
                format!("{} {cells} (first in line {line})", shown(&column.name, at))
            });
        let holes: Vec<String> = holes.collect();
        if holes.is_empty() {
            return;
        }
        let done = match self.missing {
            Missing::Mean => "are filled by the mean (of text: a category of their own)",
            Missing::Zero => "are 0 (of text: no category)",
            Missing::Drop => "make their rows drop out",
            Missing::Error => "are an error",
        };
        self.notes.push(format!("missing cells {done}: {}", listed(&holes)));
    }
}

enum Taken {
    Whole,
    Hole,
    Unseen,
    /// Text in place of a number.
    Text,
}

fn unseen(text: &str, column: &Column, place: &str) -> Error {
    let categories = match &column.kind {
        ColumnKind::Text { categories, .. } => &categories[..],
        ColumnKind::Number { .. } => &[],
    };
    let shown: Vec<String> = categories.iter().map(|text| format!("{text:?}")).collect();
    Error::new("a cell has text that training did not see")
        .expected(format_args!("one of {} in column {:?}", listed(&shown), column.name))
        .got(format_args!("{text:?} in {place}"))
        .help("pass --unseen other to take such cells as none of these")
}
