//! A sparse layer in windows of 256 columns with indices of `u8`, and the kernel that runs it.
//!
//! An index of `u8` cannot leave an array of 256, so where a row of inputs lies in memory its reads
//! are not checked, and nothing is `unsafe`. A row of fewer than 256 numbers, or one that comes from
//! elsewhere, is read with a check. An entry takes five bytes where [`Csr`](super::Csr) takes six,
//! and outputs have the same bits: windows run one after the other and the columns of a row rise.

use super::csr::{Activation, MAX_INPUTS};
use super::entries::{Entries, WINDOW};
use super::input::Input;
use super::kernels::{BIASES, NARROW_BLOCKS, WIDE_BLOCKS};
use crate::base::error::{finite, length, range, tri};
use crate::{Error, Result};

/// The most outputs of a layer of [`Blocks`].
pub const MAX_OUTPUTS: usize = 1 << 16;

/// A sparse layer of floats in windows of columns.
///
/// ```
/// use tamis::infer::model::{Activation, Blocks, Layer, Model};
///
/// // 300 columns make two windows, the second of which starts at 44: y = (x_0 + 2 x_299, -x_260)
/// let blocks = Blocks::new(300, 2, &[1, 0, 1, 1], &[0, 255, 216], &[1.0, 2.0, -1.0], Activation::Identity)?;
/// let model = Model::new(&[Layer::Blocks(blocks)])?;
/// let mut x = [0.0; 300];
/// (x[0], x[260], x[299]) = (3.0, 5.0, 0.5);
/// let mut y = [0.0; 2];
/// model.predict(&x, &mut [], &mut y)?;
/// assert_eq!(y, [4.0, -5.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blocks<'a> {
    inputs: usize,
    outputs: usize,
    requested: usize,
    counts: &'a [u8],
    indices: &'a [u8],
    values: &'a [f32],
    biases: &'a [f32],
    activation: Activation,
}

impl<'a> Blocks<'a> {
    /// A layer of `outputs`. Columns are parted into windows of [`WINDOW`]; in each window in turn,
    /// each row in turn has `counts` entries of `indices` and `values`. An index is the column less
    /// the window's start; the last window starts at `inputs - 256`, or 0 for fewer inputs, and
    /// holds only columns that no window before it holds.
    ///
    /// # Errors
    /// [`Error::Range`] for more than 65536 inputs or outputs or an index outside its window,
    /// [`Error::Length`] unless there is a count for each window and row and they add up to the
    /// indices and to the values, [`Error::Unsorted`] for an index that does not rise,
    /// [`Error::NotFinite`] at the first value that is NaN or infinite.
    pub const fn new(
        inputs: usize,
        outputs: usize,
        counts: &'a [u8],
        indices: &'a [u8],
        values: &'a [f32],
        activation: Activation,
    ) -> Result<Self> {
        tri!(range("outputs of a layer", outputs, 0, MAX_OUTPUTS));
        tri!(length("values", values.len(), indices.len()));
        let mut runs = tri!(Runs::new(inputs, outputs, counts, indices.len()));
        let mut left = indices;
        while let [index, behind @ ..] = left {
            tri!(runs.then(*index));
            left = behind;
        }
        tri!(finite("weights", values));
        let (requested, biases) = (outputs, [].as_slice());
        Ok(Self { inputs, outputs, requested, counts, indices, values, biases, activation })
    }

    /// Notes how many outputs were asked for before those without weights were left out; it changes
    /// no prediction.
    ///
    /// # Errors
    /// [`Error::Range`] if that is below [`outputs`](Self::outputs) or above `u32::MAX`.
    pub const fn with_requested(mut self, requested: usize) -> Result<Self> {
        tri!(range("outputs asked for", requested, self.outputs, u32::MAX as usize));
        self.requested = requested;
        Ok(self)
    }

    /// Starts the sum of each output at its bias; none of all outputs, or one for each.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of biases, [`Error::NotFinite`] at the first one that
    /// is NaN or infinite.
    pub const fn with_biases(mut self, biases: &'a [f32]) -> Result<Self> {
        if !biases.is_empty() {
            tri!(length("biases of a layer", biases.len(), self.outputs));
        }
        tri!(finite("biases", biases));
        self.biases = biases;
        Ok(self)
    }

    /// Numbers that the layer takes.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// Outputs asked for in training; those without weights may have been left out since.
    pub const fn requested(&self) -> usize {
        self.requested
    }

