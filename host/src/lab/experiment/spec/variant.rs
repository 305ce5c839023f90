//! A variant: what one column of an ablation changes, of planted data or of the settings of a
//! recipe.

use serde::{Deserialize, Serialize};

/// What a variant changes; other settings stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Variant {
    /// Its name in cells and tables, of small letters, digits and dashes; the one variant of a part
    /// may have none.
    pub name: String,
    /// How it is called in tables; its name without it.
    pub title: Option<String>,
    /// Planted data: the distribution of the rows.
    pub rows: Option<Distribution>,
    /// Planted data: normal noise on all labels, in units of their root mean square.
    pub noise: Option<f64>,
    /// Planted data: half of the output weights are -1.
    pub negative: Option<bool>,
    /// A picture: which one, in place of `data.index`.
    pub picture: Option<usize>,
    /// `lm`: whether output signs are searched for too; without it where labels are negative.
    pub free_signs: Option<bool>,
    /// `lm`: restarts from a perturbed network.
    pub kicks: Option<u32>,
    /// `lm`: products of conjugate gradients a step.
    pub products: Option<u32>,
    /// `lm`: weights above s that the search has, in percent of s.
    pub spare: Option<u32>,
    /// `lm`: most rounds of published steps after a search without an exact fit.
    pub turns: Option<u32>,
    /// `anneal`: fraction of the training rows in the validation set.
    pub validation: Option<f64>,
    /// `anneal`: size of the first support over s.
    pub start_factor: Option<f32>,
    /// `anneal`: fraction of the support that its first change drops and grows again.
    pub drop: Option<f32>,
    /// `anneal`: largest learning rate.
    pub rate: Option<f32>,
    /// `anneal`: rows of a batch.
    pub batch: Option<usize>,
    /// `anneal`: epochs.
    pub epochs: Option<u32>,
    /// All but IMP: most bytes of state and workspace.
    pub ram: Option<u64>,
}

/// The distribution of planted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
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
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it changes planted data.
    #[must_use]
    pub const fn is_of_data(&self) -> bool {
        self.rows.is_some() || self.noise.is_some() || self.negative.is_some()
    }
}
