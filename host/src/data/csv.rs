//! CSV: rows of cells, with or without a first line of column names.
//!
//! Cells are separated by tabs, semicolons, commas or, between numbers, single spaces: whichever
//! the first line holds (in this order), or what a line `sep=;` before it says. They may be quoted,
//! and where commas do not separate, `0,5` is one half. Empty lines are skipped, and lines that
//! begin with `#` but do not have the cells of a row. The first line is a header if
//! - it holds a cell that is no number, and its other cells are counts (`label,0,1,2`) or names,
//!   and some cell stands above a number of the next line, or none of them is a number; or
//! - it is 0, 1, … or 1, 2, … of three columns or more, or of two above one that is no whole number, as data frames
//!   without names are written, perhaps behind an empty cell for the numbers of the rows.

use std::io::{BufRead, BufReader, Read};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::Source;
use super::cell::{is_missing, number};
use super::element::not_finite;
use super::matrix::Incoming;
use super::source::unreadable;
use super::table::Table;
use crate::{Error, Result};

/// Reads a CSV file of numbers.
///
/// # Errors
/// No rows, a row that is longer or shorter than the first, a cell that is not a finite number,
/// text that is not UTF-8, a quote that is not closed, two columns of one name: with line and
/// column.
///
/// ```
/// use tamis_host::data::{Source, csv};
/// let table = csv::read(Source::bytes(b"width,height\n1.5,2\n3,4\n")).unwrap();
/// assert_eq!((table.matrix.rows, table.matrix.cols), (2, 2));
/// assert_eq!(table.names.unwrap(), ["width", "height"]);
/// let error = csv::read(Source::bytes(b"1,2\n3,four\n")).unwrap_err();
/// assert!(error.to_string().contains("line 2, column 2"));
/// ```
pub fn read<R: Read>(source: Source<R>) -> Result<Table> {
    let mut rows = Incoming::new(None);
    let names = append(source, &mut rows)?;
    Ok(Table { matrix: rows.matrix, names })
}

/// Reads the rows of a CSV file to the end of `rows`: the column names.
pub(super) fn append<R: Read>(
    source: Source<R>,
    rows: &mut Incoming<'_>,
) -> Result<Option<Vec<String>>> {
    let mut lines = Lines::new(source)?;
    let mut cells = Vec::new();
    let mut row = Vec::new();
    let before = rows.seen;
    if lines.cols > 0 {
        rows.announce(0, lines.cols, false)?;
    }
    while lines.next(&mut cells)? {
        lines.numbers(&cells, &mut row)?;
        rows.push(&row)?;
    }
    if rows.seen == before {
        return Err(lines.no_rows());
    }
    rows.shrink();
    Ok(lines.names)
}

/// Longest cell, in bytes: what is longer is likely a quote that nothing closes.
const CELL_LIMIT: usize = 1 << 16;

const OPEN_QUOTE: &str = "look for a quote that is not closed";

const HEAD: u64 = 1 << 16;

/// Rows of cells, and the line that each starts on.
pub(super) struct Lines<R> {
    input: std::io::Chain<std::io::Cursor<Vec<u8>>, BufReader<R>>,
    parser: Reader,
    /// Where commas do not separate cells.
    pub(super) decimal_comma: bool,
    /// Cells of the first row; 0 where there is none.
    pub(super) cols: usize,
    pub(super) names: Option<Vec<String>>,
    /// Whether the names are but 0, 1, … or 1, 2, …
    pub(super) is_numbered: bool,
    /// Whether the first row of the data could be such names.
    pub(super) is_unclear: bool,
    /// The first two rows of the data, until they are taken, and their lines.
    first: Option<(Vec<String>, u64)>,
    second: Option<(Vec<String>, u64)>,
    buffer: Vec<u8>,
    /// Ends of lines passed outside of rows.
    skipped: u64,
    /// Line on which the last row starts, from 1.
    pub(super) line: u64,
}

