//! What the layers of a model give on the host, and the first number that a device has otherwise.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use tamis::infer::trace::{Kind, Trace};
use tamis::store::wire::checksum;

use crate::data::{Matrix, Values};
use crate::model::ModelFile;
use crate::model::file::Opened;
use crate::model::predict::integer_row;
use crate::{Error, Result, base::file};

mod log;

pub use log::{TraceLog, TracedRow};

/// A number that a device has otherwise, or a row that went in otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The row of the data, counted from 0.
    pub row: usize,
    /// The layer, counted from 0 as `tamis::infer::trace` does; none where the row itself is
    /// another.
    pub layer: Option<u32>,
    /// The neuron of the layer, counted from 0.
    pub neuron: Option<u32>,
    /// The number on the host.
    pub expected: Option<f64>,
    /// The number on the device.
    pub got: Option<f64>,
    /// The bits on the host; of the row its checksum.
    pub expected_bits: String,
    /// The bits on the device.
    pub got_bits: String,
}

/// How many numbers of a layer differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ComparedLayer {
    /// The layer, counted from 0.
    pub layer: u32,
    /// Its numbers, in all rows.
    pub numbers: usize,
    /// Those that differ.
    pub differ: usize,
    /// The largest difference; none where one of two numbers is none.
    pub largest: Option<f64>,
}

/// What came of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The model.
    pub model: String,
    /// Its checksum.
    pub crc32: String,
    /// `floats` or `integers`.
    pub numbers_are: &'static str,
    /// Rows that were compared.
    pub rows: usize,
    /// Rows that the device was given otherwise.
    pub inputs_differ: usize,
    /// Numbers that were compared.
    pub numbers: usize,
    /// Those that differ.
    pub differ: usize,
    /// Whether all is the same.
    pub agree: bool,
    /// The first difference.
    pub first: Option<Difference>,
    /// Layer by layer.
    pub layers: Vec<ComparedLayer>,
}

impl Comparison {
    /// Says by an error whether anything differs.
    ///
    /// # Errors
    /// Something does; [`is_over_limit`](Error::is_over_limit) tells it from what failed.
    pub fn check(&self) -> Result<()> {
        match &self.first {
            None => Ok(()),
            Some(Difference { row, layer: Some(layer), neuron: Some(neuron), .. }) => {
                Err(Error::over_limit(format!(
                    "the device gives other numbers than the host, first in row {row}, layer \
                     {layer}, neuron {neuron}"
                )))
            }
            Some(Difference { row, .. }) => Err(Error::over_limit(format!(
                "the device was given another row than the host, first row {row}"
            ))),
        }
    }
}

impl ModelFile {
    /// Writes what every layer gives on these rows of the data, as a device does by
    /// [`tamis::infer::trace`].
    ///
    /// # Errors
    /// The data has other columns or not these rows, or the file cannot be written.
    pub fn dump(&self, data: &Matrix, rows: Range<usize>, path: &Path) -> Result<()> {
        self.check_rows(data, &rows)?;
        file::write(path, |out| {
            let mut done = Ok(());
            let traced = self.trace(data, rows, |line| {
                if done.is_ok() {
                    done = writeln!(out, "{line}");
                }
            });
            done.and(traced.map_err(std::io::Error::other))
        })
    }

    /// Compares what a device has printed with what the layers give here: its rows are those of the
    /// data from `first` on.
    ///
    /// # Errors
    /// The log is of another model, or of fewer or other numbers than the model has; the data has
    /// other columns, or too few rows.
    pub fn compare(&self, data: &Matrix, first: usize, log: &TraceLog) -> Result<Comparison> {
        let own = checksum(self.bytes());
        let kind = self.kind()?;
        if (log.checksum, log.kind) != (own, kind) {
            return Err(Error::new("the log is of another model")
                .at(self.path())
                .expected(format_args!("{} and checksum {own:08x}, as the file has", kind.name()))
                .got(format_args!("{} and checksum {:08x}", log.kind.name(), log.checksum))
                .help("pass the model that the device has, or flash this one"));
        }
        let rows = first..first.saturating_add(log.rows.len());
        self.check_rows(data, &rows)?;
        let mut lines = String::new();
        self.trace(data, rows, |line| {
            lines.push_str(line);
            lines.push('\n');
        })?;
        let here = TraceLog::parse(lines.as_bytes())?;
        let mut report = Comparison {
            model: self.path().display().to_string(),
            crc32: format!("{own:08x}"),
            numbers_are: kind.name(),
            rows: log.rows.len(),
            agree: true,
            ..Comparison::default()
        };
        for (k, (host, device)) in here.rows.iter().zip(&log.rows).enumerate() {
            check_places(k, host, device)?;
            report.add(kind, first + k, host, device);
        }
        Ok(report)
    }

    fn kind(&self) -> Result<Kind> {
        Ok(match self.open()? {
            Opened::Floats(_) => Kind::Floats,
            Opened::Integers(_) => Kind::Integers,
        })
    }

