//! A variant: what one column of an ablation changes, of planted data or of the settings of a
//! recipe.

use serde::{Deserialize, Serialize};

/// What a variant changes; other settings stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Variant {
    /// Its name in cells and tables, of small letters, digits and dashes; the one variant of a part
    /// may have none.
    pub(crate) name: String,
    /// How it is called in tables; its name without it.
    pub(crate) title: Option<String>,
    /// Planted data: the distribution of the rows.
    pub(crate) rows: Option<Distribution>,
    /// Planted data: normal noise on all labels, in units of their root mean square.
    pub(crate) noise: Option<f64>,
    /// Planted data: half of the output weights are -1.
    pub(crate) negative: Option<bool>,
    /// A picture: which one, in place of `data.index`.
    pub(crate) picture: Option<usize>,
    /// `lm`: whether output signs are searched for too; without it where labels are negative.
    pub(crate) free_signs: Option<bool>,
    /// `lm`: restarts from a perturbed network.
    pub(crate) kicks: Option<u32>,
    /// `lm`: products of conjugate gradients a step.
    pub(crate) products: Option<u32>,
    /// `lm`: weights above s that the search has, in percent of s.
    pub(crate) spare: Option<u32>,
    /// `lm`: most rounds of published steps after a search without an exact fit.
    pub(crate) turns: Option<u32>,
    /// `anneal`: fraction of the training rows in the validation set.
    pub(crate) validation: Option<f64>,
    /// `anneal`: size of the first support over s.
    pub(crate) start_factor: Option<f32>,
    /// `anneal`: fraction of the support that its first change drops and grows again.
    pub(crate) drop: Option<f32>,
    /// `anneal`: largest learning rate.
    pub(crate) rate: Option<f32>,
    /// `anneal`: rows of a batch.
    pub(crate) batch: Option<usize>,
    /// `anneal`: epochs.
    pub(crate) epochs: Option<u32>,
    /// All but IMP: most bytes of state and workspace.
    pub(crate) ram: Option<u64>,
}

/// The distribution of planted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    /// Standard normal.
    Gaussian,
    /// The same, neighbouring inputs correlated by 0.7.
    Correlated,
    /// Student's t with five degrees of freedom.
    StudentT,
    /// -1, 0 and 1.
    Ternary,
    /// 0 to 1.
    Uniform,
    /// The most variable pixels of the MNIST training images, 0 to 1.
    Pixels,
}

impl Variant {
    /// As people read it.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it changes planted data.
    pub(crate) const fn is_of_data(&self) -> bool {
        self.rows.is_some() || self.noise.is_some() || self.negative.is_some()
    }
}
