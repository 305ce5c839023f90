//! Bytes to a model that borrows them.

use super::Task;
use super::layer::{Walk, float_layer};
use super::reader::{Reader, cast, encoded};
use crate::Result;
use crate::base::error::expect;
use crate::infer::{model::Model, quantised};
#[cfg(doc)]
use crate::{
    Error,
    infer::model::{Csr, Sum},
};

/// A model, the task it was trained for, and the sections behind it that this version does not
/// know.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<'a, M> {
    pub(super) model: M,
    pub(super) task: Option<Task>,
    pub(super) extra: &'a [u8],
}

/// A model of floats as a file has it.
pub type View<'a> = Stored<'a, Model<'a>>;

/// A model of integers as a file has it.
///
/// ```
/// use tamis::infer::model::Activation;
/// use tamis::infer::quantised::{Dense, Layer, Model, Scales, Weights};
/// use tamis::store::wire::{Aligned, Choice, QuantisedView};
///
/// // y = 100 x_0 - 50 x_2
/// let weights = Weights::Dense(Dense::new(3, 1, &[100, 0, -50])?);
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
pub type QuantisedView<'a> = Stored<'a, quantised::Model<'a>>;

/// A model that a file may hold.
pub trait Readable<'a> {
    /// Numbers in one input row, and in one prediction.
    fn ends(&self) -> [usize; 2];

    /// Reads all layers; gives the task, and the sections that this version does not know.
    ///
    /// # Errors
    /// As [`View::parse`].
    fn read(&mut self, reader: Reader<'a>) -> Result<(Option<Task>, &'a [u8])>;
}

impl<'a, M: Readable<'a>> Stored<'a, M> {
    /// A model to write, with nothing behind it.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self { model, task: None, extra: &[] }
    }

    /// The same with the task that the model was trained for.
    ///
    /// # Errors
    /// [`Error::Length`] if a binary model has not one output, [`Error::Range`] if a multiclass
    /// model has not several, [`Error::NotFinite`] for a threshold that is no number.
    pub fn with_task(self, task: Task) -> Result<Self> {
        let [_, outputs] = self.model.ends();
        task.check(outputs)?;
        task.fields()?;
        Ok(Self { task: Some(task), ..self })
    }

    #[inline(never)]
    pub(super) fn read(&mut self, bytes: &'a [u8]) -> Result<()> {
        let (reader, inputs, outputs) = encoded(bytes)?;
        (self.task, self.extra) = self.model.read(reader)?;
        let [takes, gives] = self.model.ends();
        if let Some(task) = self.task {
            task.check(gives)?;
        }
        expect("inputs of the model", 16, takes as u32, inputs)?;
        expect("outputs of the model", 20, gives as u32, outputs)
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// What the model was trained for; none where the file does not say.
    pub fn task(&self) -> Option<Task> {
        self.task
    }

    /// The sections behind the layers that this version does not know, as they are; they are
    /// written back.
    pub fn extra(&self) -> &'a [u8] {
        self.extra
    }
}

// Once for each kind: a constructor over any of them would hold the layers twice on the stack.
impl<'a> View<'a> {
    /// Reads `bytes`, exactly one model, in place; they must start at an address that is a multiple
    /// of 4, which [`include_model!`](crate::include_model), [`Aligned`](super::Aligned) and
    /// [`OwnedModel`](super::OwnedModel) see to.
    ///
    /// # Errors
    /// [`Error::Version`] for a model of a later version, [`Error::Newer`] for a layer, an
    /// activation or a task that only a later program knows, [`Error::Format`] with the byte offset
    /// where the bytes are no model, are damaged or hold a model of the other kind, and
    /// [`Error::Length`], [`Error::Range`], [`Error::Unsorted`] or [`Error::NotFinite`] where a
    /// layer contradicts itself, as [`Csr::new`], [`Sum::new`], [`Model::new`] and, of integers,
    /// [`quantised::Layer::new`] and [`quantised::Model::new`] say.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut view = Self { model: Model::empty(), task: None, extra: &[] };
        view.read(bytes)?;
        Ok(view)
    }
}

impl<'a> Readable<'a> for Model<'a> {
    fn ends(&self) -> [usize; 2] {
        [self.inputs(), self.outputs()]
    }

    fn read(&mut self, reader: Reader<'a>) -> Result<(Option<Task>, &'a [u8])> {
        let mut walk = Walk::new(reader);
        while let Some(raw) = walk.floats()? {
            self.push(float_layer(&raw.head, cast(raw.body)?)?)?;
        }
        self.finish()?;
        Ok((walk.task, walk.extra()))
    }
}
