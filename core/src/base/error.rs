//! One flat error for the whole crate: what failed, what was needed and what was there.

use core::convert::Infallible;
use core::fmt;

/// `Result` with this crate's [`Error`]; `S` is the error of the data source (none for data in
/// memory).
pub type Result<T, S = Infallible> = core::result::Result<T, Error<S>>;

/// Why a call could not be carried out; `S` is what reading samples may fail with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error<S = Infallible> {
    /// A buffer or slice does not have the length that the call needs.
    Length {
        /// Which argument.
        what: &'static str,
        /// The length needed.
        expected: usize,
        /// The length given.
        got: usize,
    },
    /// The caller's memory is smaller than the budget; both in bytes.
    Budget {
        /// Bytes that the chosen dimensions need.
        needed: usize,
        /// Bytes given.
        got: usize,
    },
    /// A count or an index lies outside what the dimensions allow.
    Range {
        /// Which quantity.
        what: &'static str,
        /// The smallest value allowed.
        min: usize,
        /// The largest value allowed.
        max: usize,
        /// The value given.
        got: usize,
    },
    /// Indices must rise strictly.
    Unsorted {
        /// Position of the first index that is not above the one before it.
        at: usize,
    },
    /// A NaN or an infinity where a finite number is needed.
    NotFinite {
        /// Which quantity.
        what: &'static str,
        /// Position of the first such value.
        at: usize,
    },
    /// The iteration left the finite numbers; the step size is too large for this data.
    Diverged {
        /// The step, from 0, at which it happened.
        step: usize,
    },
    /// A model of a later version of the format than this program knows.
    Version {
        /// The latest version that this program reads.
        reads: u16,
        /// The version of the model.
        got: u16,
    },
    /// A sound model with something in it that only a later program knows.
    Newer {
        /// What it is.
        what: &'static str,
        /// Byte offset at which it stands.
        at: usize,
        /// Its number.
        got: u32,
    },
    /// A sound model with something in it that earlier programs wrote and this one does not read.
    Removed {
        /// What it is.
        what: &'static str,
        /// Byte offset at which it stands.
        at: usize,
        /// Its number.
        got: u32,
    },
    /// Bytes that are no model, or a damaged one.
    Format {
        /// What is wrong.
        what: &'static str,
        /// Byte offset at which it was seen.
        at: usize,
        /// What should stand there.
        expected: u32,
        /// What stands there.
        got: u32,
    },
    /// The operator was asked to end before the call was done; what it has written is of no use.
    Stopped,
    /// The data source failed.
    Source(S),
}

impl<S> Error<S> {
    /// The same error for callers whose data source cannot fail; that of the source where it is one.
    ///
    /// # Errors
    /// The error of the data source.
    pub fn narrow(self) -> core::result::Result<Error, S> {
        Ok(match self {
            Self::Length { what, expected, got } => Error::Length { what, expected, got },
            Self::Budget { needed, got } => Error::Budget { needed, got },
            Self::Range { what, min, max, got } => Error::Range { what, min, max, got },
            Self::Unsorted { at } => Error::Unsorted { at },
            Self::NotFinite { what, at } => Error::NotFinite { what, at },
            Self::Diverged { step } => Error::Diverged { step },
            Self::Version { reads, got } => Error::Version { reads, got },
            Self::Newer { what, at, got } => Error::Newer { what, at, got },
            Self::Removed { what, at, got } => Error::Removed { what, at, got },
            Self::Format { what, at, expected, got } => Error::Format { what, at, expected, got },
            Self::Stopped => Error::Stopped,
            Self::Source(source) => return Err(source),
        })
    }
}

impl Error {
    /// The same error for callers whose data source can fail.
    pub fn widen<S>(self) -> Error<S> {
        match self {
            Error::Length { what, expected, got } => Error::Length { what, expected, got },
            Error::Budget { needed, got } => Error::Budget { needed, got },
            Error::Range { what, min, max, got } => Error::Range { what, min, max, got },
            Error::Unsorted { at } => Error::Unsorted { at },
            Error::NotFinite { what, at } => Error::NotFinite { what, at },
            Error::Diverged { step } => Error::Diverged { step },
            Error::Version { reads, got } => Error::Version { reads, got },
            Error::Newer { what, at, got } => Error::Newer { what, at, got },
            Error::Removed { what, at, got } => Error::Removed { what, at, got },
            Error::Format { what, at, expected, got } => Error::Format { what, at, expected, got },
            Error::Stopped => Error::Stopped,
            Error::Source(never) => match never {},
        }
    }

