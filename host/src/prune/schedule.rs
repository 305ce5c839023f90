//! How many nonzeros stay from round to round, and the rates of training.

/// Rounds that an epoch has at the most.
const ROUNDS: usize = 8;
/// Share of the epochs in which weights are pruned, and share after which the rate falls.
const PRUNED: f64 = 0.7;
const FALLS: f64 = 0.5;
/// Steps that a training takes at least, and epochs that they may make.
const STEPS: usize = 2000;
const EPOCHS: u32 = 6;
const MOST_EPOCHS: u32 = 300;

/// Rounds of an epoch of so many batches.
pub(super) fn rounds(batches: usize) -> usize {
    batches.clamp(1, ROUNDS)
}

/// Epochs of so many batches where none are asked for: 6, or as many as make 2000 steps.
pub(super) fn epochs(batches: usize) -> u32 {
    let epochs = u32::try_from(STEPS.div_ceil(batches.max(1))).unwrap_or(MOST_EPOCHS);
    epochs.clamp(EPOCHS, MOST_EPOCHS)
}

/// Nonzeros of each round in which there are fewer than before, of so many rounds in all: they fall
/// as `nnz (all / nnz)^((1 - u)²)`, u from 0 to 1 over seven tenths of the rounds. So most go first,
/// while the rate is high.
pub(super) fn counts(all: usize, nnz: usize, rounds: usize) -> Vec<usize> {
    let pruned = ((PRUNED * rounds as f64).round() as usize).max(1);
    let (all, least) = (all as f64, nnz as f64);
    let count = |round: usize| {
        let left = 1.0 - round as f64 / pruned as f64;
        (least * (all / least).powf(left * left)).round() as usize
    };
    (1..=pruned).map(|round| count(round).max(nnz)).collect()
}

/// The factor of the rate, at a share of the training: 1 over its first half, and then down to 0.
pub(super) fn falling(done: f64) -> f32 {
    ((1.0 - done) / (1.0 - FALLS)).min(1.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fall_to_what_is_asked_for() {
        let counts = counts(10_000, 100, 20);
        assert_eq!((counts.len(), counts[13]), (14, 100));
        assert!(counts.is_sorted_by(|a, b| a >= b) && counts[0] < 10_000);
        // Half of the way down on a scale of factors: 100^(1/4).
        assert_eq!(counts[6], 316);
        assert_eq!(super::counts(50, 50, 1), [50]);
    }

    #[test]
    fn epochs_make_enough_steps() {
        assert_eq!([epochs(500), epochs(100), epochs(1)], [6, 20, 300]);
        assert_eq!([falling(0.0), falling(0.5), falling(0.75)], [1.0, 1.0, 0.5]);
    }
}
