//! A model to bytes in the caller's buffer.

use super::head::float_len;
use super::task::TASK;
use super::{
    CHECKSUM, HEADER, MAGIC, SECTION, TAG_CSR, TAG_SUM, TAG_WINDOWS, Task, VERSION, View, checksum,
    padded, padding, sum_len,
};
use crate::base::error::range;
use crate::infer::model::{Activation, Layer, Model, Sum};
use crate::{Error, Result};
use bytemuck::NoUninit;

impl View<'_> {
    /// Exactly the bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self) -> usize {
        let model = self.model.flash_bytes();
        model.saturating_add(Task::len(self.task)).saturating_add(self.extra.len())
    }

    /// Writes the model to the start of `out` and gives its length in bytes.
    ///
    /// # Errors
    /// [`Error::Budget`] if `out` is shorter than [`encoded_len`](Self::encoded_len) (nothing is
    /// written then), [`Error::Range`] if the model is longer than 4 GiB.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize> {
        let mut writer = Writer::new(out, self.encoded_len())?;
        writer.header(self.model.inputs(), self.model.outputs())?;
        self.model.layers().iter().try_for_each(|layer| writer.layer(layer))?;
        writer.task(self.task)?;
        writer.put(self.extra)?;
        writer.finish()
    }
}

impl Model<'_> {
    /// Exactly the bytes of the encoded model: header and layers.
    pub fn flash_bytes(&self) -> usize {
        self.layers().iter().fold(HEADER, |sum, layer| sum.saturating_add(layer.flash_bytes()))
    }
}

impl Layer<'_> {
    /// Exactly the bytes of the encoded layer, its section header included.
    pub fn flash_bytes(&self) -> usize {
        let biases = self.biases().len();
        let len = |tag| float_len(tag, self.inputs(), self.outputs(), self.nonzeros(), biases);
        match self {
            Layer::Csr(_) => len(TAG_CSR),
            Layer::Sum(sum) => sum_len(sum.inputs()),
            Layer::Blocks(_) => len(TAG_WINDOWS),
        }
    }
}

/// The fields of a layer of floats.
pub(super) struct FloatHead {
    pub(super) tag: u16,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) nonzeros: usize,
    pub(super) requested: usize,
    pub(super) biases: usize,
    pub(super) activation: Activation,
}

/// Writes forward into a buffer that has exactly the length of the model.
pub(super) struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut [u8], needed: usize) -> Result<Self> {
        range("bytes of the model", needed, 0, u32::MAX as usize)?;
        let short = Error::Budget { needed, got: out.len() };
        Ok(Self { out: out.get_mut(..needed).ok_or(short)?, at: 0 })
    }

    fn take(&mut self, len: usize) -> Result<&mut [u8]> {
        let end = self.at.saturating_add(len);
        let short = Error::Budget { needed: end, got: self.out.len() };
        let taken = self.out.get_mut(self.at..end).ok_or(short)?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.take(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn words<const N: usize>(&mut self, words: [usize; N]) -> Result<()> {
        words.iter().try_for_each(|&word| self.put(&(word as u32).to_le_bytes()))
    }

    pub(super) fn pad(&mut self) -> Result<()> {
        self.put([0; 3].get(..padding(self.at)).unwrap_or_default())
    }

    pub(super) fn header(&mut self, inputs: usize, outputs: usize) -> Result<()> {
        self.words([MAGIC as usize, usize::from(VERSION), self.out.len(), 0, inputs, outputs])
    }

    /// Two arrays of zeros to fill in, of so many bytes.
    pub(super) fn zeros(&mut self, first: usize, second: usize) -> Result<(&mut [u8], &mut [u8])> {
        let arrays = self.take(padded(first).saturating_add(padded(second)))?;
        arrays.fill(0);
        Ok(arrays.split_at_mut_checked(padded(first)).unwrap_or_default())
    }

    fn layer(&mut self, layer: &Layer<'_>) -> Result<()> {
        let head = |tag, activation| FloatHead {
            tag,
            inputs: layer.inputs(),
            outputs: layer.outputs(),
            nonzeros: layer.nonzeros(),
            requested: layer.requested(),
            biases: layer.biases().len(),
            activation,
        };
        match layer {
            Layer::Csr(csr) => {
                self.float_head(&head(TAG_CSR, csr.activation()))?;
                self.array(csr.counts())?;
                self.array(csr.columns())?;
                self.array(csr.values())?;
                self.array(csr.biases())
            }
            Layer::Sum(sum) => self.sum(sum),
            Layer::Blocks(blocks) => {
                self.float_head(&head(TAG_WINDOWS, blocks.activation()))?;
                self.array(blocks.counts())?;
                self.array(blocks.indices())?;
                self.array(blocks.values())?;
                self.array(blocks.biases())
            }
        }
    }

    pub(super) fn sum(&mut self, sum: &Sum<'_>) -> Result<()> {
        self.sum_head(sum.inputs())?;
        self.array(sum.signs())
    }

    pub(super) fn float_head(&mut self, head: &FloatHead) -> Result<()> {
        let FloatHead { tag, inputs, outputs, nonzeros, requested, biases, activation } = *head;
        let payload = float_len(tag, inputs, outputs, nonzeros, biases) - SECTION;
        self.words([usize::from(tag), payload, inputs, outputs, nonzeros, requested])?;
        let is_relu = usize::from(activation == Activation::Relu);
        self.words([is_relu | usize::from(biases > 0) << 16])
    }

    /// Numbers as they lie in memory, which is little-endian.
    pub(super) fn array<T: NoUninit>(&mut self, numbers: &[T]) -> Result<()> {
        self.put(bytemuck::cast_slice(numbers))?;
        self.pad()
    }

    pub(super) fn u16s(&mut self, mut numbers: impl Iterator<Item = u16>) -> Result<()> {
        numbers.try_for_each(|number| self.put(&number.to_le_bytes()))?;
        self.pad()
    }

    pub(super) fn f32s(&mut self, mut values: impl Iterator<Item = f32>) -> Result<()> {
        values.try_for_each(|value| self.put(&value.to_le_bytes()))
    }

    pub(super) fn sum_head(&mut self, inputs: usize) -> Result<()> {
        self.words([usize::from(TAG_SUM), sum_len(inputs) - SECTION, inputs])
    }

    /// The task, where it is known.
    pub(super) fn task(&mut self, task: Option<Task>) -> Result<()> {
        let Some(task) = task else { return Ok(()) };
        let [kind, threshold] = task.fields()?;
        self.words([Task::HEAD as usize, TASK - SECTION, kind as usize, threshold as usize])
    }

    /// The signs of the sum, 32 a word; `true` is -1.
    pub(super) fn signs(&mut self, mut negative: impl Iterator<Item = bool>) -> Result<()> {
        while let Some(first) = negative.next() {
            let bits = negative.by_ref().take(31).zip(1..);
            let word = bits.fold(u32::from(first), |word, (bit, k)| word | (u32::from(bit) << k));
            self.put(&word.to_le_bytes())?;
        }
        Ok(())
    }

    /// Puts the checksum in; the length of the model.
    pub(super) fn finish(self) -> Result<usize> {
        let needed = self.out.len();
        let crc = checksum(self.out).to_le_bytes();
        let slot = self.out.get_mut(CHECKSUM).filter(|_| self.at == needed);
        slot.ok_or(Error::Budget { needed, got: self.at })?.copy_from_slice(&crc);
        Ok(needed)
    }
}
