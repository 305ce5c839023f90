//! What each method measures on each kind of data.

use super::super::kinds::Data;
use super::super::method::Method;
use super::super::metric::Metric;

impl Method {
    /// What it measures on such data, with the theory's value beside it.
    pub(crate) fn measures(self, data: &Data) -> &'static [Metric] {
        use Metric::*;
        match (self, data) {
            (Self::Assumption, Data::Gates { .. }) => &[Eps, Gamma, GammaLimit],
            #[rustfmt::skip]
            (Self::Curvature, Data::Gates { .. }) => &[
                Alpha, Beta, AlphaAligned, BetaAligned, AlphaOpposite, GammaLimit, BetaForm,
                AlphaLimit, BetaLimit, AlphaBound, BetaBound,
            ],
            (Self::Coverage, Data::Gates { .. }) => &[Coverage, CoverageForm, Regions, Nearest],
            (Self::Curvature, Data::Gaussian { .. }) => {
                &[Alpha, Beta, AlphaIndependent, BetaIndependent]
            }
            (Self::Theory | Self::Normalised | Self::Paper, Data::Gaussian { .. }) => {
                &[Success, Error]
            }
            #[rustfmt::skip]
            (Self::Theory | Self::Normalised | Self::Paper, Data::Gates { .. }) => &[
                Success, Error, LossLeft, Steps, StepsForm, Rate, RateForm, Straight, Alpha,
                AlphaAligned, AlphaOpposite, Beta, Inflation, Premise,
            ],
            (Self::SketchRatio, Data::Sketch { .. }) => &[UniformRatio, PrintedRatio],
            (Self::SketchNormal, Data::Sketch { .. }) => {
                &[SketchError, StandardError, ExactForm, PrintedForm, RepairedForm]
            }
            (_, Data::Sketch { .. }) if self.is_sketch() => {
                &[SketchError, StandardError, ExactForm, PrintedForm]
            }
            (_, Data::Masks { .. }) if self.is_mask() => &[KeptMagnitude, KeptScore],
            #[rustfmt::skip]
            (Self::Masked, Data::Masked(_)) => &[
                Accuracy, MaskSeconds, MaskState, CollapsedLayers, DeadWeights, Overlap,
            ],
            (Self::Norms, Data::Matrices { .. }) => {
                &[Mean, Std, Q95, Q99, Q999, Q9999, Delta95, Delta99, Delta999, Delta9999]
            }
            (Self::Constant, Data::Matrices { .. }) => {
                &[RowMoment, ColumnMoment, FourthMoment, Norm, C]
            }
            (Self::OrderFirst | Self::OrderSecond, Data::Numbers { .. }) => {
                &[Estimate, StandardError, ExactForm]
            }
            (Self::Balls, Data::Numbers { .. }) => &[Failures, FailureForm, Fullest],
            (Self::Convolution, Data::Convolutions { .. }) => {
                &[Norm, MatrixNorm, PaddedNorm, PaddedBound, PaddedRatio]
            }
            (_, Data::Convolutions { .. }) if self.is_pruning() => &[DeltaNorm],
            (_, Data::Networks(_)) if self.is_pruning() => &[DeltaNorm, SupNorm, TheoremForm],
            #[rustfmt::skip]
            (Self::Greedy, Data::Sensing(_)) => &[
                Columns, Kept, Success, PrunedError, TunedError, NoiseForm, Lambda, SmoothingBeta,
                Loss, GradientNorm, LeastCurvature, LanczosCurvature, IterateNorm, DescentSteps,
                Isometry, ClosedDirection,
            ],
            #[rustfmt::skip]
            (Self::Vanilla | Self::Truncated, Data::Sensing(_)) => &[
                Columns, NearLargest, Kept, PrunedError, TunedError, NoiseForm, Loss, GradientNorm, IterateNorm,
                DescentSteps, Isometry, Correlation,
            ],
            (Self::TrainedWeights, Data::Dense(_)) => &[Accuracy, InnerVariance, VarianceForm],
            _ => &[],
        }
    }
}
