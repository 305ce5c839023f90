//! What is measured of a cell, and compared.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// `20 log10(max|y|) - 10 log10(MSE)`, in dB; means over seeds are taken in dB.
    Psnr,
    /// Fraction of the rows whose class is right.
    Accuracy,
    /// Fraction of the rows that the gate of the fewest is active on (paper IHT, Assumption 2).
    Eps,
    /// Fraction of the rows on which the two gates differ that differ on the fewest (Assumption 2).
    Gamma,
    GammaLimit,
    /// Smallest eigenvalue of `A_S^T A_S` over random supports of unit columns (Lemma 1).
    Alpha,
    /// Largest eigenvalue over them; in recoveries over aligned supports too.
    Beta,
    /// Smallest eigenvalue over supports of the columns of one input.
    AlphaAligned,
    BetaAligned,
    BetaForm,
    /// Smallest eigenvalue over supports with one input under h, -h, h' and -h'.
    AlphaOpposite,
    /// `1 - √(1 - gamma)` for many rows, what Lemma 1's bound comes to.
    AlphaLimit,
    BetaLimit,
    /// `1 - √(1 - gamma) - s/n^(1/4)`, Lemma 1 with a constant of 1; none below 0.
    AlphaBound,
    BetaBound,
    AlphaIndependent,
    BetaIndependent,
    Error,
    /// Fraction of the draws, and of the seeds, whose error is below 1e-3; of planted networks whose
    /// mean squared error on the test rows is at most 1e-8 of the labels' mean square.
    Success,
    /// The loss at the end, over that of w = 0.
    LossLeft,
    /// Steps until the loss has fallen to 1e-8 of its start.
    Steps,
    StepsForm,
    /// Decades that the loss falls at a step, of the line of least squares.
    Rate,
    /// `-2 log10(1 - 2 alpha / (3 beta))`, what alpha and beta promise on a support that stays.
    RateForm,
    Straight,
    /// `32 (beta/alpha)²` of the least alpha, the inflation of the budget that Theorem 1 asks for.
    Inflation,
    /// Whether iterates have as many nonzeros as that.
    Premise,
    /// Fraction of the drawn neurons whose gate some generator has, on all rows.
    Coverage,
    /// What it is for one and for two inputs a generator.
    CoverageForm,
    /// The regions that the rows cut the k-sparse directions into.
    Regions,
    /// Fraction of the rows on which the nearest generator differs from a drawn neuron.
    Nearest,
    /// The mean of `|Xᵀ(m ⊙ w) - Xᵀ w|²` over masks m.
    SketchError,
    /// The standard error of that mean.
    StandardError,
    /// What that mean is, in closed form.
    ExactForm,
    /// What the paper prints for it.
    PrintedForm,
    /// The printed form with `|w|₁` in place of `|w|₂`.
    RepairedForm,
    /// The exact form over that of uniform masks.
    UniformRatio,
    /// The printed form over that of uniform masks.
    PrintedRatio,
    /// Mean magnitude of the weights that a mask keeps, over that of all.
    KeptMagnitude,
    /// Their share of the sum of all `SynFlow` scores of the dense network.
    KeptScore,
    /// Whether a fit's error is one that single precision cannot tell from 0.
    Exact,
    /// Whether every planted weight was found and no other, for one hidden layer and one output.
    OneToOne,
    /// Fraction of the planted weights that were found.
    WeightsFound,
    /// Weights found that stand for no planted one.
    ExtraWeights,
    /// Mean squared error on the test rows over the noise of their labels; 1 for the planted network.
    LossOverNoise,
    /// Accuracy on the validation set of a recipe.
    ValidationAccuracy,
    /// Seconds that a mask took.
    MaskSeconds,
    /// Bytes that live between the rounds of a mask.
    MaskState,
    /// Layers that no path leads through, or that have one weight only because rounds keep one.
    CollapsedLayers,
    /// Weights of a mask that lie on no path from an input to an output.
    DeadWeights,
    /// Fraction of the weights of a mask from a seed that 100 rounds in memory keep too.
    Overlap,
    Mean,
    Std,
    Q95,
    Q99,
    Q999,
    Q9999,
    /// `ln(2/(1 - q))/(4 n)` (paper PROB, Lemma 3).
    Delta95,
    Delta99,
    Delta999,
    Delta9999,
    /// `max_i √(Σ_j E A_ij²)`.
    RowMoment,
    ColumnMoment,
    /// `(Σ E A_ij⁴)^(1/4)`.
    FourthMoment,
    Norm,
    /// The norm over the sum of the three moments.
    C,
    Estimate,
    /// Fraction of the draws whose fullest bin has more than three times the mean.
    Failures,
    FailureForm,
    Fullest,
    /// That of a circular convolution as a matrix of its own.
    MatrixNorm,
    PaddedNorm,
    PaddedBound,
    /// That with zero padding over that of the circular convolution.
    PaddedRatio,
    /// The spectral norm of what pruning takes from a layer, the most of all.
    DeltaNorm,
    /// The largest difference of outputs found on the unit ball.
    SupNorm,
    TheoremForm,
    /// Columns whose norm is above half of the largest.
    Columns,
    /// Columns whose norm is above 0.99 of the largest.
    NearLargest,
    /// Columns after pruning.
    Kept,
    Loss,
    GradientNorm,
    Lambda,
    SmoothingBeta,
    /// `|U Uᵀ - U* U*ᵀ|_F` of the pruned model.
    PrunedError,
    TunedError,
    /// For p free numbers: `rd - r(r - 1)/2` of a pruned model, `kd` of any other.
    NoiseForm,
    /// The least eigenvalue of the Hessian.
    LeastCurvature,
    LanczosCurvature,
    /// Over all steps, from above.
    IterateNorm,
    DescentSteps,
    /// Of norms of columns with `|<U*, u>|` at the start.
    Correlation,
    /// The largest relative error of measured norms over random matrices of the rank.
    Isometry,
    /// Whether lambda is so large that a column of 0 has no way down in the weakest direction of the
    /// target: of singular values that are all alike, whether zero is a local minimum.
    ClosedDirection,
    /// The largest variance of the weights of a layer, of those between the first and the last.
    InnerVariance,
    /// 3 over the width: that of the uniform law that the theory of random weights is for.
    VarianceForm,
    /// The rate of the optimiser that was chosen.
    LearningRate,
}

