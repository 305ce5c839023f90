//! Tables of several numbers a row: outputs, residuals and classes.

use crate::kernel::Kernel;
use crate::place::{Place, Rows, Several};
use crate::reduce::{Kind, Reduction};
use crate::vectors::{GROUP, GpuVectors, add_groups, lines};
use std::ops::Range;
use tamis::Result;
use tamis::base::error;
use tamis::network::weights::Block;
use tamis::operator::machine::Along;
use tamis::operator::tables::{Residual, Tables, open_words};
use wgpu::Buffer;

/// Entries of such products: up to four outputs, or inputs, of one neuron a task.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// (which activations, first entry, entries, 0).
    pub(crate) tasks: Vec<u32>,
    /// The output, or the input, of each entry.
    pub(crate) at: Vec<u32>,
}

impl Entries {
    /// Adds the entries of one neuron.
    pub(crate) fn push(&mut self, first: [u32; 2], at: impl Iterator<Item = u32>) {
        let [kind, which] = first;
        let begin = self.at.len();
        self.at.extend(at);
        for from in (begin..self.at.len()).step_by(4) {
            let count = (self.at.len() - from).min(4) as u32;
            self.tasks.extend([kind, from as u32, count, which]);
        }
    }

    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len() / 4
    }
}

/// Places of the output weights of blocks, and the weights themselves.
pub(crate) fn output_weights<'w>(blocks: impl Iterator<Item = Block<'w>>) -> [Vec<u32>; 2] {
    let (mut places, mut weights) = (Vec::new(), Vec::new());
    for block in blocks {
        places.extend([weights.len() as u32 / 2, block.values().len() as u32]);
        for (k, value) in block.entries() {
            weights.extend([k as u32, value.to_bits()]);
        }
    }
    [places, weights]
}

/// A grid of so many lines over groups of 64 rows, in planes of as many as a device admits.
pub(crate) fn rows_by(rows: usize, lines_of: usize) -> [usize; 3] {
    let [wide, planes, _] = lines(rows, 64);
    [wide, lines_of, planes]
}

/// Places of the weights that lead to each of c outputs, and the weights: the number of the block
/// and the value.
pub(crate) fn by_output<'w>(blocks: impl Iterator<Item = Block<'w>>, c: usize) -> [Vec<u32>; 2] {
    let mut all: Vec<[u32; 3]> = Vec::new();
    for (i, block) in (0..).zip(blocks) {
        all.extend(block.entries().map(|(k, value)| [k as u32, i, value.to_bits()]));
    }
    // Stable: the weights of an output stay in order of the blocks.
    all.sort_by_key(|[k, ..]| *k);
    let mut places = vec![0; 2 * c];
    for (at, [k, ..]) in (0..).zip(&all) {
        let place = &mut places[2 * *k as usize..][..2];
        place[0] = if place[1] == 0 { at } else { place[0] };
        place[1] += 1;
    }
    [places, all.into_iter().flat_map(|[_, i, value]| [i, value]).collect()]
}

impl GpuVectors {
    /// `out[i] = R wt_i` for these blocks, n numbers each.
    pub(crate) fn project_to(
        &mut self,
        r: &Place,
        places: &[u32],
        weights: &[u32],
        [rows, width]: [usize; 2],
        out: &Place,
    ) {
        let neurons = places.len() / 2;
        let [places, weights] = [places, weights].map(|words| self.recorder.send(words));
        for window in self.recorder.windows(Rows::apart(rows, width)) {
            let to = out.part_of_each(Several { count: neurons, numbers: rows }, window.clone());
            let r = r.rows(&window, width);
            let dims = [window.len(), width, rows, to.first].map(|x| x as u32);
            let places = [places.clone(), weights.clone(), r, to.place];
            self.recorder.run(Kernel::Project, &dims, &places, rows_by(window.len(), neurons));
        }
    }

    /// `sum_k a_ik R_kj` for these entries, in their order.
    pub(crate) fn transpose_of(
        &mut self,
        entries: &Entries,
        a: &Place,
        r: &Place,
        [rows, width]: [usize; 2],
    ) -> Vec<f32> {
        let out = self.transpose_to(entries, a, r, [rows, width]);
        self.numbers(&out, entries.at.len())
    }

