//! The sections of a file, and a layer as its fields and the bytes of its arrays.

use super::head::Head;
use super::reader::{Reader, later, removed};
use super::{
    OPTIONAL, TAG_BLOCKS, TAG_COLUMNS, TAG_CSR, TAG_DENSE, TAG_LAST_INTEGERS, TAG_MASK,
    TAG_PATTERN, TAG_SCALES, TAG_SUM, TAG_TASK, TAG_WINDOWS, Task,
};
use crate::base::error::{expect, length, tri};
use crate::infer::model::{self, Csr, Sum};
use crate::infer::quantised::{self, Dense, Mask, Weights};
use crate::{Error, Result};
use bytemuck::{AnyBitPattern, must_cast_slice};

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
    const fn next(&mut self) -> Result<Option<(usize, u16, Reader<'a>)>> {
        while !self.reader.is_empty() {
            let (at, tag, optional, payload) = tri!(self.reader.section());
            if tag == TAG_TASK {
                tri!(expect("flags of a task", at + 2, OPTIONAL as u32, optional as u32));
                let what = "task, once and right behind the layers";
                tri!(expect(what, at, self.end as u32, at as u32));
                self.task = Some(tri!(read_task(payload)));
                self.known = self.reader.at;
            } else if optional {
                let known = TAG_CSR <= tag && tag <= TAG_COLUMNS;
                tri!(expect("flags of a layer", at + 2, 0, known as u32));
            } else {
                let what = "layer behind a section that may be skipped";
                tri!(expect(what, at, self.end as u32, at as u32));
                (self.end, self.known) = (self.reader.at, self.reader.at);
                return Ok(Some((at, tag, payload)));
            }
        }
        Ok(None)
    }

    /// The next layer of floats, or the sum behind them.
    pub(super) const fn floats(&mut self) -> Result<Option<RawLayer<'a>>> {
        let Some((at, tag, mut payload)) = tri!(self.next()) else { return Ok(None) };
        let head = match tag {
            TAG_CSR | TAG_WINDOWS => tri!(Head::floats(&mut payload, tag)),
            TAG_SUM => tri!(Head::sum(&mut payload)),
            TAG_DENSE..=TAG_SCALES => {
                let what = "layer of floats (QuantisedView reads models of integers)";
                return Err(Error::Format { what, at, expected: TAG_SUM as u32, got: tag as u32 });
            }
            TAG_PATTERN => {
                let what = "layer of floats (MaskView reads the file of a mask)";
                return Err(Error::Format { what, at, expected: TAG_CSR as u32, got: tag as u32 });
            }
            _ => return Err(later("layer", at, tag)),
        };
        Ok(Some(tri!(RawLayer::read(head, payload))))
    }

    /// The next layer of integers, or the sum behind them; `ended` says that there was a sum.
    pub(super) const fn integers(&mut self, ended: bool) -> Result<Option<RawLayer<'a>>> {
        let Some((at, tag, mut payload)) = tri!(self.next()) else { return Ok(None) };
        tri!(expect("section behind the sum", at, 0, ended as u32));
        let head = match tag {
            TAG_DENSE | TAG_MASK | TAG_BLOCKS => tri!(Head::integers(&mut payload, tag, at)),
            TAG_SUM => tri!(Head::sum(&mut payload)),
            TAG_CSR | TAG_SCALES | TAG_WINDOWS => {
                let (what, expected) = ("layer of a model of integers", TAG_DENSE as u32);
                return Err(Error::Format { what, at, expected, got: tag as u32 });
            }
            TAG_DENSE..=TAG_LAST_INTEGERS => return Err(removed(at, tag)),
            _ => return Err(later("layer", at, tag)),
        };
        Ok(Some(tri!(RawLayer::read(head, payload))))
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

/// A layer of floats or integers, or a sum; what its arrays hold is not looked at.
pub(super) struct RawLayer<'a> {
    pub(super) head: Head,
    /// All arrays with their padding.
    pub(super) body: &'a [u8],
}

impl<'a> RawLayer<'a> {
    /// What follows the fields, to the end of the section.
    const fn read(head: Head, mut payload: Reader<'a>) -> Result<Self> {
        let body = payload.rest();
        let [a, b, c, d] = head.arrays;
        let lens = [4 * head.factors, 4 * head.biases, a, b, c, d];
        let mut left = lens.as_slice();
        while let [len, behind @ ..] = left {
            tri!(payload.array(*len));
            left = behind;
        }
        tri!(payload.end("end of a layer"));
        Ok(Self { head, body })
    }
}

/// A layer of floats, or the sum behind them, on the words of its arrays.
pub(super) const fn float_layer<'a>(head: &Head, words: &'a [u32]) -> Result<model::Layer<'a>> {
    let Head { inputs, outputs, activation, requested, arrays: [a, b, c, d], .. } = *head;
    let mut words = words;
    match head.tag {
        TAG_CSR => {
            let (counts, columns) = (tri!(take(&mut words, a)), tri!(take(&mut words, b)));
            let values = tri!(take(&mut words, c));
            let csr = tri!(Csr::new(inputs, counts, columns, values, activation));
            let csr = tri!(csr.with_biases(tri!(take(&mut words, d))));
            Ok(model::Layer::Csr(tri!(csr.with_requested(requested))))
        }
        TAG_WINDOWS => {
            let (counts, indices) = (tri!(take(&mut words, a)), tri!(take(&mut words, b)));
            let values = tri!(take(&mut words, c));
            let blocks =
                tri!(model::Blocks::new(inputs, outputs, counts, indices, values, activation));
            let blocks = tri!(blocks.with_biases(tri!(take(&mut words, d))));
            Ok(model::Layer::Blocks(tri!(blocks.with_requested(requested))))
        }
        _ => Ok(model::Layer::Sum(tri!(Sum::new(inputs, words)))),
    }
}

/// A layer of integers on the words of its arrays.
pub(super) const fn integer_layer<'a>(
    head: &Head,
    words: &'a [u32],
) -> Result<quantised::Layer<'a>> {
    let Head { inputs, outputs, nonzeros, activation, requested, arrays: [a, b, ..], .. } = *head;
    let mut words = words;
    let rescale = tri!(take(&mut words, 4 * head.factors));
    let bias = tri!(take(&mut words, 4 * head.biases));
    let weights = match head.tag {
        TAG_DENSE => Weights::Dense(tri!(Dense::new(inputs, outputs, tri!(take(&mut words, a))))),
        TAG_MASK => {
            let (bits, values) = (tri!(take(&mut words, a)), tri!(take(&mut words, b)));
            Weights::Mask(tri!(Mask::new(inputs, outputs, bits, values)))
        }
        _ => {
            let (counts, pairs) = (tri!(take(&mut words, a)), tri!(take(&mut words, b)));
            Weights::Blocks(tri!(quantised::Blocks::new(inputs, outputs, counts, pairs)))
        }
    };
    tri!(length("weights of a layer", weights.nonzeros(), nonzeros));
    tri!(quantised::Layer::new(weights, rescale, bias, activation)).with_requested(requested)
}

/// The next array, of so many bytes.
const fn take<'a, T: AnyBitPattern>(words: &mut &'a [u32], bytes: usize) -> Result<&'a [T]> {
    if let Some((array, behind)) = words.split_at_checked(bytes.div_ceil(4))
        && let Some((array, _)) = must_cast_slice(array).split_at_checked(bytes / size_of::<T>())
    {
        *words = behind;
        return Ok(array);
    }
    Err(Error::Length { what: "words of a layer", expected: bytes.div_ceil(4), got: words.len() })
}
