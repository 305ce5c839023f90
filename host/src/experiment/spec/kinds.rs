//! The words of a spec: methods, data, what is compared.

use serde::{Deserialize, Serialize};

use crate::run::Task;

/// How a cell is trained, or predicted without training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Iterative hard thresholding as published.
    Paper,
    /// The same in the least memory that it can be had in, for more time; for several outputs with safe steps.
    PaperLeast,
    /// The same for several outputs, with epochs that diverge undone and the best iterate kept.
    PaperSafe,
    /// The same as published, from the best of random starts on a part of the rows.
    PaperTrials,
    /// What `tamis train --recipe auto` takes for the task.
    Recipe,
    /// Iterative magnitude pruning with the epochs, batches and inputs of the published figure.
    ImpPublished,
    /// Iterative magnitude pruning that is trained to its end: the settings of the part's `imp`.
    Imp,
    /// Zero for every row.
    Zero,
    /// The mean of the training labels for every row.
    Mean,
    /// No training: eps and gamma of the rows and generators (paper IHT, Assumption 2).
    Assumption,
    /// No training: extreme eigenvalues over supports of s unit columns (Lemma 1).
    Curvature,
    /// A planted vector recovered by the steps of Theorem 1, `2/(3 beta)` in unit columns.
    Theory,
    /// The same by normalised steps, without refinements.
    Normalised,
}

impl Method {
    /// As specs and files call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperLeast => "paper-least",
            Self::PaperSafe => "paper-safe",
            Self::PaperTrials => "paper-trials",
            Self::Recipe => "recipe",
            Self::ImpPublished => "imp-published",
            Self::Imp => "imp",
            Self::Zero => "zero",
            Self::Mean => "mean",
            Self::Assumption => "assumption",
            Self::Curvature => "curvature",
            Self::Theory => "theory",
            Self::Normalised => "normalised",
        }
    }

    /// As people read it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Paper => "IHT as published",
            Self::PaperLeast => "IHT, least memory",
            Self::PaperSafe => "IHT, safe steps",
            Self::PaperTrials => "IHT, best of random starts",
            Self::Recipe => "Tamis, usual recipe",
            Self::ImpPublished => "IMP as published",
            Self::Imp => "IMP trained properly",
            Self::Zero => "zero predictor",
            Self::Mean => "mean predictor",
            Self::Assumption => "eps and gamma",
            Self::Curvature => "alpha and beta",
            Self::Theory => "IHT, theory step",
            Self::Normalised => "IHT, normalised step",
        }
    }

    /// Whether it looks at nothing but the labels.
    #[must_use]
    pub const fn is_constant(self) -> bool {
        matches!(self, Self::Zero | Self::Mean)
    }

    /// Whether it is the published method on data to train on, in any of its variants.
    #[must_use]
    pub const fn is_published(self) -> bool {
        matches!(self, Self::Paper | Self::PaperLeast | Self::PaperSafe | Self::PaperTrials)
    }

    /// Whether the dense network is trained and pruned.
    #[must_use]
    pub const fn is_dense(self) -> bool {
        matches!(self, Self::Imp | Self::ImpPublished)
    }

    /// Whether it checks the theory, and is no way to train.
    #[must_use]
    pub const fn is_check(self) -> bool {
        matches!(self, Self::Assumption | Self::Curvature | Self::Theory | Self::Normalised)
    }

    /// Whether it goes step by step, on data of the theory.
    #[must_use]
    pub const fn is_iterative(self) -> bool {
        matches!(self, Self::Theory | Self::Normalised | Self::Paper)
    }
}

/// What a cell learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Data {
    /// Labels of a random sparse network of the cell's m and s, with as many hidden layers as the part, on standard normal rows.
    Planted {
        /// Rows to train on.
        samples: usize,
        /// Columns, d.
        inputs: usize,
        /// Outputs, c.
        outputs: usize,
        /// Further rows to test on.
        test: usize,
    },
    /// MNIST: of each class so many images to train on and the next ones to test on, the 60000 + 10000 images in order.
    Mnist {
        /// Digits; two are a binary task.
        classes: Vec<u8>,
        /// Images of each class to train on.
        train: usize,
        /// Images of each class to test on, at most.
        test: usize,
    },
    /// Drawn digits in place of MNIST, from a fixed seed.
    Digits {
        /// Pixels of a side.
        side: usize,
        /// Digits; two are a binary task.
        classes: Vec<u8>,
        /// Images of each class to train on.
        train: usize,
        /// Images of each class to test on.
        test: usize,
    },
    /// One picture: places to brightness.
    Image {
        /// Which pictures.
        from: Pictures,
        /// Which of them, from 0.
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
        /// Rows, n, where the part has no axis of them.
        samples: usize,
        /// Columns, d, where the part has no axis of them.
        inputs: usize,
        /// Which generators.
        generators: Directions,
        /// Nonzeros of a generator, k, and of a planted neuron.
        weights: usize,
    },
    /// Measurements `y = G x` of sparse vectors, for checks of the theory.
    Gaussian {
        /// Measurements, n, where the part has no axis of them.
        samples: usize,
        /// Entries of x, where the part has no axis of them.
        inputs: usize,
    },
}

