//! Files into memory: which format, compressed or not, one file or several.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{Matrix, Size, Source, csv, idx, npy, npz};
use crate::{Error, Result, file};

/// A matrix with the names of its columns, where the file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The rows.
    pub matrix: Matrix,
    /// One name per column.
    pub names: Option<Vec<String>>,
}

impl Table {
    /// Takes the column `target`, a name or a number counted from 1, out of the table: inputs and labels. In place.
    ///
    /// # Errors
    /// No such column, several of that name, or no other column.
    ///
    /// ```
    /// use tamis_host::data::{Source, csv};
    /// let table = csv::read(Source::bytes(b"width,height,class\n1.5,2,0\n3,4,1\n")).unwrap();
    /// let (inputs, labels) = table.split("class").unwrap();
    /// assert_eq!((inputs.cols, labels), (2, vec![0.0, 1.0]));
    /// ```
    pub fn split(self, target: &str) -> Result<(Matrix, Vec<f32>)> {
        let column = self.column(target)?;
        let Self { mut matrix, .. } = self;
        let labels = matrix.take_column(column)?;
        Ok((matrix, labels))
    }

    /// The column that `target` means, counted from 0.
    fn column(&self, target: &str) -> Result<usize> {
        let names = self.names.as_deref().unwrap_or_default();
        let mut named = (0..names.len()).filter(|&i| names[i] == target);
        match (named.next(), named.next()) {
            (Some(column), None) => return Ok(column),
            (Some(_), Some(_)) => {
                return Err(Error::new(format!("several columns are named {target:?}"))
                    .help("pass the number of the column, counted from 1"));
            }
            _ => {}
        }
        match target.parse::<usize>() {
            Ok(number) if (1..=self.matrix.cols).contains(&number) => Ok(number - 1),
            _ => Err(self.no_column(target)),
        }
    }

    fn no_column(&self, target: &str) -> Error {
        let numbers = format!("a number from 1 to {}", self.matrix.cols);
        let names = self.names.as_deref().unwrap_or_default();
        let listed = names.iter().take(20).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let expected = match names.len() {
            0 => numbers,
            1..=20 => format!("{listed} or {numbers}"),
            _ => format!("{listed}, … or {numbers}"),
        };
        Error::new("no such column")
            .expected(expected)
            .got(format_args!("{target:?}"))
            .help("pass the name of a column, or its number, to --target")
    }
}

/// Loads samples, one row each, from a file of any format that [`data`](super) lists.
///
/// `a.gz,b.gz` appends the rows of the second file to those of the first; `file.npz#X` is the array `X`. A file that
/// exists under the whole name is that file.
///
/// # Errors
/// The file cannot be read, is in another format, is cut off or damaged, holds no values or some that are not finite;
/// or the files have different numbers of columns.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("X.csv");
/// std::fs::write(&path, "0.5,1\n2,3\n").unwrap();
/// let matrix = tamis_host::data::load(&path).unwrap();
/// assert_eq!((matrix.rows, matrix.cols), (2, 2));
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Matrix> {
    load_table(path).map(|table| table.matrix)
}

/// Loads samples and, where there are any, the names of their columns.
///
/// # Errors
/// As for [`load`].
pub fn load_table(path: impl AsRef<Path>) -> Result<Table> {
    let mut matrix = Matrix::empty();
    let mut names = None;
    for part in parts(path.as_ref())? {
        let found = append(&part, &mut matrix).map_err(|e| e.at(&part))?;
        names = names.or(found);
    }
    Ok(Table { matrix, names })
}

/// Loads labels: one number per sample.
///
/// # Errors
/// As for [`load`]; or there is more than one column.
pub fn load_labels(path: impl AsRef<Path>) -> Result<Vec<f32>> {
    let path = path.as_ref();
    load(path)?.into_column().map_err(|e| e.at(path))
}

