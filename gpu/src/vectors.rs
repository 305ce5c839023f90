//! Row vectors on the device, and what is done with them besides products.
//!
//! A handle lies in the memory that the algorithm has for the vector, is as long as that, and its
//! first word names a buffer. A buffer is given back once its memory becomes that of another
//! vector, so the device holds no more than the algorithm's memory has room for.

use crate::device::Gpu;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::place::{GRID, Place, Rows};
use crate::recorder::Recorder;
use crate::reduce::{self, Reduction};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use tamis::Result;
use tamis::base::error;
use tamis::base::rng::Rng;
use tamis::operator::machine::{Along, Halves, Hinge, Machine};
use wgpu::Buffer;

/// The machine of the operator: vectors in buffers of a device.
///
/// Its operations cannot fail; once a call to the device has failed their results are NaN, and the
/// next product of the operator returns the error.
#[derive(Debug)]
pub struct GpuVectors {
    pub(crate) recorder: Recorder,
    buffers: HashMap<u32, Buffer>,
    /// Number and end of each vector by the address where its handle begins.
    places: BTreeMap<usize, Handle>,
    last: u32,
    /// What is bound where a kernel needs no vector.
    nothing: Buffer,
    pub(crate) sums: Option<Buffer>,
    /// Sums that are read together with these.
    pub(crate) other_sums: Option<Buffer>,
    /// Sums of groups of rows.
    pub(crate) partial: Option<Buffer>,
    /// A number for each row.
    pub(crate) losses: Option<Buffer>,
    /// Outputs or residuals, several for each row.
    pub(crate) table: Option<Buffer>,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    number: u32,
    end: usize,
}

/// Rows that are added up as one where they are no rows of X.
pub(crate) const GROUP: usize = 1024;

/// Operations of `kernels/map.wgsl`.
#[derive(Debug, Clone, Copy)]
enum Map {
    Fill = 0,
    Copy = 1,
    Residual = 2,
    Exchange = 3,
    NearHinge = 4,
    Scale = 5,
    Divide = 6,
    Slacken = 7,
    Keep = 8,
}

impl GpuVectors {
    pub(crate) fn new(gpu: Arc<Gpu>, bytes: bool) -> Self {
        let mut recorder = Recorder::new(gpu, bytes);
        let nothing = recorder.buffer("nothing", 4);
        Self {
            recorder,
            buffers: HashMap::new(),
            places: BTreeMap::new(),
            last: 0,
            nothing,
            sums: None,
            other_sums: None,
            partial: None,
            losses: None,
            table: None,
        }
    }