    /// What it is about, without its numbers: for a panic of the compiler, which cannot write them.
    ///
    /// ```
    /// use tamis::Error;
    /// assert_eq!(Error::Unsorted { at: 7 }.what(), "indices: expected strictly rising");
    /// ```
    pub const fn what(&self) -> &'static str {
        match self {
            Error::Length { what, .. }
            | Error::Range { what, .. }
            | Error::NotFinite { what, .. }
            | Error::Newer { what, .. }
            | Error::Removed { what, .. }
            | Error::Format { what, .. } => what,
            Error::Budget { .. } => "memory budget",
            Error::Unsorted { .. } => "indices: expected strictly rising",
            Error::Diverged { .. } => "diverged",
            Error::Version { .. } => "format version of the model: update the program",
            Error::Stopped => "ended on request",
            Error::Source(never) => match *never {},
        }
    }
}

impl<S: fmt::Display> fmt::Display for Error<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Error::*;
        match self {
            Length { what, expected, got } => {
                write!(f, "{what}: expected length {expected}, got {got}")
            }
            Budget { needed, got } => write!(f, "memory budget: needed {needed} bytes, got {got}"),
            Range { what, min, max, got } => {
                write!(f, "{what}: expected {min} to {max}, got {got}")
            }
            Unsorted { at } => {
                write!(f, "indices: expected strictly rising, position {at} is not")
            }
            NotFinite { what, at } => {
                write!(f, "{what}: expected finite numbers, position {at} is not")
            }
            Diverged { step } => write!(
                f,
                "diverged at step {step}: choose a smaller step size or the normalised rule, or scale inputs and labels to about 1"
            ),
            Version { reads, got } => write!(
                f,
                "the model has format version {got}, this program reads {reads}: update the program"
            ),
            Newer { what, at, got } => {
                write!(f, "{what} {got} at byte {at} is of a later program: update this one")
            }
            Removed { what, at, got } => write!(
                f,
                "{what} {got} at byte {at} is of an earlier program and no longer read: quantize the model of floats again, or export it in blocks with the program that wrote it"
            ),
            Format { what, at, expected, got } => {
                write!(f, "{what} at byte {at}: expected {expected:#x}, got {got:#x}")
            }
            Stopped => f.write_str("ended on request"),
            Source(source) => write!(f, "the data source failed: {source}"),
        }
    }
}

impl<S: fmt::Debug + fmt::Display> core::error::Error for Error<S> {}

/// `?` where the compiler may run the function.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use tri;

/// Does what a run that ends needs all the same: if the operator stops in it, that is noted, and it
/// is done once more.
pub(crate) fn insist<R, T, S>(
    run: &mut R,
    note: impl FnOnce(&mut R),
    mut work: impl FnMut(&mut R) -> Result<T, S>,
) -> Result<T, S> {
    match work(run) {
        Err(Error::Stopped) => {
            note(run);
            work(run)
        }
        done => done,
    }
}

/// Checks that `what` has exactly `expected` elements.
///
/// # Errors
/// [`Error::Length`] with both lengths if it has not.
pub const fn length<S>(what: &'static str, got: usize, expected: usize) -> Result<(), S> {
    if got == expected { Ok(()) } else { Err(Error::Length { what, expected, got }) }
}

/// Checks that `got` lies in `min..=max`.
///
/// # Errors
/// [`Error::Range`] with the bounds if it does not.
pub const fn range<S>(what: &'static str, got: usize, min: usize, max: usize) -> Result<(), S> {
    if min <= got && got <= max { Ok(()) } else { Err(Error::Range { what, min, max, got }) }
}

/// Checks that every value is finite.
///
/// # Errors
/// [`Error::NotFinite`] with the position of the first value that is not.
pub const fn finite<S>(what: &'static str, values: &[f32]) -> Result<(), S> {
    let mut rest = values;
    // By the bits: a target without a float unit needs no library to check a model.
    while let [value, behind @ ..] = rest {
        if value.to_bits() << 1 >= f32::INFINITY.to_bits() << 1 {
            return Err(Error::NotFinite { what, at: values.len() - rest.len() });
        }
        rest = behind;
    }
    Ok(())
}

/// Checks that what stands at byte `at` is what should.
pub(crate) const fn expect<S>(
    what: &'static str,
    at: usize,
    expected: u32,
    got: u32,
) -> Result<(), S> {
    if expected == got { Ok(()) } else { Err(Error::Format { what, at, expected, got }) }
}
