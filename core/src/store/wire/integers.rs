//! Models of integers as bytes: sections of their own in the same file format.
//!
//! A file starts with what the integers stand for, layers of weights follow, a sum perhaps, and the
//! task.

use super::layer::{Walk, integer_layer};
use super::read::{QuantisedView, Readable};
use super::reader::{Reader, cast};
use super::recode::{self, Choice};
use super::write::Writer;
use super::{HEADER, INT_HEADER, SCALES, SECTION, TAG_COLUMNS, TAG_SCALES, TAG_SUM, Task, sum_len};
#[cfg(doc)]
use crate::Error;
use crate::Result;
use crate::base::error::{expect, length, range, tri};
use crate::infer::model::{Activation, MAX_INPUTS, Sum};
use crate::infer::price::Shape;
use crate::infer::quantised::{Columns, Layer, Model, Readings, Scales, check_scale};

impl<'a> Readable<'a> for Model<'a> {
    fn ends(&self) -> [usize; 2] {
        [self.inputs(), self.outputs()]
    }

    fn read(&mut self, mut reader: Reader<'a>) -> Result<(Option<Task>, &'a [u8])> {
        let scales = scales(&mut reader)?;
        let columns = columns(&mut reader)?.map(columns_of).transpose()?;
        let (mut walk, mut sum) = (Walk::new(reader), None);
        while let Some(raw) = walk.integers(sum.is_some())? {
            let words = cast(raw.body)?;
            match raw.head.tag {
                TAG_SUM => sum = Some(Sum::new(raw.head.inputs, words)?),
                _ => self.push(integer_layer(&raw.head, words)?)?,
            }
        }
        self.finish(sum, Readings::new(scales, columns))?;
        Ok((walk.task, walk.extra()))
    }
}

impl<'a> QuantisedView<'a> {
    /// Reads `bytes`, exactly one model, in place, as [`View::parse`](super::View::parse) does.
    ///
    /// # Errors
    /// As there. A model of floats is [`Error::Format`] at its first section.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut view = Self { model: Model::empty(), task: None, extra: &[] };
        view.read(bytes)?;
        Ok(view)
    }

    /// Whether bytes that start with the head of a model hold one of integers; nothing else about
    /// them is checked.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.get(HEADER..).and_then(|rest| rest.first_chunk()) == Some(&TAG_SCALES.to_le_bytes())
    }

    /// Exactly the bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self, choice: Choice) -> usize {
        let layers = self.model.layers().iter().map(|layer| layer_len(layer, choice));
        let columns =
            self.model.readings().columns().map_or(0, |own| columns_len(own.zeros().len()));
        let body = layers.fold(HEADER + SCALES + columns, usize::saturating_add);
        let sum = self.model.sum().map_or(0, |sum| sum_len(sum.inputs()));
        body.saturating_add(sum)
            .saturating_add(Task::len(self.task))
            .saturating_add(self.extra.len())
    }

    /// Writes the model to the start of `out` and gives its length in bytes.
    ///
    /// # Errors
    /// [`Error::Budget`] if `out` is shorter than [`encoded_len`](Self::encoded_len) (nothing is
    /// written then), [`Error::Range`] if the model is longer than 4 GiB.
    pub fn encode(&self, choice: Choice, out: &mut [u8]) -> Result<usize> {
        let mut writer = Writer::new(out, self.encoded_len(choice))?;
        writer.header(self.model.inputs(), self.model.outputs())?;
        let scales = self.model.scales();
        writer.words([usize::from(TAG_SCALES), SCALES - SECTION])?;
        writer.array(&[scales.input(), scales.output()])?;
        writer.array(&[scales.threshold, scales.zero.into()])?;
        if let Some(own) = self.model.readings().columns() {
            let inputs = own.zeros().len();
            writer.words([usize::from(TAG_COLUMNS), columns_len(inputs) - SECTION, inputs])?;
            writer.array(own.scales())?;
            writer.array(own.zeros())?;
        }
        let mut layers = self.model.layers().iter();
        layers.try_for_each(|layer| write_layer(&mut writer, layer, choice))?;
        if let Some(sum) = self.model.sum() {
            writer.sum(sum)?;
        }
        writer.task(self.task)?;
        writer.put(self.extra)?;
        writer.finish()
    }
}

