//! The words of a spec: methods.

use serde::{Deserialize, Serialize};

/// How a cell is trained, or predicted without training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// Iterative hard thresholding as published.
    Paper,
    /// The same in the least memory, for more time; for several outputs with safe steps.
    PaperLeast,
    /// The same for several outputs, with epochs that diverge undone and the best iterate kept.
    PaperSafe,
    /// The same as published, from the best of random starts on a fraction of the rows.
    PaperTrials,
    /// What `tamis train --recipe auto` takes for the task.
    Recipe,
    /// Iterative magnitude pruning with the epochs, batches and inputs of the published figure, scored
    /// right after the last pruning. As all other layers, that of the outputs is trained and pruned.
    ImpPublished,
    /// The same of a network whose one output is the sum of the neurons.
    ImpPublishedSum,
    /// Iterative magnitude pruning that is trained to its end: the settings of the part's `imp`.
    Imp,
    /// The same of a network whose one output is the sum of the neurons.
    ImpSum,
    Zero,
    Mean,
    /// No training: eps and gamma of the rows and generators (paper IHT, Assumption 2).
    Assumption,
    /// No training: extreme eigenvalues over supports of s unit columns (Lemma 1).
    Curvature,
    /// No training: how many gates of sparse neurons m random generators have (Theorem 6).
    Coverage,
    /// A planted vector recovered by the steps of Theorem 1, `2/(3 beta)` in unit columns.
    Theory,
    /// The same by normalised steps, without refinements.
    Normalised,
    /// No training: the error of sketched products (N. Bar and R. Giryes, arXiv 2305.17559) of
    /// given rows, with the weights that the mask was drawn for (Lemma 4.1).
    SketchWeights,
    /// The same of normal rows (Lemma 4.2).
    SketchNormal,
    /// Of given rows, with other weights (Lemma 4.3).
    SketchTrained,
    /// Of normal rows, with other weights (Theorem 4.4).
    SketchNormalTrained,
    /// The same of uniform masks (Lemma 4.5).
    SketchUniform,
    /// Of the tangent features of a network, with its initial weights (Lemma 4.1 for section 7).
    SketchTangent,
    /// The error of Theorem 4.4 over that of uniform masks.
    SketchRatio,
    /// What a mask keeps of an untrained network: `SynFlow` in 100 rounds (H. Tanaka et al., 2020).
    KeptSynflow,
    /// The same with weights of each layer drawn by their scores in every round.
    KeptSampled,
    /// Iterative magnitude pruning, with the settings of the part's `imp`.
    KeptImp,
    /// Random weights, of the same density in every layer.
    KeptUniform,
    /// A mask of an untrained network, or sparse training with as many weights, as the variant says;
    /// then the accuracy after training.
    Masked,
    /// No training: the spectral norms of random matrices (J. Qian and D. Klabjan, 2021, Table 2).
    Norms,
    /// The constant of a bound on them (Table 3).
    Constant,
    /// The mean of an order statistic of squares (Lemma 1), and of its square.
    OrderFirst,
    OrderSecond,
    /// The fullest of bins (Lemma 6).
    Balls,
    /// The norm of convolutions (Lemma 7).
    Convolution,
    /// How far a network, or a convolution, is from itself without its least weights.
    PruneMagnitude,
    /// The same without random ones.
    PruneRandom,
    /// Matrix sensing with group lasso, then pruned and tuned (N. Rajaraman et al., 2023).
    Greedy,
    /// The same without group lasso, and nothing pruned.
    Vanilla,
    /// Without group lasso, then the best approximation of the rank, and tuned.
    Truncated,
    /// A dense network that is trained, and what its weights are like (J. Qian and D. Klabjan, 2021).
    TrainedWeights,
}

