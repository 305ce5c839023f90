//! Models of integers as bytes: sections of their own in the same file format.
//!
//! A file starts with what the integers stand for, layers of weights follow, a sum perhaps, and the task.

use super::read::{Reader, activation, encoded, expect, later, read_task, sum};
use super::recode::{self, Shape};
use super::write::Writer;
use super::{
    HEADER, INT_HEADER, OPTIONAL, SCALES, SECTION, TAG_BLOCKS, TAG_CSR, TAG_DELTA, TAG_DENSE, TAG_FAN,
    TAG_MASK, TAG_ROWS, TAG_SCALES, TAG_SUM, TAG_TASK, TAG_WINDOWS, Task,
    sum_len,
};
use crate::error::{length, range};
use crate::model::{Sum, windows};
use crate::quantised::{
    Blocks, Columns, Csr, Delta, Dense, Encoding, Fan, Layer, Mask, Model, Scales, WINDOW, Weights,
};
use crate::{Error, Result};

/// How [`QuantisedView::encode`] chooses the encoding of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Choice {
    /// As it is.
    Keep,
    /// The fewest bytes; of equal ones the fastest.
    #[default]
    Smallest,
    /// The fewest instructions on a Cortex-M4, as estimated from measured ones; of equal ones the fewest bytes.
    Fastest,
    /// This one, wherever it can hold the layer, else the smallest.
    Prefer(Encoding),
}

/// A model of integers, the task it was trained for, and the sections behind it that this version does not know.
///
/// ```
/// use tamis::model::Activation;
/// use tamis::quantised::{Csr, Layer, Model, Scales, Weights};
/// use tamis::wire::{Aligned, Choice, QuantisedView};
///
/// // y = 100 x_0 - 50 x_2
/// let weights = Weights::Csr(Csr::new(3, &[2], &[0, 2], &[100, -50])?);
/// let layer = Layer::new(weights, &[], &[], Activation::Identity)?;
/// let view = QuantisedView::new(Model::new(&[layer], None, Scales::new(1.0, 0.01, 0, 0)?)?);
///
/// let mut bytes = Aligned([0; 96]);
/// let len = view.encode(Choice::Smallest, &mut bytes.0)?;
/// assert_eq!(len, view.encoded_len(Choice::Smallest));
/// let read = QuantisedView::parse(&bytes.0[..len])?;
/// let mut y = [0];
/// read.model().predict(&[2, 9, 1], &mut [], &mut y)?;
/// assert_eq!(y, [150]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QuantisedView<'a> {
    model: Model<'a>,
    task: Option<Task>,
    extra: &'a [u8],
}

impl<'a> QuantisedView<'a> {
    /// A model to write, with nothing behind it.
    #[must_use]
    pub fn new(model: Model<'a>) -> Self {
        Self { model, task: None, extra: &[] }
    }

    /// The same with the task that the model was trained for.
    ///
    /// # Errors
    /// As [`View::with_task`](super::View::with_task).
    pub fn with_task(self, task: Task) -> Result<Self> {
        task.check(self.model.outputs())?;
        task.fields()?;
        Ok(Self { task: Some(task), ..self })
    }

