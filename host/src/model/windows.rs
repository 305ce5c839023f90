//! Sparse layers of floats in windows of columns, and back in rows: which of the two a file holds.

use tamis::infer::model::{Activation, Blocks, Csr, Layer, Model, WINDOW};
use tamis::infer::quantised::Encoding;
use tamis::store::wire::{Choice, View};

use crate::base::file::Aligned;
use crate::model::ModelFile;
use crate::model::file::Opened;
use crate::{Error, Result};

/// How the layers of a file are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encodings {
    /// Floats in compressed rows.
    Rows,
    /// As chosen; of floats smallest, fastest or blocks.
    Chosen(Choice),
}

impl Encodings {
    /// What they are for integers.
    ///
    /// # Errors
    /// Rows are chosen, which integers do not have.
    pub fn of_integers(self) -> Result<Choice> {
        match self {
            Self::Chosen(choice) => Ok(choice),
            Self::Rows => Err(Error::new("integers are not held in rows")
                .expected("--encoding smallest, fastest, dense, bitmask or blocks")
                .got("rows")
                .help("blocks are smaller and faster than rows")),
        }
    }
}

/// A layer in its own memory.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Rows { counts: Vec<u16>, columns: Vec<u16> },
    Windows { counts: Vec<u8>, indices: Vec<u8> },
}

/// A sparse layer in its new encoding, with its values in the order of that.
struct Held {
    inputs: usize,
    requested: usize,
    activation: Activation,
    owned: Owned,
    values: Vec<f32>,
}

impl ModelFile {
    /// The same model of floats with all sparse layers in rows, as those that fit, round or draw it
    /// want them.
    pub(crate) fn in_rows(&self) -> Result<Self> {
        let view = self.view()?;
        if view.model().layers().iter().all(|layer| !matches!(layer, Layer::Blocks(_))) {
            return Ok(self.clone());
        }
        self.encoded(Encodings::Rows)
    }

    /// The same model with its layers in other encodings.
    pub(crate) fn encoded(&self, encodings: Encodings) -> Result<Self> {
        let bytes = match self.open()? {
            Opened::Floats(view) => {
                floats(&view, encodings).map_err(|error| error.at(self.path()))?
            }
            Opened::Integers(view) => {
                let choice = encodings.of_integers().map_err(|error| error.at(self.path()))?;
                let mut bytes = vec![0; view.encoded_len(choice)];
                view.encode(choice, &mut bytes)?;
                bytes
            }
        };
        Ok(self.with_bytes(Aligned::new(&bytes)))
    }
}

/// The bytes of a file with each sparse layer in rows or in windows, whichever is chosen and can
/// hold it.
///
/// # Errors
/// Another encoding is chosen, which floats do not have.
fn floats(view: &View<'_>, encodings: Encodings) -> Result<Vec<u8>> {
    let mut held = Vec::new();
    for layer in view.model().layers() {
        held.push(encode(layer, encodings)?);
    }
    let mut chain = Vec::new();
    for (layer, held) in view.model().layers().iter().zip(&held) {
        chain.push(held.as_ref().map_or(Ok(*layer), Held::layer)?);
    }
    let made = View::new(Model::new(&chain)?);
    let made = if let Some(task) = view.task() { made.with_task(task)? } else { made };
    let mut bytes = vec![0; made.encoded_len()];
    made.encode(&mut bytes)?;
    Ok(bytes)
}

