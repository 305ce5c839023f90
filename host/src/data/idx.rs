//! idx, the format of the MNIST files: a magic number `00 00 type rank`, one big-endian `u32` per
//! axis, the values.
//!
//! Bytes (type `08`) stay bytes; `09` i8, `0B` i16, `0C` i32, `0D` f32 and `0E` f64 become `f32`.

use std::io::Read;

use super::element::Layout;
use super::matrix::Incoming;
use super::{Matrix, Source};
use crate::{Error, Result};

/// Reads an idx file of rank 1 to 4: one row per index of the first axis, the others flattened.
///
/// # Errors
/// Another magic number or rank, no values, too few or too many bytes, a value that is not finite.
///
/// ```
/// use tamis_host::data::{Source, Values, idx};
/// // One image of 2 × 2 pixels.
/// let file = [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4];
/// let matrix = idx::read(Source::bytes(&file)).unwrap();
/// assert_eq!((matrix.rows, matrix.cols, matrix.values), (1, 4, Values::U8(vec![1, 2, 3, 4])));
/// ```
pub fn read<R: Read>(source: Source<R>) -> Result<Matrix> {
    let mut rows = Incoming::new(None);
    append(source, &mut rows)?;
    Ok(rows.matrix)
}

pub(super) fn matches(head: &[u8]) -> bool {
    matches!(head, [0, 0, kind, 1..=4, ..] if element(*kind).is_some())
}

pub(super) fn append<R: Read>(mut source: Source<R>, rows: &mut Incoming<'_>) -> Result<()> {
    layout(&mut source)?.append(source, rows)
}

/// The header.
pub(super) fn layout<R: Read>(source: &mut Source<R>) -> Result<Layout> {
    let magic: [u8; 4] = source.array("the idx header")?;
    let [0, 0, kind, rank] = magic else { return Err(not_idx(magic)) };
    let element = element(kind).ok_or_else(|| not_idx(magic))?;
    if !(1..=4).contains(&rank) {
        return Err(Error::new("the rank of the idx file is not supported")
            .mismatch("1 to 4 axes", format_args!("{rank} axes"))
            .help("flatten the samples, one row each, and write the file again"));
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(u64::from(u32::from_be_bytes(source.array("the idx header")?)));
    }
    Ok(Layout { element, big_endian: true, fortran: false, dims })
}

fn element(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x08 => "u1",
        0x09 => "i1",
        0x0B => "i2",
        0x0C => "i4",
        0x0D => "f4",
        0x0E => "f8",
        _ => return None,
    })
}

fn not_idx(magic: [u8; 4]) -> Error {
    Error::new("not an idx file")
        .expected("magic 0x00000801 to 0x00000e04")
        .got(format_args!("0x{:08x}", u32::from_be_bytes(magic)))
        .help("pass a file in idx, NPY, NPZ or CSV format")
}