    fn check_rows(&self, data: &Matrix, rows: &Range<usize>) -> Result<()> {
        self.check_columns(data)?;
        if rows.end > data.rows {
            let last = rows.end.saturating_sub(1);
            return Err(Error::new("the data has too few rows")
                .expected(format_args!("rows {} to {last}, counted from 0", rows.start))
                .got(format_args!("{} rows", data.rows))
                .help(
                    "pass the rows that the device has predicted; --first says where they begin",
                ));
        }
        Ok(())
    }

    fn trace(&self, data: &Matrix, rows: Range<usize>, put: impl FnMut(&str)) -> Result<()> {
        let d = data.cols;
        let mut trace = Trace::new(self.kind()?, checksum(self.bytes()), put);
        match self.open()? {
            Opened::Floats(view) => {
                let chain = view.model().chain();
                let (mut scratch, mut out) =
                    (vec![0.0; chain.scratch_len()], vec![0.0; chain.outputs()]);
                for k in rows {
                    let range = k * d..(k + 1) * d;
                    let (scratch, out) = (&mut scratch[..], &mut out[..]);
                    match &data.values {
                        Values::F32(of) => trace.floats(&chain, &of[range], scratch, out),
                        Values::U8(of) => trace.floats(&chain, &of[range], scratch, out),
                    }?;
                }
            }
            Opened::Integers(view) => {
                let (chain, readings) = (view.model().chain(), view.model().readings());
                let mut row = vec![0; d];
                let (mut scratch, mut out) =
                    (vec![0; chain.scratch_len()], vec![0; chain.outputs()]);
                for k in rows {
                    integer_row(readings, data, k, &mut row);
                    trace.integers(&chain, &row, &mut scratch, &mut out)?;
                }
            }
        }
        trace.finish();
        Ok(())
    }
}

impl Comparison {
    /// One more row, the one of this number in the data.
    fn add(&mut self, kind: Kind, row: usize, host: &TracedRow, device: &TracedRow) {
        if (host.len, host.input) != (device.len, device.input) {
            self.inputs_differ += 1;
            let bits = |row: &TracedRow| format!("{:08x} of {} numbers", row.input, row.len);
            let (expected_bits, got_bits) = (bits(host), bits(device));
            let inputs = Difference { row, expected_bits, got_bits, ..Difference::default() };
            self.first.get_or_insert(inputs);
        }
        for (&[layer, neuron, expected], &[_, _, got]) in host.numbers.iter().zip(&device.numbers) {
            if self.layers.last().is_none_or(|last| last.layer < layer) {
                let largest = Some(0.0);
                self.layers.push(ComparedLayer { layer, largest, ..ComparedLayer::default() });
            }
            self.numbers += 1;
            let Some(sums) = self.layers.get_mut(layer as usize) else { continue };
            sums.numbers += 1;
            if expected == got {
                continue;
            }
            self.differ += 1;
            sums.differ += 1;
            let (a, b) = (number(kind, expected), number(kind, got));
            let off = a.zip(b).map(|(a, b)| (a - b).abs());
            sums.largest = sums.largest.zip(off).map(|(most, off)| most.max(off));
            self.first.get_or_insert_with(|| Difference {
                row,
                layer: Some(layer),
                neuron: Some(neuron),
                expected: a,
                got: b,
                expected_bits: format!("{expected:08x}"),
                got_bits: format!("{got:08x}"),
            });
        }
        self.agree = self.first.is_none();
    }
}

/// Whether both rows have the same numbers of the same layers.
fn check_places(at: usize, host: &TracedRow, device: &TracedRow) -> Result<()> {
    let is_same = |(here, there): &(&[u32; 3], &[u32; 3])| here[..2] == there[..2];
    let same = host.numbers.iter().zip(&device.numbers).take_while(is_same).count();
    let (expected, got) = (host.numbers.get(same), device.numbers.get(same));
    if expected.is_none() && got.is_none() {
        return Ok(());
    }
    let text = |place: Option<&[u32; 3]>| match place {
        Some([layer, neuron, _]) => format!("layer {layer}, neuron {neuron}"),
        None => "the end of the row".into(),
    };
    let is_missing = |[layer, ..]: &&[u32; 3]| device.numbers.iter().all(|got| got[0] != *layer);
    let what = match expected.filter(is_missing) {
        Some([layer, ..]) => format!("row {at} of the log has no number of layer {layer}"),
        None => format!("row {at} of the log has other numbers than the model"),
    };
    Err(Error::new(what)
        .expected(text(expected))
        .got(text(got))
        .help("record every number of every layer, as Trace::floats and Trace::integers do"))
}

/// What bits stand for; none for a float that is no number or infinite.
fn number(kind: Kind, bits: u32) -> Option<f64> {
    match kind {
        Kind::Floats => Some(f64::from(f32::from_bits(bits))).filter(|value| value.is_finite()),
        Kind::Integers => Some(f64::from(bits as i32)),
    }
}
