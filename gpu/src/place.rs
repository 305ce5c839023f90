//! What of a buffer a kernel is given. A vector may be larger than a binding: then kernels go through it by windows
//! of rows.

use crate::device::Gpu;
use crate::error::Error;
use std::ops::Range;
use wgpu::Buffer;

/// What bindings within a buffer begin at a multiple of, in bytes.
pub(crate) const ALIGN: usize = 256;
/// Numbers that every device binds: 128 MiB of them, WebGPU's default.
pub(crate) const BOUND: usize = 1 << 25;
/// Groups of a line of a grid, at most.
pub(crate) const GRID: usize = 65535;

/// A piece of a buffer that a kernel is given.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) buffer: Buffer,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Some numbers of a vector: a place that holds them, and where the first of them stands in it.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) first: usize,
}

impl From<&Buffer> for Place {
    fn from(buffer: &Buffer) -> Self {
        Self { buffer: buffer.clone(), offset: 0, bytes: buffer.size() }
    }
}

impl Place {
    /// Some of its numbers. Their place begins where a binding can, up to 63 numbers before them; it is all of this
    /// one, which a kernel then does not read, where there are no such numbers.
    pub(crate) fn part(&self, numbers: Range<usize>) -> Part {
        let begin = (4 * numbers.start / ALIGN * ALIGN) as u64;
        let end = (4 * numbers.end as u64).next_multiple_of(16).min(self.bytes);
        if end <= begin {
            return Part { place: self.clone(), first: 0 };
        }
        let place =
            Self { buffer: self.buffer.clone(), offset: self.offset + begin, bytes: end - begin };
        Part { place, first: numbers.start - begin as usize / 4 }
    }

    /// Some of the numbers of each of several vectors: one has a place for these, and more, which together fit a
    /// binding, are bound whole.
    pub(crate) fn part_of_each(&self, of: Several, numbers: Range<usize>) -> Part {
        if of.count == 1 {
            return self.part(numbers);
        }
        Part { place: self.part(0..of.count * of.numbers).place, first: numbers.start }
    }

    /// Rows of so many numbers each, which begin where a binding can, as those of [`Rows::windows`] do.
    pub(crate) fn rows(&self, rows: &Range<usize>, width: usize) -> Self {
        let Part { place, first } = self.part(width * rows.start..width * rows.end);
        debug_assert_eq!(first, 0, "rows begin where a binding can");
        place
    }

    /// What it is bound as.
    pub(crate) fn resource(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            size: std::num::NonZeroU64::new(self.bytes),
        })
    }
}

/// Vectors one behind the other, of as many numbers: activations or residuals of neurons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Several {
    pub(crate) count: usize,
    pub(crate) numbers: usize,
}

/// Numbers of a part that a binding holds, whatever it has before them.
pub(crate) fn room(gpu: &Gpu) -> usize {
    (gpu.binding_limit() as usize).saturating_sub(ALIGN) / 16 * 4
}

/// Bytes of a binding that has such room for so many numbers.
pub(crate) const fn bytes(numbers: usize) -> u64 {
    (4 * numbers.next_multiple_of(4) + ALIGN) as u64
}

/// Rows that a kernel goes through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) count: usize,
    /// Numbers of a row in the widest vector.
    pub(crate) width: usize,
    /// Rows that stay together: what is added up as one.
    pub(crate) group: usize,
}

impl Rows {
    /// Rows that need not stay together, but for windows to begin where bindings can.
    pub(crate) const fn apart(count: usize, width: usize) -> Self {
        Self { count, width, group: ALIGN / 4 }
    }

    /// The rows of one call after the other: all of them where their numbers fit a binding.
    ///
    /// # Errors
    /// [`Error::Limit`] if the rows of a group do not.
    pub(crate) fn windows(self, gpu: &Gpu) -> Result<Vec<Range<usize>>, Error> {
        let Self { count, width, group } = self;
        let fits = (room(gpu) / width.max(1)).min(GRID * group);
        let most = if fits < count { fits / group * group } else { count };
        if most == 0 {
            gpu.within_binding("rows of a window", bytes(group.min(count) * width))?;
        }
        let window = |first| first..count.min(first + most);
        Ok((0..count).step_by(most.max(1)).map(window).collect())
    }
}