    /// Whether bytes that start with the head of a model hold one of integers; nothing else about them is checked.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.get(HEADER..).and_then(|rest| rest.first_chunk()) == Some(&TAG_SCALES.to_le_bytes())
    }

    /// Reads `bytes`, exactly one model, in place, as [`View::parse`](super::View::parse) does.
    ///
    /// # Errors
    /// As [`View::parse`](super::View::parse), and those of [`Layer::new`], [`Model::new`], [`Scales::new`] and of the
    /// encodings. A model of floats is [`Error::Format`] at its first section.
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

    /// What the integers stand for, the layers, the sum, the task, then what else may be skipped.
    fn sections(&mut self, mut reader: Reader<'a>) -> Result<()> {
        let (at, tag, optional, payload) = reader.section()?;
        let head = u32::from(tag) | u32::from(optional) << 16;
        expect("first section of a model of integers", at, u32::from(TAG_SCALES), head)?;
        let scales = read_scales(payload)?;
        let mut sum_layer: Option<Sum<'a>> = None;
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
                expect("section behind the sum", at, 0, u32::from(sum_layer.is_some()))?;
                if tag == TAG_SUM {
                    let mut payload = payload;
                    sum_layer = Some(sum(&mut payload)?);
                    payload.end("end of a layer")?;
                } else {
                    self.model.push(layer(at, tag, payload)?)?;
                }
                (end, rest) = (reader, reader);
            }
        }
        self.model.finish(sum_layer, scales)?;
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

    /// Exactly the bytes that [`encode`](Self::encode) writes.
    #[must_use]
    pub fn encoded_len(&self, choice: Choice) -> usize {
        let layers = self.model.layers().iter().map(|layer| layer_len(layer, choice));
        let body = layers.fold(HEADER + SCALES, usize::saturating_add);
        let sum = self.model.sum().map_or(0, |sum| sum_len(sum.inputs()));
        body.saturating_add(sum).saturating_add(Task::len(self.task)).saturating_add(self.extra.len())
    }

    /// Writes the model to the start of `out` and gives its length in bytes.
    ///
    /// # Errors
    /// [`Error::Budget`] if `out` is shorter than [`encoded_len`](Self::encoded_len) (nothing is written then),
    /// [`Error::Range`] if the model is longer than 4 GiB.
    pub fn encode(&self, choice: Choice, out: &mut [u8]) -> Result<usize> {
        let mut writer = Writer::new(out, self.encoded_len(choice))?;
        writer.header(self.model.inputs(), self.model.outputs())?;
        let scales = self.model.scales();
        writer.words([usize::from(TAG_SCALES), SCALES - SECTION])?;
        writer.put(&scales.input().to_bits().to_le_bytes())?;
        writer.put(&scales.output().to_bits().to_le_bytes())?;
        writer.put(&scales.threshold.to_le_bytes())?;
        writer.put(&[scales.zero, 0, 0, 0])?;
        for layer in self.model.layers() {
            write_layer(&mut writer, layer, choice)?;
        }
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
    let shape = Shape::of(layer.weights());
    let body = shape.len(shape.choose(layer.weights(), choice)).unwrap_or_default();
    (SECTION + INT_HEADER)
        .saturating_add(4 * (layer.rescale().len() + layer.bias().len()))
        .saturating_add(body)
}

fn write_layer(writer: &mut Writer<'_>, layer: &Layer<'_>, choice: Choice) -> Result<()> {
    let (weights, shape) = (layer.weights(), Shape::of(layer.weights()));
    let encoding = shape.choose(weights, choice);
    let tag = match encoding {
        Encoding::Dense | Encoding::DenseUsed => TAG_DENSE,
        Encoding::Mask | Encoding::MaskUsed => TAG_MASK,
        Encoding::Csr => TAG_ROWS,
        Encoding::Delta => TAG_DELTA,
        Encoding::Blocks => TAG_BLOCKS,
        Encoding::Fan => TAG_FAN,
    };
    let factors = layer.rescale().len().min(2);
    let biases = usize::from(!layer.bias().is_empty());
    writer.words([usize::from(tag), layer_len(layer, choice) - SECTION])?;
    writer.words([weights.inputs(), weights.outputs(), weights.nonzeros(), layer.requested()])?;
    writer.words([usize::from(layer.activation() == crate::model::Activation::Relu)
        | factors << 16
        | biases << 24])?;
    writer.words([shape.extent(encoding)])?;
    layer.rescale().iter().try_for_each(|factor| writer.put(&factor.to_le_bytes()))?;
    layer.bias().iter().try_for_each(|bias| writer.put(&bias.to_le_bytes()))?;
    recode::write(writer, weights, &shape, encoding)
}

fn read_scales(mut payload: Reader<'_>) -> Result<Scales> {
    let (input, output, threshold) = (payload.u32()?, payload.u32()?, payload.u32()? as i32);
    let at = payload.at;
    let zero = payload.u32()?;
    expect("reserved", at + 1, 0, zero >> 8)?;
    payload.end("end of the scales")?;
    Scales::of(input, output, zero as u8, threshold)
}

