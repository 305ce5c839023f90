//! NPZ, numpy's archive of arrays: a ZIP of NPY files, stored or deflated.

use std::borrow::Cow;
use std::io::{self, Read, Seek, Write};

use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::matrix::Incoming;
use super::{Array, Matrix, Size, Source, npy};
use crate::{Error, Result};

/// Reads the array `member` of an NPZ file of `len` bytes; without a name the archive must hold a
/// single array.
///
/// # Errors
/// Not a ZIP archive, no such array, several arrays and no name, or what [`npy::read`] refuses.
///
/// ```
/// use std::io::Cursor;
/// use tamis_host::data::{Array, npz};
/// let mut file = Cursor::new(Vec::new());
/// let x = Array::new(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
/// let y = Array::new(&[2], &[7u8, 8]).unwrap();
/// npz::write(&mut file, &[("x", x), ("y", y)]).unwrap();
/// let len = file.get_ref().len() as u64;
/// assert_eq!(npz::read(&mut file, len, Some("x")).unwrap().rows, 3);
/// assert!(npz::read(&mut file, len, None).unwrap_err().to_string().contains("x, y"));
/// ```
pub fn read<R: Read + Seek>(reader: R, len: u64, member: Option<&str>) -> Result<Matrix> {
    let mut rows = Incoming::new(None);
    append(reader, len, member, &mut rows)?;
    Ok(rows.matrix)
}

/// Reads every array of an NPZ file of `len` bytes, in the order of the archive: its name, its
/// axes, and its values; at most `most` arrays, of `bytes` in all.
pub(crate) fn read_all<R: Read + Seek>(
    reader: R,
    len: u64,
    most: usize,
    mut bytes: u64,
) -> Result<Vec<(String, Vec<u64>, Matrix)>> {
    let mut arrays = Vec::new();
    for_each(reader, len, most, |name, source| {
        let (dims, matrix) = npy::read_shaped(source, bytes)?;
        bytes = bytes.saturating_sub(matrix.values.len() as u64 * 4);
        arrays.push((name.to_owned(), dims, matrix));
        Ok(())
    })?;
    Ok(arrays)
}

