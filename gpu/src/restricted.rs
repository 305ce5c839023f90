//! Sums over the rows of the batch, in groups that kernels add up and the host reads once.

use crate::data::{self, Data, Piece};
use crate::gates::Neurons;
use crate::kernel::Kernel;
use crate::place::{BOUND, Part, Place, Several};
use crate::recorder::{OnRows, Recorder};
use crate::tables::Entries;
use crate::vectors::{GpuVectors, add_groups};
use std::ops::Range;
use wgpu::Buffer;

/// Tiles of a matrix product times groups of rows that keep a device busy: a GPU, and a processor of software adapters.
const TILES: [usize; 2] = [8192, 128];
/// Neurons of a panel that are too few for a tile: their sums are those of entries.
const FEW: usize = 4;
/// Tasks of one call, at most: a grid has no more lines.
pub(crate) const TASKS: usize = 1 << 15;

/// Of what rows sums are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// One residual for all neurons.
    One,
    /// One for each of so many.
    Each(usize),
    /// Squares of the columns.
    Squares,
}

impl Mode {
    /// As kernels have it.
    const fn number(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Each(_) => 1,
            Self::Squares => 2,
        }
    }

    /// The residuals of a piece of a batch of so many rows.
    fn residuals(self, r: &Place, piece: &Piece, rows: usize) -> Part {
        let count = if let Self::Each(lines) = self { lines } else { 1 };
        r.part_of_each(Several { count, numbers: rows }, piece.at..piece.at + piece.rows)
    }
}

/// What sums over rows are made of.
pub(crate) struct Summation<'a> {
    pub(crate) machine: &'a mut GpuVectors,
    pub(crate) data: &'a Data,
    pub(crate) batch: &'a Range<usize>,
}

/// Groups of rows: where the first begins, rows of a group and of its parts, and how many groups.
struct Groups {
    origin: usize,
    rows: usize,
    part: usize,
    count: usize,
}

