//! The largest numbers of a vector, selected where it lies: what is read of a gradient step does not
//! grow with the panel.

use crate::kernel::Kernel;
use crate::place::Place;
use crate::recorder::Recorder;
use crate::vectors::lines;
use wgpu::Buffer;

/// Lowest bits of the digits of a magnitude, and how many bits they have.
const DIGITS: [[u32; 2]; 3] = [[20, 11], [10, 10], [0, 10]];
/// Numbers before the histogram, and those of the histogram.
const STATE: [usize; 2] = [8, 2048];
/// Numbers of a block.
const BLOCK: usize = 1024;
/// Workgroups that make a histogram, at most.
const GROUPS: usize = 256;

/// Operations of `kernels/select.wgsl`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Scale = 0,
    Add = 1,
    Histogram = 2,
    Digit = 3,
    Count = 4,
    Places = 5,
    Write = 6,
}

/// What a selection needs besides the vector.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    state: Option<Buffer>,
    counts: Option<Buffer>,
    out: Option<Buffer>,
}

/// A gradient step: its length, and weights by their places, (place, value) of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub(crate) eta: f32,
    pub(crate) weights: &'a [u32],
}

/// An entry that was selected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected {
    pub(crate) place: u32,
    pub(crate) value: f32,
}

impl Selector {
    /// Makes `w + eta g` of a gradient g of so many numbers in its place, and selects the `count`
    /// largest; none after a failure.
    pub(crate) fn largest_of_step(
        &mut self,
        recorder: &mut Recorder,
        gradient: &Buffer,
        numbers: usize,
        steps: Steps<'_>,
        count: usize,
    ) -> Vec<Selected> {
        let Self { state, counts, out } = self;
        let blocks = numbers.div_ceil(BLOCK);
        let state = recorder.grow(state, "the state of a selection", STATE[0] + STATE[1]);
        let counts = recorder.grow(counts, "counts of blocks", 2 * blocks);
        let out = recorder.grow(out, "selected numbers", 2 * (1 + count));
        recorder.clear(&state, STATE[0]);
        let weights = recorder.send(steps.weights);
        let run = |recorder: &mut Recorder, kind: Kind, digit: [u32; 2], grid: [usize; 3]| {
            let [shift, bits] = digit;
            let is_add = matches!(kind, Kind::Add);
            let size = if is_add { steps.weights.len() / 2 } else { count };
            let [numbers, size, blocks] = [numbers, size, blocks].map(|x| x as u32);
            let eta = steps.eta.to_bits();
            let dims = [numbers, kind as u32, shift, bits, size, blocks, eta, 0];
            let buffers = [gradient, &state, &counts, &out].map(Place::from);
            let [values, state, counts, out] = buffers;
            let places = [weights.clone(), values, state, counts, out];
            recorder.run(Kernel::Select, &dims, &places, grid);
        };
        run(recorder, Kind::Scale, [0; 2], lines(numbers, 256));
        run(recorder, Kind::Add, [0; 2], lines(steps.weights.len() / 2, 256));
        for digit in DIGITS {
            run(recorder, Kind::Histogram, digit, [blocks.min(GROUPS), 1, 1]);
            run(recorder, Kind::Digit, digit, [1; 3]);
        }
        run(recorder, Kind::Count, [0; 2], lines(blocks, 1));
        run(recorder, Kind::Places, [0; 2], [1; 3]);
        run(recorder, Kind::Write, [0; 2], lines(blocks, 1));
        let words = recorder.read(&out, 2 * (1 + count));
        let found = words.first().map_or(0, |&found| found as usize);
        let pairs = words.chunks(2).skip(1).take(found);
        pairs.map(|pair| Selected { place: pair[0], value: f32::from_bits(pair[1]) }).collect()
    }
}
