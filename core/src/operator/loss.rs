//! Losses of outputs, and from outputs to residuals, in place.

use crate::base::error::{self, Result};
use crate::base::math;

/// Squared error: turns the outputs `A w` into the residual `y - A w` and returns `|y - A w|²`.
///
/// # Errors
/// [`error::Error::Length`] if there are not as many labels as outputs.
///
/// ```
/// let mut out = [1.0, 2.0];
/// assert_eq!(tamis::learn::loss::square(&[3.0, 2.0], &mut out), Ok(4.0));
/// assert_eq!(out, [2.0, 0.0]);
/// ```
pub fn square(labels: &[f32], out: &mut [f32]) -> Result<f32> {
    error::length("labels", labels.len(), out.len())?;
    for (out, y) in out.iter_mut().zip(labels) {
        *out = y - *out;
    }
    Ok(math::norm2(out))
}

/// The least output that is class 1, for outputs of rows of class 0 and of class 1, such that most
/// rows are on their side: the middle of the widest gap of those that do so. It is 0.5 where that is
/// as good, or better by less than chance makes of the rows that change sides: the square of the gain is less
/// than six times their number, which the best of many thresholds on one side is in 19 of 20 cases
/// where none is better. Both are sorted. Never 0, which in a model file says that outputs are log-odds
/// ([`crate::store::wire::Task::Binary`]).
///
/// ```
/// use tamis::learn::loss::threshold;
/// // 0.5 would take six rows of class 1 for some of class 0.
/// let from = threshold(&mut [0.0, 0.0, 0.125], &mut [0.375, 0.4, 0.4, 0.45, 0.45, 0.48, 1.0]);
/// assert_eq!(from, 0.25);
/// // One row of two says nothing.
/// assert_eq!(threshold(&mut [0.125], &mut [0.375]), 0.5);
/// ```
#[must_use]
pub fn threshold(zeros: &mut [f32], ones: &mut [f32]) -> f32 {
    let half = right(HALF, zeros, ones);
    let (mut most, mut best, mut widest) = (half, HALF, f32::INFINITY);
    zeros.sort_unstable_by(f32::total_cmp);
    ones.sort_unstable_by(f32::total_cmp);
    let (mut i, mut j, mut last) = (0, 0, f32::INFINITY);
    loop {
        let (next, is_zero) = match (zeros.get(i), ones.get(j)) {
            (Some(zero), Some(one)) if zero.total_cmp(one).is_le() => (*zero, true),
            (_, Some(one)) => (*one, false),
            (Some(zero), None) => (*zero, true),
            (None, None) => break,
        };
        let (right, gap) = (i + ones.len() - j, next - last);
        // A gap below the normal numbers may have no middle but 0.
        let is_open = gap >= f32::MIN_POSITIVE;
        if is_open && (right > most || right == most && gap > widest) {
            (most, best, widest) = (right, between(last, next), gap);
        }
        last = next;
        (i, j) = if is_zero { (i + 1, j) } else { (i, j + 1) };
    }
    let range = best.min(HALF)..best.max(HALF);
    let changed = zeros.iter().chain(&*ones).filter(|y| range.contains(*y)).count();
    let won = most - half;
    if won.saturating_mul(won) >= CHANCE.saturating_mul(changed) { best } else { HALF }
}

/// Rows on their side of a threshold.
fn right(from: f32, zeros: &[f32], ones: &[f32]) -> usize {
    zeros.iter().filter(|y| **y < from).count() + ones.iter().filter(|y| **y >= from).count()
}

/// The gain of the best of many thresholds is the most of a random walk where none is better, and its
/// square over the rows that change sides above this in one of twenty: `exp(-6 / 2)`.
const CHANCE: usize = 6;

/// The threshold where nothing is better, in the middle of labels 0 and 1.
const HALF: f32 = 0.5;

/// A number above the first and at most the second, in their middle but not 0.
fn between(below: f32, from: f32) -> f32 {
    let middle = 0.5 * below + 0.5 * from;
    let middle = if middle == 0.0 { 0.5 * below } else { middle };
    if middle > below { middle } else { from }
}

/// Softmax cross-entropy over c outputs: turns them, n×c, into the residual
/// `onehot(label) - softmax(output)` and returns the sum over rows of `-ln softmax(output)[label]`.
///
/// With one output the classes are 0 and 1 and the output is the log-odds of class 1: the softmax
/// of 0 and the output, with the residual `label - 1 / (1 + exp(-output))`.
///
/// Stable for outputs of any size: the largest output of a row is taken off first. The result is
/// NaN where an output is.
///
/// # Errors
/// [`error::Error::Length`] if there are not c outputs per label, [`error::Error::Range`] for a
/// label that is no class.
///
/// ```
/// let mut out = [0.0, 0.0, 1000.0, 0.0];
/// let loss = tamis::learn::loss::cross_entropy(&[1, 0], 2, &mut out).unwrap();
/// assert_eq!(loss, 2.0_f32.ln());
/// assert_eq!(out, [-0.5, 0.5, 0.0, 0.0]);
/// // Even odds, and certainty.
/// let mut out = [0.0, -1000.0];
/// let loss = tamis::learn::loss::cross_entropy(&[1, 0], 1, &mut out).unwrap();
/// assert_eq!((loss, out), (2.0_f32.ln(), [0.5, 0.0]));
/// ```
pub fn cross_entropy(labels: &[u16], outputs: usize, out: &mut [f32]) -> Result<f32> {
    error::range("outputs", outputs, 1, 1 << 16)?;
    error::length("outputs", out.len(), labels.len().saturating_mul(outputs))?;
    let mut loss = math::Sum::default();
    for (out, &label) in out.chunks_mut(outputs).zip(labels) {
        error::range("label", label.into(), 0, classes(outputs) - 1)?;
        loss.add(match out {
            [out] => binary(label == 1, out),
            _ => softmax(label.into(), out),
        });
    }
    Ok(loss.value())
}

