//! The restricted solve: conjugate gradients whose vectors stay on the device, with products over the
//! data until the Gram matrix of the support is worth making.

use crate::data::Piece;
use crate::gates::kind;
use crate::kernel::Kernel;
use crate::recorder::OnRows;
use crate::restricted::{Mode, Summation};
use crate::tables::Entries;
use tamis::operator::solve::{Equations, Solved, Unknowns};
use wgpu::Buffer;

/// Entries of a support whose Gram matrix is kept, at most: 64 MiB.
const GRAM: usize = 4096;
/// So many more entries of a support make its Gram matrix worth waiting for one more product.
const ENTRIES_A_PRODUCT: usize = 96;
/// Products between two looks at whether it is done.
const LOOK: usize = 4;
/// Numbers before the vectors.
const HEAD: usize = 8;

/// What a support is to a solve: (neuron, input) of each entry, as the bits on the device have the
/// neurons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Support<'a> {
    pub(crate) index: &'a [u32],
    pub(crate) pairs: &'a [u32],
}

/// Buffers of a solve, and the Gram matrix of a support under the gates that are on the device.
#[derive(Debug, Default)]
pub(crate) struct Solver {
    support: Vec<u32>,
    /// Products without the matrix.
    products: usize,
    made: bool,
    matrix: Option<Buffer>,
    vectors: Option<Buffer>,
    /// The direction, p.
    direction: Option<Buffer>,
    image: Option<Buffer>,
    product: Option<Buffer>,
}

impl Solver {
    /// The gates or rows are others from now on.
    pub(crate) fn forget(&mut self) {
        (self.products, self.made) = (0, false);
    }

    /// Solves; nothing of what is given changes where the device fails. None where products over the
    /// data do not fit one call, and the caller makes them one by one.
    pub(crate) fn solve(
        &mut self,
        on: &mut Summation<'_>,
        support: Support<'_>,
        equations: Equations<'_>,
        unknowns: &mut Unknowns<'_>,
    ) -> Option<Solved> {
        let Support { index, pairs } = support;
        let s = index.len();
        if !on.fits(s) {
            return None;
        }
        if self.support != index {
            self.forget();
            self.support = index.to_vec();
        }
        let gpu = &on.machine.recorder.gpu;
        let keeps = s <= GRAM && (4 * s * s) as u64 <= gpu.binding_limit();
        let products = Products::new(self, on, pairs);
        self.begin(on, &equations, unknowns);
        let before = if keeps { s / ENTRIES_A_PRODUCT + 1 } else { usize::MAX };
        // What is done from the start is left as it is by products.
        let mut done = None;
        while !self.made && self.products < before && !is_done(done) {
            let turns = LOOK.min(before - self.products);
            for _ in 0..turns {
                products.run(self, on);
                self.step(on, &equations, 1);
            }
            let last = done.map_or(0.0, |[products, ..]| products);
            let now = self.state(on)?;
            self.products += (now[0] - last) as usize;
            done = Some(now);
        }
        if !self.made && done.is_none() {
            done = self.state(on);
        }
        if !is_done(done) {
            if !self.made {
                let matrix = on.machine.recorder.grow(&mut self.matrix, "a Gram matrix", s * s);
                on.gram(pairs, &matrix);
                self.made = true;
            }
            self.step(on, &equations, 2);
        }
        let vectors = self.vectors.clone()?;
        let found = on.machine.recorder.read(&vectors, HEAD + 2 * s);
        let numbers: Vec<f32> = found.into_iter().map(f32::from_bits).collect();
        if numbers.len() < HEAD + 2 * s {
            return Some(Solved::default());
        }
        unknowns.delta.copy_from_slice(&numbers[HEAD..HEAD + s]);
        unknowns.g.copy_from_slice(&numbers[HEAD + s..]);
        Some(Solved { steps: numbers[1] as u32, products: numbers[0] as u32 })
    }

