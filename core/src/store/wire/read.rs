//! Bytes to a model that borrows them.

use super::Task;
use super::layer::Walk;
use super::reader::{Reader, encoded, expect};
use crate::Result;
use crate::infer::model::Model;
#[cfg(doc)]
use crate::{
    Error,
    infer::model::{Csr, Sum},
};

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
        while let Some(raw) = walk.floats()? {
            self.model.push(raw.floats()?)?;
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