impl<R: Read> Lines<Source<R>> {
    pub(super) fn new(mut source: Source<R>) -> Result<Self> {
        let mut head = Vec::new();
        source.by_ref().take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        if head.starts_with(b"\xEF\xBB\xBF") {
            head.drain(..3); // a byte order mark
        }
        if head.contains(&0) {
            return Err(Error::new("not a text file")
                .mismatch("CSV in UTF-8", "bytes of zero")
                .help("pass a file in idx, NPY, NPZ or CSV format; save text as UTF-8"));
        }
        let said = separator(&head);
        if said.is_some() {
            // The end of the line is counted as that of a blank one.
            let end = head.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            head.drain(..end.unwrap_or(head.len()));
        }
        let delimiter = said.unwrap_or_else(|| delimiter(&head));
        let mut lines = Self {
            input: std::io::Cursor::new(head).chain(BufReader::new(source)),
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            decimal_comma: delimiter != b',',
            cols: 0,
            names: None,
            is_numbered: false,
            is_unclear: false,
            first: None,
            second: None,
            buffer: vec![0; CELL_LIMIT],
            skipped: 0,
            line: 0,
        };
        lines.start()?;
        Ok(lines)
    }

    /// Reads the first rows: names, if there are any, and the first row of the data.
    fn start(&mut self) -> Result<()> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        // Comments: the last of them may hold the names, as numpy writes them.
        let mut named: Option<(Vec<String>, u64)> = None;
        while self.row(&mut first)? {
            if !is_comment(&first) {
                break;
            }
            named = Some((std::mem::take(&mut first), self.line));
        }
        let marked = |named: &(Vec<String>, u64)| named.0.len() == first.len();
        if first.is_empty() {
            // Nothing but comments: the last is a header without rows.
            if let Some((cells, _)) = named {
                self.cols = cells.len();
                self.names = Some(column_names(&cells));
            }
            return Ok(());
        }
        let line = self.line;
        self.cols = first.len();
        if let Some((cells, header_line)) = named.filter(marked)
            && !is_header(&first, None, self.decimal_comma)
        {
            self.line = header_line;
            self.name(&cells)?;
            self.first = Some((first, line));
            return Ok(());
        }
        let has_second = self.data_row(&mut second)?;
        let second_line = self.line;
        let below = has_second.then_some(&second[..]);
        if is_header(&first, below, self.decimal_comma) {
            self.line = line;
            self.name(&first)?;
            self.first = has_second.then_some((second, second_line));
        } else {
            self.is_unclear = first.len() == 2 && are_numbered(&first, None);
            self.first = Some((first, line));
            self.second = has_second.then_some((second, second_line));
        }
        Ok(())
    }

    fn name(&mut self, cells: &[String]) -> Result<()> {
        let names = column_names(cells);
        self.check_distinct(&names)?;
        self.is_numbered = are_numbered(cells, None);
        self.names = Some(names);
        Ok(())
    }

    /// The cells of the next row of the data, as many as the first row has; false at the end.
    pub(super) fn next(&mut self, cells: &mut Vec<String>) -> Result<bool> {
        let held = self.first.take().or_else(|| self.second.take());
        if let Some((row, line)) = held {
            (*cells, self.line) = (row, line);
        } else if !self.data_row(cells)? {
            return Ok(false);
        }
        if cells.len() == self.cols {
            return Ok(true);
        }
        Err(Error::new("the rows have different lengths")
            .expected(format_args!("{} cells, as in the first line", self.cols))
            .got(format_args!("{} cells in line {}", cells.len(), self.line))
            .help(match cells.iter().any(|cell| cell.contains('\n')) {
                true => OPEN_QUOTE,
                false => "every line must have the same number of cells",
            }))
    }

    /// The error of a file without rows.
    pub(super) fn no_rows(&self) -> Error {
        Error::new("the file holds no rows of numbers")
            .expected("at least one line of numbers")
            .got(if self.names.is_some() { "a line of names" } else { "blank lines" })
            .help("check what wrote the file, or pass another")
    }

    /// The cells of the next row that is no comment; false at the end.
    fn data_row(&mut self, cells: &mut Vec<String>) -> Result<bool> {
        loop {
            if !self.row(cells)? {
                return Ok(false);
            }
            if cells.len() == self.cols && self.cols > 1 || !is_comment(cells) {
                return Ok(true);
            }
        }
    }

    /// The cells of the next row that is not blank; false at the end.
    fn row(&mut self, cells: &mut Vec<String>) -> Result<bool> {
        loop {
            if !self.skip_line_ends()? {
                cells.clear();
                return Ok(false);
            }
            // The parser starts at line 1 and counts the ends of lines that it sees.
            self.line = self.parser.line() + self.skipped;
            self.cells(cells)?;
            if !matches!(&cells[..], [cell] if cell.trim().is_empty()) {
                return Ok(true);
            }
        }
    }

    /// Passes the ends of blank lines; false at the end of the file.
    fn skip_line_ends(&mut self) -> Result<bool> {
        loop {
            let input = self.input.fill_buf().map_err(unreadable)?;
            let ends = input.iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
            let (empty, more) = (input.is_empty(), ends < input.len());
            self.skipped += input[..ends].iter().filter(|&&b| b == b'\n').count() as u64;
            self.input.consume(ends);
            if empty || more {
                return Ok(!empty);
            }
        }
    }

    fn cells(&mut self, cells: &mut Vec<String>) -> Result<()> {
        let (mut len, mut count) = (0, 0);
        // Quotes of a cell that starts with one, which the parser takes for closed at the end of
        // the file: one within quotes is written twice, so those of a whole cell are even.
        let (mut quoted, mut quotes) = (None, 0);
        loop {
            let input = self.input.fill_buf().map_err(unreadable)?;
            let at_end = input.is_empty();
            let (result, read, written) = self.parser.read_field(input, &mut self.buffer[len..]);
            quoted = quoted.or(input[..read].first().map(|first| *first == b'"'));
            if quoted == Some(true) {
                quotes += input[..read].iter().filter(|&&byte| byte == b'"').count();
            }
            self.input.consume(read);
            len += written;
            let record_end = match result {
                ReadFieldResult::InputEmpty => continue,
                ReadFieldResult::OutputFull => return Err(self.too_long(count)),
                _ if at_end && quotes % 2 == 1 => return Err(self.open_quote(count)),
                ReadFieldResult::Field { record_end } => record_end,
                ReadFieldResult::End => true,
            };
            if count == cells.len() {
                cells.push(String::new());
            }
            let text =
                str::from_utf8(&self.buffer[..len]).map_err(|_| self.not_utf8(len, count))?;
            cells[count].clear();
            cells[count].push_str(text);
            (len, count, quoted, quotes) = (0, count + 1, None, 0);
            if record_end {
                cells.truncate(count);
                return Ok(());
            }
        }
    }

    fn numbers(&self, cells: &[String], values: &mut Vec<f32>) -> Result<()> {
        values.clear();
        for (column, cell) in cells.iter().enumerate() {
            let value =
                number(cell, self.decimal_comma).ok_or_else(|| self.not_a_number(cell, column))?;
            if !value.is_finite() {
                return Err(not_finite(cell.trim(), self.place(column)));
            }
            values.push(value);
        }
        Ok(())
    }

    /// Where column `column` of the last row is, as editors count.
    pub(super) fn place(&self, column: usize) -> String {
        format!("line {}, column {}", self.line, column + 1)
    }

    pub(super) fn not_a_number(&self, cell: &str, column: usize) -> Error {
        let shown: String = cell.chars().take(40).collect();
        let name = self.names.as_ref().and_then(|names| names.get(column));
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let what =
            if cell.trim().is_empty() { "a cell is empty" } else { "a cell is not a number" };
        Error::new(what)
            .mismatch("a number", format_args!("{shown:?} in {}{name}", self.place(column)))
            .help(match cell.contains('\n') {
                true => OPEN_QUOTE,
                false => "fill or remove the row, or remove the column; classes must be numbers",
            })
    }

    /// No two columns may have one name; several may have none.
    fn check_distinct(&self, names: &[String]) -> Result<()> {
        let mut first = std::collections::HashMap::new();
        for (column, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if let Some(earlier) = first.insert(name, column) {
                let (place, column) = (self.place(earlier), column + 1);
                return Err(Error::new("two columns have the same name")
                    .expected("a name of its own for every column")
                    .got(format_args!("{name:?} in {place} and column {column}"))
                    .help("rename one of them in the first line"));
            }
        }
        Ok(())
    }

    fn not_utf8(&self, len: usize, column: usize) -> Error {
        let shown = &self.buffer[..len.min(40)];
        Error::new("the text is not in UTF-8")
            .expected("CSV in UTF-8")
            .got(format_args!("\"{}\" in {}", shown.escape_ascii(), self.place(column)))
            .help("save the file as UTF-8")
    }

    fn open_quote(&self, column: usize) -> Error {
        Error::new("a quote is not closed")
            .expected(format_args!("a second quote for the one in {}", self.place(column)))
            .got("the end of the file")
            .help("close the quote, or remove it")
    }

    fn too_long(&self, column: usize) -> Error {
        Error::new("a cell is too long")
            .expected(format_args!("at most {CELL_LIMIT} bytes"))
            .got(format_args!("more in {}", self.place(column)))
            .help(match self.buffer.contains(&b'\n') {
                true => OPEN_QUOTE,
                false => "shorten the text, or leave its column out of the file",
            })
    }
}