/// Calls `each` with the name and the bytes of every array of an NPZ file of `len` bytes, in the
/// order of the archive; there may be at most `most` arrays.
pub(crate) fn for_each<R: Read + Seek>(
    reader: R,
    len: u64,
    most: usize,
    mut each: impl FnMut(&str, Source<ZipFile<'_, R>>) -> Result<()>,
) -> Result<()> {
    let mut archive = ZipArchive::new(reader).map_err(|e| damaged(e, "open the archive"))?;
    let names =
        archive.file_names().filter_map(|name| name.ok()).filter(|name| name.ends_with(SUFFIX));
    let names: Vec<String> = names.take(most.saturating_add(1)).map(Cow::into_owned).collect();
    if names.is_empty() || names.len() > most {
        return Err(Error::new("the archive holds no arrays, or too many")
            .expected(format_args!("1 to {most} files that end in {SUFFIX}"))
            .got(match names.len() {
                0 => format!("{} other files", archive.len()),
                _ => "more".into(),
            })
            .help("save the arrays with numpy.savez"));
    }
    for name in names {
        let file = archive.by_name(&name).map_err(|e| damaged(e, "open the array"))?;
        let size = size(&file, len, Size::expanded);
        let name = name.strip_suffix(SUFFIX).unwrap_or(&name);
        let read = each(name, Source::new(file, size));
        read.map_err(|error| error.of(list(&[Cow::Borrowed(name)])))?;
    }
    Ok(())
}

/// Writes arrays under their names, uncompressed; the same arrays always give the same bytes.
///
/// # Errors
/// Those of `out`, and an archive that breaks the rules of ZIP, such as one with two arrays of one
/// name.
pub fn write<W: Write + Seek>(out: W, arrays: &[(&str, Array<'_>)]) -> io::Result<()> {
    let streamed = arrays.iter().map(|(name, array)| StreamedArray {
        name,
        element: array.name,
        shape: &array.shape,
        bytes: array.bytes.len() as u64,
        fill: Box::new(|w| w.write_all(array.bytes)),
    });
    write_streamed(out, &streamed.collect::<Vec<_>>())
}

/// Writes all values of an array.
pub(crate) type Fill<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// An array that is written value by value.
pub(crate) struct StreamedArray<'a> {
    pub(crate) name: &'a str,
    /// The type of its values, as NPY calls it.
    pub(crate) element: &'static str,
    pub(crate) shape: &'a [usize],
    /// How many `fill` writes.
    pub(crate) bytes: u64,
    pub(crate) fill: Fill<'a>,
}

/// As [`write()`], in memory that does not grow with the arrays.
pub(crate) fn write_streamed<W: Write + Seek>(
    out: W,
    arrays: &[StreamedArray<'_>],
) -> io::Result<()> {
    let mut archive = ZipWriter::new(out);
    let written = write_arrays(&mut archive, arrays);
    if written.is_err() {
        // Dropped it would try to end the archive, and print that it cannot.
        std::mem::forget(archive);
        return written;
    }
    archive.finish().map_err(io::Error::from)?.flush()
}

fn write_arrays<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    arrays: &[StreamedArray<'_>],
) -> io::Result<()> {
    for StreamedArray { name, element, shape, bytes, fill } in arrays {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default()) // 1980, always
            .unix_permissions(0o644)
            .large_file(*bytes >= u64::from(u32::MAX) / 2);
        archive.start_file(format!("{name}{SUFFIX}"), options).map_err(io::Error::from)?;
        archive.write_all(&npy::header(element, shape))?;
        fill(archive)?;
    }
    Ok(())
}

pub(super) fn matches(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

pub(super) fn append<R: Read + Seek>(
    reader: R,
    len: u64,
    member: Option<&str>,
    rows: &mut Incoming<'_>,
) -> Result<()> {
    with_array(reader, len, member, |source| npy::append(source, rows))
}

/// Calls `run` with the bytes of an array.
pub(super) fn with_array<R: Read + Seek, T>(
    reader: R,
    len: u64,
    member: Option<&str>,
    run: impl FnOnce(Source<ZipFile<'_, R>>) -> Result<T>,
) -> Result<T> {
    let mut archive = ZipArchive::new(reader).map_err(|e| damaged(e, "open the archive"))?;
    let name = choose(&archive, member)?;
    let file = archive.by_name(&name).map_err(|e| damaged(e, "open the array"))?;
    let size = size(&file, len, Size::limited);
    run(Source::new(file, size))
}

const SUFFIX: &str = ".npy";

fn choose<R: Read + Seek>(archive: &ZipArchive<R>, member: Option<&str>) -> Result<String> {
    let readable = archive.file_names().filter_map(|name| name.ok());
    let names: Vec<_> = readable.filter(|name| name.ends_with(SUFFIX)).collect();
    match (member, &names[..]) {
        (None, [name]) => Ok(name.to_string()),
        (None, []) => Err(Error::new("the archive holds no array")
            .mismatch("a file that ends in .npy", format_args!("{} other files", archive.len()))
            .help("save the arrays with numpy.savez")),
        (None, _) => Err(Error::new("the archive holds several arrays")
            .mismatch("the name of one", list(&names))
            .help("name it after a #, as in file.npz#X")),
        (Some(member), _) => names
            .iter()
            .find(|name| *name == member || name.strip_suffix(SUFFIX) == Some(member))
            .map(|name| name.to_string())
            .ok_or_else(|| {
                Error::new(format!("the archive holds no array {member:?}"))
                    .mismatch("one of these", list(&names))
                    .help("name one of them after the #")
            }),
    }
}

fn list(names: &[Cow<'_, str>]) -> String {
    let shown = names.iter().take(20).map(|name| {
        let name = name.strip_suffix(SUFFIX).unwrap_or(name);
        name.chars().take(60).flat_map(char::escape_debug).collect::<String>()
    });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if names.len() > 20 {
        list.push_str(", …");
    }
    list
}

/// What the array can hold: neither the size nor the compressed size in the archive is believed
/// beyond the file.
fn size<R: Read>(file: &ZipFile<'_, R>, len: u64, expanded: impl Fn(u64) -> Size) -> Size {
    let stored = file.compressed_size().min(len);
    match file.compression() {
        CompressionMethod::Stored => Size::at_most(stored),
        _ => expanded(stored),
    }
}

fn damaged(e: zip::result::ZipError, doing: &str) -> Error {
    Error::new(format!("cannot {doing}"))
        .source(e)
        .help("the file is not a ZIP archive, cut off or damaged: write it again")
}
