//! Masks as files: the header of a model, and one section with widths and a bit for each weight.

use super::reader::{cast, encoded, later};
use super::write::Writer;
use super::{HEADER, SECTION, TAG_PATTERN};
use crate::base::dims::MOST_ENTRIES;
use crate::base::error::{self, expect};
use crate::network::mask::Mlp;
use crate::network::mask::packed::{self, Packed};
use crate::{Error, Result};

/// Bytes of the file of a mask.
#[must_use]
pub const fn mask_len(net: &Mlp<'_>) -> usize {
    let words = 1_usize.saturating_add(net.widths().len());
    let words = words.saturating_add(packed::words(net.weights()));
    words.saturating_mul(4).saturating_add(HEADER + SECTION)
}

/// Writes a mask to the start of `out` and gives its length in bytes, [`mask_len`].
///
/// # Errors
/// [`Error::Budget`] if `out` is shorter.
pub fn encode_mask(mask: Packed<'_>, out: &mut [u8]) -> Result<usize> {
    let net = mask.net();
    let len = mask_len(&net);
    let mut writer = Writer::new(out, len)?;
    let end = |width: Option<&usize>| width.copied().unwrap_or(0);
    writer.header(end(net.widths().first()), end(net.widths().last()))?;
    let layers = net.layers().len();
    writer.words([usize::from(TAG_PATTERN), len - HEADER - SECTION, layers])?;
    net.widths().iter().try_for_each(|&width| writer.words([width]))?;
    writer.array(mask.bits())?;
    writer.finish()
}

/// The mask of a file, where it lies.
///
/// ```
/// use tamis::network::mask::{Mlp, packed::{Packed, insert, words}};
/// use tamis::store::wire::{Aligned, MaskView, encode_mask, mask_len};
/// let net = Mlp::new(&[8, 4, 2])?;
/// let mut bits = [0; words(40)];
/// [3, 31, 32, 39].iter().for_each(|&index| insert(&mut bits, index));
/// let mut file = Aligned([0; 56]);
/// assert_eq!(encode_mask(Packed::new(net, &bits)?, &mut file.0)?, mask_len(&net));
///
/// let (view, mut widths) = (MaskView::parse(&file.0)?, [0; 3]);
/// let mask = view.mask(&mut widths)?;
/// assert_eq!((mask.net().widths(), mask.count()), (&[8, 4, 2][..], 4));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskView<'a> {
    widths: &'a [u32],
    bits: &'a [u32],
}

impl<'a> MaskView<'a> {
    /// Whether a file whose checks passed so far holds a mask and not layers.
    #[must_use]
    pub fn matches(bytes: &[u8]) -> bool {
        bytes.get(HEADER..).and_then(<[u8]>::first_chunk).copied().map(u16::from_le_bytes)
            == Some(TAG_PATTERN)
    }

    /// Checks all of a file, which starts at a multiple of 4 bytes.
    ///
    /// # Errors
    /// [`Error::Format`] with the place of what is wrong, [`Error::Version`] or [`Error::Newer`]
    /// for what a later program wrote, [`Error::Range`] for widths that no network has.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (mut reader, inputs, outputs) = encoded(bytes)?;
        let (at, tag, optional, mut payload) = reader.section()?;
        if tag != TAG_PATTERN || optional {
            return Err(Error::Format {
                what: "section of a mask",
                at,
                expected: u32::from(TAG_PATTERN),
                got: u32::from(tag),
            });
        }
        if !reader.is_empty() {
            return Err(later("section behind a mask", reader.at, 0));
        }
        let at = payload.at;
        let layers = payload.u32()?;
        let left = payload.rest().len() / 4;
        let most = left.saturating_sub(1);
        error::range("layers of a mask", layers as usize, 1, most)?;
        let widths = cast(payload.array((layers as usize + 1).saturating_mul(4))?)?;
        let ends = [(widths.first(), inputs), (widths.last(), outputs)];
        for (width, stated) in ends {
            expect("inputs or outputs of a mask", at, stated, width.copied().unwrap_or(0))?;
        }
        let weights = weights(widths)?;
        let bits = cast(payload.array(packed::words(weights).saturating_mul(4))?)?;
        payload.end("end of a mask")?;
        let view = Self { widths, bits };
        packed::check(weights, bits)?;
        Ok(view)
    }

    /// The widths from the inputs to the outputs.
    #[must_use]
    pub const fn widths(&self) -> &'a [u32] {
        self.widths
    }

    /// The mask; `widths` has as many places as there are widths, which it gets.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of places.
    pub fn mask<'b>(&self, widths: &'b mut [usize]) -> Result<Packed<'b>>
    where
        'a: 'b,
    {
        error::length("widths", widths.len(), self.widths.len())?;
        widths.iter_mut().zip(self.widths).for_each(|(to, &from)| *to = from as usize);
        Packed::new(Mlp::new(widths)?, self.bits)
    }
}