    /// Records such sums; the buffer that they will be in.
    pub(crate) fn transpose_to(
        &mut self,
        entries: &Entries,
        a: &Place,
        r: &Place,
        [rows, width]: [usize; 2],
    ) -> Buffer {
        let (groups, numbers) = (rows.div_ceil(GROUP), entries.at.len());
        let out = self.recorder.grow(&mut self.other_sums, "other sums", numbers);
        let sums = self.recorder.grow(&mut self.partial, "partial sums", groups * numbers);
        let swapped: Vec<u32> =
            entries.tasks.chunks(4).flat_map(|task| [task[3], task[1], task[2], 0]).collect();
        let count = swapped.chunks(4).map(|task| task[0] as usize + 1).max().unwrap_or(1);
        let [tasks, at] = [&swapped, &entries.at].map(|words| self.recorder.send(words));
        for window in self.recorder.windows(Rows { count: rows, width, group: GROUP }) {
            let from = a.part_of_each(Several { count, numbers: rows }, window.clone());
            let r = r.rows(&window, width);
            let base = window.start / GROUP;
            let sizes = [window.len(), width, GROUP, numbers, rows, from.first, base, 0];
            let dims = sizes.map(|x| x as u32);
            let places = [tasks.clone(), at.clone(), from.place, r, (&sums).into()];
            let grid = [entries.tasks(), window.len().div_ceil(GROUP), 1];
            self.recorder.run(Kernel::Transpose, &dims, &places, grid);
        }
        add_groups(&mut self.recorder, &sums, &out, numbers, groups);
        out
    }

    fn classes_of(
        &mut self,
        labels: &[u32],
        first: usize,
        width: usize,
        out: &[u32],
        count: bool,
    ) -> f64 {
        let rows = out.len() / width.max(1);
        let losses = self.recorder.grow_vector(&mut self.losses, "losses", rows);
        let losses = Place::from(&losses);
        let [labels, out] = [labels, out].map(|handle| self.place(handle));
        for window in self.recorder.windows(Rows::apart(rows, width)) {
            let labels = labels.part(first + window.start..first + window.end);
            let (out, own) = (out.rows(&window, width), losses.rows(&window, 1));
            let sizes = [window.len(), width, labels.first, usize::from(count)];
            let dims = sizes.map(|x| x as u32);
            let places = [labels.place, out, own];
            self.recorder.run(Kernel::Softmax, &dims, &places, lines(window.len(), 64));
        }
        self.reduce(&Reduction::new(Kind::Sum, rows), [&losses; 3])[0]
    }

    fn outer(
        &mut self,
        weights: &[u32],
        vectors: [&[u32]; 2],
        second: bool,
        c: usize,
        out: &[u32],
    ) {
        let (count, [a, b]) = (out.len() / c.max(1), vectors.map(|handle| self.place(handle)));
        let (out, entries) = (self.place(out), weights.len() / 4);
        let weights = self.recorder.send(weights);
        for rows in self.recorder.windows(Rows::apart(count, c)) {
            let sizes = [rows.len(), c, entries, usize::from(second)];
            let [a, b] = [&a, &b].map(|vector| vector.rows(&rows, 1));
            let out = out.rows(&rows, c);
            let dims = sizes.map(|x| x as u32);
            let places = [weights.clone(), a, b, out];
            self.recorder.run(Kernel::Outer, &dims, &places, lines(rows.len(), 64));
        }
    }
}

impl Tables for GpuVectors {
    fn classes(labels: &[u32]) -> usize {
        labels.len()
    }

    fn check_classes(&mut self, labels: &[u32], c: usize) -> Result<()> {
        let buffer = self.buffer(labels);
        let last = if c == 1 { 1 } else { c.saturating_sub(1) };
        let labels = self.recorder.read(&buffer, labels.len());
        labels.into_iter().try_for_each(|label| error::range("label", label as usize, 0, last))
    }

    fn cross_entropy(
        &mut self,
        labels: &[u32],
        rows: Range<usize>,
        c: usize,
        out: &mut [u32],
    ) -> Result<f32> {
        error::range("outputs", c, 1, 1 << 16)?;
        error::range("rows of the labels", rows.end, rows.start, labels.len())?;
        error::length("outputs", out.len(), rows.len().saturating_mul(c))?;
        Ok(self.classes_of(labels, rows.start, c, out, false) as f32)
    }

    fn count_right(&mut self, labels: &[u32], rows: Range<usize>, c: usize, out: &[u32]) -> usize {
        self.classes_of(labels, rows.start, c, out, true) as usize
    }