/// What separates the cells of the first line that is not blank.
fn delimiter(head: &[u8]) -> u8 {
    let mut head = head.trim_ascii_start();
    // Comments say little of the cells.
    while head.starts_with(b"#")
        && let Some(end) = head.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        && let rest = head[end..].trim_ascii_start()
        && !rest.is_empty()
    {
        head = rest;
    }
    let mut quoted = false;
    let is_end = |byte: &u8| {
        quoted ^= *byte == b'"';
        !quoted && matches!(byte, b'\n' | b'\r')
    };
    let line = &head[..head.iter().position(is_end).unwrap_or(head.len())];
    let outside = line.split(|byte| *byte == b'"').step_by(2);
    match b"\t;,".iter().find(|own| outside.clone().flatten().any(|byte| byte == *own)) {
        Some(&delimiter) => delimiter,
        None if are_numbers(line) => b' ',
        None => b',',
    }
}

/// Whether a line is several numbers with single spaces between, as numpy writes text.
fn are_numbers(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line.trim_ascii());
    line.contains(' ') && line.split(' ').all(|cell| number(cell, false).is_some())
}

/// The separator that a first line `sep=;` says.
fn separator(head: &[u8]) -> Option<u8> {
    let line = head.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    match line.trim_ascii_end() {
        [b'"', b's', b'e', b'p', b'=', separator, b'"'] | [b's', b'e', b'p', b'=', separator] => {
            Some(*separator)
        }
        b"sep=" => Some(b'\t'), // a tab that was trimmed
        _ => None,
    }
}