/// The generators of [`Data::Gates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// All sign patterns on each k-subset of the inputs (paper IHT, Theorem 7): `C(d, k) 2^k`.
    Patterns,
    /// m random directions with k normal entries each (Theorem 6).
    Gaussian,
}

/// Where pictures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pictures {
    /// The test part of MNIST: images 5000 to 5999 of each digit, in order of the digits; 28×28.
    Mnist,
    /// `cifar/image0.png` and so on; 32×32 in colours.
    Cifar,
    /// A drawn digit; 28×28.
    Digits,
    /// Three drawn digits, one per colour; 32×32.
    ColourDigits,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// `20 log10(max|y|) - 10 log10(MSE)`, in dB; means over seeds are taken in dB.
    Psnr,
    /// Part of the rows whose class is right.
    Accuracy,
    /// Part of the rows that the gate of the fewest is open on (paper IHT, Assumption 2).
    Eps,
    /// Part of the rows on which the two gates differ that differ on the fewest (Assumption 2).
    Gamma,
    /// What gamma comes to on ever more normal rows: the smallest angle between generators, in units of π.
    GammaLimit,
    /// Smallest eigenvalue of `A_S^T A_S` over random supports of unit columns (Lemma 1).
    Alpha,
    /// Largest eigenvalue over them; in recoveries over aligned supports too.
    Beta,
    /// Smallest eigenvalue over supports of the columns of one input.
    AlphaAligned,
    /// Largest eigenvalue over them.
    BetaAligned,
    /// `(s + 1)/2`, what beta is over supports of one input where two gates share half of their rows.
    BetaForm,
    /// `(1 - sqrt(s/n))²`, n the open rows: the form of the bound, as for independent columns.
    AlphaIndependent,
    /// `(1 + sqrt(s/n))²`.
    BetaIndependent,
    /// `|w - w*|₂ / |w*|₂`; of several draws the median.
    Error,
    /// Part of the draws, and of the seeds, whose error is below 1e-3.
    Success,
    /// The loss at the end, in parts of that of w = 0.
    LossLeft,
    /// Steps until the loss has fallen to 1e-8 of its start.
    Steps,
    /// `(beta/alpha) ln(1e8)`, the form of Theorem 1 without its constant.
    StepsForm,
    /// Decades that the loss falls at a step, of the line of least squares.
    Rate,
    /// `-2 log10(1 - 2 alpha / (3 beta))`, what alpha and beta promise on a support that stays.
    RateForm,
    /// r² of that line.
    Straight,
    /// `32 (beta/alpha)²`, alpha over random supports: by how much Theorem 1 asks the budget to be inflated.
    Inflation,
}

impl Metric {
    /// All, in the order of tables.
    pub const ALL: [Self; 21] = [
        Self::Psnr,
        Self::Accuracy,
        Self::Eps,
        Self::Gamma,
        Self::GammaLimit,
        Self::Alpha,
        Self::Beta,
        Self::AlphaAligned,
        Self::BetaAligned,
        Self::BetaForm,
        Self::AlphaIndependent,
        Self::BetaIndependent,
        Self::Error,
        Self::Success,
        Self::LossLeft,
        Self::Steps,
        Self::StepsForm,
        Self::Rate,
        Self::RateForm,
        Self::Straight,
        Self::Inflation,
    ];

