//! The words of a spec: methods, data, what is compared.

use serde::{Deserialize, Serialize};

use crate::data::Task;
use crate::mask::WeightLaw;

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
    /// Iterative magnitude pruning with the epochs, batches and inputs of the published figure.
    ImpPublished,
    /// Iterative magnitude pruning that is trained to its end: the settings of the part's `imp`.
    Imp,
    Zero,
    Mean,
    /// No training: eps and gamma of the rows and generators (paper IHT, Assumption 2).
    Assumption,
    /// No training: extreme eigenvalues over supports of s unit columns (Lemma 1).
    Curvature,
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
}

/// Each method as specs and files call it, and as people read it; in the order of the type.
static METHODS: [(Method, &str, &str); 25] = [
    (Method::Paper, "paper", "IHT as published"),
    (Method::PaperLeast, "paper-least", "IHT, least memory"),
    (Method::PaperSafe, "paper-safe", "IHT, safe steps"),
    (Method::PaperTrials, "paper-trials", "IHT, best of random starts"),
    (Method::Recipe, "recipe", "Tamis, default recipe"),
    (Method::ImpPublished, "imp-published", "IMP as published"),
    (Method::Imp, "imp", "IMP trained properly"),
    (Method::Zero, "zero", "zero predictor"),
    (Method::Mean, "mean", "mean predictor"),
    (Method::Assumption, "assumption", "eps and gamma"),
    (Method::Curvature, "curvature", "alpha and beta"),
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
        matches!(self, Self::Imp | Self::ImpPublished)
    }

    pub(crate) fn is_check(self) -> bool {
        self.is_sketch()
            || self.is_mask()
            || matches!(self, Self::Assumption | Self::Curvature | Self::Theory | Self::Normalised)
            || self == Self::Masked
    }

    /// Whether it measures sketched products.
    pub(crate) fn is_sketch(self) -> bool {
        (Self::SketchWeights..=Self::SketchRatio).contains(&self)
    }

    /// Whether it measures what a mask keeps.
    pub(crate) fn is_mask(self) -> bool {
        (Self::KeptSynflow..=Self::KeptUniform).contains(&self)
    }

    /// Whether it goes step by step, on data of the theory.
    pub(crate) const fn is_iterative(self) -> bool {
        matches!(self, Self::Theory | Self::Normalised | Self::Paper)
    }
}

/// What a cell learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Data {
    /// Labels of a random sparse network of the cell's sizes on standard normal rows.
    Planted {
        samples: usize,
        inputs: usize,
        outputs: usize,
        /// Further rows to test on.
        test: usize,
    },
    /// MNIST: so many images of each class, in order.
    Mnist {
        /// Two are a binary task.
        classes: Vec<u8>,
        train: usize,
        test: usize,
        /// Whether to test on the first of the 10000 in place of the next images.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        official: bool,
    },
    /// Drawn digits in place of MNIST, from a fixed seed.
    Digits { side: usize, classes: Vec<u8>, train: usize, test: usize },
    /// One picture: places to brightness.
    Image {
        from: Pictures,
        index: usize,
        /// Fourier features of a place.
        features: usize,
        /// Standard deviation of their frequencies, in turns per pixel.
        deviation: f64,
        /// The same in turns per channel, for pictures in colours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel_deviation: Option<f64>,
    },
    /// Gates of fixed generators on standard normal rows, for checks of the theory.
    Gates {
        samples: usize,
        inputs: usize,
        generators: Directions,
        /// Nonzeros of a generator, k, and of a planted neuron.
        weights: usize,
    },
    /// Measurements `y = G x` of sparse vectors, for checks of the theory.
    Gaussian { samples: usize, inputs: usize },
    /// Products `Xᵀ w` of inputs×samples rows X, for checks of sketches.
    Sketch { samples: usize, inputs: usize, weights: Law },
    /// Untrained networks whose weights masks choose, and so many pictures of each digit, 28×28, for
    /// those that take training.
    Masks { from: Pictures, hidden: Vec<usize>, train: usize },
    /// Networks that are trained under masks.
    Masked(MaskedData),
}

/// Networks that are trained under masks, and pictures of ten digits, 28×28.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaskedData {
    pub(crate) from: Pictures,
    /// Neurons of each hidden layer.
    pub(crate) hidden: Vec<usize>,
    /// Most pictures of each digit to train on, and to test on.
    pub(crate) train: usize,
    pub(crate) test: usize,
    #[serde(default)]
    pub(crate) inputs: Inputs,
    /// The law of the initial weights.
    #[serde(default)]
    pub(crate) initial: WeightLaw,
}

impl MaskedData {
    /// Widths from the inputs to the outputs.
    pub(crate) fn widths(&self) -> Vec<usize> {
        [&[784], &self.hidden[..], &[10]].concat()
    }

    /// Weights of the network.
    pub(crate) fn weights(&self) -> usize {
        let sizes = self.widths();
        sizes.windows(2).map(|pair| pair[0].saturating_mul(pair[1])).fold(0, usize::saturating_add)
    }
}

/// What a network makes of the brightness of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inputs {
    /// Bytes as fractions of 256.
    #[default]
    Raw,
    /// Their difference from the mean of all training pixels, over the standard deviation of these.
    Standardised,
}

