//! What people and programs read.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use super::common::Common;
use crate::base::file;
use crate::{Error, Result};

impl Common {
    /// The result: `object` with `--json`, else `text` unless `--quiet`.
    pub(super) fn result(
        &self,
        object: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.json {
            let json = serde_json::to_string(object);
            return report(&json.map_err(|error| Error::new("cannot write JSON").source(error))?);
        }
        if self.quiet { Ok(()) } else { report(&text()) }
    }

    /// The result, below what there is to say of the data.
    pub(super) fn result_with(
        &self,
        notes: &[String],
        object: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.result(&Noted { object, notes }, || noted(notes) + &text())
    }

    /// A line that belongs to the report but comes before the end.
    pub(super) fn say(&self, text: impl Display) -> Result<()> {
        if self.json || self.quiet { Ok(()) } else { print(&text.to_string()) }
    }
}

/// An object and what there is to say of the data.
#[derive(Serialize)]
struct Noted<'a, O> {
    #[serde(flatten)]
    object: &'a O,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// Lines of what there is to say of the data.
pub(super) fn noted(notes: &[String]) -> String {
    let line = |note: &String| match note.starts_with("warning: ") {
        true => format!("{note}\n"),
        false => format!("note: {note}\n"),
    };
    notes.iter().map(line).collect()
}

/// Prints what a verb says at its end, when its files are written.
fn report(text: &str) -> Result<()> {
    print(text).map_err(|error| {
        error.help(
            "files that the command writes are written and whole: only this report of them is lost",
        )
    })
}

/// Prints to standard output, or beside it where that holds what was made; a reader that has gone away is no error.
fn print(text: &str) -> Result<()> {
    if file::is_standard_output_taken() {
        say_error(format_args!("{text}"));
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new("cannot write to standard output").source(error))
        }
        _ => Ok(()),
    }
}

/// Says it where it can be said: a closed standard error is no reason to fail again.
pub(super) fn say_error(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Says on standard error what changes no result.
pub(super) fn say_note(note: Option<String>) {
    if let Some(note) = note {
        say_error(format_args!("{}", noted(&[note]).trim_end()));
    }
}

pub(super) fn first_given(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find_map(|&(given, flag)| given.then_some(flag))
}

/// Refuses the first flag that was given, with what is expected in its place.
pub(super) fn refuse(
    flags: &[(bool, &'static str)],
    what: &str,
    expected: &str,
    other: &str,
) -> Result<()> {
    let Some(flag) = first_given(flags) else { return Ok(()) };
    let help = format!("leave {flag} out{other}");
    Err(Error::new(what).expected(expected).got(flag).help(help))
}

/// A block of names and values, aligned.
pub(super) fn facts(title: &str, facts: &[(&str, String)]) -> String {
    let wide = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, value)| format!("\n  {name:wide$}  {value}"));
    format!("{title}{}", lines.collect::<String>())
}

/// A table: the first column is aligned to the left, the others to the right.
pub(super) fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut all = vec![heading.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()];
    all.extend(rows);
    let len = |row: &Vec<String>, c: usize| row.get(c).map_or(0, |text| text.chars().count());
    let width = |c: usize| all.iter().map(|row| len(row, c)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(c, (text, &width))| match c {
            0 => format!("  {text:<width$}"),
            _ => format!("  {text:>width$}"),
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A count with its thousands apart.
pub(super) fn count(n: impl TryInto<u64>) -> String {
    let digits = n.try_into().unwrap_or(u64::MAX).to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(" ")
}

/// Bytes as people read them: exact below 10 KB, else with three digits.
pub(super) fn bytes(n: impl TryInto<u64>) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    let (unit, name) = match n {
        0..10_240 => return format!("{} B", count(n)),
        10_240..10_485_760 => (1024.0, "KiB"),
        10_485_760..10_737_418_240 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    let value = n as f64 / unit;
    if value < 100.0 { format!("{value:.1} {name}") } else { format!("{value:.0} {name}") }
}

pub(super) fn decibel(psnr: Option<f64>) -> String {
    psnr.map_or("none (all labels are 0)".into(), |db| format!("{db:.1} dB"))
}

/// A PSNR beside that of predicting 0 for every row.
pub(super) fn psnr_fact(psnr: Option<f64>, zero: Option<f64>) -> (&'static str, String) {
    let beside = match (psnr, zero) {
        (Some(own), Some(zero)) if own <= zero => {
            format!(", no better than to predict 0 for every row ({zero:.1} dB)")
        }
        (_, Some(zero)) => format!(", where 0 for every row has {zero:.1} dB"),
        _ => String::new(),
    };
    ("PSNR", decibel(psnr) + &beside)
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.2} %", 100.0 * part)
}

/// A warning about numbers beyond the calibration range of a model of integers.
pub(super) fn cut_fact(inputs: Option<usize>) -> Option<(&'static str, String)> {
    let inputs = count(inputs.filter(|inputs| *inputs > 0)?);
    let text = format!(
        "{inputs} numbers of the data are beyond the range that the model was calibrated to, and \
         cut to its ends; if such rows are common, quantize again on rows that hold such numbers"
    );
    Some(("warning", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(
            (count(7_u64), count(1000_u64), count(1_234_567_u64)),
            ("7".into(), "1 000".into(), "1 234 567".into())
        );
        assert_eq!((bytes(9999_u64), bytes(10_240_u64)), ("9 999 B".into(), "10.0 KiB".into()));
        assert_eq!(
            (bytes(20_000_000_u64), bytes(u64::MAX)),
            ("19.1 MiB".into(), "17179869184 GiB".into())
        );
    }

    #[test]
    fn tables_align_whatever_the_letters() {
        let row = vec!["long".into(), "1000".into()];
        assert_eq!(table(&["ä", "1"], [row]), "  ä        1\n  long  1000");
    }
}
