//! `tamis certify`

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{self, count, percent};
use super::source::{ModelColumns, TableArgs};
use super::{interrupt, parse, progress};
use crate::data::{Matrix, Rows, Task};
use crate::model::{Boxes, Certificate, CertifyOptions, ModelFile, RowCertificate, certify};
use crate::{Error, Result};

/// Bound how far a pruned or quantised model is from the original: a proof over boxes of rows, and a
/// difference that is reached.
///
/// The difference is the largest of any output, in the numbers of tamis predict. Upper bounds hold
/// for every row of 32-bit floats in a box and for what devices compute, rounding included; lower
/// bounds were found and predicted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis certify model.tamis small.tamis --box test.npy --eps 0.02
  tamis certify model.tamis small.tamis --box test.npy --eps 0.02 --range 0,1 --rows 20 --json
  tamis certify model.tamis pruned.tamis --box table.csv --target price --eps 0.1 --fresh new.csv
  tamis certify model.tamis small.tamis --box unit

Ctrl-C ends it at once, without a report.")]
pub(super) struct Certify {
    /// The original model
    #[arg(value_name = "A.tamis")]
    a: PathBuf,
    /// The model that was made of it
    #[arg(value_name = "B.tamis")]
    b: PathBuf,
    /// The rows to put boxes around, in any format that train reads; or `unit`: one box, all
    /// numbers from 0 to 1
    #[arg(id = "box", long, value_name = "F[,F2…]|unit")]
    boxes: PathBuf,
    /// How far each input may move from the row, in its own unit
    #[arg(long, value_name = "E")]
    eps: Option<f64>,
    /// What inputs can be: boxes are cut to it
    #[arg(long, value_name = "LOW,HIGH", value_parser = parse::interval, allow_hyphen_values = true)]
    range: Option<[f32; 2]>,
    /// Columns that do not move, counted from 0, such as a last column of ones; with --box unit they
    /// are 1
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', value_parser = parse::whole::<usize>)]
    hold: Vec<usize>,
    /// Boxes around the first N rows only
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    rows: Option<usize>,
    /// Rows that neither model was trained on, for a statement about their distribution [default:
    /// all rows of --box]
    #[arg(long, value_name = "F[,F2…]")]
    fresh: Option<PathBuf>,
    /// A column to leave out of both files: the labels
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    #[command(flatten)]
    table: TableArgs,
    /// Starts of the gradient ascent to lower bounds
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = parse::whole::<usize>)]
    starts: usize,
}

#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    report: &'a Certificate,
    seconds: f64,
}

/// Says that classes are not compared where one model has some and the other has no task.
fn no_classes(a: &ModelFile, b: &ModelFile) -> Result<Option<String>> {
    let without = match (a.task()?, b.task()?) {
        (Some(task), None) if task != Task::Regression => b,
        (None, Some(task)) if task != Task::Regression => a,
        _ => return Ok(None),
    };
    let path = without.path().display();
    Ok(Some(format!("{path} has no task (import --task): classes are not compared")))
}

