//! Sums over the rows of the batch, in groups that kernels add up and the host reads once.

use crate::data::{Data, Piece};
use crate::device::Kernel;
use crate::gates::Neurons;
use crate::recorder::{Place, Recorder};
use crate::tables::Entries;
use crate::vectors::{GpuVectors, add_groups};
use std::ops::Range;
use wgpu::Buffer;

/// Tiles of a matrix product times groups of rows that keep a device busy.
const TILES: usize = 512;
/// Groups of rows of a matrix product, at most.
const MOST_GROUPS: usize = 64;
/// Tasks of one call, at most: a grid has no more lines.
const TASKS: usize = 1 << 15;

/// Of what rows sums are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// One residual for all neurons.
    One = 0,
    /// One for each.
    Each = 1,
    /// Squares of the columns.
    Squares = 2,
}

/// What sums over rows are made of.
pub(crate) struct Summation<'a> {
    pub(crate) machine: &'a mut GpuVectors,
    pub(crate) data: &'a Data,
    pub(crate) batch: &'a Range<usize>,
}

/// Groups of rows for so many tiles: where the first begins, rows of a group, and how many.
struct Groups {
    origin: usize,
    rows: usize,
    count: usize,
}

impl Summation<'_> {
    fn groups(&self, tiles: usize) -> Groups {
        let Self { data, batch, .. } = self;
        let first = batch.start / data.group;
        let all = batch.end.div_ceil(data.group) - first;
        let count = (TILES / tiles.max(1)).clamp(1, MOST_GROUPS).min(all);
        let rows = all.div_ceil(count) * data.group;
        Groups { origin: first * data.group, rows, count: (all * data.group).div_ceil(rows) }
    }

    /// Sums for entries of a support, in their order.
    pub(crate) fn restricted(&mut self, entries: &Entries, r: &Place, mode: Mode) -> Vec<f32> {
        let group = self.data.group;
        let first = self.batch.start / group;
        let groups = self.batch.end.div_ceil(group) - first;
        // As many entries at a time as the sums of all groups fit a binding.
        let room = (self.machine.recorder.gpu.binding_limit() / 4) as usize / groups.max(1);
        let tasks = (room / 8).clamp(1, TASKS);
        let mut out = Vec::with_capacity(entries.at.len());
        for tasks in entries.tasks.chunks(4 * tasks) {
            let from = tasks[1];
            let count = tasks.chunks(4).map(|task| task[2] as usize).sum::<usize>();
            let own: Vec<u32> = tasks
                .chunks(4)
                .flat_map(|task| [task[0], task[1] - from, task[2], task[3]])
                .collect();
            let at = &entries.at[from as usize..][..count];
            out.extend(self.restricted_part(&own, at, r, mode, [first, groups]));
        }
        out
    }

    fn restricted_part(
        &mut self,
        tasks: &[u32],
        at: &[u32],
        r: &Place,
        mode: Mode,
        [first, groups]: [usize; 2],
    ) -> Vec<f32> {
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", groups * at.len());
        let [tasks_of, inputs] = [tasks, at].map(|words| recorder.send(words));
        for Piece { chunk, row, rows, at: from } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let before = (chunk.base + row) / data.group - first;
            let own = (row + rows).div_ceil(data.group) - row / data.group;
            let [row, rows, from, batch] = [row, rows, from, batch.len()].map(|x| x as u32);
            let group = (data.group / 4) as u32;
            let [sum, numbers] = [before * at.len(), at.len()].map(|x| x as u32);
            let dims =
                [quads, words, row, rows, from, batch, group, sum, numbers, mode as u32, 0, 0];
            let places = [
                (&chunk.x).into(),
                tasks_of.clone(),
                inputs.clone(),
                (&chunk.bits).into(),
                r.clone(),
                (&sums).into(),
            ];
            recorder.run(Kernel::Restricted, &dims, &places, [tasks.len() / 4, own, 1]);
        }
        machine.add_groups(&sums, at.len(), groups)
    }

    /// A panel of sums, a line of all inputs for each neuron.
    pub(crate) fn panel(&mut self, neurons: &[u32], r: &Place, mode: Mode) -> Vec<f32> {
        let inputs = self.data.inputs;
        let tiles = [neurons.len().div_ceil(64), inputs.div_ceil(64)];
        let numbers = neurons.len() * inputs;
        let Groups { origin, rows: group, count } = self.groups(tiles[0] * tiles[1]);
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", count * numbers);
        recorder.clear(&sums, count * numbers);
        let neurons_of = recorder.send(neurons);
        for Piece { chunk, row, rows, at } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let sizes = [chunk.base, row, rows, at, batch.len(), origin, group];
            let [base, row, rows, at, batch, origin, group] = sizes.map(|x| x as u32);
            let [p, d] = [neurons.len(), inputs].map(|x| x as u32);
            let dims = [quads, words, base, row, rows, at, batch, origin, group, p, d, mode as u32];
            let places = [
                (&chunk.x).into(),
                neurons_of.clone(),
                (&chunk.bits).into(),
                r.clone(),
                (&sums).into(),
            ];
            recorder.run(Kernel::Panel, &dims, &places, [tiles[0], tiles[1], count]);
        }
        machine.add_groups(&sums, numbers, count)
    }

    /// Writes the Gram matrix of (neuron, input) pairs to `out`.
    pub(crate) fn gram(&mut self, entries: &[u32], out: &Buffer) {
        let size = entries.len() / 2;
        let tiles = size.div_ceil(64);
        let room = (self.machine.recorder.gpu.binding_limit() / 4) as usize;
        let fit = (room / (size * size)).max(1);
        let Groups { origin, rows: group, count } =
            self.groups((tiles * (tiles + 1) / 2).max(TILES / fit));
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", count * size * size);
        recorder.clear(&sums, count * size * size);
        let entries_of = recorder.send(entries);
        for Piece { chunk, row, rows, .. } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let sizes = [chunk.base, row, rows, origin, group, size];
            let [base, row, rows, origin, group, size] = sizes.map(|x| x as u32);
            let dims = [quads, words, base, row, rows, origin, group, size];
            let places =
                [(&chunk.x).into(), entries_of.clone(), (&chunk.bits).into(), (&sums).into()];
            recorder.run(Kernel::Gram, &dims, &places, [tiles, tiles, count]);
        }
        add_groups(recorder, &sums, out, size * size, count);
    }

    /// Runs a kernel over neurons' weights for every piece of the batch: what comes after their
    /// blocks, entries and bits, the sizes after the strides for a piece, and lines of the grid.
    pub(crate) fn neurons(
        &mut self,
        kernel: Kernel,
        neurons: &Neurons,
        more: &[Place],
        sizes: impl Fn(&Piece) -> [u32; 6],
        lines: usize,
    ) {
        let Self { machine, data, batch } = self;
        let recorder: &mut Recorder = &mut machine.recorder;
        let [blocks, entries] =
            [&neurons.blocks, &neurons.entries].map(|words| recorder.send(words));
        for piece in data.pieces(batch) {
            let chunk = &data.chunks[piece.chunk];
            let [quads, words] = chunk.strides();
            let [a, b, c, d, e, f] = sizes(&piece);
            let dims = [quads, words, a, b, c, d, e, f];
            let mut places =
                vec![(&chunk.x).into(), blocks.clone(), entries.clone(), (&chunk.bits).into()];
            places.extend_from_slice(more);
            recorder.run(kernel, &dims, &places, [piece.quad_groups(), lines, 1]);
        }
    }
}