/// A sparse layer anew; none for a sum and for one that stays as it is.
fn encode(layer: &Layer<'_>, encodings: Encodings) -> Result<Option<Held>> {
    let (rows, columns, values, activation) = match layer {
        Layer::Csr(csr) => (
            rows_of(csr).collect(),
            csr.columns().to_vec(),
            csr.values().to_vec(),
            csr.activation(),
        ),
        Layer::Blocks(blocks) => {
            let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
            blocks.entries(&mut |row, column, value| {
                rows.push(row);
                columns.push(column);
                values.push(value);
            });
            (rows, columns, values, blocks.activation())
        }
        _ => return Ok(None),
    };
    let (inputs, outputs, requested) = (layer.inputs(), layer.outputs(), layer.requested());
    let entries = Entries { inputs, outputs, rows, columns, values };
    let windows = match encodings {
        Encodings::Rows => false,
        Encodings::Chosen(Choice::Keep) => return Ok(None),
        Encodings::Chosen(Choice::Prefer(Encoding::Blocks)) => true,
        Encodings::Chosen(Choice::Smallest) => entries.bytes(true) <= entries.bytes(false),
        Encodings::Chosen(Choice::Fastest) => {
            entries.instructions(true) <= entries.instructions(false)
        }
        Encodings::Chosen(other) => {
            return Err(Error::new("floats are held in rows or in blocks")
                .expected("--encoding smallest, fastest, rows or blocks")
                .got(format_args!("{other:?}"))
                .help("quantize the model for the other encodings"));
        }
    };
    let (owned, values) = match windows.then(|| entries.windows()).flatten() {
        Some(made) => made,
        None => entries.in_rows()?,
    };
    Ok(Some(Held { inputs, requested, activation, owned, values }))
}

/// The row of each entry.
pub(crate) fn rows_of(csr: &Csr<'_>) -> impl Iterator<Item = usize> {
    let counts = csr.counts().iter().enumerate();
    counts.flat_map(|(row, &n)| std::iter::repeat_n(row, n.into()))
}

impl Held {
    fn layer(&self) -> Result<Layer<'_>> {
        let (inputs, values, activation) = (self.inputs, self.values.as_slice(), self.activation);
        Ok(match &self.owned {
            Owned::Rows { counts, columns } => {
                let csr = Csr::new(inputs, counts, columns, values, activation)?;
                Layer::Csr(csr.with_requested(self.requested)?)
            }
            Owned::Windows { counts, indices } => {
                let outputs = counts.len() / inputs.div_ceil(WINDOW).max(1);
                let blocks = Blocks::new(inputs, outputs, counts, indices, values, activation)?;
                Layer::Blocks(blocks.with_requested(self.requested)?)
            }
        })
    }
}

/// The entries of a layer, row after row and columns rising.
struct Entries {
    inputs: usize,
    outputs: usize,
    rows: Vec<usize>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

impl Entries {
    /// Bytes of counts and columns; values take the same in both.
    fn bytes(&self, windows: bool) -> usize {
        let padded = |bytes: usize| bytes.next_multiple_of(4);
        let runs = self.outputs * self.inputs.div_ceil(WINDOW);
        let n = self.columns.len();
        if windows { padded(runs) + padded(n) } else { padded(2 * self.outputs) + padded(2 * n) }
    }

    /// Instructions on a Cortex-M4F, about: as they were counted on 784 inputs and 10 outputs.
    fn instructions(&self, windows: bool) -> usize {
        let (n, per_run) = (self.columns.len(), self.inputs.div_ceil(WINDOW));
        if !windows {
            return 17 * n / 2 + 40 * self.outputs;
        }
        // A row of fewer inputs than a window has is read with checks.
        let each = if self.inputs < WINDOW { 20 } else { 14 };
        each * n / 2 + per_run * (20 + 40 * self.outputs)
    }

    /// Window after window; none if a row has more than 255 entries in one.
    fn windows(&self) -> Option<(Owned, Vec<f32>)> {
        let (mut counts, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..self.inputs.div_ceil(WINDOW) {
            let start = (window * WINDOW).min(self.inputs.saturating_sub(WINDOW));
            let first = counts.len();
            counts.resize(first + self.outputs, 0_u8);
            for ((&row, &column), &value) in self.rows.iter().zip(&self.columns).zip(&self.values) {
                if usize::from(column) / WINDOW == window {
                    counts[first + row] = counts[first + row].checked_add(1)?;
                    indices.push((usize::from(column) - start) as u8);
                    values.push(value);
                }
            }
        }
        Some((Owned::Windows { counts, indices }, values))
    }

    fn in_rows(self) -> Result<(Owned, Vec<f32>)> {
        let mut counts = vec![0_u16; self.outputs];
        for row in self.rows {
            counts[row] = counts[row].checked_add(1).ok_or_else(|| {
                Error::new("a row has too many weights for columns of 16 bits")
                    .expected(format_args!("at most {}", u16::MAX))
                    .help("use --encoding blocks")
            })?;
        }
        Ok((Owned::Rows { counts, columns: self.columns }, self.values))
    }
}