impl Certify {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let is_unit = self.boxes == Path::new("unit");
        self.check(is_unit)?;
        let (a, b) = (ModelFile::load(&self.a)?, ModelFile::load(&self.b)?);
        let columns = ModelColumns::new(&a, &self.table)?;
        let read = |path: &Path| columns.samples(path, self.target.as_deref());
        let all = if is_unit { None } else { Some(read(&self.boxes)?) };
        let fresh = self.fresh.as_deref().map(read).transpose()?;
        let mut notes = Vec::new();
        let mut matrix = |rows: Option<Rows>| {
            rows.map(|rows| {
                notes.extend(rows.notes);
                rows.matrix
            })
        };
        let (all, fresh) = (matrix(all), matrix(fresh));
        notes.dedup();
        notes.extend(no_classes(&a, &b)?);
        let first = all.as_ref().map(|all| self.first(all)).transpose()?;
        let boxes = match &first {
            None => Boxes::Unit { held: &self.hold },
            Some(rows) => Boxes::Around {
                rows,
                eps: self.eps.unwrap_or(0.0),
                range: self.range,
                held: &self.hold,
            },
        };
        let options = CertifyOptions { seed: common.seed, starts: self.starts };
        let steps = first.as_ref().map_or(1, |rows| rows.rows as u64);
        let bar = progress::line(common, Some(steps), "  {bar:12} box {pos} of {len}, {eta} left");
        let (fresh, start) = (fresh.as_ref().or(all.as_ref()), Instant::now());
        let report = interrupt::unsaved(|| {
            common.on_pool(|| certify(&a, &b, &boxes, fresh, options, &|| bar.inc(1)))
        });
        bar.finish_and_clear();
        let report = report??;
        let object = Object { report: &report, seconds: start.elapsed().as_secs_f64() };
        common.result_with(&notes, &object, || summary(&object))
    }

    /// Refuses flags that do not go together.
    fn check(&self, is_unit: bool) -> Result<()> {
        let given = [
            (self.eps.is_some(), "--eps"),
            (self.range.is_some(), "--range"),
            (self.rows.is_some(), "--rows"),
            (self.target.is_some() && self.fresh.is_none(), "--target"),
        ];
        let refused = |expected: &str, got: &str, help: &str| {
            let error = Error::usage("the flags do not go together").expected(expected).got(got);
            Err(error.help(help))
        };
        match console::first_given(&given) {
            Some(flag) if is_unit => {
                refused("--box unit alone, which has no rows", flag, &format!("leave {flag} out"))
            }
            _ if !is_unit && self.eps.is_none() => refused(
                "--eps E beside --box FILE",
                "no --eps",
                "say how far inputs may move from the rows, or pass --box unit",
            ),
            _ if self.starts == 0 => {
                refused("--starts of at least 1", "0", "pass more, or leave --starts out")
            }
            _ => Ok(()),
        }
    }

    /// The rows that boxes are around.
    fn first(&self, all: &Matrix) -> Result<Matrix> {
        let rows = self.rows.unwrap_or(all.rows).min(all.rows);
        all.first(rows)
    }
}

/// The most boxes that are listed; `--json` has all.
const LISTED: usize = 20;

fn summary(object: &Object<'_>) -> String {
    let Object { report, seconds } = object;
    let place = match report.eps {
        Some(eps) => format!("{} boxes of ±{eps}", count(report.rows.len())),
        None => "the unit box".into(),
    };
    let title = format!("{} and {}: {place}, {seconds:.1} s", report.a, report.b);
    let heading =
        ["row", "at least", "at most", "ratio", "spectral", "joint CROWN", "differences", "class"];
    let row = |of: &RowCertificate| {
        let [lower, upper, spectral, crown, difference] =
            [of.lower, of.upper, of.spectral, of.crown, of.difference].map(short);
        let class = match (of.class, of.class_certain) {
            (Some(class), Some(true)) => format!("{class} certain"),
            (Some(class), _) => format!("{class} open"),
            _ => String::new(),
        };
        let ratio = of.ratio();
        let ratio = if ratio.is_finite() { format!("{ratio:.2}") } else { "-".into() };
        vec![of.row.to_string(), lower, upper, ratio, spectral, crown, difference, class]
    };
    let table = console::table(&heading, report.rows.iter().take(LISTED).map(row));
    let more = report.rows.len().saturating_sub(LISTED);
    let more = if more > 0 {
        format!("\n  and {} more: --json has all", count(more))
    } else {
        String::new()
    };
    let mut lines = vec![format!(
        "No row of these boxes differs by more than {}. Median: at least {}, at most {}{}.",
        short(report.upper),
        short(report.median_lower),
        short(report.median_upper),
        report.median_ratio.map_or_else(String::new, |ratio| format!(", ratio {ratio:.2}")),
    )];
    if let Some(certain) = report.class_certain {
        let (certain, all) = (count(certain), count(report.rows.len()));
        lines.push(format!(
            "On {certain} of {all} boxes both models provably give every row the class of the row."
        ));
    }
    if let Some(fresh) = &report.fresh {
        let (share, rows) = (percent(fresh.share), count(fresh.rows));
        lines.push(format!(
            "Largest difference on {rows} rows: {}. If neither model has seen them, at least {share} \
             of the rows of their distribution are within it (99 % confidence).",
            short(fresh.largest),
        ));
        if let Some(same) = fresh.same_class {
            lines.push(format!("On {} of them the class is the same.", count(same)));
        }
    }
    format!("{title}\n\n{table}{more}\n\n{}", lines.join("\n"))
}

fn short(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        number if (1e-3..1e4).contains(&number) => format!("{number:.4}"),
        number => format!("{number:.2e}"),
    }
}
