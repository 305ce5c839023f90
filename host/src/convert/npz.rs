//! NPZ archives of weights, as `numpy.savez` writes them.

use std::io::{Read, Seek};

use super::{Tensor, shown};
use crate::data::npz;
use crate::{Error, Result};

/// Bytes of values that an archive may hold at the most, unpacked.
pub const LIMIT: u64 = 1 << 30;
/// Arrays that an archive may hold.
pub(crate) const ARRAYS: usize = 1024;

/// Reads all arrays of an archive of `len` bytes; integers are floats here.
///
/// # Errors
/// Not a ZIP archive, no arrays or too many, or an array that [`crate::data::npy`] refuses, by
/// name.
pub fn read<R: Read + Seek>(reader: R, len: u64) -> Result<Vec<Tensor>> {
    let arrays = npz::read_all(reader, len, ARRAYS, LIMIT)?;
    let tensors = arrays.into_iter().map(|(name, dims, matrix)| {
        let too_large = |_| Error::new(format!("the array {} is too large", shown(&name)));
        let dims = dims.into_iter().map(usize::try_from).collect::<std::result::Result<_, _>>();
        let dims = dims.map_err(too_large)?;
        Ok(Tensor { name, dims, values: Some(matrix.values.into_f32()) })
    });
    tensors.collect()
}
