//! What is written down as words: checkpoints, windows of samples, and several of these one behind
//! the other.

use core::convert::Infallible;

/// What a sink of words returns.
pub type Put<E> = core::result::Result<(), E>;

/// A checkpoint of any recipe, or a window of samples, to be written down.
///
/// ```
/// use tamis::{base::record::Record, learn::train::Checkpoint, network::{gates::Signs, net::Network, weights::Weights}};
/// let net = Network::signed(Weights::new(4, 2, &[1, 6], &[0.5, 2.0])?, Signs::Positive);
/// let checkpoint = Checkpoint::starting(net);
/// let (mut words, mut len) = ([0; 64], 0);
/// checkpoint.write(&mut |piece| {
///     words[len..len + piece.len()].copy_from_slice(piece);
///     len += piece.len();
///     Ok::<(), ()>(())
/// }).unwrap();
/// assert_eq!(len, checkpoint.words());
/// assert_eq!(words[len - 4..len - 2], [1, 6]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Record {
    /// Gives all words to `put`, in pieces, in their order.
    ///
    /// # Errors
    /// The first error of `put`; nothing is given after it.
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E>;

    /// How many words that are.
    fn words(&self) -> usize {
        let mut words = 0_usize;
        let counted = self.write::<Infallible>(&mut |piece| {
            words = words.saturating_add(piece.len());
            Ok(())
        });
        match counted {
            Ok(()) => words,
            Err(never) => match never {},
        }
    }
}

/// One behind the other: what belongs together, in one payload.
impl<A: Record, B: Record> Record for (&A, &B) {
    fn write<E>(&self, put: &mut impl FnMut(&[u32]) -> Put<E>) -> Put<E> {
        self.0.write(put)?;
        self.1.write(put)
    }
}
