//! Bytes to a model that borrows them.

use bytemuck::AnyBitPattern;

use super::{
    HEADER, MAGIC, OPTIONAL, SECTION, TAG_CSR, TAG_DENSE, TAG_SCALES, TAG_SUM, TAG_TASK, TAG_WINDOWS, Task,
    VERSION, checksum, padding,
};
use crate::error::length;
use crate::model::{Activation, Blocks, Csr, Layer, Model, Sum, windows};
use crate::{Error, Result};

/// A model, the task it was trained for, and the sections behind it that this version does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct View<'a> {
    model: Model<'a>,
    task: Option<Task>,
    extra: &'a [u8],
}

impl<'a> View<'a> {
    /// A model to write, with nothing behind it.
    #[must_use]
    pub fn new(model: Model<'a>) -> Self {
        Self { model, task: None, extra: &[] }
    }

    /// The same with the task that the model was trained for.
    ///
    /// # Errors
    /// [`Error::Length`] if a binary model has not one output, [`Error::Range`] if a multiclass model has not several,
    /// [`Error::NotFinite`] for a threshold that is no number.
    pub fn with_task(self, task: Task) -> Result<Self> {
        task.check(self.model.outputs())?;
        task.fields()?;
        Ok(Self { task: Some(task), ..self })
    }

    /// Reads `bytes`, exactly one model, in place; they must start at an address that is a multiple of 4, which
    /// [`include_model!`](crate::include_model), [`Aligned`](super::Aligned) and
    /// [`OwnedModel`](super::OwnedModel) see to.
    ///
    /// # Errors
    /// [`Error::Version`] for a model of a later version, [`Error::Newer`] for a layer, an activation or a task that only a later
    /// program knows, [`Error::Format`] with the byte offset where the bytes are no model, are damaged or hold a model of
    /// integers, and [`Error::Length`], [`Error::Range`], [`Error::Unsorted`] or [`Error::NotFinite`] where a layer contradicts
    /// itself, as [`Csr::new`], [`Sum::new`] and [`Model::new`] say.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut view = Self::new(Model::empty());
        view.read(bytes)?;
        Ok(view)
    }

    #[inline(never)]
    fn read(&mut self, bytes: &'a [u8]) -> Result<()> {
        let (reader, inputs, outputs) = encoded(bytes)?;
        self.sections(reader)?;
        expect("inputs of the model", 16, self.model.inputs() as u32, inputs)?;
        expect("outputs of the model", 20, self.model.outputs() as u32, outputs)
    }

    /// The layers, the task, then what else may be skipped.
    fn sections(&mut self, mut reader: Reader<'a>) -> Result<()> {
        // Behind the last layer, and behind the task.
        let (mut end, mut rest) = (reader, reader);
        while !reader.is_empty() {
            let (at, tag, optional, payload) = reader.section()?;
            if tag == TAG_TASK {
                expect("flags of a task", at + 2, u32::from(OPTIONAL), u32::from(optional))?;
                expect("task, once and right behind the layers", at, end.at as u32, at as u32)?;
                self.task = Some(read_task(payload)?);
                rest = reader;
            } else if optional {
                expect("flags of a layer", at + 2, 0, u32::from((TAG_CSR..=TAG_WINDOWS).contains(&tag)))?;
            } else {
                expect("layer behind a section that may be skipped", at, end.at as u32, at as u32)?;
                self.model.push(layer(at, tag, payload)?)?;
                (end, rest) = (reader, reader);
            }
        }
        self.model.finish()?;
        if let Some(task) = self.task {
            task.check(self.model.outputs())?;
        }
        self.extra = rest.bytes.get(rest.at..).unwrap_or_default();
        Ok(())
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model<'a> {
        &self.model
    }

    /// What the model was trained for; none where the file does not say.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        self.task
    }

    /// The sections behind the layers that this version does not know, as they are; they are written back.
    #[must_use]
    pub fn extra(&self) -> &'a [u8] {
        self.extra
    }
}

/// The length in bytes that a header states, for a model at the start of a longer region such as a flash sector.
///
/// Only magic, version, the reserved field and the length itself are checked here; the header is the first 24 bytes.
///
/// # Errors
/// [`Error::Version`] for a model of a later version, [`Error::Format`] if `bytes` does not start with the header of a
/// model.
pub fn encoded_len(bytes: &[u8]) -> Result<usize> {
    let mut reader = Reader { bytes, at: 0 };
    expect("magic of a model", 0, MAGIC, reader.u32()?)?;
    let version = reader.u16()?;
    if version > VERSION {
        // Nothing else in a later version needs to be as it is here, the checksum included.
        return Err(Error::Version { reads: VERSION, got: version });
    }
    expect("version", 4, u32::from(VERSION), u32::from(version))?;
    expect("reserved", 6, 0, u32::from(reader.u16()?))?;
    let len = reader.u32()?;
    let at_least = (len.max(HEADER as u32)).saturating_add(padding(len as usize) as u32);
    expect("length of the model", 8, at_least, len)?;
    Ok(len as usize)
}

