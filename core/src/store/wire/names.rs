//! The names of a model: its classes, and the columns of a table that become its inputs.
//!
//! The section is optional and nothing of a prediction needs it, so [`View::parse`](super::View::parse)
//! passes it by; [`Names`] reads it where it lies. Texts are UTF-8 with their length before them.

use core::str;

use super::reader::Reader;
use super::{OPTIONAL, Stored};
use crate::base::error::{expect, finite, range, tri};
use crate::{Error, Result};

/// Tag of the section of names.
pub const TAG_NAMES: u16 = 14;

/// The most inputs that the columns may become, and the most classes: those of a layer.
const MOST: usize = crate::infer::model::MAX_INPUTS;

/// Column kinds: a number, text, and text with an input for all categories without one.
const NUMBER: usize = 0;
const TEXT: usize = 1;
const TEXT_AND_OTHERS: usize = 3;

/// The names section of a model, checked.
///
/// ```
/// use tamis::store::wire::Names;
///
/// // One class "a", one column "x" of numbers, 0.5 where a cell is missing, for the target "y".
/// let payload = [
///     &[1, 0, 0, 0, 1, 0, 0, 0][..], &[1, 0, 0, 0, b'y', 0, 0, 0], &[1, 0, 0, 0, b'a', 0, 0, 0],
///     &[0, 0, 0, 0], &[1, 0, 0, 0, b'x', 0, 0, 0], &0.5_f32.to_le_bytes(),
/// ].concat();
/// let names = Names::parse(&payload)?;
/// assert_eq!((names.target(), names.class(0), names.class(1)), ("y", Some("a"), None));
/// assert_eq!(names.columns().next().map(|column| column.name), Some("x"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Names<'a> {
    target: &'a str,
    classes: Texts<'a>,
    columns: Columns<'a>,
}

/// A column of the table that a model was trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InputColumn<'a> {
    /// Its name; empty where the table had none.
    pub name: &'a str,
    /// The number in place of a missing cell; none of a column of text.
    pub fill: Option<f32>,
    /// The categories of text, an input each, which is 1 for its own; an empty one is that of
    /// missing cells. None of numbers, which are an input.
    pub categories: Texts<'a>,
    /// Whether one more input is 1 for all other categories.
    pub others: bool,
}

impl InputColumn<'_> {
    /// Inputs of the network that the column becomes.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        if self.fill.is_some() { 1 } else { self.categories.len + self.others as usize }
    }
}

/// Texts one after the other, checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Texts<'a> {
    len: usize,
    left: Reader<'a>,
}

/// Columns one after the other, checked.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Columns<'a> {
    len: usize,
    left: Reader<'a>,
}

impl<'a> Names<'a> {
    /// Reads and checks the payload of the section, all of it.
    ///
    /// # Errors
    /// [`Error::Format`] with the byte offset within the payload where it is cut off, holds what is
    /// no UTF-8, or another kind of column; [`Error::Range`] for more inputs or classes than a
    /// model can have; [`Error::NotFinite`] for a fill that is no number.
    pub const fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { bytes: payload, at: 0 };
        let [classes, columns] = tri!(reader.words());
        tri!(range("classes of a model", classes, 0, MOST));
        tri!(range("columns of a table", columns, 0, MOST));
        let target = tri!(text(&mut reader));
        let classes = tri!(Texts::read(&mut reader, classes));
        let columns = Columns { len: columns, left: reader };
        let (mut inputs, mut left) = (0_usize, columns);
        while let Some(column) = tri!(left.read()) {
            inputs = inputs.saturating_add(column.inputs());
        }
        tri!(range("inputs of the columns", inputs, 0, MOST));
        tri!(left.left.end("end of the names"));
        Ok(Self { target, classes, columns })
    }

    /// The section of names among sections that may be skipped, such as [`Stored::extra`], if there
    /// is one.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub const fn find(sections: &'a [u8]) -> Result<Option<Self>> {
        let mut reader = Reader { bytes: sections, at: 0 };
        while !reader.is_empty() {
            let (_, tag, optional, payload) = tri!(reader.section());
            if tag == TAG_NAMES {
                tri!(expect("flags of the names", 2, OPTIONAL as u32, optional as u32));
                return match Self::parse(payload.rest()) {
                    Ok(names) => Ok(Some(names)),
                    Err(error) => Err(error),
                };
            }
        }
        Ok(None)
    }

    /// The name of what the model predicts; empty where the table had none.
    #[must_use]
    pub const fn target(&self) -> &'a str {
        self.target
    }

    /// The names of the classes, in the order of the outputs; of a binary model those of 0 and 1.
    #[must_use]
    pub const fn classes(&self) -> Texts<'a> {
        self.classes
    }

    /// The name of a class, if it has one.
    #[must_use]
    pub fn class(&self, class: usize) -> Option<&'a str> {
        self.classes.into_iter().nth(class)
    }

    /// The columns that become inputs, in the order of the inputs.
    pub fn columns(&self) -> impl Iterator<Item = InputColumn<'a>> + use<'a> {
        let mut left = self.columns;
        // Checked, so there is no error.
        core::iter::from_fn(move || left.read().ok().flatten())
    }
}

