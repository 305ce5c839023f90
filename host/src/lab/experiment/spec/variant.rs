//! A variant: what one column of an ablation changes, of planted data or of the settings of a
//! recipe.

use serde::{Deserialize, Serialize};

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
    /// `anneal`: fraction of the training rows in the validation set; and other settings.
    pub(crate) validation: Option<f64>,
    pub(crate) start_factor: Option<f32>,
    pub(crate) drop: Option<f32>,
    pub(crate) rate: Option<f32>,
    pub(crate) batch: Option<usize>,
    pub(crate) epochs: Option<u32>,
    /// All but IMP: most bytes of state and workspace.
    pub(crate) ram: Option<u64>,
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
}
