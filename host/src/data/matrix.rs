//! Samples as they lie in memory.

use crate::{Error, Result};

/// Samples as they lie in memory, row-major: `rows` samples of `cols` inputs each.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of samples, n.
    pub rows: usize,
    /// Number of inputs, d.
    pub cols: usize,
    /// `rows * cols` values.
    pub values: Values,
}

/// The values of a [`Matrix`]: bytes stay bytes, a quarter of the memory.
#[derive(Debug, PartialEq)]
pub enum Values {
    /// Finite 32-bit floats.
    F32(Vec<f32>),
    /// Bytes, such as pixels, standing for 0 to 255.
    U8(Vec<u8>),
}

impl Clone for Values {
    fn clone(&self) -> Self {
        fn copy<T: Copy>(values: &[T]) -> Vec<T> {
            let mut copy = Vec::with_capacity(values.len() + spare::<T>());
            copy.extend_from_slice(values);
            copy
        }
        match self {
            Self::F32(values) => Self::F32(copy(values)),
            Self::U8(values) => Self::U8(copy(values)),
        }
    }
}

impl Values {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::U8(v) => v.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the values take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(v) => size_of_val(&v[..]),
            Self::U8(v) => v.len(),
        }
    }

    /// The values as floats; those that are floats already are not copied.
    #[must_use]
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Self::F32(v) => v,
            Self::U8(v) => v.into_iter().map(f32::from).collect(),
        }
    }
}

impl Matrix {
    /// A matrix of `rows * cols` values, row-major.
    ///
    /// # Errors
    /// The number of values is another.
    pub fn new(rows: usize, cols: usize, values: Values) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::new("the number of values does not fit the shape")
                .mismatch(format_args!("{rows} × {cols}"), values.len()));
        }
        Ok(Self { rows, cols, values })
    }

    /// Whether the values are bytes, and not floats.
    #[must_use]
    pub const fn is_bytes(&self) -> bool {
        matches!(self.values, Values::U8(_))
    }

    /// The first rows, copied.
    ///
    /// # Errors
    /// There are fewer.
    pub(crate) fn first(&self, rows: usize) -> Result<Self> {
        let len = rows.saturating_mul(self.cols).min(self.values.len());
        let values = match &self.values {
            Values::F32(values) => Values::F32(values[..len].to_vec()),
            Values::U8(values) => Values::U8(values[..len].to_vec()),
        };
        Self::new(rows, self.cols, values)
    }

    /// The values of the only column.
    ///
    /// # Errors
    /// There are other columns.
    pub fn into_column(self) -> Result<Vec<f32>> {
        if self.cols != 1 {
            return Err(Error::new("labels must be one column")
                .mismatch("1 column", format_args!("{} columns", self.cols))
                .help(
                    "pass the file of labels, or name the column of the data that holds them with \
                    --target",
                ));
        }
        Ok(self.values.into_f32())
    }

    /// Takes a column, one of several, out of the matrix, in place.
    pub(crate) fn take_column(&mut self, column: usize) -> Result<Vec<f32>> {
        let cols = self.cols;
        if cols == 1 {
            return Err(Error::new("no inputs are left beside the target column")
                .mismatch("at least 2 columns", "1 column")
                .help("pass a table that also holds the inputs"));
        }
        self.cols -= 1;
        Ok(match &mut self.values {
            Values::F32(v) => remove_column(v, cols, column),
            Values::U8(v) => remove_column(v, cols, column).into_iter().map(f32::from).collect(),
        })
    }

    /// The rows times `scale`, with a last column of ones; bytes stay bytes where `scale` is 1.
    pub(crate) fn with_ones(&self, scale: f32) -> Result<Self> {
        fn ones<T, U>(values: &[T], cols: usize, one: U, value: impl Fn(&T) -> U) -> Vec<U>
        where
            U: Copy,
        {
            values.chunks(cols.max(1)).flat_map(|row| row.iter().map(&value).chain([one])).collect()
        }
        let values = match &self.values {
            Values::F32(values) => Values::F32(ones(values, self.cols, 1.0, |&x| scale * x)),
            Values::U8(values) if scale == 1.0 => Values::U8(ones(values, self.cols, 1, |&x| x)),
            Values::U8(values) => {
                Values::F32(ones(values, self.cols, 1.0, |&x| scale * f32::from(x)))
            }
        };
        Self::new(self.rows, self.cols + 1, values)
    }

    /// Brings columns of floats to magnitudes below 1, each by a power of two, which rounds nothing
    /// as long as its quotients are normal floats; the powers. None, and nothing is scaled, for
    /// bytes, which are all of one size.
    pub(crate) fn scale_columns(&mut self) -> Vec<f32> {
        let Values::F32(values) = &mut self.values else { return Vec::new() };
        let mut scales = vec![0.0_f32; self.cols];
        for row in values.chunks_exact(self.cols.max(1)) {
            scales.iter_mut().zip(row).for_each(|(scale, x)| *scale = scale.max(x.abs()));
        }
        scales.iter_mut().for_each(|scale| *scale = 0.5 * tamis::base::math::unit_scale(&[*scale]));
        for row in values.chunks_exact_mut(self.cols.max(1)) {
            row.iter_mut().zip(&scales).for_each(|(x, scale)| *x *= scale);
        }
        scales
    }

    /// The values as floats, to append to; bytes become floats.
    fn floats(&mut self) -> &mut Vec<f32> {
        if let Values::U8(bytes) = &mut self.values {
            let bytes = std::mem::take(bytes);
            self.values = Values::F32(bytes.into_iter().map(f32::from).collect());
        }
        let Values::F32(values) = &mut self.values else { unreachable!("bytes are floats now") };
        values
    }
}

