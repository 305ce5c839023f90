//! A model in flash: its layers, and where their arrays are.

use super::file::{File, check_buffer};
use crate::base::budget::enough;
use crate::base::error::{Error, Result, length, range};
use crate::infer::model::{MAX_LAYERS, push};
use crate::infer::quantised::Scales;
use crate::store::wire::{HEADER, Head, PIECE, Section, Sections, TAG_SUM, Task};
use embedded_storage::nor_flash::ReadNorFlash;

/// A model in flash that is read whenever it predicts.
#[derive(Debug)]
pub struct Streamed<R, S> {
    pub(super) file: File<R>,
    pub(super) layers: Layers,
    pub(super) task: Option<Task>,
    /// The scales of the inputs, of integers.
    pub(super) columns: Option<Place>,
    pub(super) scales: S,
}

/// A model of floats in flash: the file of a [`crate::infer::model::Model`] whose layers are in
/// rows.
pub type Model<R> = Streamed<R, ()>;

/// A model of integers in flash: the file of a [`crate::infer::quantised::Model`] whose layers are
/// in blocks.
pub type QuantisedModel<R> = Streamed<R, Scales>;

impl<R: ReadNorFlash, S> Streamed<R, S> {
    /// Numbers in one input row.
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.head.inputs)
    }

    /// Numbers in one prediction.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.head.outputs)
    }

    /// What the model was trained for; none where the file does not say.
    pub fn task(&self) -> Option<Task> {
        self.task
    }

    /// Checks the checksum once more.
    ///
    /// # Errors
    /// [`Error::Format`] with both if the file is no longer what it was, [`Error::Budget`] for a
    /// buffer that is too short, [`Error::Source`] if the flash cannot be read.
    pub fn check(&mut self, buffer: &mut [u32]) -> Result<(), R::Error> {
        self.file.check(buffer)
    }

    /// Gives the flash back.
    pub fn release(self) -> R {
        self.file.source
    }

    /// Checks that layers follow each other, that a sum is the last, and that the file's head says
    /// the same.
    fn check_chain(&self, [inputs, outputs]: [u32; 2]) -> Result<()> {
        range("layers of the model", self.layers.len(), 1, MAX_LAYERS)?;
        let sum = self.layers.iter().position(Layer::is_sum);
        let sum = sum.map_or(self.layers.len(), |k| k + 1);
        length("layers up to the sum", sum, self.layers.len())?;
        for (before, after) in self.layers.iter().zip(self.layers.iter().skip(1)) {
            length("inputs of a layer", after.head.inputs, before.head.outputs)?;
        }
        length("inputs of the model", self.inputs(), inputs as usize)?;
        length("outputs of the model", self.outputs(), outputs as usize)
    }

    /// Checks the lengths of the arguments of a prediction that needs so much scratch.
    pub(super) fn check_call(
        &self,
        given: &Lengths,
        scratch: usize,
        buffer: &[u32],
    ) -> Result<(), R::Error> {
        length("input row", given.row, self.inputs())?;
        length("prediction", given.out, self.outputs())?;
        enough(scratch, given.scratch).map_err(Error::widen)?;
        check_buffer(buffer)
    }
}

impl<R: ReadNorFlash> Streamed<R, Scales> {
    /// Checks all of a file but what its arrays hold; a model of floats has no scales.
    pub(super) fn read(
        source: R,
        start: u32,
        buffer: &mut [u32],
        is_integers: bool,
    ) -> Result<Self, R::Error> {
        let word = start as usize / 4 * 4;
        length("start of the model, at a multiple of 4", start as usize, word)?;
        let mut file = File { source, start, len: HEADER, checksum: 0 };
        file.check_end()?;
        let mut head = [0; HEADER];
        file.read(0, &mut head)?;
        let (mut sections, shape) = Sections::new(&head, is_integers).map_err(Error::widen)?;
        let [len, checksum, inputs, outputs] = shape;
        (file.len, file.checksum) = (len as usize, checksum);
        file.check_end()?;
        file.check(buffer)?;
        let (layers, scales) = (Layers::new(), Scales::default());
        let mut model = Self { file, layers, task: None, columns: None, scales };
        while let Some((at, len)) = sections.place() {
            let mut piece = [0; PIECE];
            let piece = piece.get_mut(..len).unwrap_or_default();
            model.file.read(at, piece)?;
            match sections.next(piece).map_err(Error::widen)? {
                Section::Layer(head, at) => {
                    push(&mut model.layers, Layer { head, at }).map_err(Error::widen)?;
                }
                Section::Scales(scales) => model.scales = scales,
                Section::Columns(own, at) => {
                    length("scales of the inputs", own, inputs as usize)?;
                    model.columns = Some(Place { at, len: 4 * own });
                }
                Section::Other => {}
            }
        }
        sections.check().map_err(Error::widen)?;
        model.check_chain([inputs, outputs]).map_err(Error::widen)?;
        model.task = sections.task;
        if let Some(task) = model.task {
            task.check(outputs as usize).map_err(Error::widen)?;
        }
        Ok(model)
    }
}

/// Lengths of the arguments of a prediction.
pub(super) struct Lengths {
    pub(super) row: usize,
    pub(super) out: usize,
    pub(super) scratch: usize,
}

pub(super) type Layers = heapless::Vec<Layer, MAX_LAYERS>;

/// A layer, and where its arrays start in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer {
    pub(super) head: Head,
    pub(super) at: usize,
}

impl Layer {
    /// Array `k` of the weights.
    pub(super) fn array(&self, k: usize) -> Place {
        let len = self.head.arrays.get(k).copied().unwrap_or(0);
        Place { at: self.at + self.head.start(k), len }
    }

    pub(super) fn factors(&self) -> Place {
        Place { at: self.at, len: 4 * self.head.factors }
    }

    pub(super) fn biases(&self) -> Place {
        Place { at: self.at + 4 * self.head.factors, len: 4 * self.head.biases }
    }

    /// Whether a layer of floats has a bias for each output.
    pub(super) fn has_biases(&self) -> bool {
        self.array(3).len > 0
    }

    pub(super) const fn is_sum(&self) -> bool {
        self.head.tag == TAG_SUM
    }
}

/// Where an array lies in the file, and its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) len: usize,
}

/// The error of a row that has fewer numbers than it says.
pub(super) const fn missing<S>(expected: usize) -> Error<S> {
    Error::Length { what: "numbers of the row that is read", expected, got: 0 }
}
