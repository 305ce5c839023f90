//! The lines of [`tamis::infer::trace`], read from what a device has printed.
//!
//! Lines without the prefix are not looked at, and what stands before it on a line, as a time, is
//! left out. Nothing else is believed: numbers are counted, rows come one by one, and checksums
//! must fit.

use tamis::infer::trace::{self, Kind, PREFIX, VERSION};

use crate::{Error, Result};

/// What one run of a program has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLog {
    /// What its numbers are.
    pub kind: Kind,
    /// Checksum of the model file.
    pub checksum: u32,
    /// Its rows, in their order.
    pub rows: Vec<TracedRow>,
}

/// What the layers gave on a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedRow {
    /// Numbers of the row that went in.
    pub len: u32,
    /// Their checksum.
    pub input: u32,
    /// Layer, neuron and bits of every number.
    pub numbers: Vec<[u32; 3]>,
}

/// A line, and its number counted from 1.
#[derive(Clone, Copy)]
struct Line<'a> {
    at: usize,
    text: &'a str,
}

impl Line<'_> {
    fn error(self, what: &str) -> Error {
        let text: String = self.text.chars().filter(|c| !c.is_control()).take(60).collect();
        Error::new(format!("{what}, line {}", self.at)).got(format_args!("{text:?}"))
    }

    fn damaged(self, expected: &str) -> Error {
        self.error("the log is damaged")
            .expected(expected)
            .help("record it again: characters may have been lost on the way")
    }
}

