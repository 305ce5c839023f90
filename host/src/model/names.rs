//! The names in a model file: its columns, its target and its classes.

use tamis::store::wire::{TAG_NAMES, checksum};

use crate::base::file::Aligned;
use crate::data::{Columns, Reading};
use crate::model::file::{ModelFile, Opened};
use crate::model::score::{Score, threshold};
use crate::{Error, Result};

/// Bytes of a header, and of the head of a section.
const HEADER: usize = 24;
const SECTION: usize = 8;
/// Flag of a section that a reader may skip.
const OPTIONAL: u16 = 1;

impl ModelFile {
    /// The columns that the model was trained on, and its classes; none where the file does not say.
    ///
    /// # Errors
    /// The section of the names is damaged.
    pub fn columns(&self) -> Result<Option<Columns>> {
        let opened = self.open()?;
        let names = match &opened {
            Opened::Floats(view) => view.names(),
            Opened::Integers(view) => view.names(),
        };
        let damaged = |error| {
            Error::from(error).at(self.path()).of("the names of the model").help(
                "the file is damaged or was edited: train it again, or tamis export --strip drops \
                 the names",
            )
        };
        let Some(columns) = names.map_err(damaged)?.map(Columns::of) else { return Ok(None) };
        let (inputs, width) = (opened.inputs(), columns.width());
        // A constant last input may be added to those of the table.
        if width > 0 && width != inputs && width + 1 != inputs {
            return Err(Error::new("the names of the model do not fit its inputs")
                .at(self.path())
                .expected(format_args!("columns of {inputs} inputs"))
                .got(format_args!("columns of {width}"))
                .help("the file was edited: tamis export --strip drops the names"));
        }
        Ok(Some(columns))
    }

    /// The same model with these names in place of its own; without any where they say nothing.
    ///
    /// # Errors
    /// More names than a file can hold.
    pub fn with_columns(&self, columns: &Columns) -> Result<Self> {
        let mut bytes = without(self.bytes());
        if !columns.say_nothing() {
            let payload = columns.payload()?;
            bytes.extend(TAG_NAMES.to_le_bytes());
            bytes.extend(OPTIONAL.to_le_bytes());
            bytes.extend((payload.len() as u32).to_le_bytes());
            bytes.extend(payload);
        }
        let len = u32::try_from(bytes.len()).map_err(|_| {
            Error::new("the model is too large")
                .mismatch("at most 4 GiB", format_args!("{} bytes", bytes.len()))
                .help("leave columns out with --ignore")
        })?;
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        let model = self.with_bytes(Aligned::new(&bytes));
        model.open()?;
        Ok(model)
    }

    /// The same model with the names of `other`, which it was made of.
    ///
    /// # Errors
    /// As [`columns`](Self::columns).
    pub fn with_columns_of(&self, other: &Self) -> Result<Self> {
        match other.columns()? {
            Some(columns) => self.with_columns(&columns),
            None => Ok(self.clone()),
        }
    }

    /// The least prediction that is class 1, of a binary task.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub(crate) fn threshold(&self) -> Result<f32> {
        Ok(threshold(self.open()?.task()).unwrap_or(Score::THRESHOLD))
    }

    /// How a table is read for the model: `columns` are its own.
    #[must_use]
    pub fn reading(columns: Option<&Columns>) -> Reading<'_> {
        columns.map_or(Reading::Numbers, Reading::Known)
    }
}

/// The bytes of a model without its names.
fn without(bytes: &[u8]) -> Vec<u8> {
    let mut kept = bytes.get(..HEADER).unwrap_or_default().to_vec();
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let Some((head, _)) = rest.split_first_chunk::<SECTION>() {
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some((section, behind)) = rest.split_at_checked(SECTION.saturating_add(len)) else {
            break;
        };
        if head[..2] != TAG_NAMES.to_le_bytes() {
            kept.extend(section);
        }
        rest = behind;
    }
    kept
}