    /// Copies numbers to a vector of the device, whose handle is kept in `memory`, as long.
    pub fn upload<'m>(&mut self, numbers: &[f32], memory: &'m mut [f32]) -> &'m mut [u32] {
        let handle = self.rows_in(memory);
        self.write(handle, bytemuck::cast_slice(numbers));
        handle
    }

    /// As [`Self::upload`], for labels that are classes.
    pub fn upload_classes<'m>(&mut self, classes: &[u16], memory: &'m mut [f32]) -> &'m mut [u32] {
        let handle = self.rows_in(memory);
        let words: Vec<u32> = classes.iter().map(|&class| class.into()).collect();
        self.write(handle, bytemuck::cast_slice(&words));
        handle
    }

    /// The numbers of a vector; NaN where the device has failed.
    pub fn download(&mut self, rows: &[u32]) -> Vec<f32> {
        let buffer = self.buffer(rows);
        self.numbers(&buffer, rows.len())
    }

    /// What has failed, if anything has.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.recorder.failure.as_ref()
    }

    pub(crate) fn write(&mut self, handle: &[u32], bytes: &[u8]) {
        let buffer = self.buffer(handle);
        self.recorder.write(&buffer, bytes);
    }

    /// The buffer of a vector.
    pub(crate) fn buffer(&self, handle: &[u32]) -> Buffer {
        let buffer = handle.first().and_then(|number| self.buffers.get(number));
        buffer.unwrap_or(&self.nothing).clone()
    }

    pub(crate) fn place(&self, handle: &[u32]) -> Place {
        Place::from(&self.buffer(handle))
    }

    pub(crate) fn nothing(&self) -> Place {
        Place::from(&self.nothing)
    }

    /// `out[e] = sum_g sums[g][e]`, which is read.
    pub(crate) fn add_groups(&mut self, sums: &Buffer, numbers: usize, groups: usize) -> Vec<f32> {
        let out = self.recorder.grow(&mut self.sums, "sums", numbers);
        add_groups(&mut self.recorder, sums, &out, numbers, groups);
        self.numbers(&out, numbers)
    }

    /// The first numbers of two buffers; NaN after a failure.
    pub(crate) fn both_numbers(&mut self, all: [(&Buffer, usize); 2]) -> [Vec<f32>; 2] {
        let words = self.recorder.read_all(&all);
        let mut read = words.into_iter().map(f32::from_bits).chain(std::iter::repeat(f32::NAN));
        all.map(|(_, numbers)| read.by_ref().take(numbers).collect())
    }

    /// The first numbers of a buffer; NaN after a failure.
    pub(crate) fn numbers(&mut self, buffer: &Buffer, numbers: usize) -> Vec<f32> {
        let words = self.recorder.read(buffer, numbers);
        let mut read: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        read.resize(numbers, f32::NAN);
        read
    }

    /// The sums of a reduction, two.
    pub(crate) fn reduce(&mut self, reduction: &Reduction, vectors: [&Place; 3]) -> [f64; 2] {
        reduce::run(&mut self.recorder, &mut self.sums, reduction, vectors)
    }

    fn map(&mut self, kind: Map, numbers: [f32; 3], of: &Inputs<'_>, out: &[u32]) {
        let to = self.place(out);
        self.map_to(kind, numbers, of, &to, out.len());
    }

    fn map_to(&mut self, kind: Map, numbers: [f32; 3], of: &Inputs<'_>, to: &Place, len: usize) {
        let [a, b, c] = numbers.map(f32::to_bits);
        let [x, y] = [of.x, of.y].map(|handle| self.place(handle));
        for rows in self.recorder.windows(Rows::apart(len, 1)) {
            let x = x.part(of.first + rows.start..of.first + rows.end);
            let [y, to] = [&y, to].map(|vector| vector.rows(&rows, 1));
            let dims = [rows.len() as u32, kind as u32, x.first as u32, 0, a, b, c, 0];
            self.recorder.run(Kernel::Map, &dims, &[x.place, y, to], lines(rows.len(), 64));
        }
    }

    /// Makes the first numbers of a place 0.
    pub(crate) fn clear(&mut self, to: &Place, numbers: usize) {
        self.map_to(Map::Fill, [0.0; 3], &Inputs::default(), to, numbers);
    }

    fn sums_of(&mut self, reduction: &Reduction, x: &[u32], y: &[u32], z: &[u32]) -> [f64; 2] {
        let [x, y, z] = [x, y, z].map(|handle| self.place(handle));
        self.reduce(reduction, [&x, &y, &z])
    }
}

/// What a map reads: two vectors, and where the first begins.
#[derive(Default)]
struct Inputs<'a> {
    x: &'a [u32],
    y: &'a [u32],
    first: usize,
}

/// A grid of at least `numbers / size` groups, in lines of as many as a device admits.
pub(crate) fn lines(numbers: usize, size: usize) -> [usize; 3] {
    let groups = numbers.div_ceil(size);
    let wide = groups.min(GRID);
    [wide, groups.div_ceil(wide.max(1)), 1]
}

pub(crate) fn add_groups(
    recorder: &mut Recorder,
    sums: &Buffer,
    out: &Buffer,
    numbers: usize,
    groups: usize,
) {
    let dims = [numbers as u32, groups as u32, 0, 0];
    let size = Kernel::Sum.own(recorder.gpu.adapter.is_software());
    recorder.run(Kernel::Sum, &dims, &[sums.into(), out.into()], lines(numbers, size));
}

fn along(sums: [f64; 2]) -> Along {
    Along { product: sums[0] as f32, norm2: sums[1] as f32 }
}

impl Machine for GpuVectors {
    type Rows = [u32];
    type Classes = [u32];

