//! Files into memory: which format, compressed or not, one file or several.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use super::gzip::Members;
use super::matrix::Incoming;
use super::table::Table;
use super::{Matrix, Size, Source, Values, csv, idx, npy, npz, select};
use crate::{Error, Result, base::file};

/// Loads samples, one row each, from a file of any format that [`data`](super) lists.
///
/// `a.gz,b.gz` appends the rows of the second file to those of the first; `file.npz#X` is the array
/// `X`. A file that exists under the whole name is that file.
///
/// # Errors
/// The file cannot be read, is in another format, is cut off or damaged, holds no values or some
/// that are not finite; or the files have different numbers of columns.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("X.csv");
/// std::fs::write(&path, "0.5,1\n2,3\n").unwrap();
/// let matrix = tamis_host::data::load(&path).unwrap();
/// assert_eq!((matrix.rows, matrix.cols), (2, 2));
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Matrix> {
    Table::read(path).map(|table| table.matrix)
}

impl Table {
    /// Reads samples and, where there are any, the names of their columns.
    ///
    /// # Errors
    /// As for [`load`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut rows = Incoming::new(None);
        let names = append_all(path.as_ref(), &mut rows)?;
        Ok(Self { matrix: rows.matrix, names })
    }
}

/// Loads labels: one number per sample.
///
/// # Errors
/// As for [`load`]; or there is more than one column.
pub fn load_labels(path: impl AsRef<Path>) -> Result<Vec<f32>> {
    let path = path.as_ref();
    load(path)?.into_column().map_err(|e| e.at(path))
}

/// Loads those samples that `choose` names by their labels, and these labels, from two files.
/// `choose` gives different row numbers, counted from 0, or `None` for all rows; samples and labels
/// come in its order.
///
/// Samples that are not chosen never take memory: they are only checked.
///
/// # Errors
/// As for [`load`] and [`select::gather`]; the numbers of samples and labels differ; or `choose`
/// fails.
///
/// ```
/// use tamis_host::data::{self, Values, select};
/// let folder = tempfile::tempdir().unwrap();
/// let (x, y) = (folder.path().join("x.csv"), folder.path().join("y.csv"));
/// std::fs::write(&x, "10\n20\n30\n").unwrap();
/// std::fs::write(&y, "7\n1\n0\n").unwrap();
/// let choose = |labels: &[f32]| select::rows_with(labels, &[0.0, 7.0]).map(Some);
/// let (x, y) = data::load_chosen(&x, &y, choose).unwrap();
/// assert_eq!((x.values, &y[..]), (Values::F32(vec![10.0, 30.0]), &[7.0, 0.0][..]));
/// ```
pub fn load_chosen(
    data: impl AsRef<Path>,
    labels: impl AsRef<Path>,
    choose: impl FnOnce(&[f32]) -> Result<Option<Vec<usize>>>,
) -> Result<(Matrix, Vec<f32>)> {
    let values = load_labels(&labels)?;
    let chosen = choose(&values)?;
    load_beside(
        data,
        labels,
        Matrix { rows: values.len(), cols: 1, values: Values::F32(values) },
        chosen,
    )
}

/// [`load_chosen`] for rows of labels that came from the file `path`, and chosen rows.
///
/// # Errors
/// As for [`load_chosen`].
pub fn load_beside(
    data: impl AsRef<Path>,
    path: impl AsRef<Path>,
    labels: Matrix,
    chosen: Option<Vec<usize>>,
) -> Result<(Matrix, Vec<f32>)> {
    let Matrix { rows: all, cols, values } = labels;
    let values = values.into_f32();
    let keep = chosen.as_deref().map(|rows| select::mask(rows, all)).transpose()?;
    let mut rows = Incoming::new(keep.as_deref());
    append_all(data.as_ref(), &mut rows)?;
    let Incoming { matrix, seen, .. } = rows;
    if seen != all {
        return Err(other_number(seen, all).at(path));
    }
    let Some(chosen) = chosen else { return Ok((matrix, values)) };
    let mut kept = Vec::with_capacity(chosen.len() * cols);
    chosen.iter().for_each(|&row| kept.extend_from_slice(&values[row * cols..][..cols]));
    if chosen.is_sorted() {
        return Ok((matrix, kept));
    }
    // The rows read are in the order of the files.
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    let ranks = chosen.iter().map(|row| sorted.partition_point(|other| other < row)).collect();
    Ok((select::gather(matrix, ranks)?, kept))
}