impl<'a> Texts<'a> {
    const NONE: Self = Self { len: 0, left: Reader { bytes: &[], at: 0 } };

    /// Takes so many texts from the reader.
    const fn read(reader: &mut Reader<'a>, len: usize) -> Result<Self> {
        let texts = Self { len, left: *reader };
        let mut left = len;
        while left > 0 {
            tri!(text(reader));
            left -= 1;
        }
        Ok(texts)
    }

    /// The first `N` of them; empty texts behind the last.
    pub(super) const fn list<const N: usize>(mut self) -> Result<[&'a str; N]> {
        let (mut list, mut k) = ([""; N], 0);
        let mut left = list.as_mut_slice();
        while let [own, others @ ..] = left {
            if k >= self.len {
                break;
            }
            *own = tri!(text(&mut self.left));
            left = others;
            k += 1;
        }
        Ok(list)
    }

    /// How many are left.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.len = self.len.checked_sub(1)?;
        text(&mut self.left).ok()
    }
}

impl<'a> Columns<'a> {
    /// The next column.
    const fn read(&mut self) -> Result<Option<InputColumn<'a>>> {
        let Some(len) = self.len.checked_sub(1) else { return Ok(None) };
        self.len = len;
        let reader = &mut self.left;
        let at = reader.at;
        let [kind] = tri!(reader.words());
        let name = tri!(text(reader));
        if kind == NUMBER {
            let fill = f32::from_bits(tri!(reader.u32()));
            tri!(finite("fill of a missing cell", &[fill]));
            let (categories, others) = (Texts::NONE, false);
            return Ok(Some(InputColumn { name, fill: Some(fill), categories, others }));
        }
        if kind != TEXT && kind != TEXT_AND_OTHERS {
            return Err(Error::Newer { what: "kind of a column", at, got: kind as u32 });
        }
        let [count] = tri!(reader.words());
        tri!(range("categories of a column", count, 0, MOST));
        let categories = tri!(Texts::read(reader, count));
        let others = kind == TEXT_AND_OTHERS;
        Ok(Some(InputColumn { name, fill: None, categories, others }))
    }
}

/// The next text, with its length before it.
const fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str> {
    let at = reader.at;
    let [len] = tri!(reader.words());
    match str::from_utf8(tri!(reader.array(len))) {
        Ok(text) => Ok(text),
        Err(_) => Err(Error::Format { what: "text in UTF-8", at, expected: 1, got: 0 }),
    }
}

impl<'a, M> Stored<'a, M> {
    /// The names of classes and columns, where the file has them.
    ///
    /// ```
    /// use tamis::store::wire::View;
    /// # static BYTES: &[u8] =
    /// #     tamis::include_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_golden.tamis"));
    /// let view = View::parse(BYTES)?;
    /// let class: Option<&'static str> = view.names()?.and_then(|names| names.class(1));
    /// assert_eq!(class, None); // this model has none
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Names::parse`]; the model itself is valid.
    pub fn names(&self) -> Result<Option<Names<'a>>> {
        Names::find(self.extra)
    }
}
