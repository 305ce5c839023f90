//! Arrays out to files: NPY, NPZ and CSV, complete or not at all.

use std::io::{self, Write};
use std::path::Path;

use super::{npy, npz};
use crate::{Error, Result, file};

/// Numbers to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numbers<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 32-bit indices.
    U32(&'a [u32]),
    /// Bytes.
    U8(&'a [u8]),
    /// Signed bytes.
    I8(&'a [i8]),
}

impl Numbers<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! numbers_from {
    ($($variant:ident $number:ty),*) => {$(
        impl<'a> From<&'a [$number]> for Numbers<'a> {
            fn from(values: &'a [$number]) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a> From<&'a Vec<$number>> for Numbers<'a> {
            fn from(values: &'a Vec<$number>) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a, const N: usize> From<&'a [$number; N]> for Numbers<'a> {
            fn from(values: &'a [$number; N]) -> Self {
                Self::$variant(values)
            }
        }
    )*};
}
numbers_from!(F32 f32, U32 u32, U8 u8, I8 i8);

/// Numbers and their shape, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    shape: Vec<usize>,
    values: Numbers<'a>,
}

impl<'a> Array<'a> {
    /// An array of the shape given.
    ///
    /// # Errors
    /// The number of values is not the product of the axes, or there are more than 32 axes.
    ///
    /// ```
    /// use tamis_host::data::Array;
    /// assert!(Array::new(&[2, 3], &[0.5f32; 6]).is_ok());
    /// assert!(Array::new(&[2, 3], &[0.5f32; 5]).is_err());
    /// ```
    pub fn new(shape: &[usize], values: impl Into<Numbers<'a>>) -> Result<Self> {
        let values = values.into();
        let len = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        if len != Some(values.len()) || shape.len() > 32 {
            return Err(Error::new("the number of values does not fit the shape")
                .expected(format_args!("{shape:?}"))
                .got(format_args!("{} values", values.len())));
        }
        Ok(Self { shape: shape.to_vec(), values })
    }

    /// Length of every axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    #[must_use]
    pub fn values(&self) -> Numbers<'a> {
        self.values
    }

    /// Bytes that the values take.
    pub(super) fn bytes(&self) -> u64 {
        let size = match self.values {
            Numbers::F32(_) | Numbers::U32(_) => 4,
            Numbers::U8(_) | Numbers::I8(_) => 1,
        };
        self.values.len() as u64 * size
    }
}

/// Saves one array as NPY.
///
/// # Errors
/// The values do not fit the shape, or the file cannot be written (see [`file::write()`]).
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("X.npy");
/// tamis_host::data::save_npy(&path, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
/// assert_eq!(tamis_host::data::load(&path).unwrap().cols, 2);
/// ```
pub fn save_npy<'a>(path: impl AsRef<Path>, values: impl Into<Numbers<'a>>, shape: &[usize]) -> Result<()> {
    let array = Array::new(shape, values)?;
    file::write(path, |w| npy::write(w, &array))
}

/// Saves named arrays as NPZ; the same arrays always give the same bytes.
///
/// # Errors
/// Two arrays of one name, or the file cannot be written (see [`file::write()`]).
pub fn save_npz(path: impl AsRef<Path>, arrays: &[(&str, Array<'_>)]) -> Result<()> {
    file::write(path, |w| npz::write(w, arrays))
}

/// Saves rows of numbers as CSV: one line with the column names if there are any, then one line per row. The shortest
/// decimals that give the same `f32` back.
///
/// # Errors
/// The values do not fill rows of `cols`, the names are not `cols`, or the file cannot be written.
pub fn save_csv(path: impl AsRef<Path>, names: &[&str], values: &[f32], cols: usize) -> Result<()> {
    if cols == 0 || !values.len().is_multiple_of(cols) || ![0, cols].contains(&names.len()) {
        return Err(Error::new("the values do not fill the table")
            .expected(format_args!("rows of {cols} values"))
            .got(format_args!("{} values, {} names", values.len(), names.len())));
    }
    file::write(path, |w| write_csv(w, names, values, cols))
}

/// Saves rows of `cols` numbers in the format that the name ends in: `.csv` or `.npy` (also for any other ending).
///
/// One column is saved as an NPY array of a single axis.
///
/// # Errors
/// As for [`save_npy`] and [`save_csv`].
pub fn save(path: impl AsRef<Path>, values: &[f32], cols: usize) -> Result<()> {
    let path = path.as_ref();
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return save_csv(path, &[], values, cols);
    }
    match cols {
        1 => save_npy(path, values, &[values.len()]),
        _ => save_npy(path, values, &[values.len() / cols.max(1), cols]),
    }
}

fn write_csv(w: &mut dyn Write, names: &[&str], values: &[f32], cols: usize) -> io::Result<()> {
    if !names.is_empty() {
        let quoted = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
        writeln!(w, "{}", quoted.collect::<Vec<_>>().join(","))?;
    }
    for row in values.chunks_exact(cols) {
        for (i, value) in row.iter().enumerate() {
            write!(w, "{}{value}", if i == 0 { "" } else { "," })?;
        }
        writeln!(w)?;
    }
    Ok(())
}
