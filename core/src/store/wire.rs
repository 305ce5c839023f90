//! Models as bytes: little-endian, versioned, checksummed, and used where they lie.
//!
//! `docs/format.md` is the specification. [`View::parse`] checks all of a file, down to padding and
//! the CRC-32; what it gives borrows the bytes. [`View::encode`] writes a chain of layers and
//! [`encode`] what the trainer holds. What was parsed encodes to the same bytes. [`QuantisedView`]
//! does the same for models of integers. [`embed_model!`](crate::embed_model) and
//! [`embed_quantised!`](crate::embed_quantised) have the compiler read a file.
//!
//! ```
//! use tamis::network::{gates::Signs, net::Network, weights::Weights};
//! use tamis::store::wire::{OwnedModel, Task, View};
//!
//! // Two neurons of three have weights; the entry of neuron i on input j has the index i * inputs + j.
//! let trained = Network::signed(Weights::new(3, 3, &[0, 2, 4], &[1.0, -0.5, -2.0])?, Signs::Balanced);
//! let owned: OwnedModel<108> = OwnedModel::from_trained(trained, 3, Some(Task::Regression))?;
//! let view = View::parse(owned.as_bytes())?;
//! assert_eq!(view.task(), Some(Task::Regression));
//! let mut f = [0.0];
//! view.model().predict(&[3.0, 0.25, 1.0], &mut [], &mut f)?;
//! assert_eq!(f, [2.0]);
//! # Ok::<(), tamis::Error>(())
//! ```

mod aligned;
mod cost;
#[doc(hidden)]
pub mod embed;
mod head;
mod integers;
mod layer;
mod mask;
mod names;
mod read;
mod reader;
mod recode;
#[cfg(feature = "embedded-storage")]
mod sections;
mod task;
mod trained;
mod write;

#[cfg(feature = "embedded-storage")]
pub(crate) use {head::Head, sections::PIECE, sections::Section, sections::Sections};

pub use aligned::{Aligned, OwnedModel};
pub use cost::Cost;
pub use integers::layer_len;
pub use mask::{MaskView, encode_mask, mask_len};
pub use names::{InputColumn, Names, TAG_NAMES, Texts};
pub use read::{QuantisedView, Stored, View};
pub use reader::encoded_len;
pub use recode::Choice;
pub use task::Task;
pub use trained::{encode, max_len, trained_len};

use crc::{CRC_32_ISO_HDLC, Crc};

#[cfg(not(target_endian = "little"))]
compile_error!("tamis reads models in place, which needs a little-endian target");

/// The version that is written, and the only one that is read; files of later ones are
/// [`crate::Error::Version`].
pub const VERSION: u16 = 1;

/// The first four bytes of a model, as a little-endian number.
pub const MAGIC: u32 = u32::from_le_bytes([0x89, b'T', b'A', b'M']);

/// Bytes of the header.
pub(crate) const HEADER: usize = 24;
/// Where the checksum lies; it does not cover itself.
pub(crate) const CHECKSUM: core::ops::Range<usize> = 12..16;
/// Bytes of the tag, the flags and the length of a section.
const SECTION: usize = 8;
/// Bytes of a sparse layer before its counts.
const CSR_HEADER: usize = 20;
/// Bytes of a sum before its signs.
const SUM_HEADER: usize = 4;

/// Bytes of a layer of integers before its factors.
const INT_HEADER: usize = 24;
/// Bytes of the scales, their section header included.
const SCALES: usize = SECTION + 16;

/// Tag of a sparse layer with `f32` values and `u16` columns.
pub(crate) const TAG_CSR: u16 = 1;
/// Tag of a scalar sum with signs.
pub(crate) const TAG_SUM: u16 = 2;
/// Tag of the task.
const TAG_TASK: u16 = 3;
/// Tags of the layers of integers, in the order of `quantised::Weights`. 6, 7 and 9 were encodings
/// and are reserved.
const TAG_DENSE: u16 = 4;
const TAG_MASK: u16 = 5;
const TAG_BLOCKS: u16 = 8;
const TAG_LAST_INTEGERS: u16 = 9;
/// Tag of what the integers of a model stand for.
const TAG_SCALES: u16 = 10;
/// Tag of a sparse layer with `f32` values in windows of columns.
const TAG_WINDOWS: u16 = 11;
/// Tag of a mask: widths, and a bit for each weight.
const TAG_PATTERN: u16 = 12;
/// Tag of the scales of the inputs of a model of integers, one for each.
pub(crate) const TAG_COLUMNS: u16 = 13;
/// Flag of a section that a reader may skip.
const OPTIONAL: u16 = 1;

/// A device checks a model once, at start, in about 47 instructions a byte on a Cortex-M4: 1 KiB of
/// flash for a table is worth more.
#[cfg(target_os = "none")]
pub(crate) type Table = crc::Table<0>;
#[cfg(not(target_os = "none"))]
pub(crate) type Table = crc::Table<16>;

/// One copy of the table where there is one.
pub(crate) static CRC: Crc<u32, Table> = Crc::<u32, Table>::new(&CRC_32_ISO_HDLC);

/// The CRC-32 that the header of these bytes must hold; for tools that make or mend files.
#[must_use]
pub const fn checksum(bytes: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    match bytes.split_at_checked(CHECKSUM.start) {
        Some((head, behind)) => {
            digest.update(head);
            if let Some((_, rest)) = behind.split_at_checked(CHECKSUM.end - CHECKSUM.start) {
                digest.update(rest);
            }
        }
        None => digest.update(bytes),
    }
    digest.finalize()
}

/// The bytes that are missing to a multiple of 4.
const fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

/// Bytes up to the next multiple of 4.
const fn padded(len: usize) -> usize {
    len.saturating_add(padding(len))
}

/// Bytes of a sum, its section header included.
const fn sum_len(inputs: usize) -> usize {
    SECTION + SUM_HEADER + inputs.div_ceil(32).saturating_mul(4)
}
