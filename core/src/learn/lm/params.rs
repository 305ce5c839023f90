//! How a search goes, and the neurons that its operator should have.

use crate::network::gates::Signs;

/// How the search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Params {
    /// Seed of the first gates, of new neurons, splits and restarts.
    pub seed: u64,
    /// Output signs.
    pub signs: Signs,
    /// n0, rows that the search looks at first, the first of the data, which must come in random
    /// order; 0 for [`Self::search_rows`].
    pub rows: usize,
    /// Loss of an exact fit, as a fraction of the mean square of the labels.
    pub exact: f32,
    /// New neurons from random gates in each list of candidates, for either sign.
    pub random_neurons: u32,
    /// Steps of Adam before the search, where signs are [`Signs::Free`] or [`Signs::Unoriented`]: nearly all
    /// neurons of large networks are found by thousands. 0 for none; needs the feature `first-phase`, without
    /// which there are none.
    pub first: u32,
    /// Restarts before a search ends.
    pub perturbations: u32,
    /// Outer steps before the run ends; those that bring it to s weights come on top.
    pub steps: u32,
    /// Levenberg-Marquardt steps on all rows at the end.
    pub final_steps: u32,
    /// Outer steps at exactly s weights at the end, where the fit is not exact.
    pub polish: u32,
    /// Restarts without progress after which a search on the first rows ends whose loss is above a
    /// thousandth of the mean square of the labels; a quarter of that, but at least one, with every
    /// change to more rows.
    pub patience: u32,
    /// Validation rows, the last of the data, which must come in random order; fewer than there
    /// are. No step looks at them, and of the networks of at most s weights the one of least loss
    /// on them is the result.
    pub validation: usize,
    /// Early stopping: restarts without a better loss on the validation rows; 0 for never.
    pub validation_patience: u32,
    /// Weights above s while searching, in percent of s; more than 25 count as 25. None where
    /// weights are few for the labels.
    pub spare: u32,
    /// Products of conjugate gradients in one attempt of a step.
    pub products: u32,
    /// So many times a label above 0 an output may be without being an error: 1 for the squared error. More
    /// tells two classes apart, 0 and another number, with fewer weights than making the labels takes. For one
    /// output and positive signs; [`Info::loss`](super::Info::loss) is the squared error in any case.
    pub ceiling: f32,
    /// Rows, the first of the data, by which weights are exchanged for others, where there are more.
    pub exchange_rows: usize,
}

/// So many weights are few enough to try others in the place of each in the end, where the fit is not
/// exact.
pub const EXCHANGED: usize = 32;

impl Params {
    /// The settings that the published grid was recovered with.
    pub const DEFAULT: Self = Self {
        seed: 0,
        signs: Signs::Positive,
        rows: 0,
        exact: 3e-11,
        random_neurons: 6,
        first: 0,
        perturbations: 40,
        steps: 4000,
        final_steps: 4,
        polish: 10,
        patience: 12,
        validation: 0,
        validation_patience: 0,
        spare: 25,
        products: 120,
        ceiling: 1.0,
        exchange_rows: 20_000,
    };

    /// n0 for s = `nnz` and `samples` rows for training: [`Self::rows`], or 20 s between
    /// 1000 and the larger of 4000 and 10 s; never more than there are.
    #[must_use]
    pub const fn search_rows(&self, nnz: usize, samples: usize) -> usize {
        let rows = match self.rows {
            0 => {
                let (usual, many) = (nnz.saturating_mul(20), nnz.saturating_mul(10));
                let most = if many > 4000 { many } else { 4000 };
                let usual = if usual > most { most } else { usual };
                if usual < 1000 { 1000 } else { usual }
            }
            rows => rows,
        };
        if rows < samples { rows } else { samples }
    }

    /// n0 of a search for two layers: [`Self::search_rows`] for twice the weights, since those of
    /// the second layer depend on the first.
    #[must_use]
    pub const fn deep_search_rows(&self, nnz: usize, samples: usize) -> usize {
        self.search_rows(nnz.saturating_mul(2), samples)
    }
}

/// Blocks that the operator of a run should have for m neurons: a tenth more and two, for moves;
/// with free signs as many of either sign, and the linear term. A run works with any number of
/// blocks (free signs need two).
///
/// ```
/// use tamis::{network::gates::Signs, learn::lm::slots};
/// assert_eq!([slots(10, Signs::Positive), slots(10, Signs::Free)], [13, 27]);
/// ```
#[must_use]
pub const fn slots(hidden: usize, signs: Signs) -> usize {
    let slots = hidden.saturating_add(hidden.div_ceil(10)).saturating_add(2);
    match signs {
        Signs::Positive => slots,
        Signs::Balanced => slots.saturating_add(slots % 2),
        Signs::Free => slots.saturating_mul(2).saturating_add(1),
        Signs::Unoriented => slots.saturating_add(1),
    }
}

/// Outputs of the first layer in a search for m neurons of the second: as many as [`slots`], and
/// one that passes activations through.
#[must_use]
pub const fn second_slots(second: usize) -> usize {
    slots(second, Signs::Positive).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_starts_with_twenty_rows_per_weight_clamped() {
        let params = Params::DEFAULT;
        let all = |nnz| params.search_rows(nnz, usize::MAX);
        assert_eq!(
            [0, 1, 49, 51, 200, 201, 400, 401, 1000].map(all),
            [1000, 1000, 1000, 1020, 4000, 4000, 4000, 4010, 10_000]
        );
        assert_eq!(all(usize::MAX), usize::MAX);
        // Never more than there are.
        assert_eq!(
            [(1, 7), (1, 1000), (100, 1999), (100, 2001)]
                .map(|(nnz, n)| params.search_rows(nnz, n)),
            [7, 1000, 1999, 2000]
        );
        // Two layers need them for twice the weights.
        assert_eq!(
            [(60, 9999), (60, 2000), (300, 9999)].map(|(nnz, n)| params.deep_search_rows(nnz, n)),
            [2400, 2000, 6000]
        );
    }

    #[test]
    fn requested_search_rows_are_capped_at_row_count() {
        let params = Params { rows: 30, ..Params::DEFAULT };
        assert_eq!(
            [(1, 60), (9999, 60), (1, 20), (1, 30)].map(|(nnz, n)| params.search_rows(nnz, n)),
            [30, 30, 20, 30]
        );
        assert_eq!(params.deep_search_rows(9999, 60), 30);
    }

    #[test]
    fn spare_blocks_are_a_tenth_plus_two() {
        assert_eq!([0, 1, 10, 11, 100].map(|m| slots(m, Signs::Positive)), [2, 4, 13, 15, 112]);
        // Either sign has as many.
        assert_eq!([1, 10, 11].map(|m| slots(m, Signs::Balanced)), [4, 14, 16]);
        assert_eq!([1, 10].map(|m| slots(m, Signs::Free)), [9, 27]);
        assert_eq!((slots(usize::MAX, Signs::Free), second_slots(10)), (usize::MAX, 14));
    }
}
