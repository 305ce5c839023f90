//! Numbers and their shape, to be written.

use bytemuck::{NoUninit, cast_slice};

use crate::{Error, Result};

/// Numbers that an [`Array`] holds.
pub trait Number: NoUninit {
    /// As NPY calls the type, without the order of its bytes.
    const NAME: &str;
}

impl Number for f32 {
    const NAME: &str = "f4";
}

impl Number for u32 {
    const NAME: &str = "u4";
}

impl Number for u8 {
    const NAME: &str = "u1";
}

impl Number for i8 {
    const NAME: &str = "i1";
}

/// Numbers and their shape, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    pub(super) shape: Vec<usize>,
    /// [`Number::NAME`]
    pub(super) name: &'static str,
    /// The values in the order of bytes of this machine.
    pub(super) bytes: &'a [u8],
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
    pub fn new<T: Number>(shape: &[usize], values: &'a [T]) -> Result<Self> {
        let len = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        if len != Some(values.len()) || shape.len() > 32 {
            return Err(Error::new("the number of values does not fit the shape")
                .mismatch(format_args!("{shape:?}"), format_args!("{} values", values.len())));
        }
        Ok(Self { shape: shape.to_vec(), name: T::NAME, bytes: cast_slice(values) })
    }
}
