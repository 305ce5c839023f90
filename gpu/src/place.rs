//! What of a buffer a kernel is given. A vector may be larger than a binding: then kernels go through it by windows
//! of rows.

use crate::device::Gpu;
use crate::error::Error;
use std::ops::Range;
use wgpu::Buffer;

/// What bindings within a buffer begin at a multiple of, in bytes.
pub(crate) const ALIGN: usize = 256;
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
    /// The rows of one call after the other: all of them where their numbers fit a binding.
    ///
    /// # Errors
    /// [`Error::Limit`] if the rows of a group do not.
    pub(crate) fn windows(self, gpu: &Gpu) -> Result<Vec<Range<usize>>, Error> {
        let Self { count, width, group } = self;
        // Less what a part may have before its numbers.
        let room = (gpu.binding_limit() as usize).saturating_sub(ALIGN) / 4;
        let fits = (room / width.max(1)).min(GRID * group);
        let most = if fits < count { fits / group * group } else { count };
        if most == 0 && count > 0 {
            gpu.within_binding("rows that are added up as one", 4 * (group * width) as u64 + 1)?;
        }
        let window = |first| first..count.min(first + most);
        Ok((0..count).step_by(most.max(1)).map(window).collect())
    }
}
