//! Bytes to a model that borrows them.

use bytemuck::AnyBitPattern;

use super::head::float_arrays;
use super::{
    HEADER, MAGIC, OPTIONAL, SECTION, TAG_CSR, TAG_DENSE, TAG_SCALES, TAG_SUM, TAG_TASK,
    TAG_WINDOWS, Task, VERSION, checksum, padding,
};
use crate::base::error::tri;
use crate::infer::model::{Activation, Blocks, Csr, Layer, Model, Sum};
use crate::{Error, Result};

/// A model, the task it was trained for, and the sections behind it that this version does not
/// know.
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
    /// [`Error::Length`] if a binary model has not one output, [`Error::Range`] if a multiclass
    /// model has not several, [`Error::NotFinite`] for a threshold that is no number.
    pub fn with_task(self, task: Task) -> Result<Self> {
        task.check(self.model.outputs())?;
        task.fields()?;
        Ok(Self { task: Some(task), ..self })
    }

    /// Reads `bytes`, exactly one model, in place; they must start at an address that is a multiple
    /// of 4, which [`include_model!`](crate::include_model), [`Aligned`](super::Aligned) and
    /// [`OwnedModel`](super::OwnedModel) see to.
    ///
    /// # Errors
    /// [`Error::Version`] for a model of a later version, [`Error::Newer`] for a layer, an
    /// activation or a task that only a later program knows, [`Error::Format`] with the byte offset
    /// where the bytes are no model, are damaged or hold a model of integers, and
    /// [`Error::Length`], [`Error::Range`], [`Error::Unsorted`] or [`Error::NotFinite`] where a
    /// layer contradicts itself, as [`Csr::new`], [`Sum::new`] and [`Model::new`] say.
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
    fn sections(&mut self, reader: Reader<'a>) -> Result<()> {
        let mut walk = Walk::new(reader);
        while let Some((at, tag, payload)) = walk.next()? {
            self.model.push(raw_layer(at, tag, payload)?.layer()?)?;
        }
        self.model.finish()?;
        self.task = walk.task;
        if let Some(task) = self.task {
            task.check(self.model.outputs())?;
        }
        self.extra = walk.extra();
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

    /// The sections behind the layers that this version does not know, as they are; they are
    /// written back.
    #[must_use]
    pub fn extra(&self) -> &'a [u8] {
        self.extra
    }
}

/// The length in bytes that a header states, for a model at the start of a longer region such as a
/// flash sector.
///
/// Only magic, version, the reserved field and the length itself are checked here; the header is
/// the first 24 bytes.
///
/// # Errors
/// [`Error::Version`] for a model of a later version, [`Error::Format`] if `bytes` does not start
/// with the header of a model.
pub const fn encoded_len(bytes: &[u8]) -> Result<usize> {
    let mut reader = Reader { bytes, at: 0 };
    tri!(expect("magic of a model", 0, MAGIC, tri!(reader.u32())));
    let version = tri!(reader.u16());
    if version > VERSION {
        // Nothing else in a later version needs to be as it is here, the checksum included.
        return Err(Error::Version { reads: VERSION, got: version });
    }
    tri!(expect("version", 4, VERSION as u32, version as u32));
    tri!(expect("reserved", 6, 0, tri!(reader.u16()) as u32));
    let len = tri!(reader.u32());
    let least = if len < HEADER as u32 { HEADER as u32 } else { len };
    tri!(expect("length of the model", 8, least.saturating_add(padding(len as usize) as u32), len));
    Ok(len as usize)
}

/// Checks the address, the head and the checksum; what follows, inputs and outputs.
pub(super) fn encoded(bytes: &[u8]) -> Result<(Reader<'_>, u32, u32)> {
    aligned(bytes)?;
    head(bytes)
}

/// Checks the head and the checksum; what follows, inputs and outputs.
pub(super) const fn head(bytes: &[u8]) -> Result<(Reader<'_>, u32, u32)> {
    let len = tri!(encoded_len(bytes));
    let there = if bytes.len() > u32::MAX as usize { u32::MAX } else { bytes.len() as u32 };
    tri!(expect("length of the model", 8, len as u32, there));
    let mut reader = Reader { bytes, at: 12 };
    tri!(expect("checksum", 12, checksum(bytes), tri!(reader.u32())));
    let (inputs, outputs) = (tri!(reader.u32()), tri!(reader.u32()));
    Ok((reader, inputs, outputs))
}

