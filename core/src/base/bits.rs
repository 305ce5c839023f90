//! Sets of small numbers as bits of words: gates, signs, neurons.

/// Whether number `i` is in the set; those behind the last word are not.
///
/// ```
/// use tamis::base::bits::is_set;
/// let words = [0b101, 1];
/// assert!(is_set(&words, 2) && is_set(&words, 32) && !is_set(&words, 1) && !is_set(&words, 64));
/// ```
#[inline]
#[must_use]
pub fn is_set(words: &[u32], i: usize) -> bool {
    words.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1)
}