    fn scale(&mut self, out: &mut [u32], factor: f32) {
        self.scale_by(out, factor);
    }

    fn divide(&mut self, out: &mut [u32], divisor: f32) {
        self.divide_by(out, divisor);
    }

    fn project(&mut self, r: Residual<'_, [u32]>, wt: Block<'_>, c: usize, out: &mut [u32]) {
        let [places, weights] = output_weights([wt].into_iter());
        let (r, place) = (self.spread(r, c), self.place(out));
        self.project_to(&r, &places, &weights, [out.len(), c], &place);
    }

    fn transpose(&mut self, r: Residual<'_, [u32]>, a: &[u32], out: &mut [f32]) {
        let mut entries = Entries::default();
        entries.push([0, 0], 0..out.len() as u32);
        let (r, place) = (self.spread(r, out.len()), self.place(a));
        let sums = self.transpose_of(&entries, &place, &r, [a.len(), out.len()]);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
    }

    fn transpose_at(
        &mut self,
        r: Residual<'_, [u32]>,
        a: &[u32],
        wt: Block<'_>,
        c: usize,
        out: &mut [f32],
    ) {
        let mut entries = Entries::default();
        entries.push([0, 0], wt.entries().map(|(k, _)| k as u32));
        let (r, place) = (self.spread(r, c), self.place(a));
        let sums = self.transpose_of(&entries, &place, &r, [a.len(), c]);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
    }

    fn add_outer(&mut self, a: &[u32], wt: Block<'_>, c: usize, out: &mut [u32]) {
        let weights: Vec<u32> =
            wt.entries().flat_map(|(k, value)| [k as u32, value.to_bits(), 0, 0]).collect();
        self.outer(&weights, [a, &[]], false, c, out);
    }

    fn exchange_outer(
        &mut self,
        a: &[u32],
        wt: Block<'_>,
        b: &[u32],
        new: Block<'_>,
        c: usize,
        out: &mut [u32],
    ) {
        let pairs = wt.entries().zip(new.values());
        let weights: Vec<u32> =
            pairs.flat_map(|((k, v), u)| [k as u32, v.to_bits(), u.to_bits(), 0]).collect();
        self.outer(&weights, [a, b], true, c, out);
    }

    fn add_output(&mut self, z: &[u32], k: usize, c: usize, open: &mut [u32], out: &mut [u32]) {
        self.add_one(z, k, c, [open, out]);
    }

    fn add_open(&mut self, a: &[u32], wt: Block<'_>, open: &[u32], c: usize, out: &mut [u32]) {
        self.add_where_open(a, wt, open, c, out);
    }

    fn open_shares(&mut self, open: &[u32], out: &mut [f32]) {
        let c = out.len();
        let rows = (open.len() / open_words(c).max(1)).max(1) as f32;
        let sums = self.open_sums(open, &[], &[], c);
        out.iter_mut().zip(sums).for_each(|(out, [_, count])| *out = count / rows);
    }

    fn transpose_open(
        &mut self,
        r: &[u32],
        open: &[u32],
        a: &[u32],
        out: &mut [f32],
        norms: &mut [f32],
    ) {
        let sums = self.open_sums(open, r, a, out.len());
        for ((out, norm), sum) in out.iter_mut().zip(norms).zip(sums) {
            [*out, *norm] = sum;
        }
    }

    fn open_norms(
        &mut self,
        open: &[u32],
        a: &[u32],
        wt: Block<'_>,
        c: usize,
        whole: f32,
        out: &mut [f32],
    ) {
        let sums = self.open_sums(open, a, a, c);
        for (out, (k, _)) in out.iter_mut().zip(wt.entries()) {
            *out = if k == 0 { whole } else { sums.get(k).map_or(0.0, |sum| sum[1]) };
        }
    }

    fn open_square(&mut self, open: &[u32], a: &[u32], wt: Block<'_>, c: usize) -> f32 {
        self.square_where_open(open, a, wt, c)
    }

    fn pair(&mut self, r: &[u32], a: &[u32], b: &[u32], ratio: f32) -> Along {
        let of = Reduction { a: ratio, ..Reduction::new(Kind::Pair, a.len()) };
        let [x, y, z] = [a, r, b].map(|handle| self.place(handle));
        let [product, norm2] = self.reduce(&of, [&x, &y, &z]);
        Along { product: product as f32, norm2: norm2 as f32 }
    }
}
