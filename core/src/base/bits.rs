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

/// -1 where number `i` is in the set, otherwise 1: the sign of a neuron whose bit says that it is taken away.
///
/// ```
/// use tamis::base::bits::sign;
/// assert_eq!([sign(&[0b10], 0), sign(&[0b10], 1)], [1.0, -1.0]);
/// ```
#[inline]
#[must_use]
pub fn sign(words: &[u32], i: usize) -> f32 {
    if is_set(words, i) { -1.0 } else { 1.0 }
}
