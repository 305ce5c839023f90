//! Models of integers.

use super::array::{Array, blocks};
use super::file::File;
use super::floats::signs;
use super::model::{Layer, Lengths, Place, QuantisedModel, missing};
use crate::base::error::{Error, Result, length, range};
use crate::infer::model::{Activation, MAX_LAYERS};
use crate::infer::quantised::{self, Columns, Rescale, Scales, class, product, signed_sum};
use embedded_storage::nor_flash::ReadNorFlash;

impl<R: ReadNorFlash> QuantisedModel<R> {
    /// Reads the file at `start` of the flash, a multiple of 4, and checks all of it; `buffer` has
    /// at least [`LEAST_WORDS`](super::LEAST_WORDS), and with more there are fewer and longer
    /// reads.
    ///
    /// # Errors
    /// As [`crate::store::wire::QuantisedView::parse`]; [`Error::Format`] at a layer in another
    /// encoding; [`Error::Range`] where the file does not end within the flash, [`Error::Budget`]
    /// for a buffer that is too short, [`Error::Source`] if the flash cannot be read.
    pub fn open(source: R, start: u32, buffer: &mut [u32]) -> Result<Self, R::Error> {
        let mut model = Self::read(source, start, buffer, true)?;
        if let Some(place) = model.columns {
            check_columns(&mut model.file, place, buffer)?;
        }
        let hidden = model.layers.len() - 1;
        for (k, layer) in model.layers.iter().enumerate() {
            check(&mut model.file, layer, buffer)?;
            let gives_bytes = layer.head.activation == Activation::Relu && layer.head.factors > 0;
            let fits = usize::from(gives_bytes || k == hidden);
            length("hidden layers with ReLU and a factor", fits, 1)?;
        }
        let weights = model.layers.iter().filter(|layer| !layer.is_sum()).count();
        range("layers of the model", weights, 1, MAX_LAYERS)?;
        Ok(model)
    }

    /// What the integers stand for.
    pub fn scales(&self) -> Scales {
        self.scales
    }

    /// Numbers of `i32` that [`predict`](Self::predict) needs: the sums of the widest layer, and
    /// the bytes of the widest one that gives bytes.
    pub fn scratch_len(&self) -> usize {
        self.widest().saturating_add(self.bytes().div_ceil(size_of::<i32>()))
    }

    fn widest(&self) -> usize {
        self.layers.iter().map(|layer| layer.head.outputs).max().unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        let hidden = self.layers.iter().rev().skip(1);
        hidden.map(|layer| layer.head.outputs).max().unwrap_or(0)
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`; `buffer` as
    /// for [`open`](Self::open).
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` or
    /// `buffer` is too short, [`Error::Source`] if the flash cannot be read, [`Error::Format`],
    /// [`Error::Length`] or [`Error::Range`] if it gives other bytes than before. `out` is as it
    /// was then.
    pub fn predict(
        &mut self,
        x: &[u8],
        buffer: &mut [u32],
        scratch: &mut [i32],
        out: &mut [i32],
    ) -> Result<(), R::Error> {
        let given = Lengths { row: x.len(), out: out.len(), scratch: scratch.len() };
        self.check_call(&given, self.scratch_len(), buffer)?;
        let (sums, bytes) = scratch.split_at_mut_checked(self.widest()).unwrap_or_default();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(bytes);
        let last = self.layers.len() - 1;
        for (k, layer) in self.layers.iter().enumerate() {
            let sums = sums.get_mut(..layer.head.outputs).unwrap_or_default();
            let x = if k == 0 { x } else { bytes.get(..layer.head.inputs).unwrap_or_default() };
            accumulate(&mut self.file, layer, buffer, x, sums)?;
            // The inputs of this layer are done with, so its outputs may take their place.
            let bytes = if k < last { &mut *bytes } else { &mut [] };
            rescale(&mut self.file, layer, buffer, sums, bytes)?;
        }
        out.iter_mut().zip(sums).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    /// Predicts, and gives the class, as [`quantised::Chain::classify`] does.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn classify(
        &mut self,
        x: &[u8],
        buffer: &mut [u32],
        scratch: &mut [i32],
        out: &mut [i32],
    ) -> Result<usize, R::Error> {
        self.predict(x, buffer, scratch, out)?;
        Ok(class(out, self.scales.threshold))
    }
}

/// Checks the scales of the inputs, and the zeros behind them.
fn check_columns<R: ReadNorFlash>(
    file: &mut File<R>,
    scales: Place,
    buffer: &mut [u32],
) -> Result<(), R::Error> {
    let Place { at, len } = scales;
    let mut array = Array::new(scales, buffer);
    for _ in 0..len / 4 {
        Columns::new(&[array.next(file)?], &[0]).map_err(Error::widen)?;
    }
    let mut array = Array::new(Place { at: at + len, len }, buffer);
    for _ in 0..len / 4 {
        array.next::<u32, R>(file)?;
    }
    Ok(())
}

/// `sums = b + W x`, or the sum with signs.
fn accumulate<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    x: &[u8],
    sums: &mut [i32],
) -> Result<(), R::Error> {
    sums.fill(0);
    let short = missing(layer.head.inputs);
    if layer.is_sum() {
        let mut total = 0_i32;
        signs(file, layer, buffer, |from, sum| {
            total = total.wrapping_add(signed_sum(sum, x.get(from..).unwrap_or_default()));
            Ok(())
        })?;
        sums.fill(total);
        return Ok(());
    }
    let mut array = Array::new(layer.biases(), buffer);
    if layer.head.biases > 0 {
        sums.iter_mut().try_for_each(|sum| array.next(file).map(|bias| *sum = bias))?;
    }
    blocks(file, layer, buffer, |row, column, value| {
        let x = *x.get(column).ok_or(short)?;
        if let Some(sum) = sums.get_mut(row) {
            *sum = sum.wrapping_add(product(x, value));
        }
        Ok(())
    })
}

/// Multiplies sums by the factors: to bytes where there is room for some, else to numbers.
fn rescale<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    sums: &mut [i32],
    bytes: &mut [u8],
) -> Result<(), R::Error> {
    let mut array = Array::new(layer.factors(), buffer);
    let (mut bytes, mut factor) = (bytes.iter_mut(), None);
    for (k, sum) in sums.iter_mut().enumerate() {
        if k < layer.head.factors {
            factor = Some(Rescale::of(array.next(file)?).map_err(Error::widen)?);
        }
        match (factor, bytes.next()) {
            (Some(factor), Some(byte)) => *byte = factor.byte(*sum),
            (Some(factor), None) => *sum = factor.number(*sum),
            _ => {}
        }
        if layer.head.activation == Activation::Relu {
            *sum = (*sum).max(0);
        }
    }
    Ok(())
}

/// Checks what the arrays of a layer hold.
fn check<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
) -> Result<(), R::Error> {
    let head = &layer.head;
    if layer.is_sum() {
        return signs(file, layer, buffer, |_, _| Ok(()));
    }
    range("outputs asked for", head.requested, head.outputs, u32::MAX as usize)?;
    let mut array = Array::new(layer.factors(), buffer);
    for _ in 0..head.factors {
        Rescale::of(array.next(file)?).map_err(Error::widen)?;
    }
    let (mut array, most) =
        (Array::new(layer.biases(), buffer), quantised::Layer::most_bias(head.inputs));
    for _ in 0..head.biases {
        let bias: i32 = array.next(file)?;
        range("bias of a layer", bias.unsigned_abs() as usize, 0, most as usize)?;
    }
    blocks(file, layer, buffer, |_, column, _| range("columns used", column + 1, 0, head.inputs))
}