    /// As specs and files call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Psnr => "psnr",
            Self::Accuracy => "accuracy",
            Self::Eps => "eps",
            Self::Gamma => "gamma",
            Self::GammaLimit => "gamma-limit",
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::AlphaAligned => "alpha-aligned",
            Self::BetaAligned => "beta-aligned",
            Self::BetaForm => "beta-form",
            Self::AlphaIndependent => "alpha-independent",
            Self::BetaIndependent => "beta-independent",
            Self::Error => "error",
            Self::Success => "success",
            Self::LossLeft => "loss-left",
            Self::Steps => "steps",
            Self::StepsForm => "steps-form",
            Self::Rate => "rate",
            Self::RateForm => "rate-form",
            Self::Straight => "straight",
            Self::Inflation => "inflation",
        }
    }

    /// With its unit.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Psnr => "PSNR, dB",
            Self::Accuracy => "accuracy",
            Self::Eps => "eps",
            Self::Gamma => "gamma",
            Self::GammaLimit => "gamma, n → ∞",
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::AlphaAligned => "alpha, one input",
            Self::BetaAligned => "beta, one input",
            Self::BetaForm => "(s + 1)/2",
            Self::AlphaIndependent => "(1 − √(s/n))²",
            Self::BetaIndependent => "(1 + √(s/n))²",
            Self::Error => "relative error",
            Self::Success => "part recovered",
            Self::LossLeft => "loss left",
            Self::Steps => "steps to 1e-8",
            Self::StepsForm => "(β/α) ln 1e8",
            Self::Rate => "decades a step",
            Self::RateForm => "decades by α and β",
            Self::Straight => "r² of the line",
            Self::Inflation => "32 (β/α)²",
        }
    }

    /// Digits behind the point in pictures and tables.
    #[must_use]
    pub const fn digits(self) -> (usize, usize) {
        match self {
            Self::Psnr => (0, 1),
            Self::Accuracy => (3, 4),
            Self::Success => (2, 2),
            Self::Steps | Self::StepsForm | Self::Inflation => (0, 0),
            _ => (3, 4),
        }
    }

    /// Whether a check of the theory measures it.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        !matches!(self, Self::Psnr | Self::Accuracy)
    }
}

/// Which rows the metric is taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rows {
    /// Those trained on.
    #[default]
    Train,
    /// Those held back.
    Test,
}

impl Rows {
    /// As people read it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Train => "training rows",
            Self::Test => "test rows",
        }
    }
}

/// What becomes of cells that cannot be, such as s above the number of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impossible {
    /// The spec is refused.
    #[default]
    Refuse,
    /// They are left out, as in the published figures.
    Skip,
}

/// How iterative magnitude pruning is trained properly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imp {
    /// Epochs of each level.
    #[serde(default = "Imp::epochs")]
    pub epochs: u32,
    /// Rows of a batch, 0 for all.
    #[serde(default = "Imp::batch")]
    pub batch: usize,
    /// Rate of Adam.
    #[serde(default = "Imp::rate")]
    pub rate: f64,
    /// Part of the weights that a round prunes.
    #[serde(default = "Imp::prune")]
    pub prune: f64,
}

impl Imp {
    const fn epochs() -> u32 {
        20
    }

    const fn batch() -> usize {
        256
    }

    const fn rate() -> f64 {
        0.001
    }

    const fn prune() -> f64 {
        0.1
    }
}

impl Default for Imp {
    fn default() -> Self {
        Self { epochs: Self::epochs(), batch: Self::batch(), rate: Self::rate(), prune: Self::prune() }
    }
}

impl Data {
    pub(super) const NONE: Self = Self::Planted { samples: 1, inputs: 1, outputs: 1, test: 0 };

    /// What the labels mean.
    #[must_use]
    pub fn task(&self) -> Task {
        match self {
            Self::Mnist { classes, .. } | Self::Digits { classes, .. } if classes.len() == 2 => Task::Binary,
            Self::Mnist { .. } | Self::Digits { .. } => Task::Multiclass,
            _ => Task::Regression,
        }
    }

    /// Columns, d.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match self {
            Self::Planted { inputs, .. } | Self::Gates { inputs, .. } | Self::Gaussian { inputs, .. } => {
                *inputs
            }
            Self::Mnist { .. } => 784,
            Self::Digits { side, .. } => side * side,
            Self::Image { features, .. } => *features,
        }
    }

    /// Outputs, c: labels of a row, or classes.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self {
            Self::Planted { outputs, .. } => *outputs,
            Self::Mnist { classes, .. } | Self::Digits { classes, .. } if classes.len() > 2 => classes.len(),
            _ => 1,
        }
    }

    /// Whether labels are the same in every cell.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        !matches!(self, Self::Planted { .. })
    }

    /// Whether there are rows to test on.
    #[must_use]
    pub const fn has_test(&self) -> bool {
        match self {
            Self::Planted { test, .. } | Self::Mnist { test, .. } | Self::Digits { test, .. } => *test > 0,
            _ => false,
        }
    }

    /// Whether a check of the theory is made on them, and nothing is trained.
    #[must_use]
    pub const fn is_check(&self) -> bool {
        matches!(self, Self::Gates { .. } | Self::Gaussian { .. })
    }
}
