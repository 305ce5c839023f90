//! Sums over the numbers of vectors: groups on the device, which the host adds in order.

use crate::kernel::Kernel;
use crate::place::{Place, Rows};
use crate::recorder::Recorder;
use wgpu::Buffer;

/// Groups of a reduction, at most: what is read is twice as many numbers.
const GROUPS: usize = 256;
/// Numbers of a group are a multiple of this, the most threads that one has.
const THREADS: usize = 256;

/// Operations of `kernels/reduce.wgsl`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Dot = 0,
    Sum = 1,
    Active = 2,
    Power = 3,
    Fit = 4,
    Halves = 5,
    Pair = 6,
}

/// A reduction: which, of how many numbers, and its constants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reduction {
    pub(crate) kind: Kind,
    pub(crate) numbers: usize,
    /// Where the first vector begins.
    pub(crate) first: usize,
    pub(crate) a: f32,
    pub(crate) b: f32,
    pub(crate) c: f32,
}

impl Reduction {
    pub(crate) const fn new(kind: Kind, numbers: usize) -> Self {
        Self { kind, numbers, first: 0, a: 1.0, b: 1.0, c: 1.0 }
    }
}

/// Numbers of a group: a function of the length alone, so that the result is too.
fn group_of(numbers: usize) -> usize {
    numbers.div_ceil(GROUPS).next_multiple_of(THREADS).max(4 * THREADS)
}

/// Runs a reduction over up to three vectors; NaN after a failure.
pub(crate) fn run(
    recorder: &mut Recorder,
    room: &mut Option<Buffer>,
    of: &Reduction,
    vectors: [&Place; 3],
) -> [f64; 2] {
    let group = group_of(of.numbers);
    let groups = of.numbers.div_ceil(group);
    let sums = recorder.grow(room, "sums", 2 * groups.max(2));
    let [a, b, c] = [of.a, of.b, of.c].map(f32::to_bits);
    let [x, y, z] = vectors;
    for rows in recorder.windows(Rows { count: of.numbers, width: 1, group }) {
        let x = x.part(of.first + rows.start..of.first + rows.end);
        let [y, z] = [y, z].map(|vector| vector.rows(&rows, 1));
        let sizes = [rows.len(), of.kind as usize, x.first, group, rows.start / group];
        let [numbers, kind, first, size, base] = sizes.map(|x| x as u32);
        let dims = [numbers, kind, first, size, base, a, b, c];
        let places = [x.place, y, z, (&sums).into()];
        recorder.run(Kernel::Reduce, &dims, &places, [rows.len().div_ceil(group), 1, 1]);
    }
    if groups == 0 {
        return [0.0; 2];
    }
    let parts = recorder.read(&sums, 2 * groups);
    if parts.is_empty() {
        return [f64::NAN; 2];
    }
    parts.chunks(2).fold([0.0; 2], |sum, part| {
        let of = |k: usize| part.get(k).map_or(0.0, |bits| f64::from(f32::from_bits(*bits)));
        [sum[0] + of(0), sum[1] + of(1)]
    })
}

/// The largest magnitude; NaN where a number is not finite, and after a failure.
pub(crate) fn largest(
    recorder: &mut Recorder,
    room: &mut Option<Buffer>,
    vector: &Place,
    numbers: usize,
) -> f32 {
    let group = group_of(numbers);
    let groups = numbers.div_ceil(group);
    let out = recorder.grow(room, "sums", groups.max(4));
    for rows in recorder.windows(Rows { count: numbers, width: 1, group }) {
        let dims = [rows.len(), group, rows.start / group, 0].map(|x| x as u32);
        let places = [vector.rows(&rows, 1), (&out).into()];
        recorder.run(Kernel::Largest, &dims, &places, [rows.len().div_ceil(group), 1, 1]);
    }
    let found = recorder.read(&out, groups);
    if found.len() < groups {
        return f32::NAN;
    }
    let most = f32::from_bits(found.into_iter().max().unwrap_or(0));
    if most.is_finite() { most } else { f32::NAN }
}
