//! Rows of random bytes and random classes, for what is timed and not scored.

use tamis::base::rng::{Rng, stream};

use crate::Result;
use crate::data::{Matrix, Values};

pub(super) struct Noise {
    pub(super) data: Matrix,
    pub(super) classes: Vec<u16>,
}

impl Noise {
    pub(super) fn new(rows: usize, inputs: usize, outputs: usize, seed: u64) -> Result<Self> {
        let mut rng = Rng::new(seed, stream::USER);
        let values = (0..rows * inputs).map(|_| (rng.bits() >> 24) as u8).collect();
        let data = Matrix::new(rows, inputs, Values::U8(values))?;
        let classes = (0..rows).map(|_| rng.below(outputs as u32) as u16).collect();
        Ok(Self { data, classes })
    }
}