/// Loads samples and their labels, from two files.
///
/// # Errors
/// As for [`load`] and [`load_labels`]; or the numbers of samples and labels differ.
pub fn load_labelled(data: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<(Matrix, Vec<f32>)> {
    let values = load_labels(&labels)?;
    let matrix = load(data)?;
    if matrix.rows != values.len() {
        return Err(Error::new("the number of labels is not the number of samples")
            .at(labels)
            .expected(format_args!("{} labels", matrix.rows))
            .got(values.len())
            .help("pass the labels that belong to the data, in the same order"));
    }
    Ok((matrix, values))
}

/// The files that `path` names, in order.
fn parts(path: &Path) -> Result<Vec<PathBuf>> {
    let text = path.to_str().filter(|text| text.contains(',') && !path.exists());
    let Some(text) = text else { return Ok(vec![path.to_owned()]) };
    let parts: Vec<_> = text.split(',').map(|part| PathBuf::from(part.trim())).collect();
    if parts.iter().any(|part| part.as_os_str().is_empty()) {
        return Err(Error::new("a file name is empty")
            .expected("file names separated by commas")
            .got(text)
            .help("take out the comma that has no name beside it"));
    }
    Ok(parts)
}

/// The file that `part` names, and the array in it.
fn member(part: &Path) -> (PathBuf, Option<String>) {
    match part.to_str().and_then(|text| text.rsplit_once('#')) {
        Some((file, member)) if !part.exists() => (file.into(), Some(member.to_owned())),
        _ => (part.to_owned(), None),
    }
}

/// The most that is looked at to tell formats apart.
const HEAD: usize = 8;

/// Appends the rows of one file: the column names.
fn append(part: &Path, matrix: &mut Matrix) -> Result<Option<Vec<String>>> {
    let (path, member) = member(part);
    let (mut file, len) = file::open(&path)?;
    let head = head(&mut file)?;
    file.rewind().map_err(|e| Error::new("cannot read").source(e))?;
    if npz::matches(&head) {
        npz::append(BufReader::new(file), len, member.as_deref(), matrix)?;
        return Ok(None);
    }
    if member.is_some() {
        return Err(
            Error::new("only an NPZ archive holds several arrays").help("leave out the # and what follows")
        );
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        return append_compressed(&path, file, len, matrix);
    }
    append_plain(&path, &head, Source::new(file, Size::Exact(len)), matrix)
}

fn append_compressed(path: &Path, file: File, len: u64, matrix: &mut Matrix) -> Result<Option<Vec<String>>> {
    let mut reader = MultiGzDecoder::new(BufReader::new(file));
    let head = head(&mut reader)?;
    let gz = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let path = if gz { path.with_extension("") } else { path.to_owned() };
    // Only text does not say how long it is.
    let binary = npy::matches(&head) || idx::matches(&head);
    let left = if binary { u64::MAX } else { len.saturating_mul(TEXT_RATIO).max(TEXT_FLOOR) };
    let whole = Limited { reader: Cursor::new(head.clone()).chain(reader), left };
    append_plain(&path, &head, Source::new(whole, Size::expanded(len)), matrix)
}

/// Compressed text may expand to this many times its size, or to `TEXT_FLOOR` bytes if that is more.
const TEXT_RATIO: u64 = 100;
const TEXT_FLOOR: u64 = 64 << 20;

/// Appends rows in a format that is known from `head`, else from the ending of `path`.
fn append_plain<R: Read>(
    path: &Path,
    head: &[u8],
    source: Source<R>,
    matrix: &mut Matrix,
) -> Result<Option<Vec<String>>> {
    if head.is_empty() {
        return Err(Error::new("the file is empty")
            .expected("idx, NPY, NPZ or CSV")
            .got("0 bytes")
            .help("check what wrote the file, or pass another"));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if npy::matches(head) || name.ends_with(".npy") {
        return npy::append(source, matrix).map(|()| None);
    }
    if idx::matches(head) || name.ends_with("ubyte") || name.ends_with(".idx") {
        return idx::append(source, matrix).map(|()| None);
    }
    if name.ends_with(".npz") {
        return Err(Error::new("not an NPZ archive")
            .expected("magic PK")
            .got(head.escape_ascii())
            .help("give the file the ending of its format, or save it again with numpy.savez"));
    }
    csv::append(source, matrix)
}

fn head(reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = [0; HEAD];
    let n = Source::new(reader, Size::AtMost(HEAD as u64)).fill(&mut head)?;
    Ok(head[..n].to_vec())
}

/// Stops at a number of bytes, with an error.
struct Limited<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            io::Error::other(
                "the compressed text expands too far to be a table: decompress it first if it is one",
            )
        })?;
        Ok(n)
    }
}
