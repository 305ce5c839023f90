//! The words of a spec: data, and what is compared.

use serde::{Deserialize, Serialize};

use super::dense::{DenseData, Inputs, Tables};
use super::random::NetworkData;
use super::sensing::SensingData;
use crate::data::Task;
use crate::mask::WeightLaw;

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
    /// Random samples×inputs matrices, with the entries of the variant.
    Matrices {
        samples: usize,
        inputs: usize,
        /// All draws are repeated until so many entries were drawn, and figures are means over
        /// repetitions.
        #[serde(default)]
        least_entries: u64,
    },
    /// So many uniform numbers, and bins for balls.
    Numbers { samples: usize, inputs: usize },
    /// Convolutions of samples×samples maps of so many channels, with s×s filters.
    Convolutions { samples: usize, inputs: usize },
    /// Random networks whose inner layers are pruned.
    Networks(NetworkData),
    /// Matrix sensing.
    Sensing(SensingData),
    /// Dense networks that are trained on a table, whose weights are looked at.
    Dense(DenseData),
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Imp {
    /// Of each level.
    pub(crate) epochs: u32,
    /// Rows of a batch, 0 for all.
    pub(crate) batch: usize,
    pub(crate) rate: f64,
    /// Rates in its place, of which each network takes the one with the least loss on the training rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rates: Vec<f64>,
    /// Fraction of the weights that a round prunes.
    pub(crate) prune: f64,
}

impl Default for Imp {
    fn default() -> Self {
        Self { epochs: 20, batch: 256, rate: 0.001, rates: Vec::new(), prune: 0.1 }
    }
}

impl Imp {
    /// The rates that are tried.
    pub(crate) fn rates(&self) -> Vec<f64> {
        if self.rates.is_empty() { vec![self.rate] } else { self.rates.clone() }
    }
}

impl Data {
    pub(crate) fn task(&self) -> Task {
        match self {
            Self::Mnist { .. } | Self::Digits { .. } if self.outputs() == 1 => Task::Binary,
            Self::Mnist { .. }
            | Self::Digits { .. }
            | Self::Masks { .. }
            | Self::Masked(_)
            | Self::Dense(_) => Task::Multiclass,
            _ => Task::Regression,
        }
    }

    /// Rows with a class that a method is scored on, most of which there may be; 0 for numbers.
    pub(crate) fn scored(&self, on: Rows) -> usize {
        match self {
            Self::Mnist { classes, train, test, .. }
            | Self::Digits { classes, train, test, .. } => {
                classes.len() * if on == Rows::Test { *test } else { *train }
            }
            _ => 0,
        }
    }

    /// Rows to train on or to measure, n, where that is a key of its own; 0 elsewhere.
    pub(crate) const fn samples(&self) -> usize {
        match self {
            Self::Planted { samples, .. }
            | Self::Gates { samples, .. }
            | Self::Gaussian { samples, .. }
            | Self::Sketch { samples, .. }
            | Self::Matrices { samples, .. }
            | Self::Numbers { samples, .. }
            | Self::Convolutions { samples, .. }
            | Self::Sensing(SensingData { samples, .. })
            | Self::Dense(DenseData { samples, .. }) => *samples,
            _ => 0,
        }
    }

    /// Columns, d.
    pub(crate) fn inputs(&self) -> usize {
        match self {
            Self::Planted { inputs, .. }
            | Self::Gates { inputs, .. }
            | Self::Gaussian { inputs, .. }
            | Self::Sketch { inputs, .. }
            | Self::Matrices { inputs, .. }
            | Self::Numbers { inputs, .. }
            | Self::Convolutions { inputs, .. }
            | Self::Sensing(SensingData { inputs, .. }) => *inputs,
            Self::Networks(data) => data.width,
            Self::Dense(_) => Tables::COLUMNS,
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
            Self::Dense(_) => Tables::CLASSES,
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
        self.is_random()
            || matches!(
                self,
                Self::Gates { .. }
                    | Self::Gaussian { .. }
                    | Self::Sketch { .. }
                    | Self::Masks { .. }
                    | Self::Masked(_)
                    | Self::Dense(_)
            )
    }

    /// Whether it is about pruned random matrices and networks, or about matrix sensing.
    pub(crate) const fn is_random(&self) -> bool {
        matches!(
            self,
            Self::Matrices { .. }
                | Self::Numbers { .. }
                | Self::Convolutions { .. }
                | Self::Networks(_)
                | Self::Sensing(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_counted_or_none() {
        assert_eq!(
            (patterns(10, 2), patterns(5, 5), patterns(3, 2)),
            (Some(180), Some(32), Some(12))
        );
        assert_eq!((patterns(3, 4), patterns(200, 100)), (None, None));
    }
}
