//! Numbers and their shape, to be written.

use crate::{Error, Result};

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
    pub(super) shape: Vec<usize>,
    pub(super) values: Numbers<'a>,
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
                .mismatch(format_args!("{shape:?}"), format_args!("{} values", values.len())));
        }
        Ok(Self { shape: shape.to_vec(), values })
    }

    pub(super) fn bytes(&self) -> u64 {
        let size = match self.values {
            Numbers::F32(_) | Numbers::U32(_) => 4,
            Numbers::U8(_) | Numbers::I8(_) => 1,
        };
        self.values.len() as u64 * size
    }
}
