//! NPZ archives of weights, as `numpy.savez` writes them.

use std::io::{Read, Seek};

use super::{Tensor, shown};
use crate::data::{Values, npz};
use crate::{Error, Result};

/// Bytes of values that an archive may hold at the most, unpacked.
pub const LIMIT: u64 = 1 << 30;
/// Arrays that an archive may hold at the most.
const ARRAYS: usize = 1024;

/// Reads all arrays of an archive of `len` bytes; integers are floats here.
///
/// # Errors
/// Not a ZIP archive, no arrays or too many, or an array that [`crate::data::npy`] refuses, by
/// name.
pub fn read<R: Read + Seek>(reader: R, len: u64) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::new();
    npz::read_all(reader, len, ARRAYS, LIMIT, |name, dims, matrix| {
        let values = match matrix.values {
            Values::F32(values) => values,
            Values::U8(bytes) => bytes.into_iter().map(f32::from).collect(),
        };
        let too_long = |_| Error::new(format!("the array {} is too large", shown(name)));
        let dims =
            dims.iter().map(|&dim| usize::try_from(dim)).collect::<std::result::Result<_, _>>();
        tensors.push(Tensor {
            name: name.to_owned(),
            dims: dims.map_err(too_long)?,
            values: Some(values),
        });
        Ok(())
    })?;
    Ok(tensors)
}