/// The law of the weights of [`Data::Sketch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Law {
    Ones,
    Normal,
    /// Magnitudes uniform in 0.5 to 1.5, with random signs.
    Bounded,
}

/// The sign patterns of k of d inputs, `C(d, k) 2^k` (paper IHT, Theorem 7), where k and it can be.
pub(crate) fn patterns(inputs: usize, weights: usize) -> Option<usize> {
    if !(1..=inputs).contains(&weights) {
        return None;
    }
    let subsets =
        (0..weights).try_fold(1_usize, |all, i| Some(all.checked_mul(inputs - i)? / (i + 1)))?;
    subsets.checked_mul(1_usize.checked_shl(u32::try_from(weights).ok()?)?)
}

/// The generators of [`Data::Gates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Directions {
    /// All sign patterns on each k-subset of the inputs (paper IHT, Theorem 7): `C(d, k) 2^k`.
    Patterns,
    /// m random directions with k normal entries each (Theorem 6).
    Gaussian,
}

/// Where pictures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pictures {
    /// The test part of MNIST: images 5000 to 5999 of each digit, in order of the digits; 28×28.
    Mnist,
    /// Fashion-MNIST, in the same order.
    Fashion,
    /// `cifar/image0.png` and so on; 32×32 in colours.
    Cifar,
    Digits,
    /// Three drawn digits, one per colour; 32×32.
    ColourDigits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rows {
    #[default]
    Train,
    Test,
}

impl Pictures {
    /// The folder of the four files of MNIST or Fashion-MNIST.
    pub(crate) const fn idx_folder(self) -> Option<&'static str> {
        match self {
            Self::Mnist => Some("mnist"),
            Self::Fashion => Some("fashion"),
            _ => None,
        }
    }
}

impl Rows {
    /// As people read it.
    pub(crate) const fn title(self) -> &'static str {
        ["training rows", "test rows"][self as usize]
    }
}

/// What becomes of cells that cannot be, such as s above the number of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Impossible {
    #[default]
    Refuse,
    /// They are skipped, as in the published figures.
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Imp {
    /// Of each level.
    pub(crate) epochs: u32,
    /// Rows of a batch, 0 for all.
    pub(crate) batch: usize,
    pub(crate) rate: f64,
    /// Fraction of the weights that a round prunes.
    pub(crate) prune: f64,
}

impl Default for Imp {
    fn default() -> Self {
        Self { epochs: 20, batch: 256, rate: 0.001, prune: 0.1 }
    }
}

impl Data {
    pub(crate) fn task(&self) -> Task {
        match self {
            Self::Mnist { .. } | Self::Digits { .. } if self.outputs() == 1 => Task::Binary,
            Self::Mnist { .. } | Self::Digits { .. } | Self::Masks { .. } | Self::Masked(_) => {
                Task::Multiclass
            }
            _ => Task::Regression,
        }
    }

    /// Rows to train on or to measure, n, where that is a key of its own; 0 elsewhere.
    pub(crate) const fn samples(&self) -> usize {
        match self {
            Self::Planted { samples, .. }
            | Self::Gates { samples, .. }
            | Self::Gaussian { samples, .. }
            | Self::Sketch { samples, .. } => *samples,
            _ => 0,
        }
    }

    /// Columns, d.
    pub(crate) fn inputs(&self) -> usize {
        match self {
            Self::Planted { inputs, .. }
            | Self::Gates { inputs, .. }
            | Self::Gaussian { inputs, .. }
            | Self::Sketch { inputs, .. } => *inputs,
            Self::Mnist { .. } | Self::Masks { .. } | Self::Masked(_) => 784,
            Self::Digits { side, .. } => side * side,
            Self::Image { features, .. } => *features,
        }
    }

    /// Outputs, c: labels of a row, or classes.
    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Planted { outputs, .. } => *outputs,
            Self::Mnist { classes, .. } | Self::Digits { classes, .. } if classes.len() > 2 => {
                classes.len()
            }
            Self::Masks { .. } | Self::Masked(_) => 10,
            _ => 1,
        }
    }

    /// Neurons of each hidden layer, of masks.
    pub(crate) fn hidden(&self) -> &[usize] {
        if let Self::Masks { hidden, .. } = self { hidden } else { &[] }
    }

    /// Whether labels are the same in every cell.
    pub(crate) const fn is_fixed(&self) -> bool {
        !matches!(self, Self::Planted { .. })
    }

    /// Whether there are rows to test on.
    pub(crate) const fn has_test(&self) -> bool {
        match self {
            Self::Planted { test, .. } | Self::Mnist { test, .. } | Self::Digits { test, .. } => {
                *test > 0
            }
            _ => false,
        }
    }

    /// Whether a check of the theory or of masks is made on them, and no network is the result.
    pub(crate) const fn is_check(&self) -> bool {
        matches!(
            self,
            Self::Gates { .. }
                | Self::Gaussian { .. }
                | Self::Sketch { .. }
                | Self::Masks { .. }
                | Self::Masked(_)
        )
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

    #[test]
    fn patterns_are_counted_or_none() {
        assert_eq!(
            (patterns(10, 2), patterns(5, 5), patterns(3, 2)),
            (Some(180), Some(32), Some(12))
        );
        assert_eq!((patterns(3, 4), patterns(200, 100)), (None, None));
    }
}
