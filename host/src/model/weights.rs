//! The weights of a model in numbers and pictures: how they are distributed in each layer.

use serde::{Deserialize, Serialize};
use tamis::infer::model::Layer;

use super::ModelFile;
use crate::Result;

/// What the stored weights of a layer are like; none of a layer that has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightStats {
    /// Stored weights.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their variance: the mean square of their difference from the mean.
    pub variance: f64,
    /// The least of them.
    pub least: f32,
    /// The largest.
    pub largest: f32,
}

impl WeightStats {
    /// Of these weights; none of none.
    ///
    /// ```
    /// use tamis_host::model::WeightStats;
    /// let of = WeightStats::of(&[1.0, 3.0]).unwrap();
    /// assert_eq!((of.mean, of.variance, of.least, of.largest), (2.0, 1.0, 1.0, 3.0));
    /// assert!(WeightStats::of(&[]).is_none());
    /// ```
    #[must_use]
    pub fn of(weights: &[f32]) -> Option<Self> {
        let (least, largest) = weights
            .iter()
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &w| (low.min(w), high.max(w)));
        let count = weights.len() as f64;
        let mean = weights.iter().map(|&w| f64::from(w)).sum::<f64>() / count;
        let square = weights.iter().map(|&w| (f64::from(w) - mean).powi(2)).sum::<f64>();
        (!weights.is_empty()).then_some(Self {
            count: weights.len(),
            mean,
            variance: square / count,
            least,
            largest,
        })
    }
}

impl ModelFile {
    /// The stored weights of each layer; none of a sum of outputs, whose weights are signs.
    ///
    /// # Errors
    /// The model is one of integers.
    pub fn weights(&self) -> Result<Vec<Vec<f32>>> {
        let model = self.in_rows()?;
        let view = model.view()?;
        let stored = |layer: &Layer<'_>| match layer {
            Layer::Csr(csr) => csr.values().to_vec(),
            _ => Vec::new(),
        };
        Ok(view.model().layers().iter().map(stored).collect())
    }
}
