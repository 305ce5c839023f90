//! Arrays to files of NPZ or safetensors, value by value: no array is in memory as a whole.

use std::io::{self, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::form::Form;
use crate::base::file;
use crate::data::npz::{self, Fill, StreamedArray};
use crate::model::LayerName;
use crate::{Error, Result};

/// An array to write, by a function that writes all of its values.
pub(super) struct OutgoingArray<'a> {
    pub(super) name: &'a str,
    pub(super) dims: [usize; 2],
    pub(super) fill: Fill<'a>,
}

impl<'a> OutgoingArray<'a> {
    /// The array of a layer of these outputs and inputs, as it lies.
    pub(super) fn new(name: &'a LayerName, [outputs, inputs]: [usize; 2], fill: Fill<'a>) -> Self {
        let dims = if name.in_out { [inputs, outputs] } else { [outputs, inputs] };
        Self { name: &name.array, dims, fill }
    }
}

/// Numbers of the arrays of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Numbers {
    Bytes,
    Floats,
}

impl Numbers {
    const fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Floats => 4,
        }
    }
}

/// Writes the arrays of a file.
pub(super) fn arrays(
    path: &Path,
    form: Form,
    numbers: Numbers,
    arrays: &mut [OutgoingArray<'_>],
) -> Result<()> {
    let bytes = |array: &OutgoingArray<'_>| array.dims[0] * array.dims[1] * numbers.size();
    if form == Form::Npz {
        let arrays = arrays.iter().map(|array| StreamedArray {
            name: array.name,
            element: if numbers.size() == 1 { "u1" } else { "f4" },
            shape: &array.dims,
            bytes: bytes(array) as u64,
            fill: Box::new(|w| (array.fill)(w)),
        });
        let arrays: Vec<_> = arrays.collect();
        return file::write(path, |w| npz::write_streamed(w, &arrays));
    }
    let broken = |error| Error::new("cannot make a safetensors file").at(path).source(error);
    // As the crate orders arrays of one type.
    arrays.sort_by_key(|array| array.name);
    let dtype = if numbers.size() == 1 { Dtype::U8 } else { Dtype::F32 };
    let infos = arrays.iter().scan(0, |start, array| {
        let data_offsets = (*start, *start + bytes(array));
        *start = data_offsets.1;
        let info = TensorInfo { dtype, shape: array.dims.to_vec(), data_offsets };
        Some((array.name.to_owned(), info))
    });
    let metadata = Metadata::new(None, infos.collect()).map_err(broken)?;
    let json = serde_json::to_vec(&metadata);
    let mut header =
        json.map_err(|error| Error::new("cannot make a safetensors file").at(path).source(error))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    file::write(path, |w| {
        w.write_all(&(header.len() as u64).to_le_bytes())?;
        w.write_all(&header)?;
        arrays.iter().try_for_each(|array| (array.fill)(w))
    })
}

/// Writes `len` bytes, 1 at these places, which rise, and 0 elsewhere.
pub(super) fn ones(
    w: &mut dyn Write,
    len: usize,
    ones: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let mut ones = ones.peekable();
    let mut buffer = [0; 1 << 14];
    for start in (0..len).step_by(buffer.len()) {
        let chunk = &mut buffer[..(len - start).min(1 << 14)];
        chunk.fill(0);
        while let Some(at) = ones.next_if(|&at| at < start + chunk.len()) {
            chunk[at - start] = 1;
        }
        w.write_all(chunk)?;
    }
    Ok(())
}