/// Name in specs and files, title, and digits in pictures and in tables, in the order of the type.
static METRICS: [(Metric, &str, &str, (usize, usize)); 97] = [
    (Metric::Psnr, "psnr", "PSNR, dB", (0, 1)),
    (Metric::Accuracy, "accuracy", "accuracy", (3, 4)),
    (Metric::Eps, "eps", "eps", (3, 4)),
    (Metric::Gamma, "gamma", "gamma", (3, 4)),
    (Metric::GammaLimit, "gamma-limit", "gamma, n → ∞", (3, 4)),
    (Metric::Alpha, "alpha", "alpha", (3, 4)),
    (Metric::Beta, "beta", "beta", (3, 4)),
    (Metric::AlphaAligned, "alpha-aligned", "alpha, one input", (3, 4)),
    (Metric::BetaAligned, "beta-aligned", "beta, one input", (3, 4)),
    (Metric::BetaForm, "beta-form", "(s + 1)/2", (3, 4)),
    (Metric::AlphaOpposite, "alpha-opposite", "alpha, opposite gates", (3, 4)),
    (Metric::AlphaLimit, "alpha-limit", "1 − √(1 − γ)", (3, 4)),
    (Metric::BetaLimit, "beta-limit", "1 + √(1 − γ)", (3, 4)),
    (Metric::AlphaBound, "alpha-bound", "1 − √(1 − γ) − s/n^¼", (3, 4)),
    (Metric::BetaBound, "beta-bound", "1 + √(1 − γ) + s/n^¼", (3, 4)),
    (Metric::AlphaIndependent, "alpha-independent", "(1 − √(s/n))²", (3, 4)),
    (Metric::BetaIndependent, "beta-independent", "(1 + √(s/n))²", (3, 4)),
    (Metric::Error, "error", "relative error", (3, 4)),
    (Metric::Success, "success", "fraction recovered", (2, 2)),
    (Metric::LossLeft, "loss-left", "loss left", (3, 4)),
    (Metric::Steps, "steps", "steps to 1e-8", (0, 0)),
    (Metric::StepsForm, "steps-form", "(β/α) ln 1e8", (0, 0)),
    (Metric::Rate, "rate", "decades a step", (3, 4)),
    (Metric::RateForm, "rate-form", "decades by α and β", (3, 4)),
    (Metric::Straight, "straight", "r² of the line", (3, 4)),
    (Metric::Inflation, "inflation", "32 (β/α)²", (0, 0)),
    (Metric::Premise, "premise", "enough nonzeros", (2, 2)),
    (Metric::Coverage, "coverage", "fraction covered", (3, 4)),
    (Metric::CoverageForm, "coverage-form", "its expectation", (3, 4)),
    (Metric::Regions, "regions", "regions", (0, 0)),
    (Metric::Nearest, "nearest", "nearest gate, share of rows", (3, 5)),
    (Metric::SketchError, "sketch-error", "error", (3, 4)),
    (Metric::StandardError, "standard-error", "standard error", (3, 4)),
    (Metric::ExactForm, "exact-form", "exact form", (3, 4)),
    (Metric::PrintedForm, "printed-form", "as printed", (3, 4)),
    (Metric::RepairedForm, "repaired-form", "with |w|₁", (3, 4)),
    (Metric::UniformRatio, "uniform-ratio", "error over uniform", (3, 4)),
    (Metric::PrintedRatio, "printed-ratio", "the same as printed", (3, 4)),
    (Metric::KeptMagnitude, "kept-magnitude", "mean |w| kept, over all", (2, 3)),
    (Metric::KeptScore, "kept-score", "share of the scores", (3, 4)),
    (Metric::Exact, "exact", "exact", (2, 2)),
    (Metric::OneToOne, "one-to-one", "one to one", (2, 2)),
    (Metric::WeightsFound, "weights-found", "weights found", (2, 3)),
    (Metric::ExtraWeights, "extra-weights", "extra weights", (0, 0)),
    (Metric::LossOverNoise, "loss-over-noise", "loss over noise", (2, 4)),
    (Metric::ValidationAccuracy, "validation-accuracy", "validation accuracy", (3, 4)),
    (Metric::MaskSeconds, "mask-seconds", "seconds of the mask", (2, 2)),
    (Metric::MaskState, "mask-state", "state of the mask, bytes", (0, 0)),
    (Metric::CollapsedLayers, "collapsed-layers", "collapsed layers", (1, 1)),
    (Metric::DeadWeights, "dead-weights", "dead weights", (0, 0)),
    (Metric::Overlap, "overlap", "overlap with 100 rounds", (3, 3)),
    (Metric::Mean, "mean", "mean", (3, 4)),
    (Metric::Std, "std", "standard deviation", (3, 4)),
    (Metric::Q95, "q95", "95 % quantile", (3, 4)),
    (Metric::Q99, "q99", "99 % quantile", (3, 4)),
    (Metric::Q999, "q999", "99.9 % quantile", (3, 4)),
    (Metric::Q9999, "q9999", "99.99 % quantile", (3, 4)),
    (Metric::Delta95, "delta95", "δ of 95 %", (3, 4)),
    (Metric::Delta99, "delta99", "δ of 99 %", (3, 4)),
    (Metric::Delta999, "delta999", "δ of 99.9 %", (3, 4)),
    (Metric::Delta9999, "delta9999", "δ of 99.99 %", (3, 4)),
    (Metric::RowMoment, "row-moment", "rows", (3, 4)),
    (Metric::ColumnMoment, "column-moment", "columns", (3, 4)),
    (Metric::FourthMoment, "fourth-moment", "fourth moment", (3, 4)),
    (Metric::Norm, "norm", "spectral norm", (3, 4)),
    (Metric::C, "c", "constant C", (3, 4)),
    (Metric::Estimate, "estimate", "mean of the draws", (3, 5)),
    (Metric::Failures, "failures", "fraction above 3 N/n", (3, 4)),
    (Metric::FailureForm, "failure-form", "n^(−1/3)", (3, 4)),
    (Metric::Fullest, "fullest", "fullest bin over the mean", (2, 3)),
    (Metric::MatrixNorm, "matrix-norm", "norm of the matrix", (3, 4)),
    (Metric::PaddedNorm, "padded-norm", "norm, zero padding", (3, 4)),
    (Metric::PaddedBound, "padded-bound", "its bound, p + q − 1", (3, 4)),
    (Metric::PaddedRatio, "padded-ratio", "zero padding over circular", (3, 4)),
    (Metric::DeltaNorm, "delta-norm", "|W − Ŵ|₂", (3, 4)),
    (Metric::SupNorm, "sup-norm", "sup |f − F|", (3, 4)),
    (Metric::TheoremForm, "theorem-form", "theorem, without its constant", (3, 4)),
    (Metric::Columns, "columns", "columns above half", (0, 1)),
    (Metric::NearLargest, "near-largest", "columns above 0.99", (0, 1)),
    (Metric::Kept, "kept", "columns left", (0, 1)),
    (Metric::Loss, "loss", "loss", (3, 6)),
    (Metric::GradientNorm, "gradient-norm", "norm of the gradient", (3, 6)),
    (Metric::Lambda, "lambda", "lambda", (3, 5)),
    (Metric::SmoothingBeta, "smoothing-beta", "beta of the group lasso", (3, 5)),
    (Metric::PrunedError, "pruned-error", "error, pruned", (3, 5)),
    (Metric::TunedError, "tuned-error", "error, tuned", (3, 5)),
    (Metric::NoiseForm, "noise-form", "σ √(p/n)", (3, 5)),
    (Metric::LeastCurvature, "least-curvature", "least eigenvalue", (3, 6)),
    (Metric::LanczosCurvature, "lanczos-curvature", "the same by Lanczos", (3, 6)),
    (Metric::IterateNorm, "iterate-norm", "largest |U|₂", (3, 4)),
    (Metric::DescentSteps, "descent-steps", "steps", (0, 0)),
    (Metric::Correlation, "correlation", "correlation", (5, 7)),
    (Metric::Isometry, "isometry", "isometry error", (3, 4)),
    (Metric::ClosedDirection, "closed-direction", "weakest direction closed", (0, 0)),
    (Metric::InnerVariance, "inner-variance", "largest variance of an inner layer", (4, 5)),
    (Metric::VarianceForm, "variance-form", "3/m", (4, 5)),
    (Metric::LearningRate, "learning-rate", "rate of Adam", (4, 5)),
];

