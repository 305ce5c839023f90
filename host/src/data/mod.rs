//! Data in memory, and the files it comes from and goes to.

pub mod digits;

/// Samples as they lie in memory, row-major: `rows` samples of `cols` inputs each.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of samples, n.
    pub rows: usize,
    /// Number of inputs, d.
    pub cols: usize,
    /// `rows * cols` values.
    pub values: Values,
}

/// The values of a [`Matrix`]: bytes stay bytes, a quarter of the memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Finite 32-bit floats.
    F32(Vec<f32>),
    /// Bytes, such as pixels, standing for 0 to 255.
    U8(Vec<u8>),
}

pub mod planted;