fn layer<'a>(at: usize, tag: u16, mut payload: Reader<'a>) -> Result<Layer<'a>> {
    match tag {
        TAG_CSR | TAG_SCALES | TAG_WINDOWS => {
            let what = "layer of a model of integers";
            return Err(Error::Format { what, at, expected: u32::from(TAG_DENSE), got: u32::from(tag) });
        }
        TAG_DENSE..=TAG_FAN => {}
        _ => return Err(later("layer", at, tag)),
    }
    let [inputs, outputs, nonzeros, requested] = payload.words()?;
    range("inputs of a layer", inputs, 0, crate::model::MAX_INPUTS)?;
    range("outputs of a layer", outputs, 0, crate::quantised::MAX_OUTPUTS)?;
    let activation = activation(&mut payload)?;
    let at = payload.at;
    let [factors, biases] = payload.u16()?.to_le_bytes();
    let factors = match factors {
        0 | 1 => usize::from(factors),
        2 if outputs > 1 => outputs,
        _ => return Err(Error::Format { what: "factors", at, expected: 0, got: u32::from(factors) }),
    };
    // Without outputs there is nothing to add biases to.
    expect("biases", at + 1, u32::from(biases.min(u8::from(outputs > 0))), u32::from(biases))?;
    let [extent] = payload.words()?;
    let rescale = payload.slice::<u32>(factors)?;
    let bias = payload.slice::<i32>(outputs * usize::from(biases))?;
    let at = payload.at;
    let p = &mut payload;
    let weights = match tag {
        TAG_DENSE => {
            let used = p.slice::<u16>(extent)?;
            let width = if extent == 0 { inputs } else { extent };
            Weights::Dense(Dense::new(inputs, outputs, used, p.slice::<i8>(outputs.saturating_mul(width))?)?)
        }
        TAG_MASK => {
            let used = p.slice::<u16>(extent)?;
            let width = if extent == 0 { inputs } else { extent };
            let bits = p.slice::<u32>(outputs.saturating_mul(width.div_ceil(32)))?;
            Weights::Mask(Mask::new(inputs, outputs, used, bits, p.slice::<i8>(nonzeros)?)?)
        }
        TAG_DELTA => {
            let (counts, deltas) = (p.slice::<u16>(outputs)?, p.slice::<u8>(extent)?);
            Weights::Delta(Delta::new(inputs, counts, deltas, p.slice::<i8>(nonzeros)?)?)
        }
        _ => {
            expect("extent of a layer that has none", at, 0, extent as u32)?;
            without_extent(tag, inputs, outputs, nonzeros, p)?
        }
    };
    payload.end("end of a layer")?;
    length("weights of a layer", weights.nonzeros(), nonzeros)?;
    Layer::new(weights, rescale, bias, activation)?.with_requested(requested)
}

fn without_extent<'a>(
    tag: u16,
    inputs: usize,
    outputs: usize,
    nonzeros: usize,
    p: &mut Reader<'a>,
) -> Result<Weights<'a>> {
    match tag {
        TAG_BLOCKS => {
            let counts = p.slice::<u8>(outputs.saturating_mul(windows(inputs)))?;
            Blocks::new(inputs, outputs, counts, p.slice::<[u8; 2]>(nonzeros)?).map(Weights::Blocks)
        }
        TAG_FAN => {
            let columns = match inputs {
                0..=WINDOW => Columns::U8(p.slice::<u8>(nonzeros)?),
                _ => Columns::U16(p.slice::<u16>(nonzeros)?),
            };
            Fan::new(inputs, outputs, columns, p.slice::<i8>(nonzeros)?).map(Weights::Fan)
        }
        _ => {
            let (counts, columns) = (p.slice::<u16>(outputs)?, p.slice::<u16>(nonzeros)?);
            Csr::new(inputs, counts, columns, p.slice::<i8>(nonzeros)?).map(Weights::Csr)
        }
    }
}