fn aligned(bytes: &[u8]) -> Result<()> {
    let off = bytes.as_ptr().addr() % align_of::<u32>();
    expect("address of the model, modulo 4 (see Aligned, include_model!)", 0, 0, off as u32)
}

/// The sections from the first layer on: layers one by one, then the task, and what else may be
/// skipped.
pub(super) struct Walk<'a> {
    reader: Reader<'a>,
    /// Where the last layer ends.
    end: usize,
    /// Where the last section ends that this version knows.
    known: usize,
    pub(super) task: Option<Task>,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(reader: Reader<'a>) -> Self {
        Self { reader, end: reader.at, known: reader.at, task: None }
    }

    /// Place, tag and payload of the next layer; none behind the last section.
    pub(super) const fn next(&mut self) -> Result<Option<(usize, u16, Reader<'a>)>> {
        while !self.reader.is_empty() {
            let (at, tag, optional, payload) = tri!(self.reader.section());
            if tag == TAG_TASK {
                tri!(expect("flags of a task", at + 2, OPTIONAL as u32, optional as u32));
                tri!(expect(
                    "task, once and right behind the layers",
                    at,
                    self.end as u32,
                    at as u32
                ));
                self.task = Some(tri!(read_task(payload)));
                self.known = self.reader.at;
            } else if optional {
                let known = TAG_CSR <= tag && tag <= TAG_WINDOWS;
                tri!(expect("flags of a layer", at + 2, 0, known as u32));
            } else {
                tri!(expect(
                    "layer behind a section that may be skipped",
                    at,
                    self.end as u32,
                    at as u32
                ));
                (self.end, self.known) = (self.reader.at, self.reader.at);
                return Ok(Some((at, tag, payload)));
            }
        }
        Ok(None)
    }

    /// The sections that this version does not know.
    pub(super) fn extra(&self) -> &'a [u8] {
        self.reader.bytes.get(self.known..).unwrap_or_default()
    }
}

pub(super) const fn read_task(mut payload: Reader<'_>) -> Result<Task> {
    let at = payload.at;
    let kind = tri!(payload.u16());
    tri!(expect("reserved", at + 2, 0, tri!(payload.u16()) as u32));
    let task = tri!(Task::of(at, kind, tri!(payload.u32())));
    tri!(payload.end("end of a task"));
    Ok(task)
}

/// The fields of a layer of floats, and the bytes of its arrays.
pub(super) struct RawLayer<'a> {
    pub(super) tag: u16,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) requested: usize,
    pub(super) activation: Activation,
    /// Counts, columns and values; of a sum its signs.
    pub(super) arrays: [&'a [u8]; 3],
}

/// The structure of a layer of floats; what its arrays hold is not looked at.
pub(super) const fn raw_layer<'a>(
    at: usize,
    tag: u16,
    mut payload: Reader<'a>,
) -> Result<RawLayer<'a>> {
    let p = &mut payload;
    let raw = match tag {
        TAG_CSR | TAG_WINDOWS => {
            let [inputs, outputs, nonzeros, requested] = tri!(p.words());
            let activation = tri!(activation(p));
            tri!(expect("reserved", p.at, 0, tri!(p.u16()) as u32));
            let [counts, columns, values] = float_arrays(tag, inputs, outputs, nonzeros);
            let arrays = [tri!(p.array(counts)), tri!(p.array(columns)), tri!(p.array(values))];
            RawLayer { tag, inputs, outputs, requested, activation, arrays }
        }
        TAG_SUM => tri!(raw_sum(p)),
        TAG_DENSE..=TAG_SCALES => {
            let what = "layer of floats (QuantisedView reads models of integers)";
            return Err(Error::Format { what, at, expected: TAG_SUM as u32, got: tag as u32 });
        }
        _ => return Err(later("layer", at, tag)),
    };
    tri!(payload.end("end of a layer"));
    Ok(raw)
}

pub(super) const fn raw_sum<'a>(payload: &mut Reader<'a>) -> Result<RawLayer<'a>> {
    let inputs = tri!(payload.u32()) as usize;
    let signs = tri!(payload.array(inputs.div_ceil(32).saturating_mul(4)));
    let arrays = [signs, &[], &[]];
    let activation = Activation::Identity;
    Ok(RawLayer { tag: TAG_SUM, inputs, outputs: 1, requested: 1, activation, arrays })
}