impl Summation<'_> {
    /// Groups for so many tiles of a product of so many numbers.
    fn groups(&self, tiles: usize, numbers: usize) -> Groups {
        let Self { data, batch, .. } = self;
        let origin = batch.start / data.group * data.group;
        let all = (batch.end - origin).div_ceil(data::LEAST);
        let most = TILES[usize::from(self.machine.recorder.gpu.adapter.is_software())];
        let count = (most / tiles.max(1)).min(BOUND / numbers.max(1)).clamp(1, all);
        // A power of two, as chunks have of such parts a whole number.
        let rows = all.div_ceil(count).next_power_of_two() * data::LEAST;
        let part = rows.min(data.group);
        Groups { origin, rows, part, count: (all * data::LEAST).div_ceil(rows) }
    }

    /// Sums for entries of a support, in their order.
    pub(crate) fn restricted(&mut self, entries: &Entries, r: &Place, mode: Mode) -> Vec<f32> {
        let tasks = self.tasks_at_once();
        let mut out = Vec::with_capacity(entries.at.len());
        for tasks in entries.tasks.chunks(4 * tasks) {
            let from = tasks[1];
            let count = tasks.chunks(4).map(|task| task[2] as usize).sum::<usize>();
            let own: Vec<u32> = tasks
                .chunks(4)
                .flat_map(|task| [task[0], task[1] - from, task[2], task[3]])
                .collect();
            let at = &entries.at[from as usize..][..count];
            out.extend(self.restricted_part(&own, at, r, mode));
        }
        out
    }

    fn restricted_part(&mut self, tasks: &[u32], at: &[u32], r: &Place, mode: Mode) -> Vec<f32> {
        let GpuVectors { recorder, sums, .. } = &mut *self.machine;
        let out = recorder.grow(sums, "sums", at.len());
        let places = [tasks, at].map(|words| recorder.send(words));
        self.restricted_at(places, [tasks.len() / 4, at.len()], r, mode, &out);
        self.machine.numbers(&out, at.len())
    }

    /// Records the sums for so many tasks and entries, which are on the device, as they will be in
    /// `out`.
    pub(crate) fn restricted_at(
        &mut self,
        [tasks, inputs]: [Place; 2],
        [count, numbers]: [usize; 2],
        r: &Place,
        mode: Mode,
        out: &Buffer,
    ) {
        let (first, groups) = self.row_groups();
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", groups * numbers);
        for piece @ Piece { chunk, row, rows, .. } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let before = (chunk.base + row) / data.group - first;
            let own = (row + rows).div_ceil(data.group) - row / data.group;
            let r = mode.residuals(r, &piece, batch.len());
            let sizes =
                [row, rows, r.first, batch.len(), data.group / 4, before * numbers, numbers];
            let [row, rows, at, batch, group, sum, entries] = sizes.map(|x| x as u32);
            let mode = mode.number();
            let dims = [quads, words, row, rows, at, batch, group, sum, entries, mode, 0, 0];
            let places = [
                (&chunk.x).into(),
                tasks.clone(),
                inputs.clone(),
                (&chunk.bits).into(),
                r.place.clone(),
                r.place,
                (&sums).into(),
            ];
            recorder.run(Kernel::Restricted, &dims, &places, [count, own, 1]);
        }
        let inputs = numbers.min(data.inputs);
        let work = recorder.work_on(OnRows { rows: batch.len(), products: numbers, inputs });
        recorder.note_work(Kernel::Restricted, work);
        add_groups(recorder, &sums, out, numbers, groups);
    }

    /// The first group of rows that are added up as one, and how many the batch has.
    fn row_groups(&self) -> (usize, usize) {
        let first = self.batch.start / self.data.group;
        (first, self.batch.end.div_ceil(self.data.group) - first)
    }

    /// Entries of one call whose sums of all groups fit a binding, in tasks of four.
    fn tasks_at_once(&self) -> usize {
        let room = (self.machine.recorder.gpu.binding_limit() / 4) as usize / self.row_groups().1;
        (room / 4).clamp(1, TASKS)
    }

    /// Whether sums for so many entries are one call, however many neurons they are of.
    pub(crate) fn fits(&self, entries: usize) -> bool {
        entries <= self.tasks_at_once()
    }

    /// A panel of sums, a line of all inputs for each neuron.
    pub(crate) fn panel(&mut self, neurons: &[u32], r: &Place, mode: Mode) -> Vec<f32> {
        let numbers = neurons.len() * self.data.inputs;
        let out = self.panel_at(neurons, r, mode);
        self.machine.numbers(&out, numbers)
    }

    /// Records such a panel; the buffer that it will be in.
    pub(crate) fn panel_at(&mut self, neurons: &[u32], r: &Place, mode: Mode) -> Buffer {
        let inputs = self.data.inputs;
        let GpuVectors { recorder, sums, .. } = &mut *self.machine;
        let out = recorder.grow(sums, "sums", neurons.len() * inputs);
        // By the sizes alone, since sums are added up otherwise.
        let numbers = neurons.len() * inputs;
        let is_few = neurons.len() <= FEW && numbers <= 4 * TASKS;
        if is_few && numbers * self.row_groups().1 <= BOUND {
            let mut entries = Entries::default();
            for (slot, &neuron) in (0..).zip(neurons) {
                let which = if matches!(mode, Mode::Each(_)) { slot } else { 0 };
                entries.push([neuron, which], 0..inputs as u32);
            }
            let recorder = &mut self.machine.recorder;
            let places = [&entries.tasks, &entries.at].map(|words| recorder.send(words));
            self.restricted_at(places, [entries.tasks(), entries.at.len()], r, mode, &out);
            return out;
        }
        let tiles = [neurons.len().div_ceil(64), inputs.div_ceil(64)];
        let Groups { origin, rows: group, part, count } = self.groups(tiles[0] * tiles[1], numbers);
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", count * numbers);
        recorder.clear(&sums, count * numbers);
        let neurons_of = recorder.send(neurons);
        for piece @ Piece { chunk, row, rows, .. } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let r = mode.residuals(r, &piece, batch.len());
            let sizes = [chunk.base, row, rows, r.first, batch.len(), origin, group, part];
            let [base, row, rows, at, batch, origin, group, part] = sizes.map(|x| x as u32);
            let [p, d] = [neurons.len(), inputs].map(|x| x as u32);
            let mode = mode.number();
            let dims = [
                quads, words, base, row, rows, at, batch, origin, group, part, p, d, mode, 0, 0, 0,
            ];
            let places = [
                (&chunk.x).into(),
                neurons_of.clone(),
                (&chunk.bits).into(),
                r.place,
                (&sums).into(),
            ];
            recorder.run(Kernel::Panel, &dims, &places, [tiles[0], tiles[1], count]);
        }
        let work = recorder.work_on(OnRows { rows: batch.len(), products: numbers, inputs });
        recorder.note_work(Kernel::Panel, work);
        add_groups(recorder, &sums, &out, numbers, count);
        out
    }

    /// Writes the Gram matrix of (neuron, input) pairs to `out`.
    pub(crate) fn gram(&mut self, entries: &[u32], out: &Buffer) {
        let size = entries.len() / 2;
        let tiles = size.div_ceil(64);
        let Groups { origin, rows: group, part, count } =
            self.groups(tiles * (tiles + 1) / 2, size * size);
        let Self { machine, data, batch } = self;
        let GpuVectors { recorder, partial, .. } = &mut **machine;
        let sums = recorder.grow(partial, "partial sums", count * size * size);
        recorder.clear(&sums, count * size * size);
        let entries_of = recorder.send(entries);
        for Piece { chunk, row, rows, .. } in data.pieces(batch) {
            let chunk = &data.chunks[chunk];
            let [quads, words] = chunk.strides();
            let sizes = [chunk.base, row, rows, origin, group, part, size];
            let [base, row, rows, origin, group, part, size] = sizes.map(|x| x as u32);
            let dims = [quads, words, base, row, rows, origin, group, part, size, 0, 0, 0];
            let places =
                [(&chunk.x).into(), entries_of.clone(), (&chunk.bits).into(), (&sums).into()];
            recorder.run(Kernel::Gram, &dims, &places, [tiles, tiles, count]);
        }
        let (products, inputs) = (size * (size + 1) / 2, size.min(data.inputs));
        let work = recorder.work_on(OnRows { rows: batch.len(), products, inputs });
        recorder.note_work(Kernel::Gram, work);
        add_groups(recorder, &sums, out, size * size, count);
    }

    /// Runs a kernel over neurons' weights for every piece of the batch: what it writes, with as many lines as the
    /// grid, and the sizes after the strides for a piece and where the first of its numbers stands.
    pub(crate) fn neurons(
        &mut self,
        kernel: Kernel,
        neurons: &Neurons,
        out: &Place,
        sizes: impl Fn(&Piece, usize) -> [usize; 6],
        lines: usize,
    ) {
        let recorder = &mut self.machine.recorder;
        let blocks = recorder.send(&neurons.blocks);
        let [inputs, values] = neurons.entries.send(recorder);
        let products = neurons.entries.inputs.len();
        let work = recorder.work_on(OnRows {
            rows: self.batch.len(),
            products,
            inputs: products.min(self.data.inputs),
        });
        recorder.note_work(kernel, work);
        self.neurons_at(kernel, [blocks, inputs, values], out, sizes, lines);
    }

    /// The same for blocks and entries that are on the device.
    pub(crate) fn neurons_at(
        &mut self,
        kernel: Kernel,
        [blocks, inputs, values]: [Place; 3],
        out: &Place,
        sizes: impl Fn(&Piece, usize) -> [usize; 6],
        lines: usize,
    ) {
        let Self { machine, data, batch } = self;
        let recorder: &mut Recorder = &mut machine.recorder;
        for piece in data.pieces(batch) {
            let chunk = &data.chunks[piece.chunk];
            let [quads, words] = chunk.strides();
            let of = Several { count: lines, numbers: batch.len() };
            let out = out.part_of_each(of, piece.at..piece.at + piece.rows);
            let [a, b, c, d, e, f] = sizes(&piece, out.first).map(|x| x as u32);
            let dims = [quads, words, a, b, c, d, e, f];
            let places = [
                (&chunk.x).into(),
                blocks.clone(),
                inputs.clone(),
                values.clone(),
                (&chunk.bits).into(),
                out.place,
            ];
            let quads = kernel.own(recorder.gpu.adapter.is_software());
            recorder.run(kernel, &dims, &places, [piece.quad_groups(quads), lines, 1]);
        }
    }
}
