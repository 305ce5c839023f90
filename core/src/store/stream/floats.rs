//! Models of floats.

use super::array::{Array, rows};
use super::file::File;
use super::model::{Layer, Lengths, Model, Streamed, missing};
use crate::base::error::{Error, Result, finite, range};
use crate::infer::model::{Ends, Input, MAX_INPUTS, Sum, dot};
use embedded_storage::nor_flash::ReadNorFlash;

impl<R: ReadNorFlash> Model<R> {
    /// Reads the file at `start` of the flash, a multiple of 4, and checks all of it; `buffer` has
    /// at least [`LEAST_WORDS`](super::LEAST_WORDS), and with more there are fewer and longer
    /// reads.
    ///
    /// # Errors
    /// As [`crate::store::wire::View::parse`]; [`Error::Format`] at a layer that is in windows;
    /// [`Error::Range`] where the file does not end within the flash, [`Error::Budget`] for a
    /// buffer that is too short, [`Error::Source`] if the flash cannot be read.
    pub fn open(source: R, start: u32, buffer: &mut [u32]) -> Result<Self, R::Error> {
        let Streamed { mut file, layers, task, .. } = Streamed::read(source, start, buffer, false)?;
        layers.iter().try_for_each(|layer| check(&mut file, layer, buffer))?;
        Ok(Self { file, layers, task, columns: None, scales: () })
    }

    /// Numbers of `f32` that [`predict`](Self::predict) needs for activations and for the
    /// prediction until it is whole: the largest sum of the outputs of two neighbouring layers.
    pub fn scratch_len(&self) -> usize {
        let outputs = self.layers.iter().map(|layer| layer.head.outputs);
        let before = core::iter::once(0).chain(outputs.clone());
        outputs.zip(before).map(|(now, before)| now.saturating_add(before)).max().unwrap_or(0)
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`; `buffer` as
    /// for [`open`](Self::open).
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` or
    /// `buffer` is too short, [`Error::Source`] if the flash cannot be read, [`Error::Format`] or
    /// [`Error::Length`] if it gives other bytes than before. `out` is as it was then.
    pub fn predict(
        &mut self,
        x: &[f32],
        buffer: &mut [u32],
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), R::Error> {
        self.predict_from(x, buffer, scratch, out)
    }

    /// Predicts one row read from any [`Input`]; lengths as for [`predict`](Self::predict).
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_from<X: Input + ?Sized>(
        &mut self,
        x: &X,
        buffer: &mut [u32],
        scratch: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), R::Error> {
        let given = Lengths { row: x.len(), out: out.len(), scratch: scratch.len() };
        self.check_call(&given, self.scratch_len(), buffer)?;
        let mut ends = Ends::new(scratch);
        for (k, layer) in self.layers.iter().enumerate() {
            let short = missing(layer.head.inputs);
            let (now, next) = ends.step(layer.head.outputs).ok_or(short)?;
            match k {
                0 => apply(&mut self.file, layer, buffer, x, next)?,
                _ => apply(&mut self.file, layer, buffer, now, next)?,
            }
        }
        let (whole, _) = ends.step(0).ok_or(missing(out.len()))?;
        out.iter_mut().zip(whole).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// `out = a(W x + b)`, or the sum with signs.
fn apply<X: Input + ?Sized, R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    x: &X,
    out: &mut [f32],
) -> Result<(), R::Error> {
    if layer.is_sum() {
        let mut total = 0.0;
        signs(file, layer, buffer, |from, sum| {
            let neurons = (from..from + sum.inputs()).map(|i| x.at(i));
            total = sum.add(total, neurons).ok_or(missing(layer.head.inputs))?;
            Ok(())
        })?;
        out.fill(total);
        return Ok(());
    }
    // Each sum starts at what is in its place: the bias, or 0.
    out.fill(0.0);
    let mut biases = Array::new(layer.array(3), buffer);
    if layer.has_biases() {
        out.iter_mut().try_for_each(|out| biases.next(file).map(|bias| *out = bias))?;
    }
    rows(file, layer, buffer, |row, columns, values, is_end| {
        let Some(out) = out.get_mut(row) else { return Ok(()) };
        let sum = dot(x, columns, values, *out).ok_or(missing(layer.head.inputs))?;
        *out = if is_end { layer.head.activation.of(sum) } else { sum };
        Ok(())
    })
}

/// Goes through the signs of a sum: `visit` gets the first neuron of a chunk of signs, and the sum
/// of it.
pub(super) fn signs<R: ReadNorFlash>(
    file: &mut File<R>,
    layer: &Layer,
    buffer: &mut [u32],
    mut visit: impl FnMut(usize, &Sum<'_>) -> Result<()>,
) -> Result<(), R::Error> {
    let (inputs, mut done) = (layer.head.inputs, 0);
    let mut words = Array::new(layer.array(0), buffer);
    while done < inputs {
        words.fill(file)?;
        let chunk = words.peek::<u32>(usize::MAX);
        let (count, len) = (chunk.len(), (32 * chunk.len()).min(inputs - done));
        let sum = Sum::new(len, chunk).map_err(Error::widen)?;
        visit(done, &sum).map_err(Error::widen)?;
        words.skip::<u32>(count);
        done += len;
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
    range("inputs of a layer", head.inputs, 0, MAX_INPUTS)?;
    range("outputs asked for", head.requested, head.outputs, u32::MAX as usize)?;
    let (mut least, mut at) = (0, 0);
    rows(file, layer, buffer, |_, columns, values, is_end| {
        finite("weights", values)?;
        for &column in columns {
            if usize::from(column) < least {
                return Err(Error::Unsorted { at });
            }
            (least, at) = (usize::from(column) + 1, at + 1);
            range("columns used", least, 0, head.inputs)?;
        }
        if is_end {
            least = 0;
        }
        Ok(())
    })?;
    let mut biases = Array::new(layer.array(3), buffer);
    for _ in 0..if layer.has_biases() { head.outputs } else { 0 } {
        finite("biases", &[biases.next(file)?]).map_err(Error::widen)?;
    }
    Ok(())
}
