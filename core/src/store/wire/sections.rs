//! The structure of a file from pieces of it, for one that is never in memory as a whole.

use super::head::Head;
use super::integers::{columns_len, scales};
use super::layer::read_task;
use super::reader::{Reader, encoded_len, later, removed};
use super::{
    HEADER, OPTIONAL, SCALES, SECTION, TAG_BLOCKS, TAG_COLUMNS, TAG_CSR, TAG_DENSE,
    TAG_LAST_INTEGERS, TAG_MASK, TAG_SCALES, TAG_SUM, TAG_TASK, TAG_WINDOWS, Task,
};
use crate::base::error::expect;
use crate::infer::quantised::Scales;
use crate::{Error, Result};

/// Bytes from the start of a section that tell all of it but its arrays.
pub(crate) const PIECE: usize = 32;

const BLOCKS: &str = "layer in blocks (tamis export --format tamis --encoding blocks)";
const ROWS: &str = "layer in rows (tamis export --format tamis --encoding rows)";

/// Goes from section to section; what it needs of each is read by the caller.
pub(crate) struct Sections {
    /// Where the next section starts.
    at: usize,
    /// Where the last layer ends.
    layers: usize,
    len: usize,
    is_integers: bool,
    has_scales: bool,
    /// Whether those of single inputs, or a layer, were there.
    is_behind_columns: bool,
    pub(crate) task: Option<Task>,
}

/// What a section is.
pub(crate) enum Section {
    /// A layer, and where its arrays start in the file.
    Layer(Head, usize),
    Scales(Scales),
    /// Scales of so many inputs, and where their arrays start in the file.
    Columns(usize, usize),
    /// The task, or one that may be skipped.
    Other,
}

impl Sections {
    /// Of a file with this head; also its length, checksum, inputs and outputs.
    pub(crate) fn new(head: &[u8; HEADER], is_integers: bool) -> Result<(Self, [u32; 4])> {
        let len = encoded_len(head)?;
        let mut reader = Reader { bytes: head, at: 12 };
        let [checksum, inputs, outputs] = reader.words()?;
        let sections = Self {
            at: HEADER,
            layers: HEADER,
            len,
            is_integers,
            has_scales: false,
            is_behind_columns: false,
            task: None,
        };
        Ok((sections, [len as u32, checksum as u32, inputs as u32, outputs as u32]))
    }

    /// Where the next section is, and how many bytes of it to read; none behind the last.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        let left = self.len.saturating_sub(self.at);
        (left > 0).then_some((self.at, left.min(PIECE)))
    }

    /// The section that starts with `piece`.
    pub(crate) fn next(&mut self, piece: &[u8]) -> Result<Section> {
        let at = self.at;
        self.read(piece).map_err(|mut error| {
            if let Error::Format { at: place, .. }
            | Error::Newer { at: place, .. }
            | Error::Removed { at: place, .. } = &mut error
            {
                *place += at;
            }
            error
        })
    }

    fn read(&mut self, piece: &[u8]) -> Result<Section> {
        let mut reader = Reader { bytes: piece, at: 0 };
        let (tag, flags, payload) = (reader.u16()?, reader.u16()?, reader.u32()? as usize);
        expect("flags of a section", 2, u32::from(flags & OPTIONAL), flags.into())?;
        expect("length of a section, modulo 4", 4, 0, (payload % 4) as u32)?;
        let left = self.len.saturating_sub(self.at + SECTION);
        expect("bytes left for a section", SECTION, payload.min(left) as u32, payload as u32)?;
        let (is_optional, is_behind) = (flags == OPTIONAL, self.at != self.layers);
        let whole = SECTION + payload;
        let mut fields =
            Reader { bytes: piece.get(..whole.min(PIECE)).unwrap_or(piece), at: SECTION };
        self.at += whole;
        if tag == TAG_TASK {
            expect("flags of a task", 2, OPTIONAL.into(), is_optional.into())?;
            expect("task, once and right behind the layers", 0, 0, is_behind.into())?;
            self.task = Some(read_task(fields)?);
            return Ok(Section::Other);
        }
        if is_optional {
            let is_known = (TAG_CSR..=TAG_COLUMNS).contains(&tag);
            expect("flags of a layer", 2, 0, is_known.into())?;
            return Ok(Section::Other);
        }
        expect("layer behind a section that may be skipped", 0, 0, is_behind.into())?;
        self.layers = self.at;
        if self.is_integers && !self.has_scales {
            self.has_scales = true;
            let piece = piece.get(..SCALES).unwrap_or(piece);
            return scales(&mut Reader { bytes: piece, at: 0 }).map(Section::Scales);
        }
        let is_behind_columns = core::mem::replace(&mut self.is_behind_columns, true);
        if self.is_integers && tag == TAG_COLUMNS && !is_behind_columns {
            let inputs = fields.u32()? as usize;
            let end = columns_len(inputs).min(u32::MAX as usize);
            expect("end of the scales of the inputs", fields.at, end as u32, whole as u32)?;
            return Ok(Section::Columns(inputs, self.at - whole + fields.at));
        }
        let head = match (self.is_integers, tag) {
            (_, TAG_SUM) => Head::sum(&mut fields)?,
            (true, TAG_BLOCKS) => Head::integers(&mut fields, tag, 0)?,
            (false, TAG_CSR) => Head::floats(&mut fields, tag)?,
            (true, TAG_DENSE..=TAG_LAST_INTEGERS) if !matches!(tag, TAG_DENSE | TAG_MASK) => {
                return Err(removed(0, tag));
            }
            (is_integers, TAG_CSR..=TAG_WINDOWS) => {
                let (what, expected) = match is_integers {
                    true => (BLOCKS, TAG_BLOCKS.into()),
                    false => (ROWS, TAG_CSR.into()),
                };
                return Err(Error::Format { what, at: 0, expected, got: tag.into() });
            }
            _ => return Err(later("layer", 0, tag)),
        };
        let end = fields.at.saturating_add(head.bytes()).min(u32::MAX as usize);
        expect("end of a layer", fields.at, end as u32, whole as u32)?;
        Ok(Section::Layer(head, self.at - head.bytes()))
    }

    /// Whether the scales are still to come, which a model of integers starts with.
    pub(crate) fn check(&self) -> Result<()> {
        let is_there = self.has_scales || !self.is_integers;
        let got = if is_there { TAG_SCALES.into() } else { 0 };
        expect("first section of a model of integers", HEADER, TAG_SCALES.into(), got)
    }
}