impl<'a> RawLayer<'a> {
    /// The layer on the bytes where they lie.
    fn layer(&self) -> Result<Layer<'a>> {
        let (inputs, outputs, activation) = (self.inputs, self.outputs, self.activation);
        let [counts, columns, values] = self.arrays;
        Ok(match self.tag {
            TAG_CSR => {
                let csr =
                    Csr::new(inputs, cast(counts)?, cast(columns)?, cast(values)?, activation)?;
                Layer::Csr(csr.with_requested(self.requested)?)
            }
            TAG_WINDOWS => {
                let blocks =
                    Blocks::new(inputs, outputs, counts, columns, cast(values)?, activation)?;
                Layer::Blocks(blocks.with_requested(self.requested)?)
            }
            _ => Layer::Sum(self.sum()?),
        })
    }

    /// The same of a sum.
    pub(super) fn sum(&self) -> Result<Sum<'a>> {
        Sum::new(self.inputs, cast(self.arrays[0])?)
    }
}

/// Bytes as numbers, where they lie.
pub(super) fn cast<T: AnyBitPattern>(bytes: &[u8]) -> Result<&[T]> {
    let off = Error::Format { what: "alignment", at: 0, expected: align_of::<T>() as u32, got: 1 };
    bytemuck::try_cast_slice(bytes).map_err(|_| off)
}

/// What a later program wrote: the checksum is right, so this is no damage.
pub(super) const fn later(what: &'static str, at: usize, got: u16) -> Error {
    Error::Newer { what, at, got: got as u32 }
}

/// A layer of integers in an encoding that is no longer read.
pub(super) const fn removed(at: usize, tag: u16) -> Error {
    Error::Removed { what: "encoding of a layer", at, got: tag as u32 }
}

pub(super) const fn activation(payload: &mut Reader<'_>) -> Result<Activation> {
    let at = payload.at;
    match tri!(payload.u16()) {
        0 => Ok(Activation::Identity),
        1 => Ok(Activation::Relu),
        got => Err(later("activation", at, got)),
    }
}

pub(super) const fn expect(what: &'static str, at: usize, expected: u32, got: u32) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Format { what, at, expected, got }) }
}

/// Reads forward; `at` is the offset from the start of the model, and `bytes` end where the part
/// that is read ends.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Checks that everything was read.
    pub(super) const fn end(&self, what: &'static str) -> Result<()> {
        expect(what, self.at, self.at as u32, self.bytes.len() as u32)
    }

    const fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let left = self.bytes.len().saturating_sub(self.at);
        if let Some((_, behind)) = self.bytes.split_at_checked(self.at)
            && let Some((taken, _)) = behind.split_at_checked(len)
        {
            self.at += len;
            return Ok(taken);
        }
        let expected = if len > u32::MAX as usize { u32::MAX } else { len as u32 };
        Err(Error::Format {
            what: "bytes left for a field",
            at: self.at,
            expected,
            got: left as u32,
        })
    }

    pub(super) const fn u16(&mut self) -> Result<u16> {
        match tri!(self.take(2)).first_chunk() {
            Some(bytes) => Ok(u16::from_le_bytes(*bytes)),
            None => Ok(0),
        }
    }

    pub(super) const fn u32(&mut self) -> Result<u32> {
        match tri!(self.take(4)).first_chunk() {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None => Ok(0),
        }
    }

    pub(super) const fn words<const N: usize>(&mut self) -> Result<[usize; N]> {
        let mut words = [0; N];
        let mut left: &mut [usize] = &mut words;
        while let [word, behind @ ..] = left {
            *word = tri!(self.u32()) as usize;
            left = behind;
        }
        Ok(words)
    }

    /// An array of so many bytes, and the zero bytes that fill the last word.
    pub(super) const fn array(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = tri!(self.take(len));
        let at = self.at;
        let mut left = tri!(self.take(padding(len)));
        while let [zero, behind @ ..] = left {
            tri!(expect("padding", at + padding(len) - left.len(), 0, *zero as u32));
            left = behind;
        }
        Ok(bytes)
    }

    /// Offset, tag, whether it may be skipped, and payload of the next section.
    pub(super) const fn section(&mut self) -> Result<(usize, u16, bool, Self)> {
        let at = self.at;
        let (tag, flags, len) = (tri!(self.u16()), tri!(self.u16()), tri!(self.u32()) as usize);
        tri!(expect("flags of a section", at + 2, (flags & OPTIONAL) as u32, flags as u32));
        tri!(expect("length of a section, modulo 4", at + 4, 0, (len % 4) as u32));
        tri!(self.take(len));
        let bytes = match self.bytes.split_at_checked(self.at) {
            Some((payload, _)) => payload,
            None => &[],
        };
        Ok((at, tag, flags == OPTIONAL, Self { bytes, at: at + SECTION }))
    }
}
