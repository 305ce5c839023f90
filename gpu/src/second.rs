//! Tables whose outputs are the neurons of a second layer.

use crate::kernel::Kernel;
use crate::place::{Place, Rows};
use crate::reduce::{Kind, Reduction};
use crate::vectors::{GROUP, GpuVectors, lines};
use tamis::network::weights::Block;
use tamis::operator::machine::Machine as _;
use tamis::operator::tables::open_words;

/// Operations of `kernels/second.wgsl`.
#[derive(Debug, Clone, Copy)]
enum Second {
    Residual = 0,
    Mark = 1,
    Sum = 2,
    Square = 3,
}

/// What an operation reads and writes.
#[derive(Debug, Clone, Copy, Default)]
struct Of<'a> {
    weights: &'a [u32],
    /// Labels or activations, from a row on, times a factor.
    x: &'a [u32],
    first: usize,
    scale: f32,
    table: &'a [u32],
    bits: &'a [u32],
}

impl GpuVectors {
    fn second(&mut self, kind: Second, c: usize, of: Of<'_>) {
        let count = of.table.len() / c.max(1);
        let losses = self.recorder.grow_vector(&mut self.losses, "losses", count);
        let losses = Place::from(&losses);
        let [x, table, bits] = [of.x, of.table, of.bits].map(|handle| self.place(handle));
        let (words, weights_of) = (open_words(c), self.recorder.send(of.weights));
        for rows in self.recorder.windows(Rows::apart(count, c.max(words))) {
            let x = x.part(of.first + rows.start..of.first + rows.end);
            let sizes = [rows.len(), c, words, kind as usize, x.first, of.weights.len() / 2];
            let [n, c_of, words_of, kind, first, weights] = sizes.map(|x| x as u32);
            let dims = [n, c_of, words_of, kind, first, weights, of.scale.to_bits(), 0];
            let (table, bits) = (table.rows(&rows, c), bits.rows(&rows, words));
            let own = losses.rows(&rows, 1);
            let places = [weights_of.clone(), x.place, table, bits, own];
            self.recorder.run(Kernel::Second, &dims, &places, lines(rows.len(), 64));
        }
    }

    /// The sum of what the last operation wrote for each of so many rows.
    fn sum_of_rows(&mut self, rows: usize) -> f64 {
        let Some(losses) = &self.losses else { return f64::NAN };
        let losses = Place::from(losses);
        self.reduce(&Reduction::new(Kind::Sum, rows), [&losses; 3])[0]
    }

    /// [`tamis::operator::tables::Tables::second_residual`].
    pub(crate) fn residual_of_sum(
        &mut self,
        labels: &[u32],
        first: usize,
        scale: f32,
        c: usize,
        table: &[u32],
    ) -> f32 {
        self.second(Second::Residual, c, Of { x: labels, first, scale, table, ..Of::default() });
        self.sum_of_rows(table.len() / c.max(1)) as f32
    }

    /// [`tamis::operator::tables::Tables::mark_active`].
    pub(crate) fn mark(&mut self, table: &[u32], c: usize, bits: &[u32]) {
        self.second(Second::Mark, c, Of { table, bits, ..Of::default() });
    }

    /// [`tamis::operator::tables::Tables::sum_active`].
    pub(crate) fn sum_in_places(&mut self, bits: &[u32], c: usize, table: &[u32]) {
        self.second(Second::Sum, c, Of { table, bits, ..Of::default() });
    }

    /// [`tamis::operator::tables::Tables::active_square`].
    pub(crate) fn square_of_active(
        &mut self,
        r: &[u32],
        a: &[u32],
        wt: Block<'_>,
        c: usize,
    ) -> f32 {
        let entries = wt.entries().flat_map(|(k, value)| [k as u32, value.to_bits()]);
        let weights: Vec<u32> = entries.collect();
        let of = Of { weights: &weights, x: a, table: r, ..Of::default() };
        self.second(Second::Square, c, of);
        let total = self.sum_of_rows(a.len());
        (total / self.count_active(a, 1.0).max(1) as f64) as f32
    }

    /// `(sum_k a_k R_kj, sum_k a_k²` where output j is active`)` for each of c outputs; a is 1 where
    /// there is none.
    pub(crate) fn active_sums(&mut self, r: &[u32], a: &[u32], c: usize) -> Vec<[f32; 2]> {
        let rows = r.len() / c.max(1);
        let groups = rows.div_ceil(GROUP);
        let sums = self.recorder.grow(&mut self.partial, "partial sums", 2 * groups * c);
        let ones = usize::from(a.is_empty());
        let [a, r] = [a, r].map(|handle| self.place(handle));
        for window in self.recorder.windows(Rows { count: rows, width: c, group: GROUP }) {
            let sizes = [window.len(), c, GROUP, ones, window.start / GROUP, 0, 0, 0];
            let dims = sizes.map(|x| x as u32);
            let places = [a.rows(&window, 1), r.rows(&window, c), (&sums).into()];
            let grid = [c, window.len().div_ceil(GROUP), 1];
            self.recorder.run(Kernel::Active, &dims, &places, grid);
        }
        self.add_groups(&sums, 2 * c, groups).chunks(2).map(|pair| [pair[0], pair[1]]).collect()
    }
}
