//! Bytes at an address that is a multiple of 4, as a model needs them.

use super::{Task, View, encode};
use crate::network::net::Network;
use crate::{Error, Result};

/// A value at an address that is a multiple of 4: `static BYTES: &Aligned<[u8]> = &Aligned(*b"…");`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(4))]
pub struct Aligned<T: ?Sized>(
    /// The value.
    pub T,
);

/// The bytes of a model file, aligned and without a copy in RAM: `&'static [u8]`.
///
/// The path is relative to the file that calls, as for [`include_bytes!`]. The bytes are checked by
/// [`View::parse`](crate::store::wire::View::parse).
///
/// ```
/// use tamis::store::wire::View;
///
/// static BYTES: &[u8] = tamis::include_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_golden.tamis"));
/// assert_eq!(View::parse(BYTES)?.model().inputs(), 3);
/// # Ok::<(), tamis::Error>(())
/// ```
#[macro_export]
macro_rules! include_model {
    ($path:expr $(,)?) => {{
        const MODEL: &$crate::store::wire::Aligned<[u8]> =
            &$crate::store::wire::Aligned(*include_bytes!($path));
        &MODEL.0
    }};
}

/// A model in a buffer of its own, for a device that trains or receives one; `BYTES` from
/// [`max_len`](super::max_len).
///
/// ```
/// use tamis::network::{gates::Signs, net::Network, weights::Weights};
/// use tamis::store::wire::{OwnedModel, max_len};
///
/// let trained = Network::signed(Weights::new(4, 2, &[1, 6], &[0.5, 2.0])?, Signs::Positive);
/// let owned: OwnedModel<{ max_len(2, 2) }> = OwnedModel::from_trained(trained, 2, None)?;
/// let view = owned.view()?;
/// let mut f = [0.0];
/// view.model().predict(&[0.0, 4.0, 1.0, 0.0], &mut [], &mut f)?;
/// assert_eq!(f, [4.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedModel<const BYTES: usize> {
    buffer: Aligned<[u8; BYTES]>,
    len: usize,
}

impl<const BYTES: usize> OwnedModel<BYTES> {
    /// Encodes what the trainer holds, the neurons it was asked for, and the task it was trained
    /// for.
    ///
    /// # Errors
    /// As [`encode`]; [`Error::Budget`] if `BYTES` is too small.
    pub fn from_trained(network: Network<'_>, hidden: usize, task: Option<Task>) -> Result<Self> {
        let mut buffer = Aligned([0; BYTES]);
        let len = encode(network, hidden, task, &mut buffer.0)?;
        Ok(Self { buffer, len })
    }

    /// Copies bytes from anywhere, aligned or not, such as a serial line, and checks them.
    ///
    /// # Errors
    /// As [`View::parse`]; [`Error::Budget`] if `BYTES` is too small.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let short = Error::Budget { needed: bytes.len(), got: BYTES };
        let mut owned = Self { buffer: Aligned([0; BYTES]), len: bytes.len() };
        owned.buffer.0.get_mut(..bytes.len()).ok_or(short)?.copy_from_slice(bytes);
        owned.view()?;
        Ok(owned)
    }

    /// The model. Every call checks the bytes again: keep the view over many predictions.
    ///
    /// # Errors
    /// None for a buffer whose memory is intact; otherwise as [`View::parse`].
    pub fn view(&self) -> Result<View<'_>> {
        View::parse(self.as_bytes())
    }

    /// The encoded bytes, to store or to send.
    pub fn as_bytes(&self) -> &[u8] {
        self.buffer.0.get(..self.len).unwrap_or_default()
    }
}
