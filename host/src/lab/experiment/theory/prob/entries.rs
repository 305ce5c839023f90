//! Random matrices, and which of their entries are pruned.

use tamis::base::rng::{Rng, stream};

use crate::lab::experiment::spec::{Choice, Entries, EntryLaw};

/// Streams of entries and of the choice of pruned ones, one per matrix.
const ENTRIES: u64 = stream::USER + (0x7e21 << 32);
const CHOICE: u64 = stream::USER + (0x7e22 << 32);

/// A rows×columns matrix, row by row; `at` tells the matrices of a seed apart.
pub(super) fn draw(of: &Entries, rows: usize, columns: usize, seed: u64, at: u64) -> Vec<f32> {
    let scale = (of.k / (rows.max(columns) as f64).sqrt()) as f32;
    let mut rng = Rng::new(seed, ENTRIES + at);
    let mut entry = || match of.law {
        EntryLaw::Uniform => scale * (2.0 * rng.uniform() - 1.0),
        EntryLaw::Normal => scale * rng.normal(),
    };
    (0..rows * columns).map(|_| entry()).collect()
}

/// `⌊len^exponent⌋`, at most `len`.
pub(super) fn power(len: usize, exponent: f64) -> usize {
    // A power that is a whole number in theory may come out just below it.
    ((len as f64).powf(exponent) + 1e-9).floor().min(len as f64) as usize
}

/// Places of `0..len` that random pruning takes in `count` choices, rising.
pub(super) fn chosen(how: Choice, len: usize, count: usize, seed: u64, at: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed, CHOICE + at);
    let mut all: Vec<u32> = match how {
        Choice::Repeated => (0..count).map(|_| rng.below(len as u32)).collect(),
        Choice::Distinct => {
            // The head of a shuffle.
            let mut places: Vec<u32> = (0..len as u32).collect();
            for i in 0..count.min(len) {
                let other = i + rng.below((len - i) as u32) as usize;
                places.swap(i, other);
            }
            places.truncate(count);
            places
        }
    };
    all.sort_unstable();
    all.dedup();
    all
}

/// Places of the `count` entries of least magnitude, ties to the lower place.
pub(super) fn smallest(entries: &[f32], count: usize) -> Vec<u32> {
    let mut places: Vec<u32> = (0..entries.len() as u32).collect();
    let magnitude = |place: &u32| (entries[*place as usize].abs(), *place);
    if count < places.len() {
        places.select_nth_unstable_by(count, |a, b| {
            let (a, b) = (magnitude(a), magnitude(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        });
        places.truncate(count);
    }
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_distinct_or_repeat() {
        let distinct = chosen(Choice::Distinct, 100, 60, 1, 0);
        assert_eq!((distinct.len(), chosen(Choice::Distinct, 9, 9, 1, 0).len()), (60, 9));
        // 100 (1 - 0.99^60) = 45 different ones.
        let repeated = chosen(Choice::Repeated, 100, 60, 1, 0);
        assert!((38..53).contains(&repeated.len()), "{}", repeated.len());
        assert!(distinct.windows(2).all(|pair| pair[0] < pair[1]) && distinct[59] < 100);
    }

    #[test]
    fn powers_are_rounded_down() {
        assert_eq!((power(1024, 0.5), power(1000, 2.0 / 3.0), power(7, 1.0)), (32, 100, 7));
        assert_eq!(power(32, 1.99), 32);
    }

    #[test]
    fn smallest_entries_are_by_magnitude() {
        assert_eq!(smallest(&[3.0, -1.0, 2.0, 1.0, -0.5], 3), [1, 3, 4]);
        assert_eq!(smallest(&[3.0, 1.0], 2), [0, 1]);
    }
}