/// One row of one output.
fn binary(label: bool, out: &mut f32) -> f32 {
    // Of the class that is not the label's.
    let odds = if label { -*out } else { *out };
    let small = math::exp(-odds.abs());
    let part = if odds > 0.0 { 1.0 } else { small } / (1.0 + small);
    *out = if label { part } else { -part };
    odds.max(0.0) + math::ln(1.0 + small)
}

/// One row of several outputs.
fn softmax(label: usize, out: &mut [f32]) -> f32 {
    let [top, own] = [best(out), label].map(|class| out.get(class).copied().unwrap_or(0.0));
    let mut total = 0.0;
    for out in out.iter_mut() {
        *out = math::exp(*out - top);
        total += *out;
    }
    let part = 1.0 / total;
    for (class, out) in out.iter_mut().enumerate() {
        let goal = if class == label { 1.0 } else { 0.0 };
        *out = goal - *out * part;
    }
    math::ln(total) + (top - own)
}

/// The classes that so many outputs tell apart: one output tells two, several one each.
#[must_use]
pub const fn classes(outputs: usize) -> usize {
    if outputs == 1 { 2 } else { outputs }
}

/// The class that a row's outputs say: of one output 1 where it is 0 or more, of several that of
/// the largest one.
///
/// ```
/// use tamis::learn::loss::class;
/// assert_eq!((class(&[-0.5]), class(&[0.0]), class(&[0.5, 2.0, 1.0])), (0, 1, 1));
/// ```
#[must_use]
pub fn class(outputs: &[f32]) -> usize {
    match outputs {
        [out] => usize::from(*out >= 0.0),
        _ => best(outputs),
    }
}

/// The class of the largest output; of equal ones the lowest.
///
/// ```
/// assert_eq!(tamis::learn::loss::best(&[0.5, 2.0, 2.0]), 1);
/// ```
#[must_use]
pub fn best(outputs: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (class, &out) in outputs.iter().enumerate() {
        if out > best.1 {
            best = (class, out);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::base::rng::Rng;
    use std::vec::Vec;

    #[test]
    fn threshold_is_the_one_with_most_rows_right_or_a_half() {
        let mut rng = Rng::new(1, 0);
        let mut chosen = 0;
        for case in 0..300 {
            let (mut zeros, mut ones) = ([0.0; 70], [0.0; 50]);
            // Many are equal, and in some cases all of a class.
            let mut draw =
                |mean: f32| 0.25 * ((rng.normal() + mean) * (case % 5) as f32) as i32 as f32;
            zeros.iter_mut().for_each(|y| *y = draw(0.0));
            ones.iter_mut().for_each(|y| *y = draw(1.0));
            let from = threshold(&mut zeros, &mut ones);
            assert!(from != 0.0);
            if from == HALF {
                continue;
            }
            chosen += 1;
            let most = right(from, &zeros, &ones);
            let all = zeros.iter().chain(&ones);
            assert!(all.clone().all(|y| most >= right(*y, &zeros, &ones)), "{case}: {from}");
            let range = from.min(HALF)..from.max(HALF);
            let changed = all.filter(|y| range.contains(*y)).count();
            assert!((most - right(HALF, &zeros, &ones)).pow(2) >= CHANCE * changed);
        }
        assert!(chosen > 5, "{chosen}");
    }

    #[test]
    fn threshold_is_in_the_middle_of_the_widest_gap_and_never_zero() {
        let of = |zeros: &[f32], ones: &[f32]| {
            // So many of each that nothing is chance.
            let many = |own: &[f32]| own.iter().flat_map(|y| [*y; 24]).collect::<Vec<f32>>();
            threshold(&mut many(zeros), &mut many(ones))
        };
        // Three of four are right from 1.5 and from 5 on, and the second gap is wider.
        assert_eq!(of(&[1.0, 4.0], &[2.0, 6.0]), 5.0);
        assert_eq!(of(&[-2.0, -1.0], &[0.25]), -0.375);
        assert_eq!(of(&[-2.0, -0.25], &[0.25]), -0.125);
        assert_eq!(of(&[-1.0], &[0.0]), -0.5);
        let next = 1.0_f32.next_up();
        assert_eq!(of(&[1.0], &[next]), next);
        // Nothing is better than the half.
        for (zeros, ones) in [(&[][..], &[][..]), (&[0.0], &[]), (&[0.0; 3], &[0.0]), (&[], &[1.0])]
        {
            assert_eq!(of(zeros, ones), 0.5);
        }
        // One gap that has no middle, and outputs that are no numbers.
        assert_eq!(of(&[-f32::from_bits(1)], &[0.0]), 0.5);
        assert_eq!(of(&[f32::NAN], &[f32::NAN, -1.0]), 0.5);
    }

    #[test]
    fn what_chance_may_do_leaves_the_half() {
        // Six rows of class 1 change sides; with one of class 0 seven do, of which it takes back one.
        assert_eq!(threshold(&mut [0.0, 0.25], &mut [0.375; 6]), 0.3125);
        assert_eq!(threshold(&mut [0.0, 0.25, 0.45], &mut [0.375; 6]), 0.5);
    }
}