/// Bytes of a layer of integers with the encoding that is chosen, its section header included.
#[must_use]
pub fn layer_len(layer: &Layer<'_>, choice: Choice) -> usize {
    let (own, shape) = (layer.weights().encoding(), Shape::of(layer.weights()));
    let body = recode::bytes(&shape, recode::choose(&shape, own, choice)).unwrap_or_default();
    (SECTION + INT_HEADER)
        .saturating_add(4 * (layer.rescale().len() + layer.bias().len()))
        .saturating_add(body)
}

fn write_layer(writer: &mut Writer<'_>, layer: &Layer<'_>, choice: Choice) -> Result<()> {
    let (weights, shape) = (layer.weights(), Shape::of(layer.weights()));
    let encoding = recode::choose(&shape, weights.encoding(), choice);
    let factors = layer.rescale().len().min(2);
    let biases = usize::from(!layer.bias().is_empty());
    writer.words([usize::from(recode::tag(encoding)), layer_len(layer, choice) - SECTION])?;
    writer.words([weights.inputs(), weights.outputs(), weights.nonzeros(), layer.requested()])?;
    let is_relu = usize::from(layer.activation() == Activation::Relu);
    writer.words([is_relu | factors << 16 | biases << 24, 0])?;
    writer.array(layer.rescale())?;
    writer.array(layer.bias())?;
    recode::write(writer, weights, &shape, encoding)
}

/// Bytes of the scales of so many inputs, their section header included.
pub(super) const fn columns_len(inputs: usize) -> usize {
    (SECTION + 4).saturating_add(inputs.saturating_mul(8))
}

/// The section of the scales of each input, behind that of all, where there is one: its payload,
/// whose length is checked.
pub(super) const fn columns<'a>(reader: &mut Reader<'a>) -> Result<Option<Reader<'a>>> {
    let start = *reader;
    if reader.is_empty() {
        return Ok(None);
    }
    let (_, tag, optional, payload) = tri!(reader.section());
    if tag != TAG_COLUMNS || optional {
        *reader = start;
        return Ok(None);
    }
    let mut fields = payload;
    let inputs = tri!(fields.u32()) as usize;
    tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
    tri!(fields.array(4 * inputs));
    tri!(fields.array(4 * inputs));
    tri!(fields.end("end of the scales of the inputs"));
    Ok(Some(payload))
}

/// Checks the scales of so many inputs in the payload of their section.
pub(super) const fn check_columns(mut payload: Reader<'_>, inputs: usize) -> Result<()> {
    tri!(length("scales of the inputs", tri!(payload.u32()) as usize, inputs));
    let mut at = 0;
    while at < inputs {
        tri!(check_scale(tri!(payload.u32()), at));
        at += 1;
    }
    Ok(())
}

/// The scales of the inputs in the payload of their section.
fn columns_of(mut payload: Reader<'_>) -> Result<Columns<'_>> {
    let inputs = payload.u32()? as usize;
    let scales = bytemuck::must_cast_slice(cast(payload.array(4 * inputs)?)?);
    let zeros = bytemuck::must_cast_slice(cast(payload.array(4 * inputs)?)?);
    Columns::new(scales, zeros)
}

/// The section of the scales, which is the first.
pub(super) const fn scales(reader: &mut Reader<'_>) -> Result<Scales> {
    let (at, tag, optional, mut payload) = tri!(reader.section());
    let head = tag as u32 | (optional as u32) << 16;
    tri!(expect("first section of a model of integers", at, TAG_SCALES as u32, head));
    let (input, output) = (tri!(payload.u32()), tri!(payload.u32()));
    let threshold = tri!(payload.u32()) as i32;
    let at = payload.at;
    let zero = tri!(payload.u32());
    tri!(expect("reserved", at + 1, 0, zero >> 8));
    tri!(payload.end("end of the scales"));
    Scales::of(input, output, zero as u8, threshold)
}
