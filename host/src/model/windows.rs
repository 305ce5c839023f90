//! Sparse layers of floats in windows of columns, and back in rows: which of the two a file holds.

use tamis::infer::model::{Activation, Blocks, Csr, Layer, Model, WINDOW};
use tamis::infer::quantised::Encoding;
use tamis::store::wire::{Choice, View};

use crate::base::file::Aligned;
use crate::model::ModelFile;
use crate::model::file::Opened;
use crate::model::rows::{Entry, by_rows, rows_of, start_of};
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

/// A sparse layer in memory of its own; values are in the order of their places.
struct Held {
    inputs: usize,
    requested: usize,
    activation: Activation,
    places: Places,
    values: Vec<f32>,
    biases: Vec<f32>,
}

enum Places {
    Rows { counts: Vec<u16>, columns: Vec<u16> },
    Windows { counts: Vec<u8>, indices: Vec<u8> },
}

impl ModelFile {
    /// The same model of floats with all sparse layers in rows.
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

/// The bytes of a file with each sparse layer in rows or windows, whichever is chosen and fits.
fn floats(view: &View<'_>, encodings: Encodings) -> Result<Vec<u8>> {
    let layers = view.model().layers();
    let held = layers.iter().map(|layer| encode(layer, encodings)).collect::<Result<Vec<_>>>()?;
    let chain = layers.iter().zip(&held);
    let chain = chain.map(|(layer, held)| held.as_ref().map_or(Ok(*layer), Held::layer));
    let made = View::new(Model::new(&chain.collect::<Result<Vec<_>>>()?)?);
    let made = if let Some(task) = view.task() { made.with_task(task)? } else { made };
    let mut bytes = vec![0; made.encoded_len()];
    made.encode(&mut bytes)?;
    Ok(bytes)
}

/// A sparse layer anew; none for a sum and for one that stays as it is.
fn encode(layer: &Layer<'_>, encodings: Encodings) -> Result<Option<Held>> {
    let mut entries = Vec::new();
    let activation = match layer {
        Layer::Csr(csr) => {
            let places = rows_of(csr).zip(csr.columns()).zip(csr.values());
            let places = places.map(|((row, &column), &value)| Entry { row, column, value });
            entries.extend(places);
            csr.activation()
        }
        Layer::Blocks(blocks) => {
            entries = by_rows(blocks);
            blocks.activation()
        }
        _ => return Ok(None),
    };
    let (inputs, outputs, n) = (layer.inputs(), layer.outputs(), entries.len());
    let windows = inputs.div_ceil(WINDOW);
    let is_windowed = match encodings {
        Encodings::Rows => false,
        Encodings::Chosen(Choice::Keep) => return Ok(None),
        Encodings::Chosen(Choice::Prefer(Encoding::Blocks)) => true,
        Encodings::Chosen(Choice::Smallest) => {
            // Counts and columns; values take the same in both.
            let bytes = |counts: usize, columns: usize| {
                counts.next_multiple_of(4) + columns.next_multiple_of(4)
            };
            bytes(outputs * windows, n) <= bytes(2 * outputs, 2 * n)
        }
        Encodings::Chosen(Choice::Fastest) => {
            // On a Cortex-M4F, as counted on 784 inputs and 10 outputs; a row of fewer inputs than
            // a window has is read with checks.
            let each = if inputs < WINDOW { 20 } else { 14 };
            each * n / 2 + windows * (20 + 40 * outputs) <= 17 * n / 2 + 40 * outputs
        }
        Encodings::Chosen(other) => {
            return Err(Error::new("floats are held in rows or in blocks")
                .expected("--encoding smallest, fastest, rows or blocks")
                .got(format_args!("{other:?}"))
                .help("quantize the model for the other encodings"));
        }
    };
    let places = match is_windowed.then(|| in_windows(inputs, outputs, &mut entries)).flatten() {
        Some(places) => places,
        None => in_rows(outputs, &entries)?,
    };
    let values = entries.iter().map(|entry| entry.value).collect();
    let biases = layer.biases().to_vec();
    Ok(Some(Held { inputs, requested: layer.requested(), activation, places, values, biases }))
}

/// Window after window; none, and nothing done, if a row has more than 255 entries in one.
fn in_windows(inputs: usize, outputs: usize, entries: &mut [Entry]) -> Option<Places> {
    let window = |entry: &Entry| usize::from(entry.column) / WINDOW;
    let mut counts = vec![0_u8; outputs * inputs.div_ceil(WINDOW)];
    for entry in &*entries {
        let count = &mut counts[window(entry) * outputs + entry.row];
        *count = count.checked_add(1)?;
    }
    entries.sort_by_key(window);
    let index = |entry: &Entry| (usize::from(entry.column) - start_of(window(entry), inputs)) as u8;
    Some(Places::Windows { counts, indices: entries.iter().map(index).collect() })
}

fn in_rows(outputs: usize, entries: &[Entry]) -> Result<Places> {
    let mut counts = vec![0_u16; outputs];
    for entry in entries {
        counts[entry.row] = counts[entry.row].checked_add(1).ok_or_else(|| {
            Error::new("a row has too many weights for columns of 16 bits")
                .expected(format_args!("at most {}", u16::MAX))
                .help("use --encoding blocks")
        })?;
    }
    Ok(Places::Rows { counts, columns: entries.iter().map(|entry| entry.column).collect() })
}

impl Held {
    fn layer(&self) -> Result<Layer<'_>> {
        let Self { inputs, requested, activation, places, values, biases } = self;
        Ok(match places {
            Places::Rows { counts, columns } => {
                let csr = Csr::new(*inputs, counts, columns, values, *activation)?;
                Layer::Csr(csr.with_biases(biases)?.with_requested(*requested)?)
            }
            Places::Windows { counts, indices } => {
                let outputs = counts.len() / inputs.div_ceil(WINDOW).max(1);
                let blocks = Blocks::new(*inputs, outputs, counts, indices, values, *activation)?;
                Layer::Blocks(blocks.with_biases(biases)?.with_requested(*requested)?)
            }
        })
    }
}
