//! The last rows of a stream, with their labels, in the caller's memory.

use super::{ByteRows, Rows, Samples, row_of};
use crate::base::error::{self, Error, Result};
use crate::base::record::{Put, Record};
use core::convert::Infallible;
use core::marker::PhantomData;

/// Numbers that a [`Window`] holds: `u8` or `f32`.
pub trait Value: bytemuck::Pod + sealed::Value {}

impl Value for u8 {}
impl Value for f32 {}

mod sealed {
    use crate::base::error::{self, Result};

    /// What a window needs to know of its numbers.
    pub trait Value: Sized + Into<f32> {
        /// Which they are, as a window in flash says it.
        const KIND: u32;

        /// Fails with the place of the first that is no number.
        fn check(values: &[Self]) -> Result<()>;
    }

    impl Value for u8 {
        const KIND: u32 = u32::from_le_bytes(*b"WIN1");

        fn check(_: &[Self]) -> Result<()> {
            Ok(())
        }
    }

    impl Value for f32 {
        const KIND: u32 = u32::from_le_bytes(*b"WIN4");

        fn check(values: &[Self]) -> Result<()> {
            error::finite("samples", values)
        }
    }
}

/// Words before the labels: kind, rows, inputs, rows that were pushed, rows that are held, place of
/// the next one.
const HEAD: usize = 6;

/// The last n rows that were pushed, with a label each: a ring in words that the caller owns.
///
/// Row k is what stands at place k, and [`Self::labels`] has the same order; the newest row takes
/// the place of the oldest. All that a window knows is in its words, so they can be written down (a
/// window is a [`crate::base::record::Record`]) and opened again after a loss of power.
///
/// ```
/// use tamis::data::samples::{Samples, Window};
/// const WORDS: usize = Window::<u8>::words(3, 4);
/// let mut memory = [0; WORDS];
/// let mut window = Window::<u8>::new(&mut memory, 3, 4)?;
/// for k in 0..5 {
///     window.push(&[k, 0, 0, 9], f32::from(k))?;
/// }
/// assert_eq!(window.labels(), [3.0, 4.0, 2.0]);
/// let mut row = [0.0; 4];
/// window.rows(0.5)?.row(1, &mut row)?;
/// assert_eq!(row, [2.0, 0.0, 0.0, 4.5]);
/// assert!(window.push(&[0; 5], 0.0).is_err(), "five numbers are no row");
///
/// // After a reset, with the words that were kept.
/// let window = Window::<u8>::open(&mut memory, 3, 4)?;
/// assert!(window.is_full());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Window<'m, T> {
    words: &'m mut [u32],
    rows: usize,
    inputs: usize,
    values: PhantomData<T>,
}

impl<'m, T: Value> Window<'m, T> {
    /// Words that a window of `rows` rows of `inputs` numbers takes: 6, one a row, and the numbers.
    #[must_use]
    pub const fn words(rows: usize, inputs: usize) -> usize {
        let bytes = rows.saturating_mul(inputs).saturating_mul(size_of::<T>());
        bytes.div_ceil(size_of::<u32>()).saturating_add(rows).saturating_add(HEAD)
    }

    /// An empty window in the first [`Self::words`] of `memory`.
    ///
    /// # Errors
    /// [`Error::Range`] if `rows` or `inputs` is 0 or beyond 2³², [`Error::Budget`] if the memory
    /// is too short.
    pub fn new(memory: &'m mut [u32], rows: usize, inputs: usize) -> Result<Self> {
        let mut window = Self::over(memory, rows, inputs)?;
        window.words.fill(0);
        window.set([T::KIND, rows as u32, inputs as u32, 0, 0, 0]);
        Ok(window)
    }

    /// The window that an earlier one has left in `memory`.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Format`] with the first byte that is none of a window of this kind
    /// and these sizes, [`Error::NotFinite`] for labels and samples that are no numbers.
    pub fn open(memory: &'m mut [u32], rows: usize, inputs: usize) -> Result<Self> {
        let window = Self::over(memory, rows, inputs)?;
        let [.., pushed, held, next] = window.head();
        let most = rows as u32;
        // Until all places are taken the next one is the first that is free.
        let next_held = if held < most { held } else { next.min(most - 1) };
        let expected = [T::KIND, most, inputs as u32, pushed, held.min(most), next_held];
        for (k, (expected, got)) in expected.into_iter().zip(window.head()).enumerate() {
            error::expect("head of a window of samples", 4 * k, expected, got)?;
        }
        error::finite("labels of a window", window.labels())?;
        T::check(window.held())?;
        Ok(window)
    }