fn is_comment(cells: &[String]) -> bool {
    cells.first().is_some_and(|cell| cell.starts_with('#'))
}

/// Whether the cells of a first line are names, by what stands `below` them.
fn is_header(cells: &[String], below: Option<&[String]>, decimal_comma: bool) -> bool {
    let is_count = |cell: &str| cell.bytes().all(|b| b.is_ascii_digit());
    let is_number = |cell: &str| number(cell, decimal_comma).is_some();
    let is_name = |cell: &str| !is_number(cell) && !is_missing(cell);
    if are_numbered(cells, None) {
        let is_below = |below: &[String]| match cells {
            // Behind the numbers of the rows.
            [first, ..] if first.trim().is_empty() => ["0", "1"].contains(&below[0].trim()),
            // Two columns of whole numbers may be data that begin so.
            [_, _] => below.iter().any(|cell| !is_count(cell.trim())),
            // A row that the next one goes on with is one of the data.
            _ => !are_numbered(&below[..below.len().min(3)], Some(below.len())),
        };
        return below.is_some_and(|below| !below.is_empty() && is_below(below));
    }
    let cells = || cells.iter().map(|cell| cell.trim());
    let names = cells().any(is_name) && cells().all(|cell| !is_number(cell) || is_count(cell));
    let Some(below) = below.filter(|_| names) else { return names };
    let mut columns = cells().zip(below.iter().map(|cell| cell.trim()));
    let is_above_numbers = columns.any(|(cell, below)| is_name(cell) && is_number(below));
    let mut counts = cells().filter(|cell| is_number(cell)).zip(0_usize..);
    is_above_numbers || counts.all(|(cell, k)| [k, k + 1].iter().any(|k| cell == k.to_string()))
}

/// Whether cells are 0, 1, … or 1, 2, …, each plus `offset` where there is one; else perhaps behind an empty cell.
fn are_numbered(cells: &[String], offset: Option<usize>) -> bool {
    let cells = match cells {
        [first, rest @ ..] if offset.is_none() && first.trim().is_empty() => rest,
        all => all,
    };
    let offset = offset.unwrap_or(0);
    let from =
        |first: usize| cells.iter().zip(first..).all(|(cell, k)| cell.trim() == k.to_string());
    cells.len() >= 2 && (from(offset) || from(offset + 1))
}

fn column_names(cells: &[String]) -> Vec<String> {
    let mut names: Vec<_> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
    if let Some(unmarked) = names.first().and_then(|first| first.strip_prefix('#')) {
        names[0] = unmarked.trim_start().to_owned();
    }
    names
}