    /// Sends the vectors, and takes the first direction.
    fn begin(&mut self, on: &mut Summation<'_>, equations: &Equations<'_>, of: &Unknowns<'_>) {
        let s = of.delta.len();
        let mut words = vec![0; HEAD];
        words.extend(of.delta.iter().chain(&*of.g).map(|x| x.to_bits()));
        words.extend(equations.diagonal.unwrap_or_default().iter().map(|x| x.to_bits()));
        let recorder = &mut on.machine.recorder;
        recorder.grow(&mut self.direction, "a direction", s);
        let vectors = recorder.grow(&mut self.vectors, "unknowns", HEAD + 4 * s);
        recorder.write_numbers(&vectors, &words);
        self.step(on, equations, 0);
    }

    /// A call of `kernels/solve.wgsl`.
    fn step(&self, on: &mut Summation<'_>, equations: &Equations<'_>, mode: u32) {
        let (Some(vectors), Some(p)) = (&self.vectors, &self.direction) else { return };
        let &Equations { diagonal, lambda, tolerance, products } = equations;
        let plain = u32::from(diagonal.is_none());
        let tolerance = (tolerance * tolerance).to_bits();
        let size = self.support.len() as u32;
        let dims = [size, products, plain, mode, lambda.to_bits(), tolerance, 0, 0];
        let nothing = on.machine.nothing();
        let of = |buffer: &Option<Buffer>| buffer.as_ref().map_or(nothing.clone(), Into::into);
        let matrix = if mode == 2 { of(&self.matrix) } else { nothing.clone() };
        let product = if mode == 1 { of(&self.product) } else { nothing.clone() };
        let places = [matrix, product, vectors.into(), p.into()];
        on.machine.recorder.run(Kernel::Solve, &dims, &places, [1, 1, 1]);
    }

    /// Products, steps, slope, goal, and whether it is done; none after a failure.
    fn state(&self, on: &mut Summation<'_>) -> Option<[f32; 5]> {
        let vectors = self.vectors.clone()?;
        let words = on.machine.recorder.read(&vectors, 5);
        let numbers: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        // A failure is seen by the caller.
        Some(numbers.try_into().unwrap_or([0.0, 0.0, 0.0, 0.0, 1.0]))
    }
}

fn is_done(state: Option<[f32; 5]>) -> bool {
    state.is_some_and(|[.., done]| done != 0.0)
}

/// Products over the data on a support: what they go through.
struct Products {
    neurons: Vec<u32>,
    entries: Entries,
}

impl Products {
    fn new(solver: &mut Solver, on: &mut Summation<'_>, pairs: &[u32]) -> Self {
        let (mut neurons, mut entries) = (Vec::new(), Entries::default());
        let all: Vec<&[u32]> = pairs.chunks(2).collect();
        for run in all.chunk_by(|a, b| a[0] == b[0]) {
            neurons.extend([run[0][0], entries.at.len() as u32, run.len() as u32, kind::BITS]);
            entries.push([run[0][0], 0], run.iter().map(|pair| pair[1]));
        }
        let n = on.batch.len();
        let recorder = &mut on.machine.recorder;
        recorder.grow_vector(&mut solver.image, "outputs", n);
        recorder.grow(&mut solver.product, "products", entries.at.len());
        Self { neurons, entries }
    }

    /// Records `A_S^T A_S p`, p being the solver's direction.
    fn run(&self, solver: &Solver, on: &mut Summation<'_>) {
        let (Some(values), Some(image), Some(product)) =
            (&solver.direction, &solver.image, &solver.product)
        else {
            return;
        };
        let Self { neurons, entries } = self;
        let count = neurons.len() / 4;
        let sizes = |piece: &Piece, first| [count, 0, piece.row, piece.rows, first, 0];
        let recorder = &mut on.machine.recorder;
        let [blocks, inputs, tasks] =
            [neurons, &entries.at, &entries.tasks].map(|words| recorder.send(words));
        let image = crate::place::Place::from(image);
        let places = [blocks, inputs.clone(), values.into()];
        let products = entries.at.len();
        let work = recorder.work_on(OnRows {
            rows: on.batch.len(),
            products,
            inputs: products.min(on.data.inputs),
        });
        recorder.note_work(Kernel::Forward, work);
        on.neurons_at(Kernel::Forward, places, &image, sizes, 1);
        let sizes = [entries.tasks(), entries.at.len()];
        on.restricted_at([tasks, inputs], sizes, &image, Mode::One, product);
    }
}