/// The error of so many labels for other rows.
pub(super) fn other_number(rows: usize, labels: usize) -> Error {
    Error::new("the number of labels is not the number of samples")
        .mismatch(format_args!("{rows} labels"), labels)
        .help("pass the labels that belong to the data, in the same order")
}

/// Appends the rows of all files that `path` names: the column names.
fn append_all(path: &Path, rows: &mut Incoming<'_>) -> Result<Option<Vec<String>>> {
    let mut names = None;
    for file in files(path)? {
        let found = append(&file, rows).map_err(|e| e.at(&file))?;
        names = names.or(found);
    }
    Ok(names)
}

/// The files that a name means: itself, or those between its commas.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let text = path.to_str().filter(|text| text.contains(',') && !path.exists());
    let Some(text) = text else { return Ok(vec![path.to_owned()]) };
    let files: Vec<_> = text.split(',').map(|file| PathBuf::from(file.trim())).collect();
    if files.iter().any(|file| file.as_os_str().is_empty()) {
        return Err(Error::new("a file name is empty")
            .mismatch("file names separated by commas", text)
            .help("take out the comma that has no name beside it"));
    }
    Ok(files)
}

/// The file that `X.npz#NAME` means, and the name of the array in it.
fn member(name: &Path) -> (PathBuf, Option<String>) {
    match name.to_str().and_then(|text| text.rsplit_once('#')) {
        Some((file, member)) if !name.exists() => (file.into(), Some(member.to_owned())),
        _ => (name.to_owned(), None),
    }
}

const HEAD: usize = 8;

/// What CSV is read from.
pub(super) type Text = Box<dyn Read>;

/// The text of a CSV file, decompressed; none for a file of another format.
///
/// # Errors
/// The file cannot be read.
pub(super) fn text(name: &Path) -> Result<Option<Source<Text>>> {
    let (path, member) = member(name);
    let Begun { file, len, head: start } = begin(&path)?;
    if member.is_some() || npz::matches(&start) {
        return Ok(None);
    }
    if !start.starts_with(&GZIP) {
        let is_csv = matches!(format(&path, &start), Ok(Format::Csv));
        return Ok(is_csv.then(|| Source::new(Box::new(file) as Text, Size::exact(len))));
    }
    let mut reader = Members::new(BufReader::new(file));
    let start = head(&mut reader)?;
    let is_csv = matches!(format(&decompressed(&path), &start), Ok(Format::Csv));
    let whole = Cursor::new(start).chain(reader.limited());
    Ok(is_csv.then(|| Source::new(Box::new(whole) as Text, Size::limited(len))))
}

/// Opens a file; `-` is standard input.
fn open(path: &Path) -> Result<(File, u64)> {
    if path == Path::new("-") { file::standard_input() } else { file::open(path) }
}

/// A file of `len` bytes, and the first of them.
struct Begun {
    file: File,
    len: u64,
    head: Vec<u8>,
}