impl TraceLog {
    /// Reads a log; where a program has started several times, what it printed since the last
    /// start.
    ///
    /// # Errors
    /// There is no trace in the log, it is of a later version, ends too soon or is damaged.
    pub fn parse(log: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(log);
        let lines = (1..).zip(text.lines()).filter_map(|(at, text)| {
            let (_, text) = text.split_once(PREFIX)?;
            Some(Line { at, text: text.trim() })
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let is_head =
            |line: &Line<'_>| fields(line.text).is_some_and(|[_, kind, _]| kind_of(kind).is_some());
        let Some(start) = lines.iter().rposition(is_head) else {
            return Err(Error::new("there is no trace in the log")
                .expected(format_args!("a line such as \"{PREFIX} {VERSION} floats 0123abcd\""))
                .got(format_args!("{} lines that start with {PREFIX}", lines.len()))
                .help(
                    "record what a program prints that predicts through \
                     tamis::infer::trace::Trace, from its start on",
                ));
        };
        read(lines[start], &lines[start + 1..])
    }
}

fn read(head: Line<'_>, lines: &[Line<'_>]) -> Result<TraceLog> {
    let damaged = || head.damaged("version, kind of numbers and checksum of the model");
    let [version, kind, checksum] = fields(head.text).ok_or_else(damaged)?;
    match version.parse() {
        Ok(VERSION) => {}
        Ok(later) if later > VERSION => {
            return Err(Error::new("the log has a later format than this program reads")
                .expected(format_args!("version {VERSION}"))
                .got(format_args!("version {later}"))
                .help("update tamis"));
        }
        _ => return Err(damaged()),
    }
    let (kind, checksum) = kind_of(kind).zip(bits(checksum)).ok_or_else(damaged)?;
    let (mut rows, mut open): (Vec<TracedRow>, Option<TracedRow>) = (Vec::new(), None);
    for line in lines {
        match (words(line.text).as_slice(), &mut open) {
            (["row", number, len, sum], None) => {
                let (Some(number), Some(len), Some(input)) = (whole(number), whole(len), bits(sum))
                else {
                    return Err(line.damaged("number, length and checksum of a row"));
                };
                if u64::from(number) != rows.len() as u64 {
                    return Err(line
                        .error("a row is missing in the log")
                        .expected(format_args!("row {}", rows.len()))
                        .help("record it again, from the start of the program on"));
                }
                open = Some(TracedRow { len, input, numbers: Vec::new() });
            }
            (["end", count, sum], Some(row)) => {
                let (Some(count), Some(sum)) = (whole(count), bits(sum)) else {
                    return Err(line.damaged("count and checksum of the numbers"));
                };
                let (at, found) = (rows.len(), row.numbers.len());
                if u64::from(count) != found as u64 {
                    let error = line.damaged(&format!("{count} numbers in row {at}"));
                    return Err(error.got(format_args!("{found} numbers")));
                }
                let got = trace::checksum(row.numbers.iter().copied());
                if got != sum {
                    let expected = format!("checksum {sum:08x} of the numbers of row {at}");
                    return Err(line.damaged(&expected).got(format_args!("{got:08x}")));
                }
                rows.extend(open.take());
            }
            (["done", count], None) => {
                let count = whole(count).ok_or_else(|| line.damaged("the number of rows"))?;
                if u64::from(count) != rows.len() as u64 {
                    return Err(line.damaged(&format!("{} rows", rows.len())));
                }
                return Ok(TraceLog { kind, checksum, rows });
            }
            ([layer, neuron, value], Some(row)) => {
                let (Some(layer), Some(neuron), Some(value)) =
                    (whole(layer), whole(neuron), bits(value))
                else {
                    return Err(line.damaged("layer, neuron and eight hexadecimal digits"));
                };
                row.numbers.push([layer, neuron, value]);
            }
            (_, Some(_)) => return Err(line.damaged("a number of a layer, or the end of the row")),
            (_, None) => return Err(line.damaged("a row, or the end of the trace")),
        }
    }
    let got = match (open, rows.len()) {
        (Some(_), at) => format!("an end in row {at}"),
        (None, 0) => "no row".to_owned(),
        (None, rows) => format!("an end behind row {}", rows - 1),
    };
    Err(Error::new("the log ends too soon")
        .expected(format_args!("a line \"{PREFIX} done …\""))
        .got(got)
        .help("record it until the program ends; Trace::finish writes the last line"))
}

fn words(text: &str) -> Vec<&str> {
    // One more than the longest line has.
    text.split_ascii_whitespace().take(5).collect()
}

fn fields(text: &str) -> Option<[&str; 3]> {
    words(text).try_into().ok()
}

fn kind_of(text: &str) -> Option<Kind> {
    [Kind::Floats, Kind::Integers].into_iter().find(|kind| kind.name() == text)
}

/// A decimal number as the device writes it, without a sign.
fn whole(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn bits(text: &str) -> Option<u32> {
    let digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u32::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of two numbers.
    fn log() -> String {
        let numbers = |bits| [[0, 0, bits], [1, 0, 7]];
        let mut text = String::from("boot\n@tamis 1 integers 0123abcd\n");
        for (row, bits) in [(0, 5), (1, 9)] {
            let sum = trace::checksum(numbers(bits));
            text += &format!(
                "@tamis row {row} 3 89abcdef\n@tamis 0 0 {bits:08x}\nother\n@tamis 1 0 \
                 00000007\n@tamis end 2 {sum:08x}\n"
            );
        }
        text + "@tamis done 2\n"
    }

    #[test]
    fn foreign_lines_timestamps_and_earlier_starts_are_skipped() {
        let whole = TraceLog::parse(log().as_bytes()).unwrap();
        assert_eq!(
            (whole.kind, whole.checksum, whole.rows.len()),
            (Kind::Integers, 0x0123_abcd, 2)
        );
        assert_eq!(
            whole.rows[1],
            TracedRow { len: 3, input: 0x89ab_cdef, numbers: vec![[0, 0, 9], [1, 0, 7]] }
        );
        let timed = log().replace("@tamis", "[12.5] @tamis").replace('\n', "\r\n");
        assert_eq!(TraceLog::parse(timed.as_bytes()).unwrap(), whole);
        let again = log().lines().take(4).collect::<Vec<_>>().join("\n") + "\n" + &log();
        assert_eq!(TraceLog::parse(again.as_bytes()).unwrap(), whole);
    }

    #[test]
    fn log_truncated_anywhere_is_refused() {
        let log = log();
        // What ends within the last line may still read as a whole one, of the wrong number of rows
        // or none.
        for end in 0..log.len() - 2 {
            assert!(TraceLog::parse(&log.as_bytes()[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn what_is_damaged_is_named_with_its_line() {
        for (from, to, words) in [
            ("@tamis 0 0 00000005", "@tamis 0 0 00000006", "line 7: \"\n  expected: checksum"),
            ("@tamis 0 0 00000005\n", "", "2 numbers in row 0"),
            ("@tamis 0 0 00000005", "@tamis 0 0 0000005", "line 4"),
            ("@tamis 0 0 00000005", "@tamis 0 -0 00000005", "line 4"),
            ("@tamis row 1", "@tamis row 2", "a row is missing"),
            ("@tamis done 2", "@tamis done 3", "2 rows"),
            ("@tamis done 2", "", "ends too soon"),
            ("@tamis 1 integers", "@tamis 2 integers", "later format"),
            ("integers", "numbers", "no trace"),
        ] {
            let log = log();
            assert!(log.contains(from), "{from}");
            let error = TraceLog::parse(log.replace(from, to).as_bytes()).unwrap_err().to_string();
            let words = words.split(": \"").next().unwrap_or(words);
            assert!(error.contains(words), "{from} -> {to}\n{error}");
        }
    }
}