    fn over(memory: &'m mut [u32], rows: usize, inputs: usize) -> Result<Self> {
        error::range("rows of a window", rows, 1, u32::MAX as usize)?;
        error::range("inputs", inputs, 1, u32::MAX as usize)?;
        let (needed, got) =
            (4 * Self::words(rows, inputs).min(usize::MAX / 4), size_of_val(memory));
        let words = memory.get_mut(..needed / 4).ok_or(Error::Budget { needed, got })?;
        Ok(Self { words, rows, inputs, values: PhantomData })
    }

    /// Takes a row and its label; where the window is full, in the place of the oldest.
    ///
    /// # Errors
    /// [`Error::Length`] for a row of another length, [`Error::NotFinite`] for one with something
    /// that is no number, or such a label; the window stays as it was.
    pub fn push(&mut self, row: &[T], label: f32) -> Result<()> {
        error::length("row", row.len(), self.inputs)?;
        T::check(row)?;
        error::finite("label", &[label])?;
        let [kind, rows, inputs, pushed, held, next] = self.head();
        let place = next as usize;
        let (labels, values) = self.parts_mut();
        if let Some(to) = labels.get_mut(place) {
            *to = label;
        }
        if let Some(to) = values.chunks_exact_mut(row.len().max(1)).nth(place) {
            to.copy_from_slice(row);
        }
        let next = if next + 1 < rows { next + 1 } else { 0 };
        let (pushed, held) = (pushed.wrapping_add(1), held.saturating_add(1).min(rows));
        self.set([kind, rows, inputs, pushed, held, next]);
        Ok(())
    }

    /// Forgets all rows, but not how many there were.
    pub fn clear(&mut self) {
        let [kind, rows, inputs, pushed, ..] = self.head();
        self.set([kind, rows, inputs, pushed, 0, 0]);
    }

    /// Rows that were ever pushed, modulo 2³²: where in the stream the window is.
    pub fn pushed(&self) -> u32 {
        let [.., pushed, _, _] = self.head();
        pushed
    }

    /// Rows that are held.
    pub fn len(&self) -> usize {
        let [.., held, _] = self.head();
        (held as usize).min(self.rows)
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the next row takes the place of the oldest.
    pub fn is_full(&self) -> bool {
        self.len() == self.rows
    }

    /// The label of each row that is held, place by place.
    pub fn labels(&self) -> &[f32] {
        bytemuck::cast_slice(self.words.get(HEAD..HEAD + self.len()).unwrap_or_default())
    }

    /// The numbers of the rows that are held.
    fn held(&self) -> &[T] {
        let values: &[T] =
            bytemuck::cast_slice(self.words.get(HEAD + self.rows..).unwrap_or_default());
        values.get(..self.len().saturating_mul(self.inputs)).unwrap_or_default()
    }

    fn parts_mut(&mut self) -> (&mut [f32], &mut [T]) {
        let rest = self.words.get_mut(HEAD..).unwrap_or_default();
        let (labels, values) = rest.split_at_mut_checked(self.rows).unwrap_or_default();
        (bytemuck::cast_slice_mut(labels), bytemuck::cast_slice_mut(values))
    }

    fn head(&self) -> [u32; HEAD] {
        self.words.first_chunk().copied().unwrap_or_default()
    }

    fn set(&mut self, head: [u32; HEAD]) {
        if let Some(words) = self.words.first_chunk_mut() {
            *words = head;
        }
    }
}

impl Window<'_, u8> {
    /// The rows that are held, to train on: byte b stands for `b * scale`.
    ///
    /// # Errors
    /// [`error::Error::NotFinite`] for a scale that is no number.
    pub fn rows(&self, scale: f32) -> Result<ByteRows<'_>> {
        error::finite("scale of the samples", &[scale])?;
        Ok(ByteRows { values: self.held(), inputs: self.inputs, scale })
    }
}

impl Window<'_, f32> {
    /// The rows that are held, to train on.
    pub fn rows(&self) -> Rows<'_> {
        Rows { values: self.held(), inputs: self.inputs }
    }
}

/// Rows of bytes as those of [`Window::rows`] with a scale of 1.
impl<T: Value> Samples for Window<'_, T> {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.len()
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&mut self, k: usize, out: &mut [f32]) -> Result<()> {
        let row = row_of(self.held(), self.inputs, k, out.len())?;
        out.iter_mut().zip(row).for_each(|(out, &number)| *out = number.into());
        Ok(())
    }
}

/// The samples that a run is of, beside its checkpoints.
impl<T: Value> Record for Window<'_, T> {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        put(self.words)
    }
}
