//! Gaussian sensing: `y = G x`, G with independent N(0, 1/n) entries that exist only while they are
//! used.
//!
//! The classical compressed-sensing problem on which hard thresholding is understood best; it has
//! no gates. Row k of block i is drawn from (seed, i, k) whenever a product needs it.

use crate::base::error::{self, Result};
use crate::base::math;
use crate::base::rng::{Rng, seed_of, stream};
use crate::network::gates::Gates;
use crate::network::weights::Block;
use crate::operator::machine::Host;
use crate::operator::sensing::Sensing;
use core::convert::Infallible;
use core::ops::Range;

/// An n×(m·d) Gaussian matrix in no memory.
#[derive(Debug, Clone)]
pub struct Gaussian {
    seed: u64,
    rows: usize,
    inputs: usize,
    blocks: usize,
    batch: Range<usize>,
    scale: f32,
    host: Host,
}

impl Gaussian {
    /// `rows` measurements of a vector of `blocks` times `inputs` entries.
    ///
    /// # Errors
    /// [`error::Error::Range`] if a size is 0 or the measurements pass 2^32 numbers a column.
    pub fn new(seed: u64, rows: usize, inputs: usize, blocks: usize) -> Result<Self> {
        error::range("measurements", rows, 1, u32::MAX as usize)?;
        error::range("inputs", inputs, 1, u32::MAX as usize)?;
        error::range("blocks", blocks, 1, u32::MAX as usize)?;
        let scale = 1.0 / math::sqrt(rows as f32);
        Ok(Self { seed, rows, inputs, blocks, batch: 0..rows, scale, host: Host })
    }

    /// The entries of row `k` in block `i`, from the first on.
    fn row(&self, i: usize, k: usize) -> impl Iterator<Item = f32> + use<> {
        // A block is a seed of its own, its rows are streams.
        let mut rng =
            Rng::new(seed_of(self.seed, stream::BLOCK, i as u32), stream::SENSING + k as u64);
        let scale = self.scale;
        core::iter::repeat_with(move || scale * rng.normal()).take(self.inputs)
    }
}

impl Sensing for Gaussian {
    type Source = Infallible;
    type Machine = Host;

    fn machine(&mut self) -> &mut Host {
        &mut self.host
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn local_rows(&self) -> usize {
        self.batch.len()
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn select(&mut self, rows: Range<usize>) -> Result<()> {
        error::range("rows of the batch", rows.end, rows.start.saturating_add(1), self.rows)?;
        self.batch = rows;
        Ok(())
    }

    fn apply(&mut self, _: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<()> {
        error::length("apply output", out.len(), self.local_rows())?;
        for (k, out) in self.batch.clone().zip(out) {
            let mut at = 0;
            let mut row = self.row(w.neuron(), k);
            let mut sum = 0.0;
            for (input, value) in w.entries() {
                sum += value * row.nth(input - at).unwrap_or(0.0);
                at = input + 1;
            }
            *out += sum;
        }
        Ok(())
    }

    fn adjoint(&mut self, _: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Result<()> {
        error::range("block", i, 0, self.blocks - 1)?;
        error::length("adjoint input", v.len(), self.local_rows())?;
        error::length("adjoint output", out.len(), self.inputs)?;
        for (k, v) in self.batch.clone().zip(v) {
            for (out, g) in out.iter_mut().zip(self.row(i, k)) {
                *out += v * g;
            }
        }
        Ok(())
    }

    /// Every row once, in place of once per column: the same additions in the same order.
    fn column_norms(
        &mut self,
        _: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        _: &mut [f32],
    ) -> Result<()> {
        error::range("block", blocks.end, blocks.start, self.blocks)?;
        error::length("column norms", out.len(), blocks.len().saturating_mul(self.inputs))?;
        out.fill(0.0);
        for (i, out) in blocks.zip(out.chunks_mut(self.inputs)) {
            for k in self.batch.clone() {
                for (out, g) in out.iter_mut().zip(self.row(i, k)) {
                    *out += g * g;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::operator::sensing::provided;

    #[test]
    fn column_norms_are_bit_identical_to_provided_method() {
        let mut sensing = Gaussian::new(3, 17, 5, 4).unwrap();
        let gates = Gates::seeded(0);
        for rows in [0..17, 4..9] {
            sensing.select(rows).unwrap();
            let (mut own, mut given, mut scratch) = ([1.0; 15], [2.0; 15], [0.0; 17]);
            sensing.column_norms(gates, 1..4, &mut own, &mut scratch).unwrap();
            provided::column_norms(&mut sensing, gates, 1..4, &mut given, &mut scratch).unwrap();
            assert_eq!(own.map(f32::to_bits), given.map(f32::to_bits));
        }
        assert!(sensing.column_norms(gates, 3..5, &mut [0.0; 10], &mut []).is_err());
    }
}