impl Metric {
    /// All, in the order of tables.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        METRICS.iter().map(|about| about.0)
    }

    pub(crate) fn name(self) -> &'static str {
        METRICS[self as usize].1
    }

    pub(crate) fn title(self) -> &'static str {
        METRICS[self as usize].2
    }

    /// Digits behind the point in pictures and tables.
    pub(crate) fn digits(self) -> (usize, usize) {
        METRICS[self as usize].3
    }

    /// Whether records have it by name, in `measured`; the others are of the scores of a training.
    pub(crate) const fn is_measured(self) -> bool {
        !matches!(self, Self::Psnr | Self::Accuracy)
    }

    /// Whether it can be had of a training.
    pub(crate) fn is_of_training(self) -> bool {
        self.is_yes_or_no()
            || matches!(self, Self::Psnr | Self::Accuracy)
            || (Self::Exact..=Self::Overlap).contains(&self)
            || self == Self::LearningRate
    }

    /// Whether a cell has it or has it not, so that seeds are counted.
    pub(crate) const fn is_yes_or_no(self) -> bool {
        matches!(self, Self::Success | Self::Exact | Self::OneToOne)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_table_order_and_names_match_serde() {
        for (at, (metric, name, ..)) in METRICS.iter().enumerate() {
            assert_eq!(
                (*metric as usize, serde_json::to_value(metric).unwrap()),
                (at, (*name).into())
            );
        }
    }
}
