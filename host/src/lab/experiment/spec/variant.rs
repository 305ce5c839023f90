//! A variant: what one column of an ablation changes, of planted data or of the settings of a
//! recipe.

use serde::{Deserialize, Serialize};

use super::random::Entries;
use super::sensing::Sensed;
use crate::mask::{self, InputSize};

/// What a variant changes; other settings stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Variant {
    /// In cells and tables; the one variant of a part may have none.
    pub(crate) name: String,
    /// In tables, in place of the name.
    pub(crate) title: Option<String>,
    pub(crate) rows: Option<Distribution>,
    /// Planted data: normal noise on all labels, in units of their root mean square.
    pub(crate) noise: Option<f64>,
    /// Planted data: half of the output weights are -1.
    pub(crate) negative: Option<bool>,
    /// A picture: which one, in place of `data.index`.
    pub(crate) picture: Option<usize>,
    /// Sketches: normal numbers of this deviation on all weights, after the mask is drawn.
    pub(crate) movement: Option<f64>,
    /// `lm`: whether output signs are searched for; without it where labels are negative.
    pub(crate) free_signs: Option<bool>,
    /// `lm`: restarts from a perturbed network.
    pub(crate) kicks: Option<u32>,
    pub(crate) products: Option<u32>,
    /// `lm`: weights above s that the search has, in percent of s.
    pub(crate) spare: Option<u32>,
    /// `lm`: most rounds of published steps after a search without an exact fit.
    pub(crate) turns: Option<u32>,
    /// `lm`: steps of Adam before the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) adam_steps: Option<u32>,
    /// `paper`: steps from one change of the gates to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh: Option<u32>,
    /// `paper`: whether gates stay random to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) convex: Option<bool>,
    /// `paper`, several layers: whether the weights of a layer that are thrown away go to the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) give_back: Option<bool>,
    /// `anneal`: fraction of the training rows in the validation set; and other settings.
    pub(crate) validation: Option<f64>,
    pub(crate) start_factor: Option<f32>,
    pub(crate) drop: Option<f32>,
    pub(crate) rate: Option<f32>,
    pub(crate) batch: Option<usize>,
    pub(crate) epochs: Option<u32>,
    /// All but IMP: most bytes of state and workspace.
    pub(crate) ram: Option<u64>,
    /// Data of kind `masked`: the mask.
    pub(crate) mask: Option<MaskSpec>,
    /// Data of kind `masked`: sparse training of one hidden layer of so many neurons by the default
    /// recipe, where a mask is given from one of as many weights as the first support has.
    pub(crate) neurons: Option<usize>,
    /// Random matrices and networks: their entries, and which are pruned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entries: Option<Entries>,
    /// Data of kind `sensing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sensing: Option<Sensed>,
}

/// How a mask is made; the settings are those of `tamis mask`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaskSpec {
    pub(crate) method: mask::Method,
    /// None for the method's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rounds: Option<u32>,
    /// Epochs of training in each round, for method `imp`; none for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epochs: Option<u32>,
    /// Whether rounds are on weights in memory where they need not be.
    #[serde(default)]
    pub(crate) exact: bool,
    /// What flows into the network, for method `synflow`.
    #[serde(default)]
    pub(crate) input: InputSize,
    /// What weights are scored on, where the method takes rows.
    #[serde(default)]
    pub(crate) rows: ScoreData,
    /// Whether weights are drawn by their scores, and not those of the largest kept.
    #[serde(default)]
    pub(crate) sample: bool,
}

/// What weights are scored on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScoreData {
    /// Training rows.
    #[default]
    Data,
    /// Normal rows of their mean and deviation, and random labels.
    Random,
    /// The same, every input 0 in all rows but one.
    Sparse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    Gaussian,
    /// The same, neighbouring inputs correlated by 0.7.
    Correlated,
    /// Student's t with five degrees of freedom.
    StudentT,
    Ternary,
    Uniform,
    /// The most variable pixels of the MNIST training images, 0 to 1.
    Pixels,
}

impl Variant {
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it changes planted data.
    pub(crate) const fn is_of_data(&self) -> bool {
        self.rows.is_some() || self.noise.is_some() || self.negative.is_some()
    }

    /// Whether it says how many weights are chosen of a network.
    pub(crate) const fn is_of_masks(&self) -> bool {
        self.mask.is_some() || self.neurons.is_some()
    }
}
