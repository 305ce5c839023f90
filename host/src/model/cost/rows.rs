//! The rows that are measured of one core, and their sums.

use super::count::{Around, EXTRAS, STRAIGHT, Work};
use super::kernel::{Kernel, Numbers};

/// A kernel on a core.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Thousandths of an instruction of each count of [`Work`].
    pub instructions: [u32; Work::COUNT],
    /// Code and stack of a chain of two layers that it runs; the same of C; pairs of code and
    /// stack.
    pub bytes: [[u16; 2]; 2],
}

/// Everything measured of one core. Bytes are pairs of code and stack; those of extras are added to
/// those of kernels.
#[derive(Debug)]
pub struct Prices {
    /// Flash of a program that does nothing: start-up code and vectors.
    pub startup: u32,
    /// In the order of [`Kernel::ALL`].
    pub kernels: [Row; Kernel::ALL.len()],
    /// Thousandths of an instruction of each count of [`Around`], of floats and of integers.
    pub around: [[u32; Around::COUNT]; 2],
    /// Of floats and of integers, for each of [`EXTRAS`], of Rust and of C.
    pub extras: [[[[i16; 2]; 2]; EXTRAS]; 2],
    /// What blocks on long and on short rows share beyond all kernels, of Rust and of C.
    pub shared: [u16; 2],
    /// Programs that read a file, of floats the largest, and of integers.
    pub file: [[u16; 2]; 2],
    /// What a module of Rust takes beyond an embedded model, of floats and of integers.
    pub module: [[i16; 2]; 2],
    /// See [`zeros`].
    pub zeros: [u16; 2],
    /// Thousandths of a byte of code and of all RAM for each count of code without tables: bounds
    /// of both.
    pub straight: [[u32; STRAIGHT]; 2],
}

impl Prices {
    /// The row of a kernel.
    #[must_use]
    pub const fn row(&self, kernel: Kernel) -> &Row {
        &self.kernels[kernel as usize]
    }

    /// Code and stack of a chain of these kernels and of so many of each of [`EXTRAS`], in Rust or
    /// in C.
    #[must_use]
    pub fn chain(&self, kernels: &[Kernel], extras: &[u8; EXTRAS], is_c: bool) -> [usize; 2] {
        let language = usize::from(is_c);
        let mut sum = [0_i64; 2];
        for &kernel in kernels {
            let [code, stack] = self.row(kernel).bytes[language].map(i64::from);
            sum = [sum[0] + code, sum[1].max(stack)];
        }
        if kernels.contains(&Kernel::Blocks) && kernels.contains(&Kernel::ShortBlocks) {
            sum[0] -= i64::from(self.shared[language]);
        }
        let is_floats = kernels.iter().all(|kernel| kernel.numbers() == Numbers::Floats);
        for (&count, row) in extras.iter().zip(&self.extras[usize::from(!is_floats)]) {
            let [code, stack] = row[language].map(|bytes| i64::from(bytes) * i64::from(count));
            sum = [sum[0] + code, sum[1] + stack];
        }
        sum.map(|bytes| bytes.max(0) as usize)
    }
}

/// Bytes of code that make buffers of so many words by [`tamis::infer::model::zeros`]: `few` for 64
/// of them, and where one is longer a `routine`.
#[must_use]
pub fn zeros([few, routine]: [u16; 2], words: [usize; 2]) -> usize {
    /// Words of 256 bytes, beyond which it calls the routine.
    const MOST: usize = 64;
    let stores: usize = words.iter().filter(|&&words| words <= MOST).sum();
    let call = if words.iter().any(|&words| words > MOST) { routine.into() } else { 0 };
    (stores * usize::from(few)).div_ceil(64) + call
}