/// Rows of files on their way into a matrix: all of them, or those that are chosen, in the order of
/// the files.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) matrix: Matrix,
    /// Rows that came so far, chosen or not.
    pub(super) seen: usize,
    /// Whether a row is chosen, by its number among all that come; those beyond are not.
    pub(super) keep: Option<&'a [bool]>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(keep: Option<&'a [bool]>) -> Self {
        let matrix = Matrix { rows: 0, cols: 0, values: Values::U8(Vec::new()) };
        Self { matrix, seen: 0, keep }
    }

    /// Whether the row `ahead` rows after those seen is chosen.
    pub(super) fn keeps(&self, ahead: usize) -> bool {
        self.keep.is_none_or(|keep| keep.get(self.seen + ahead).copied().unwrap_or(false))
    }

    pub(super) fn kept(&self, rows: usize) -> usize {
        (0..rows).filter(|&ahead| self.keeps(ahead)).count()
    }

    pub(super) fn push(&mut self, row: &[f32]) -> Result<()> {
        if self.keeps(0) {
            let values = self.matrix.floats();
            values.try_reserve(row.len()).map_err(|_| no_room(1, row.len()))?;
            values.extend_from_slice(row);
            self.matrix.rows += 1;
        }
        self.seen += 1;
        Ok(())
    }

    /// Announces `rows` more rows of `cols` values, which are bytes or floats: checks that they
    /// fit, turns bytes into floats where the two differ, and reserves exactly what is needed.
    pub(super) fn announce(&mut self, rows: usize, cols: usize, bytes: bool) -> Result<()> {
        if self.seen > 0 && self.matrix.cols != cols {
            return Err(Error::new("the files have different numbers of columns")
                .expected(format_args!("{} columns, as in the files before", self.matrix.cols))
                .got(format_args!("{cols} columns"))
                .help("join only files with the same columns, in the same order"));
        }
        self.matrix.cols = cols;
        if !bytes {
            self.matrix.floats();
        }
        let kept = self.kept(rows);
        let more = kept.saturating_mul(cols);
        let reserved = match &mut self.matrix.values {
            Values::F32(v) => v.try_reserve_exact(more.saturating_add(spare::<f32>())),
            Values::U8(v) => v.try_reserve_exact(more.saturating_add(spare::<u8>())),
        };
        reserved.map_err(|_| no_room(kept, cols))
    }

    pub(super) fn shrink(&mut self) {
        match &mut self.matrix.values {
            Values::F32(v) => shrink(v),
            Values::U8(v) => shrink(v),
        }
    }
}

pub(crate) const LINE: usize = 64;

/// Values that are left free behind the others: the operator moves all of them to where a line
/// begins.
pub(crate) const fn spare<T>() -> usize {
    LINE / size_of::<T>()
}

/// Zeros for `rows × cols` values, with the room of [`spare`]; none where they do not fit in
/// memory.
pub(super) fn zeros<T: Clone + Default>(rows: usize, cols: usize) -> Option<Vec<T>> {
    let (len, mut out) = (rows.checked_mul(cols)?, Vec::new());
    out.try_reserve_exact(len.saturating_add(spare::<T>())).ok()?;
    out.resize(len, T::default());
    Some(out)
}

/// Gives back what is reserved behind the values, but for [`spare`].
pub(crate) fn shrink<T>(values: &mut Vec<T>) {
    values.shrink_to(values.len() + spare::<T>());
}

fn no_room(rows: usize, cols: usize) -> Error {
    Error::new("not enough memory for the data")
        .expected(format_args!("room for {rows} × {cols} more values"))
        .got("an allocation that the system refused")
        .help("pass fewer rows, or use a machine with more memory")
}

/// Takes one of `cols` columns out of row-major `values`, in place; gives its memory back.
fn remove_column<T: Copy>(values: &mut Vec<T>, cols: usize, column: usize) -> Vec<T> {
    let taken = values.chunks_exact(cols).map(|row| row[column]).collect();
    let mut at = 0;
    values.retain(|_| {
        let keep = at != column;
        at = (at + 1) % cols;
        keep
    });
    shrink(values);
    taken
}
