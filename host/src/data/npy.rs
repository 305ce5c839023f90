//! NPY, numpy's format for one array: magic, version, a header in Python's syntax, the values.
//!
//! Types `f2 f4 f8 u1 u2 u4 u8 i1 i2 i4 i8 b1`, either byte order, C and Fortran order. The header is
//! read here and not with a crate: those that parse it as general Python recurse at every bracket,
//! allocate the length it claims and multiply the shape unchecked, which hostile bytes turn into a
//! crash.

use std::io::{self, Read, Write};

use super::element::{ELEMENTS, Layout};
use super::matrix::Incoming;
use super::{Array, Matrix, Source};
use crate::{Error, Result};

/// Reads an NPY file: one row per index of the first axis, the others flattened; a single axis is
/// one column.
///
/// # Errors
/// Not an NPY file, a type that is not a number, no values, too few or too many bytes, a value that
/// is not finite.
///
/// ```
/// use tamis_host::data::{Array, Matrix, Source, Values, npy};
/// let mut file = Vec::new();
/// npy::write(&mut file, &Array::new(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap()).unwrap();
/// let matrix = npy::read(Source::bytes(&file)).unwrap();
/// assert_eq!(matrix, Matrix::new(2, 2, Values::F32(vec![1.0, 2.0, 3.0, 4.0])).unwrap());
/// ```
pub fn read<R: Read>(source: Source<R>) -> Result<Matrix> {
    let mut rows = Incoming::new(None);
    append(source, &mut rows)?;
    Ok(rows.matrix)
}

/// Writes an array as NPY version 1.0, C order; the same array always gives the same bytes.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, array: &Array<'_>) -> io::Result<()> {
    out.write_all(&header(array.name, &array.shape))?;
    out.write_all(array.bytes)
}

