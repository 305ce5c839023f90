//! Arrays out to files: NPY, NPZ and CSV, complete or not at all.

use std::io::{self, Write};
use std::path::Path;

use super::array::{Array, Number};
use super::{npy, npz};
use crate::{Error, Result, base::file};

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
pub fn save_npy<T: Number>(path: impl AsRef<Path>, values: &[T], shape: &[usize]) -> Result<()> {
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

/// Saves rows of numbers as CSV, below a line with the column names if there are any; the shortest
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

/// Saves rows of `cols` numbers as CSV where the name ends in `.csv`, else as NPY; one column as an
/// array of a single axis.
///
/// # Errors
/// As for [`save_npy`] and [`save_csv`].
pub fn save(path: impl AsRef<Path>, values: &[f32], cols: usize) -> Result<()> {
    let path = path.as_ref();
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        return save_csv(path, &[], values, cols);
    }
    let shape = [values.len() / cols.max(1), cols];
    save_npy(path, values, if cols == 1 { &shape[..1] } else { &shape })
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