/// Weights of all layers, of widths that are checked as those of [`Mlp::new`].
fn weights(widths: &[u32]) -> Result<usize> {
    let zero = widths.iter().filter(|&&width| width == 0).count();
    error::range("widths of 0", zero, 0, 0)?;
    let pairs = widths.iter().zip(widths.iter().skip(1));
    let product = |(&a, &b): (&u32, &u32)| u64::from(a).saturating_mul(u64::from(b));
    let all = pairs.map(product).fold(0_u64, u64::saturating_add);
    let all = usize::try_from(all).unwrap_or(usize::MAX);
    error::range("weights", all, 1, MOST_ENTRIES)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::network::mask::packed::insert;
    use crate::store::wire::{Aligned, View, checksum};
    use std::vec::Vec;

    fn file() -> Aligned<[u8; 56]> {
        let mut bits = [0; 2];
        [0, 31, 32, 39].iter().for_each(|&index| insert(&mut bits, index));
        let mut file = Aligned([0; 56]);
        encode_mask(Packed::new(Mlp::new(&[8, 4, 2]).unwrap(), &bits).unwrap(), &mut file.0)
            .unwrap();
        file
    }

    /// With word `at / 4` changed and the checksum mended.
    fn changed(at: usize, word: u32) -> Aligned<[u8; 56]> {
        let mut file = file();
        file.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
        let crc = checksum(&file.0);
        file.0[12..16].copy_from_slice(&crc.to_le_bytes());
        file
    }

    #[test]
    fn mask_roundtrips_and_bit_flips_are_detected() {
        let file = file();
        let mut widths = [0; 3];
        let mask = MaskView::parse(&file.0).unwrap().mask(&mut widths).unwrap();
        let all: Vec<u32> = mask.net().layers().flat_map(|layer| mask.layer(layer)).collect();
        assert_eq!((mask.net().widths(), all), (&[8, 4, 2][..], [0, 31, 32, 39].into()));
        for bit in 0..56 * 8 {
            let mut damaged = Aligned(file.0);
            damaged.0[bit / 8] ^= 1 << (bit % 8);
            assert!(MaskView::parse(&damaged.0).is_err(), "{bit}");
        }
        assert!((0..56).all(|len| MaskView::parse(&file.0[..len]).is_err()));
    }

    #[test]
    fn masks_that_cannot_be_are_refused() {
        assert!(MaskView::parse(&changed(16, 8).0).is_ok());
        // Inputs, outputs, layers, a width of 0, other widths, bits behind the last.
        for (at, word) in
            [(16, 7), (20, 3), (32, 0), (32, 5), (32, u32::MAX), (40, 0), (40, 50), (52, 256)]
        {
            assert!(MaskView::parse(&changed(at, word).0).is_err(), "{at}: {word}");
        }
        let optional = changed(24, u32::from(TAG_PATTERN) | 1 << 16);
        assert!(MaskView::parse(&optional.0).is_err());
    }

    #[test]
    fn masks_and_models_are_told_apart() {
        let file = file();
        assert!(MaskView::matches(&file.0));
        let error = View::parse(&file.0).unwrap_err();
        assert!(std::format!("{error}").contains("mask"), "{error}");
    }
}
