//! X on the device: chunks of rows, column by column, in buffers of at most the largest binding.

use crate::device::Gpu;
use crate::error::Error;
use crate::place;
use crate::recorder::Recorder;
use std::ops::Range;
use wgpu::Buffer;

/// The data, row by row.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Floats.
    F32(&'a [f32]),
    /// Bytes, which stand for 0 to 255.
    U8(&'a [u8]),
}

/// Rows that are added up as one, at least: a power of two, of which a chunk has a whole number.
pub(crate) const LEAST: usize = 256;
// Groups are this times a power of two, and `restricted` goes through 64 fours of rows at a time.
const _: () = assert!(LEAST.is_multiple_of(4 * 64));
/// And at most, another one.
const MOST: usize = 4096;
/// Bytes of so many rows, at most.
const GROUP_BYTES: usize = 1 << 26;
/// Rows of a chunk, at most: more would be more groups than a grid has.
const CHUNK: usize = 1 << 22;

/// Rows that are resident.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) rows: usize,
    pub(crate) inputs: usize,
    /// Rows that are added up as one: a function of the sizes, not of the device.
    pub(crate) group: usize,
    pub(crate) chunks: Vec<Chunk>,
}

/// A chunk of rows, and room for the gates on them.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Its first row.
    pub(crate) base: usize,
    /// Rows with those that fill it up, a multiple of 256.
    pub(crate) stride: usize,
    pub(crate) x: Buffer,
    /// Neurons × rows, and a neuron that is active on no row.
    pub(crate) bits: Buffer,
}

impl Chunk {
    /// The sizes with which kernels over X begin: quads of a column, and words of a neuron.
    pub(crate) const fn strides(&self) -> [u32; 2] {
        [(self.stride / 4) as u32, (self.stride / 32) as u32]
    }
}

/// What of a chunk belongs to the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) chunk: usize,
    /// First row within the chunk.
    pub(crate) row: usize,
    pub(crate) rows: usize,
    /// Its place in the batch.
    pub(crate) at: usize,
}

impl Piece {
    /// Groups of so many fours of rows.
    pub(crate) const fn quad_groups(&self, size: usize) -> usize {
        (self.row + self.rows).div_ceil(4).saturating_sub(self.row / 4).div_ceil(size)
    }
}

/// Rows of a chunk for so many inputs and neurons, and rows that are added up as one.
fn rows_of(gpu: &Gpu, inputs: usize, hidden: usize, bytes: usize) -> Result<[usize; 2], Error> {
    let row = inputs.saturating_mul(4).max(hidden.div_ceil(8));
    let mut group = MOST;
    while group > LEAST && group.saturating_mul(row) > GROUP_BYTES {
        group /= 2;
    }
    let row = inputs.saturating_mul(bytes).max((hidden + 1).div_ceil(8)) as u64;
    // As many numbers of a vector are bound, too.
    let most = (gpu.binding_limit() / row).min(place::room(gpu) as u64);
    let most = usize::try_from(most).unwrap_or(CHUNK).min(CHUNK);
    gpu.within_binding("a tile of the data", (row * group as u64).max(place::bytes(group)))?;
    Ok([most / group * group, group])
}

/// Data and gates that would be resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// n.
    pub rows: usize,
    /// d.
    pub inputs: usize,
    /// m.
    pub hidden: usize,
    /// Whether samples are bytes, or else floats.
    pub is_bytes: bool,
}

impl Resident {
    /// Bytes on the device, in all tiles.
    ///
    /// # Errors
    /// [`Error::Limit`] if the least tile is larger than a binding.
    pub fn bytes(self, gpu: &Gpu) -> Result<u64, Error> {
        let Self { rows, inputs, hidden, is_bytes } = self;
        let bytes = if is_bytes { 1 } else { 4 };
        let [most, _] = rows_of(gpu, inputs, hidden, bytes)?;
        let whole = rows / most * most;
        let all = whole as u64 + (rows - whole).next_multiple_of(LEAST) as u64;
        Ok(all * (inputs * bytes) as u64 + all / 8 * (hidden as u64 + 1))
    }
}

impl Data {
    /// Copies the data to the device.
    pub(crate) fn new(
        recorder: &mut Recorder,
        [rows, inputs, hidden]: [usize; 3],
        values: Values<'_>,
    ) -> Result<Self, Error> {
        let bytes = if recorder.bytes { 1 } else { 4 };
        let gpu = recorder.gpu.clone();
        let [most, group] = rows_of(&gpu, inputs, hidden, bytes)?;
        let mut chunks = Vec::new();
        for base in (0..rows).step_by(most) {
            let count = most.min(rows - base);
            let stride = count.next_multiple_of(LEAST);
            let x = gpu.buffer("a tile of the data", (stride * inputs * bytes) as u64)?;
            let bits = gpu.buffer("gates", (stride / 8 * (hidden + 1)) as u64)?;
            match values {
                Values::F32(all) => {
                    let columns =
                        transposed(&all[base * inputs..][..count * inputs], inputs, stride);
                    recorder.write(&x, bytemuck::cast_slice(&columns));
                }
                Values::U8(all) => {
                    let columns =
                        transposed(&all[base * inputs..][..count * inputs], inputs, stride);
                    recorder.write(&x, &columns);
                }
            }
            chunks.push(Chunk { base, stride, x, bits });
        }
        recorder.wait();
        recorder.failure.clone().map_or(Ok(Self { rows, inputs, group, chunks }), Err)
    }

    /// The chunks of a batch.
    pub(crate) fn pieces(&self, batch: &Range<usize>) -> Vec<Piece> {
        let piece = |(chunk, of): (usize, &Chunk)| {
            let from = batch.start.max(of.base);
            let to = batch.end.min(of.base + of.stride);
            let (row, at) = (from.checked_sub(of.base)?, from - batch.start);
            (from < to).then(|| Piece { chunk, row, rows: to - from, at })
        };
        self.chunks.iter().enumerate().filter_map(piece).collect()
    }
}

/// Rows as columns of so many places.
fn transposed<T: Copy + Default>(rows: &[T], inputs: usize, stride: usize) -> Vec<T> {
    const TILE: usize = 64;
    let mut columns = vec![T::default(); inputs * stride];
    for (tile, rows) in rows.chunks(TILE * inputs).enumerate() {
        for j in 0..inputs {
            let column = &mut columns[j * stride + tile * TILE..];
            for (value, row) in column.iter_mut().zip(rows.chunks(inputs)) {
                *value = row[j];
            }
        }
    }
    columns
}