    fn rows_in<'m>(&mut self, memory: &'m mut [f32]) -> &'m mut [u32] {
        let handle: &mut [u32] = bytemuck::cast_slice_mut(memory);
        let Range { start, end } = handle.as_ptr_range();
        let (start, end) = (start as usize, end as usize);
        let Some(first) = handle.first_mut() else { return handle };
        // What lay here is a vector no more; one of the same place and size is used again.
        let before = self.places.range(..start).next_back().filter(|(_, old)| old.end > start);
        let mut gone: Vec<usize> = before.map(|(at, _)| *at).into_iter().collect();
        gone.extend(self.places.range(start..end).map(|(at, _)| *at));
        for at in gone {
            let Some(old) = self.places.remove(&at) else { continue };
            if (at, old.end) == (start, end) {
                self.places.insert(at, old);
                *first = old.number;
                return handle;
            }
            self.buffers.remove(&old.number);
        }
        self.last += 1;
        *first = self.last;
        let buffer = self.recorder.vector("a row vector", (end - start) / size_of::<f32>());
        self.buffers.insert(self.last, buffer);
        self.places.insert(start, Handle { number: self.last, end });
        handle
    }

    fn len(rows: &[u32]) -> usize {
        rows.len()
    }

    fn head(rows: &[u32], len: usize) -> Option<&[u32]> {
        rows.get(..len)
    }

    fn head_mut(rows: &mut [u32], len: usize) -> Option<&mut [u32]> {
        rows.get_mut(..len)
    }

    fn numbers(_: &[u32]) -> Option<&[f32]> {
        None
    }

    fn numbers_mut(_: &mut [u32]) -> Option<&mut [f32]> {
        None
    }

    fn fill(&mut self, out: &mut [u32], x: f32) {
        self.map(Map::Fill, [x, 0.0, 0.0], &Inputs::default(), out);
    }

    fn fill_normal(&mut self, out: &mut [u32], rng: &mut Rng) {
        let mut numbers = vec![0.0; out.len()];
        rng.fill_normal(&mut numbers);
        self.write(out, bytemuck::cast_slice(&numbers));
    }

    fn copy(&mut self, from: &[u32], out: &mut [u32]) {
        let len = out.len().min(from.len());
        self.map(Map::Copy, [0.0; 3], &Inputs { x: from, ..Inputs::default() }, &out[..len]);
    }

    fn dot(&mut self, a: &[u32], b: &[u32]) -> f32 {
        let of = Reduction::new(reduce::Kind::Dot, a.len().min(b.len()));
        self.sums_of(&of, a, b, &[])[0] as f32
    }

    fn largest(&mut self, a: &[u32]) -> f32 {
        let place = self.place(a);
        reduce::largest(&mut self.recorder, &mut self.sums, &place, a.len())
    }

    fn squares(&mut self, a: &[u32]) -> f32 {
        self.sums_of(&Reduction::new(reduce::Kind::Dot, a.len()), a, a, &[])[0] as f32
    }

    fn count_active(&mut self, a: &[u32], sign: f32) -> usize {
        let of = Reduction { a: sign, ..Reduction::new(reduce::Kind::Active, a.len()) };
        self.sums_of(&of, a, &[], &[])[0] as usize
    }

    fn residual(
        &mut self,
        labels: &[u32],
        first: usize,
        scale: f32,
        out: &mut [u32],
    ) -> Result<f32> {
        let held = labels.len().saturating_sub(first);
        error::length("labels", held.min(out.len()), out.len())?;
        self.map(Map::Residual, [scale, 0.0, 0.0], &Inputs { x: labels, y: &[], first }, out);
        Ok(self.squares(out))
    }

    fn slacken(&mut self, labels: &[u32], first: usize, slack: f32, r: &mut [u32]) -> f32 {
        self.map(Map::Slacken, [slack, 0.0, 0.0], &Inputs { x: labels, y: &[], first }, r);
        self.squares(r)
    }

    fn keep(&mut self, z: &mut [u32], r: &[u32]) {
        self.map(Map::Keep, [0.0; 3], &Inputs { x: r, y: &[], first: 0 }, z);
    }

    fn power(&mut self, labels: &[u32], first: usize, scale: f32, rows: usize) -> f32 {
        let rows = rows.min(labels.len().saturating_sub(first));
        let of = Reduction { first, a: scale, ..Reduction::new(reduce::Kind::Power, rows) };
        self.sums_of(&of, labels, &[], &[])[0] as f32
    }

    fn fit(&mut self, labels: &[u32], first: usize, scale: f32, r: &[u32]) -> Along {
        let rows = r.len().min(labels.len().saturating_sub(first));
        let of = Reduction { first, a: scale, ..Reduction::new(reduce::Kind::Fit, rows) };
        along(self.sums_of(&of, labels, r, &[]))
    }

    fn exchange(&mut self, z: &mut [u32], t: &[u32], r: &[u32]) -> f32 {
        self.map(Map::Exchange, [0.0; 3], &Inputs { x: t, y: r, first: 0 }, z);
        self.squares(z)
    }

    fn near_hinge(&mut self, t: &mut [u32], z: &[u32], r: &[u32], hinge: Hinge) {
        let Hinge { sign, band, length } = hinge;
        self.map(Map::NearHinge, [sign, band, length], &Inputs { x: z, y: r, first: 0 }, t);
    }

    fn halves(&mut self, r: &[u32], z: &[u32], t: &[u32], halves: Halves) -> Along {
        let Halves { sign, share, length } = halves;
        let of = Reduction {
            a: sign,
            b: length,
            c: share,
            ..Reduction::new(reduce::Kind::Halves, r.len())
        };
        along(self.sums_of(&of, r, z, t))
    }
}

impl GpuVectors {
    pub(crate) fn scale_by(&mut self, out: &[u32], factor: f32) {
        self.map(Map::Scale, [factor, 0.0, 0.0], &Inputs::default(), out);
    }

    pub(crate) fn divide_by(&mut self, out: &[u32], divisor: f32) {
        self.map(Map::Divide, [divisor, 0.0, 0.0], &Inputs::default(), out);
    }
}