fn begin(path: &Path) -> Result<Begun> {
    let (mut file, len) = open(path)?;
    let head = head(&mut file)?;
    file.rewind().map_err(|e| Error::new("cannot read").source(e))?;
    Ok(Begun { file, len, head })
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The name without the ending of gzip.
fn decompressed(path: &Path) -> PathBuf {
    let gz = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    if gz { path.with_extension("") } else { path.to_owned() }
}

fn append(name: &Path, rows: &mut Incoming<'_>) -> Result<Option<Vec<String>>> {
    let (path, member) = member(name);
    let Begun { file, len, head } = begin(&path)?;
    if head.is_empty() {
        return Err(empty());
    }
    if npz::matches(&head) {
        npz::append(BufReader::new(file), len, member.as_deref(), rows)?;
        return Ok(None);
    }
    if member.is_some() {
        return Err(Error::new("only an NPZ archive holds several arrays")
            .help("leave out the # and what follows"));
    }
    if head.starts_with(&GZIP) {
        return append_compressed(&path, file, len, rows);
    }
    append_plain(&path, &head, Source::new(file, Size::exact(len)), rows)
}

/// The axes of a row in a file that has several, by its header, without those of length 1: rows and columns where
/// rows are pictures of one number a pixel. None in other files, and in standard input.
///
/// # Errors
/// As for [`load`], as far as the header goes.
pub(crate) fn row_axes(name: &Path) -> Result<Option<Vec<usize>>> {
    let files = files(name)?;
    let Some(first) = files.first().filter(|file| *file != Path::new("-")) else { return Ok(None) };
    let dims = axes(first).map_err(|e| e.at(first))?;
    let sides = dims.iter().skip(1).filter(|side| **side != 1);
    let sides = sides.filter_map(|side| usize::try_from(*side).ok()).collect();
    Ok((dims.len() > 2).then_some(sides))
}

/// The axes of an array; none of CSV.
fn axes(name: &Path) -> Result<Vec<u64>> {
    let (path, member) = member(name);
    let Begun { file, len, head: start } = begin(&path)?;
    if npz::matches(&start) {
        return npz::with_array(BufReader::new(file), len, member.as_deref(), |mut source| {
            npy::of_header(&mut source).map(|layout| layout.dims)
        });
    }
    if !start.starts_with(&GZIP) {
        return axes_of(&path, &start, Source::new(file, Size::exact(len)));
    }
    let mut reader = Members::new(BufReader::new(file));
    let start = head(&mut reader)?;
    let whole = Cursor::new(start.clone()).chain(reader);
    axes_of(&decompressed(&path), &start, Source::new(whole, Size::limited(len)))
}

fn axes_of<R: Read>(path: &Path, head: &[u8], mut source: Source<R>) -> Result<Vec<u64>> {
    Ok(match format(path, head)? {
        Format::Npy => npy::of_header(&mut source)?.dims,
        Format::Idx => idx::layout(&mut source)?.dims,
        Format::Csv => Vec::new(),
    })
}

fn append_compressed(
    path: &Path,
    file: File,
    len: u64,
    rows: &mut Incoming<'_>,
) -> Result<Option<Vec<String>>> {
    let mut reader = Members::new(BufReader::new(file));
    let head = head(&mut reader)?;
    let path = decompressed(path);
    let binary = npy::matches(&head) || idx::matches(&head);
    let reader = if binary { reader } else { reader.limited() };
    let whole = Cursor::new(head.clone()).chain(reader);
    append_plain(&path, &head, Source::new(whole, Size::limited(len)), rows)
}

/// Appends rows in a format that is known from `head`, else from the ending of `path`.
fn append_plain<R: Read>(
    path: &Path,
    head: &[u8],
    source: Source<R>,
    rows: &mut Incoming<'_>,
) -> Result<Option<Vec<String>>> {
    match format(path, head)? {
        Format::Npy => npy::append(source, rows).map(|()| None),
        Format::Idx => idx::append(source, rows).map(|()| None),
        Format::Csv => csv::append(source, rows),
    }
}

enum Format {
    Npy,
    Idx,
    Csv,
}

/// The format of what begins with `head`, else by the ending of `path`.
fn format(path: &Path, head: &[u8]) -> Result<Format> {
    if head.is_empty() {
        return Err(empty());
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    if npy::matches(head) || name.ends_with(".npy") {
        return Ok(Format::Npy);
    }
    if idx::matches(head) || name.ends_with("ubyte") || name.ends_with(".idx") {
        return Ok(Format::Idx);
    }
    if name.ends_with(".npz") {
        return Err(Error::new("not an NPZ archive")
            .mismatch("magic PK", head.escape_ascii())
            .help("give the file the ending of its format, or save it again with numpy.savez"));
    }
    if head.contains(&0) {
        let bytes: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(Error::new("the format is not known")
            .expected("idx (00 00, type, dimensions), NPY, NPZ, or CSV in UTF-8")
            .got(format_args!("a file that begins with the bytes {}", bytes.join(" ")))
            .help("check that this is the file that is meant, and undamaged; save text as UTF-8"));
    }
    Ok(Format::Csv)
}

fn empty() -> Error {
    Error::new("the file is empty")
        .mismatch("idx, NPY, NPZ or CSV", "0 bytes")
        .help("check what wrote the file, or pass another")
}

fn head(reader: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = [0; HEAD];
    let n = Source::new(reader, Size::at_most(HEAD as u64)).fill(&mut head)?;
    Ok(head[..n].to_vec())
}
