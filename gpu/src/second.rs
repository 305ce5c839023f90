//! Outputs that are summed up where they are open: those of a second layer.

use crate::kernel::Kernel;
use crate::place::{Place, Rows};
use crate::reduce::{Kind, Reduction};
use crate::vectors::{GROUP, GpuVectors, lines};
use tamis::network::weights::Block;
use tamis::operator::machine::Machine as _;
use tamis::operator::tables::{Residual, open_words};

/// Operations of `kernels/second.wgsl`.
#[derive(Debug, Clone, Copy)]
enum Second {
    Sum = 0,
    SumOpen = 1,
    Spread = 2,
    AddOutput = 3,
    AddOpen = 4,
    Square = 5,
}

/// What an operation reads and writes; nothing where it needs none.
struct Of<'a> {
    weights: &'a [u32],
    /// Which output.
    output: usize,
    /// Numbers of rows that are read.
    x: Place,
    table: Place,
    bits: Place,
    /// Numbers of rows that are written.
    out: Place,
}

impl GpuVectors {
    fn of_nothing(&self) -> Of<'static> {
        let [x, table, bits, out] = [(); 4].map(|()| self.nothing());
        Of { weights: &[], output: 0, x, table, bits, out }
    }

    fn second(&mut self, kind: Second, count: usize, c: usize, of: &Of<'_>) {
        let (words, weights) = (open_words(c), self.recorder.send(of.weights));
        for rows in self.recorder.windows(Rows::apart(count, c.max(words))) {
            let sizes =
                [rows.len(), c, words, kind as usize, of.output, of.weights.len() / 2, 0, 0];
            let dims = sizes.map(|x| x as u32);
            let [x, out] = [&of.x, &of.out].map(|vector| vector.rows(&rows, 1));
            let (table, bits) = (of.table.rows(&rows, c), of.bits.rows(&rows, words));
            let places = [weights.clone(), x, table, bits, out];
            self.recorder.run(Kernel::Second, &dims, &places, lines(rows.len(), 64));
        }
    }

    /// Room for a table of n rows of c numbers, which lasts until the next one is asked for.
    pub(crate) fn table(&mut self, rows: usize, c: usize) -> Place {
        let table = self.recorder.grow_vector(&mut self.table, "a table of outputs", rows * c);
        Place::from(&table)
    }

    /// `out` = the sum of the outputs of a table, output 0 and those that are positive, of which the bits
    /// tell.
    pub(crate) fn sum(&mut self, table: Place, c: usize, bits: &[u32], out: &[u32]) {
        let of = Of { table, bits: self.place(bits), out: self.place(out), ..self.of_nothing() };
        self.second(Second::Sum, out.len(), c, &of);
    }

    /// `out` = the sum of the open outputs of a table.
    pub(crate) fn sum_open(&mut self, table: Place, c: usize, bits: &[u32], out: &[u32]) {
        let of = Of { table, bits: self.place(bits), out: self.place(out), ..self.of_nothing() };
        self.second(Second::SumOpen, out.len(), c, &of);
    }

    /// Residuals as a table, [`Self::table`] where they are of open outputs.
    pub(crate) fn spread(&mut self, r: Residual<'_, [u32]>, c: usize) -> Place {
        match r {
            Residual::Each(r) => self.place(r),
            Residual::Open { r, open } => {
                let table = self.table(r.len(), c);
                let (x, bits) = (self.place(r), self.place(open));
                let of = Of { x, bits, table: table.clone(), ..self.of_nothing() };
                self.second(Second::Spread, r.len(), c, &of);
                table
            }
        }
    }

    /// [`tamis::operator::tables::Tables::add_output`].
    pub(crate) fn add_one(&mut self, z: &[u32], output: usize, c: usize, to: [&[u32]; 2]) {
        let [x, bits, out] = [z, to[0], to[1]].map(|handle| self.place(handle));
        let of = Of { output, x, bits, out, ..self.of_nothing() };
        self.second(Second::AddOutput, z.len(), c, &of);
    }

    /// [`tamis::operator::tables::Tables::add_open`].
    pub(crate) fn add_where_open(
        &mut self,
        a: &[u32],
        wt: Block<'_>,
        open: &[u32],
        c: usize,
        out: &[u32],
    ) {
        let [x, bits, out] = [a, open, out].map(|handle| self.place(handle));
        let of = Of { weights: &entries(wt), x, bits, out, ..self.of_nothing() };
        self.second(Second::AddOpen, a.len(), c, &of);
    }

    /// [`tamis::operator::tables::Tables::open_square`].
    pub(crate) fn square_where_open(
        &mut self,
        open: &[u32],
        a: &[u32],
        wt: Block<'_>,
        c: usize,
    ) -> f32 {
        let losses = self.recorder.grow_vector(&mut self.losses, "losses", a.len());
        let losses = Place::from(&losses);
        let (x, bits) = (self.place(a), self.place(open));
        let of = Of { weights: &entries(wt), x, bits, out: losses.clone(), ..self.of_nothing() };
        self.second(Second::Square, a.len(), c, &of);
        let [total, _] = self.reduce(&Reduction::new(Kind::Sum, a.len()), [&losses; 3]);
        (total / self.count_active(a, 1.0).max(1) as f64) as f32
    }

    /// `(sum a r, sum a²)` over the rows where each of c outputs is open; a and r are 1 where there is no
    /// a.
    pub(crate) fn open_sums(
        &mut self,
        open: &[u32],
        r: &[u32],
        a: &[u32],
        c: usize,
    ) -> Vec<[f32; 2]> {
        let words = open_words(c);
        let rows = open.len() / words.max(1);
        let groups = rows.div_ceil(GROUP);
        let sums = self.recorder.grow(&mut self.partial, "partial sums", 2 * groups * c);
        let ones = usize::from(a.is_empty());
        let [open, a, r] = [open, a, r].map(|handle| self.place(handle));
        for window in self.recorder.windows(Rows { count: rows, width: words, group: GROUP }) {
            let sizes = [window.len(), c, words, GROUP, ones, window.start / GROUP, 0, 0];
            let dims = sizes.map(|x| x as u32);
            let (a, r) = (a.rows(&window, 1), r.rows(&window, 1));
            let places = [a, r, open.rows(&window, words), (&sums).into()];
            let grid = [c, window.len().div_ceil(GROUP), 1];
            self.recorder.run(Kernel::Open, &dims, &places, grid);
        }
        self.add_groups(&sums, 2 * c, groups).chunks(2).map(|pair| [pair[0], pair[1]]).collect()
    }
}

/// (output, value) of the weights of a neuron.
fn entries(wt: Block<'_>) -> Vec<u32> {
    wt.entries().flat_map(|(k, value)| [k as u32, value.to_bits()]).collect()
}
