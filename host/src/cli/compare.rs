//! `tamis compare`

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console::{self, count};
use super::source::{ModelColumns, TableArgs};
use super::{interrupt, parse};
use crate::base::file::{self, Kind};
use crate::data::Rows;
use crate::model::{ComparedLayer, Comparison, Difference, ModelFile, TraceLog};
use crate::{Error, Result};

/// Find the first output of a layer where a device differs from this program: exit code 3 if there
/// is one.
///
/// The device predicts through `tamis::infer::trace::Trace` and prints every number of every layer,
/// on semihosting, a serial port or any log; other lines may stand between. Its first row is row
/// --first of the data, and so on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis compare small.tamis --data test.npy --device device.log
  tamis compare small.tamis --data test.npy --first 20 --device device.log --json
  tamis compare small.tamis --data test.npy --rows 0..5 --dump host.log")]
pub(super) struct Compare {
    /// The model that the device has
    #[arg(value_name = "M.tamis")]
    model: PathBuf,
    /// The rows that the device predicts, in any format that train reads
    #[arg(long, value_name = "F[,F2…]")]
    data: PathBuf,
    /// A column of the data to leave out: the labels
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    #[command(flatten)]
    table: TableArgs,
    /// What the device has printed
    #[arg(long, value_name = "LOG", required_unless_present = "dump", conflicts_with = "dump")]
    device: Option<PathBuf>,
    /// The row of the data, counted from 0, that is the first of the log
    #[arg(long, value_name = "ROW", default_value_t = 0, value_parser = parse::whole::<usize>,
          conflicts_with = "dump")]
    first: usize,
    /// Write what this program gives, in the same lines, and compare nothing
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// The rows to write, A to B-1, counted from 0 [default: all]
    #[arg(long, value_name = "A..B", value_parser = parse::range, requires = "dump")]
    rows: Option<Range<usize>>,
}

/// The most bytes of a log.
const LARGEST: u64 = 1 << 30;

#[derive(Serialize)]
struct Dumped {
    model: String,
    rows: usize,
    dump: String,
}

#[derive(Serialize)]
struct Compared<'a> {
    #[serde(flatten)]
    report: &'a Comparison,
    inputs_cut: Option<usize>,
    device: String,
}

impl Compare {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        if let Some(path) = &self.dump {
            file::check(path, Kind::TRACE, [self.model.as_path(), self.data.as_path()])?;
        }
        let model = ModelFile::load(&self.model)?;
        let columns = ModelColumns::new(&model, &self.table)?;
        let Rows { matrix: samples, notes } =
            columns.samples(&self.data, self.target.as_deref())?;
        if let Some(path) = &self.dump {
            let rows = self.rows.clone().unwrap_or(0..samples.rows);
            interrupt::saving(|| model.dump(&samples, rows.clone(), path))?;
            let (model, dump) = (self.model.display().to_string(), path.display().to_string());
            let object = Dumped { model, rows: rows.len(), dump };
            return common.result_with(&notes, &object, || {
                let rows = count(object.rows);
                format!("Saved {}: what the layers give on {rows} rows", object.dump)
            });
        }
        let path = self.device.as_deref().unwrap_or(Path::new(""));
        let log = TraceLog::parse(&read(path)?).map_err(|error| error.at(path))?;
        let report = model.compare(&samples, self.first, &log)?;
        let inputs_cut = model.inputs_cut(&samples)?;
        let object = Compared { report: &report, inputs_cut, device: path.display().to_string() };
        common.result_with(&notes, &object, || summary(&object))?;
        report.check()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let (file, len) = file::open(path)?;
    let mut bytes = Vec::new();
    let taken = file.take(if len > LARGEST { 0 } else { LARGEST + 1 }).read_to_end(&mut bytes);
    let taken = taken.map_err(|error| Error::io("cannot read", path, error))?;
    if len > LARGEST || taken as u64 > LARGEST {
        return Err(Error::new("the log is too large")
            .at(path)
            .expected(format_args!("at most {LARGEST} bytes"))
            .got(format_args!("{len} bytes"))
            .help("record fewer rows"));
    }
    Ok(bytes)
}

fn summary(object: &Compared<'_>) -> String {
    let report = object.report;
    let title = format!("{} and {}: {} rows", report.model, object.device, count(report.rows));
    let heading = ["layer", "numbers", "differ", "largest difference"];
    let row = |layer: &ComparedLayer| {
        let largest = match (layer.differ, layer.largest) {
            (0, _) => String::new(),
            (_, Some(largest)) => format!("{largest:e}"),
            (_, None) => "no number".into(),
        };
        vec![layer.layer.to_string(), count(layer.numbers), count(layer.differ), largest]
    };
    let layers = console::table(&heading, report.layers.iter().map(row));
    let first = match &report.first {
        None => format!("All {} numbers are bit-identical.", count(report.numbers)),
        Some(first) => difference(report, first),
    };
    let warning =
        console::cut_fact(object.inputs_cut).map(|(name, text)| format!("\n{name}: {text}"));
    format!("{title}\n\n{layers}\n\n{first}{}", warning.unwrap_or_default())
}

fn difference(report: &Comparison, first: &Difference) -> String {
    let Difference { row, expected_bits, got_bits, .. } = first;
    let (Some(layer), Some(neuron)) = (first.layer, first.neuron) else {
        let (differ, rows) = (count(report.inputs_differ), count(report.rows));
        return format!(
            "The device was given another row {row}: checksum {got_bits}, here {expected_bits}. \
             Look at how the row reaches the model before looking at the model; {differ} of {rows} \
             rows are others."
        );
    };
    let number =
        |value: Option<f64>| value.map_or("no finite number".into(), |value| value.to_string());
    let place = format!("row {row}, layer {layer}, neuron {neuron}");
    let (host, device) = (number(first.expected), number(first.got));
    let both = format!("\n  host  {host} ({expected_bits})\n  device  {device} ({got_bits})");
    format!("First difference: {place}{both}")
}