    /// Entries over all rows.
    pub const fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Entries of each row in each window.
    pub const fn counts(&self) -> &'a [u8] {
        self.counts
    }

    /// Column of each entry, less the start of its window.
    pub const fn indices(&self) -> &'a [u8] {
        self.indices
    }

    /// The value of each entry.
    pub const fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Where the sum of each output starts; empty where all start at 0.
    pub const fn biases(&self) -> &'a [f32] {
        self.biases
    }

    /// What is done to each output.
    pub const fn activation(&self) -> Activation {
        self.activation
    }

    /// Calls `entry` with the row, the column and the value of each entry, row after row and
    /// columns rising.
    pub fn entries(&self, entry: &mut dyn FnMut(usize, u16, f32)) {
        let outputs = self.outputs.max(1);
        for row in 0..self.outputs {
            let mut rest = self.indices.iter().zip(self.values);
            for (k, &count) in self.counts.iter().enumerate() {
                let start = start(self.inputs, k / outputs);
                let run = rest.by_ref().take(usize::from(count));
                for (&index, &value) in run.filter(|_| k % outputs == row) {
                    entry(row, (start + usize::from(index)) as u16, value);
                }
            }
        }
    }

    /// The kernel that it needs.
    pub(super) const fn kernel(&self) -> u16 {
        if self.inputs < WINDOW { NARROW_BLOCKS } else { WIDE_BLOCKS }
    }

    /// `out[outputs] = a(W x + b)`; `None` only if `x` is shorter than the inputs.
    pub(super) fn apply<X: Input + ?Sized, const KERNELS: u16>(
        &self,
        x: &X,
        out: &mut [f32],
    ) -> Option<()> {
        out.fill(0.0);
        if KERNELS & BIASES != 0 {
            out.iter_mut().zip(self.biases).for_each(|(out, bias)| *out = *bias);
        }
        let mut entries = Entries::new(self.indices, self.values);
        for (window, counts) in self.counts.chunks(self.outputs.max(1)).enumerate() {
            x.add_window(start(self.inputs, window), counts, &mut entries, out)?;
        }
        for out in out {
            *out = self.activation.of(*out);
        }
        Some(())
    }
}

/// Windows that cover so many inputs.
pub(crate) const fn windows(inputs: usize) -> usize {
    inputs.div_ceil(WINDOW)
}

/// First column of a window.
pub(crate) const fn start(inputs: usize, window: usize) -> usize {
    let (from, last) = (window * WINDOW, inputs.saturating_sub(WINDOW));
    if from < last { from } else { last }
}

/// Checks the indices of windows, one by one.
pub(crate) struct Runs<'a> {
    inputs: usize,
    outputs: usize,
    /// Counts from that of the run under way on, and entries of it that were checked.
    counts: &'a [u8],
    done: usize,
    row: usize,
    window: usize,
    /// The least column that the next entry may have.
    least: usize,
    /// Entries that were checked in all.
    at: usize,
}

impl<'a> Runs<'a> {
    /// Counts of each row in each window, that must add up to `entries`.
    pub(crate) const fn new(
        inputs: usize,
        outputs: usize,
        counts: &'a [u8],
        entries: usize,
    ) -> Result<Self> {
        tri!(range("inputs of a layer", inputs, 0, MAX_INPUTS));
        tri!(length("counts", counts.len(), outputs.saturating_mul(windows(inputs))));
        let (mut total, mut left) = (0_usize, counts);
        while let [count, behind @ ..] = left {
            (total, left) = (total.saturating_add(*count as usize), behind);
        }
        tri!(length("entries of windows", entries, total));
        Ok(Self { inputs, outputs, counts, done: 0, row: 0, window: 0, least: 0, at: 0 })
    }

    /// The next index.
    pub(crate) const fn then(&mut self, index: u8) -> Result<()> {
        while let [count, behind @ ..] = self.counts
            && self.done == *count as usize
        {
            (self.counts, self.done, self.row) = (behind, 0, self.row + 1);
            if self.row == self.outputs {
                (self.row, self.window) = (0, self.window + 1);
            }
        }
        let column = start(self.inputs, self.window) + index as usize;
        if self.done == 0 {
            // Columns of the window before are not in this one, though it reaches back to them.
            let from = self.window * WINDOW;
            tri!(range("columns of a window", column, from, from + WINDOW - 1));
        } else if column < self.least {
            return Err(Error::Unsorted { at: self.at });
        }
        tri!(range("columns used", column + 1, 0, self.inputs));
        (self.done, self.least, self.at) = (self.done + 1, column + 1, self.at + 1);
        Ok(())
    }
}