/// Checks the head and the checksum; what follows, inputs and outputs.
pub(super) fn encoded(bytes: &[u8]) -> Result<(Reader<'_>, u32, u32)> {
    aligned(bytes)?;
    let len = encoded_len(bytes)?;
    expect("length of the model", 8, len as u32, u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
    let mut reader = Reader { bytes, at: 12 };
    expect("checksum", 12, checksum(bytes), reader.u32()?)?;
    let (inputs, outputs) = (reader.u32()?, reader.u32()?);
    Ok((reader, inputs, outputs))
}

fn aligned(bytes: &[u8]) -> Result<()> {
    let off = bytes.as_ptr().addr() % align_of::<u32>();
    expect("address of the model, modulo 4 (see Aligned, include_model!)", 0, 0, off as u32)
}

pub(super) fn read_task(mut payload: Reader<'_>) -> Result<Task> {
    let at = payload.at;
    let kind = payload.u16()?;
    expect("reserved", payload.at, 0, u32::from(payload.u16()?))?;
    let task = Task::of(at, kind, payload.u32()?)?;
    payload.end("end of a task")?;
    Ok(task)
}

fn layer<'a>(at: usize, tag: u16, mut payload: Reader<'a>) -> Result<Layer<'a>> {
    let layer = match tag {
        TAG_CSR => Layer::Csr(csr(&mut payload)?),
        TAG_WINDOWS => Layer::Blocks(blocks(&mut payload)?),
        TAG_SUM => Layer::Sum(sum(&mut payload)?),
        TAG_DENSE..=TAG_SCALES => {
            let what = "layer of floats (QuantisedView reads models of integers)";
            return Err(Error::Format { what, at, expected: u32::from(TAG_SUM), got: u32::from(tag) });
        }
        _ => return Err(later("layer", at, tag)),
    };
    payload.end("end of a layer")?;
    Ok(layer)
}

/// What a later program wrote: the checksum is right, so this is no damage.
pub(super) fn later(what: &'static str, at: usize, got: u16) -> Error {
    Error::Newer { what, at, got: got.into() }
}

/// Inputs, outputs, nonzeros, outputs asked for, and the activation.
fn csr_head(payload: &mut Reader<'_>) -> Result<([usize; 4], Activation)> {
    let words = payload.words()?;
    let activation = activation(payload)?;
    expect("reserved", payload.at, 0, u32::from(payload.u16()?))?;
    Ok((words, activation))
}

fn blocks<'a>(payload: &mut Reader<'a>) -> Result<Blocks<'a>> {
    let ([inputs, outputs, nonzeros, requested], activation) = csr_head(payload)?;
    let counts = payload.slice::<u8>(outputs.saturating_mul(windows(inputs)))?;
    let indices = payload.slice::<u8>(nonzeros)?;
    let values = payload.slice::<f32>(nonzeros)?;
    Blocks::new(inputs, outputs, counts, indices, values, activation)?.with_requested(requested)
}

fn csr<'a>(payload: &mut Reader<'a>) -> Result<Csr<'a>> {
    let ([inputs, outputs, nonzeros, requested], activation) = csr_head(payload)?;
    let counts = payload.slice::<u16>(outputs)?;
    let columns = payload.slice::<u16>(nonzeros)?;
    let values = payload.slice::<f32>(nonzeros)?;
    Csr::new(inputs, counts, columns, values, activation)?.with_requested(requested)
}

pub(super) fn activation(payload: &mut Reader<'_>) -> Result<Activation> {
    let at = payload.at;
    match payload.u16()? {
        0 => Ok(Activation::Identity),
        1 => Ok(Activation::Relu),
        got => Err(later("activation", at, got)),
    }
}

pub(super) fn sum<'a>(payload: &mut Reader<'a>) -> Result<Sum<'a>> {
    let inputs = payload.u32()? as usize;
    Sum::new(inputs, payload.slice::<u32>(inputs.div_ceil(32))?)
}

pub(super) fn expect(what: &'static str, at: usize, expected: u32, got: u32) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Format { what, at, expected, got }) }
}

/// Reads forward; `at` is the offset from the start of the model, and `bytes` end where the part that is read ends.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Checks that everything was read.
    pub(super) fn end(&self, what: &'static str) -> Result<()> {
        expect(what, self.at, self.at as u32, self.bytes.len() as u32)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let left = self.bytes.len().saturating_sub(self.at);
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(Error::Format {
            what: "bytes left for a field",
            at: self.at,
            expected: u32::try_from(len).unwrap_or(u32::MAX),
            got: left as u32,
        })?;
        self.at = self.at.saturating_add(len);
        Ok(taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn words<const N: usize>(&mut self) -> Result<[usize; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u32()? as usize;
        }
        Ok(words)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }

    /// `len` numbers in place, and the zero bytes that fill the last word.
    pub(super) fn slice<T: AnyBitPattern>(&mut self, len: usize) -> Result<&'a [T]> {
        let at = self.at;
        let bytes = self.take(len.saturating_mul(size_of::<T>()))?;
        for (at, &zero) in (self.at..).zip(self.take(padding(bytes.len()))?) {
            expect("padding", at, 0, u32::from(zero))?;
        }
        let off = Error::Format { what: "alignment", at, expected: align_of::<T>() as u32, got: 1 };
        let slice = bytemuck::try_cast_slice(bytes).map_err(|_| off)?;
        length("numbers of a section", slice.len(), len)?;
        Ok(slice)
    }

    /// Offset, tag, whether it may be skipped, and payload of the next section.
    pub(super) fn section(&mut self) -> Result<(usize, u16, bool, Self)> {
        let at = self.at;
        let (tag, flags, len) = (self.u16()?, self.u16()?, self.u32()? as usize);
        expect("flags of a section", at + 2, u32::from(flags & OPTIONAL), u32::from(flags))?;
        expect("length of a section, modulo 4", at + 4, 0, (len % 4) as u32)?;
        self.take(len)?;
        let payload = self.bytes.get(..self.at).unwrap_or_default();
        Ok((at, tag, flags == OPTIONAL, Self { bytes: payload, at: at + SECTION }))
    }
}