pub(super) fn matches(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// An NPY file whose header is read, and whose values are not.
pub(crate) struct ArrayReader<R> {
    layout: Layout,
    source: Source<R>,
}

impl<R: Read> ArrayReader<R> {
    /// Reads the header.
    pub(crate) fn open(mut source: Source<R>) -> Result<Self> {
        Ok(Self { layout: layout(&header_text(&mut source)?)?, source })
    }

    pub(crate) fn dims(&self) -> &[u64] {
        &self.layout.dims
    }

    /// Reads all values and calls `each` with those that are not 0 and their places, the last axis
    /// fastest, in the order of the file; memory is that of one buffer.
    pub(crate) fn nonzeros(self, each: impl FnMut(usize, f32) -> Result<()>) -> Result<()> {
        self.layout.nonzeros(self.source, each)
    }
}

/// Reads an NPY file whose values take at most `most` bytes of memory, and its axes.
pub(super) fn read_shaped<R: Read>(mut source: Source<R>, most: u64) -> Result<(Vec<u64>, Matrix)> {
    let mut layout = layout(&header_text(&mut source)?)?;
    let values = layout.dims.iter().try_fold(4_u64, |bytes, &dim| bytes.checked_mul(dim));
    if values.is_none_or(|bytes| bytes > most) {
        return Err(Error::new("the array is too large")
            .expected(format_args!("at most {most} bytes of values, as 32-bit floats"))
            .got(format_args!("shape {:?}", &layout.dims[..layout.dims.len().min(8)]))
            .help("save only the weights that are wanted"));
    }
    // A single number is read as a list of one.
    let dims = layout.dims.clone();
    if dims.is_empty() {
        layout.dims.push(1);
    }
    let mut rows = Incoming::new(None);
    layout.append(source, &mut rows)?;
    Ok((dims, rows.matrix))
}

pub(super) fn append<R: Read>(mut source: Source<R>, rows: &mut Incoming<'_>) -> Result<()> {
    of_header(&mut source)?.append(source, rows)
}

/// The header.
pub(super) fn of_header<R: Read>(source: &mut Source<R>) -> Result<Layout> {
    layout(&header_text(source)?)
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header taken, in bytes; numpy itself writes a few hundred at most.
const HEADER_LIMIT: u32 = 1 << 16;

fn header_text<R: Read>(source: &mut Source<R>) -> Result<String> {
    const NAME: &str = "the NPY header";
    let magic: [u8; 6] = source.array(NAME)?;
    if &magic != MAGIC {
        return Err(Error::new("not an NPY file")
            .mismatch("magic \\x93NUMPY", magic.escape_ascii())
            .help("pass a file in idx, NPY, NPZ or CSV format"));
    }
    let [major, minor] = source.array(NAME)?;
    let len = match major {
        1 => u32::from(u16::from_le_bytes(source.array(NAME)?)),
        2 | 3 => u32::from_le_bytes(source.array(NAME)?),
        _ => {
            return Err(Error::new("the NPY version is not supported")
                .mismatch("1.0, 2.0 or 3.0", format_args!("{major}.{minor}"))
                .help("save the array again with numpy.save"));
        }
    };
    if len > HEADER_LIMIT {
        return Err(Error::new("the NPY header is too long")
            .mismatch(format_args!("at most {HEADER_LIMIT} bytes"), format_args!("{len} bytes"))
            .help("the header is damaged: save the array again with numpy.save"));
    }
    let mut text = vec![0; len as usize];
    let got = source.fill(&mut text)?;
    if got < text.len() {
        return Err(Error::new("the file ends inside the NPY header")
            .mismatch(format_args!("{len} bytes"), format_args!("{got} bytes"))
            .help("the file is cut off or damaged: copy or download it again"));
    }
    String::from_utf8(text).map_err(|_| malformed("text in UTF-8", "other bytes"))
}

/// What a header says, such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn layout(text: &str) -> Result<Layout> {
    let (mut descr, mut fortran, mut dims) = (None, None, None);
    let mut cursor = Cursor { rest: text };
    cursor.list('{', '}', |cursor| {
        let key = cursor.string()?;
        cursor.expect(':')?;
        match key {
            "descr" if cursor.at('[') => return Err(unsupported("a structured array")),
            "descr" => descr = Some(cursor.string()?),
            "fortran_order" => match cursor.word(char::is_alphabetic) {
                word @ ("True" | "False") => fortran = Some(word == "True"),
                other => return Err(malformed("True or False", other)),
            },
            "shape" => {
                let dims = dims.insert(Vec::new());
                cursor.list('(', ')', |cursor| {
                    let digits = cursor.word(|c| c.is_ascii_digit());
                    cursor.take('L'); // Python 2 marked long integers
                    dims.push(digits.parse().map_err(|_| malformed("an axis length", digits))?);
                    Ok(())
                })?;
            }
            other => return Err(malformed("descr, fortran_order and shape", other)),
        }
        Ok(())
    })?;
    if !cursor.rest.trim().is_empty() {
        return Err(malformed("the end of the header", cursor.rest.trim()));
    }
    let missing = |key: &str| malformed(key, "a header without it");
    let descr = descr.ok_or_else(|| missing("descr"))?;
    let (element, big_endian) = element(descr).ok_or_else(|| unsupported(descr))?;
    let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
    Ok(Layout { element, big_endian, fortran, dims: dims.ok_or_else(|| missing("shape"))? })
}

/// The type and byte order that a description such as `<f4` names.
fn element(descr: &str) -> Option<(&'static str, bool)> {
    let (order, kind) = descr.split_at_checked(1)?;
    let is_order = ["<", ">", "|", "="].contains(&order);
    let element = ELEMENTS.into_iter().find(|own| is_order && *own == kind)?;
    Some((element, order == ">"))
}

/// Reads tokens; what it does not know is an error, so nothing nests and nothing recurses.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn at(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(token)
    }

    fn take(&mut self, token: char) -> bool {
        let there = self.at(token);
        if there {
            self.rest = &self.rest[token.len_utf8()..];
        }
        there
    }

    fn expect(&mut self, token: char) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(malformed(token, self.rest)) }
    }

    /// The longest start of the rest whose characters all satisfy `of`.
    fn word(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !of(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.at('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (string, rest) =
            self.rest.split_once(quote).ok_or_else(|| malformed("a closed string", self.rest))?;
        self.rest = rest;
        Ok(string)
    }

    /// What stands between two brackets, parted by commas.
    fn list(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.expect(open)?;
        while !self.take(close) {
            item(self)?;
            if !self.take(',') {
                return self.expect(close);
            }
        }
        Ok(())
    }
}

fn malformed(expected: impl std::fmt::Display, got: impl std::fmt::Display) -> Error {
    let got: String = got.to_string().chars().take(40).collect();
    Error::new("the NPY header is malformed")
        .mismatch(expected, format_args!("{got:?}"))
        .help("save the array again with numpy.save")
}

fn unsupported(descr: &str) -> Error {
    let descr: String = descr.chars().take(40).collect();
    Error::new("the values of the array are not of a supported type")
        .mismatch("f2, f4, f8, u1 to u8, i1 to i8 or b1", descr.escape_debug())
        .help("convert it in numpy: array.astype('float32')")
}

/// Everything before the values, padded to a multiple of 64 bytes.
pub(super) fn header(element: &str, shape: &[usize]) -> Vec<u8> {
    let order = match element {
        "u1" | "i1" => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let shape = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text =
        format!("{{'descr': '{order}{element}', 'fortran_order': False, 'shape': ({shape}), }}");
    let unpadded = MAGIC.len() + 2 + 2 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    // `Array` has at most 32 axes.
    let len = (text.len() as u16).to_le_bytes();
    [&MAGIC[..], &[1, 0], &len, text.as_bytes()].concat()
}