/// Each method as specs and files call it, and as people read it; in the order of the type.
static METHODS: [(Method, &str, &str); 40] = [
    (Method::Paper, "paper", "IHT as published"),
    (Method::PaperLeast, "paper-least", "IHT, least memory"),
    (Method::PaperSafe, "paper-safe", "IHT, safe steps"),
    (Method::PaperTrials, "paper-trials", "IHT, best of random starts"),
    (Method::Recipe, "recipe", "Tamis, default recipe"),
    (Method::ImpPublished, "imp-published", "IMP as published"),
    (Method::ImpPublishedSum, "imp-published-sum", "IMP as published, sum of neurons"),
    (Method::Imp, "imp", "IMP trained properly"),
    (Method::ImpSum, "imp-sum", "IMP trained properly, sum of neurons"),
    (Method::Zero, "zero", "zero predictor"),
    (Method::Mean, "mean", "mean predictor"),
    (Method::Assumption, "assumption", "eps and gamma"),
    (Method::Curvature, "curvature", "alpha and beta"),
    (Method::Coverage, "coverage", "coverage of the gates"),
    (Method::Theory, "theory", "IHT, theory step"),
    (Method::Normalised, "normalised", "IHT, normalised step"),
    (Method::SketchWeights, "sketch-weights", "Lemma 4.1"),
    (Method::SketchNormal, "sketch-normal", "Lemma 4.2"),
    (Method::SketchTrained, "sketch-trained", "Lemma 4.3"),
    (Method::SketchNormalTrained, "sketch-normal-trained", "Theorem 4.4"),
    (Method::SketchUniform, "sketch-uniform", "Lemma 4.5"),
    (Method::SketchTangent, "sketch-tangent", "Lemma 4.1 for tangent features"),
    (Method::SketchRatio, "sketch-ratio", "error over that of uniform masks"),
    (Method::KeptSynflow, "kept-synflow", "SynFlow"),
    (Method::KeptSampled, "kept-sampled", "SynFlow, sampled"),
    (Method::KeptImp, "kept-imp", "IMP"),
    (Method::KeptUniform, "kept-uniform", "uniform"),
    (Method::Masked, "masked", "mask, then training"),
    (Method::Norms, "norms", "spectral norms"),
    (Method::Constant, "constant", "constant of Lemma 4"),
    (Method::OrderFirst, "order-first", "Lemma 1, first moment"),
    (Method::OrderSecond, "order-second", "Lemma 1, second moment"),
    (Method::Balls, "balls", "Lemma 6"),
    (Method::Convolution, "convolution", "Lemma 7"),
    (Method::PruneMagnitude, "prune-magnitude", "magnitude pruning"),
    (Method::PruneRandom, "prune-random", "random pruning"),
    (Method::Greedy, "greedy", "group lasso, pruned"),
    (Method::Vanilla, "vanilla", "no group lasso"),
    (Method::Truncated, "truncated", "no group lasso, cut to the rank"),
    (Method::TrainedWeights, "trained-weights", "trained weights"),
];

impl Method {
    pub(crate) fn name(self) -> &'static str {
        METHODS[self as usize].1
    }

    pub(crate) fn title(self) -> &'static str {
        METHODS[self as usize].2
    }

    /// What heads of columns call it beside a known figure.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Zero | Self::Mean | Self::Recipe => self.name(),
            _ if self.is_dense() => "IMP",
            _ => "IHT",
        }
    }

    pub(crate) const fn is_constant(self) -> bool {
        matches!(self, Self::Zero | Self::Mean)
    }

    /// Whether it is the published method on data to train on, in any of its variants.
    pub(crate) const fn is_published(self) -> bool {
        matches!(self, Self::Paper | Self::PaperLeast | Self::PaperSafe | Self::PaperTrials)
    }

    pub(crate) const fn is_dense(self) -> bool {
        matches!(self, Self::Imp | Self::ImpSum) || self.is_published_imp()
    }

    /// Whether it is the published baseline.
    pub(crate) const fn is_published_imp(self) -> bool {
        matches!(self, Self::ImpPublished | Self::ImpPublishedSum)
    }

    /// Whether the one output is the sum of the neurons of a dense network.
    pub(crate) const fn is_sum(self) -> bool {
        matches!(self, Self::ImpPublishedSum | Self::ImpSum)
    }

    pub(crate) fn is_check(self) -> bool {
        self.is_sketch()
            || self.is_mask()
            || matches!(self, Self::Assumption | Self::Curvature | Self::Coverage)
            || matches!(self, Self::Theory | Self::Normalised)
            || self >= Self::Masked
    }

    /// Whether it measures sketched products.
    pub(crate) fn is_sketch(self) -> bool {
        (Self::SketchWeights..=Self::SketchRatio).contains(&self)
    }

    /// Whether it measures what a mask keeps.
    pub(crate) fn is_mask(self) -> bool {
        (Self::KeptSynflow..=Self::KeptUniform).contains(&self)
    }

    /// Whether it prunes random weights of a network, or the least ones.
    pub(crate) const fn is_pruning(self) -> bool {
        matches!(self, Self::PruneMagnitude | Self::PruneRandom)
    }

    /// Whether it goes step by step, on data of the theory.
    pub(crate) const fn is_iterative(self) -> bool {
        matches!(self, Self::Theory | Self::Normalised | Self::Paper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_table_order_and_names_match_serde() {
        for (at, (method, name, _)) in METHODS.iter().enumerate() {
            assert_eq!(
                (*method as usize, serde_json::to_value(method).unwrap()),
                (at, (*name).into())
            );
        }
    }
}
