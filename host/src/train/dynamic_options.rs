//! Settings of recipe `dynamic`, and what they are by default.

use std::sync::Arc;

use serde::Serialize;
use tamis::learn::deep::dynamic::{Moments, Params};

use crate::base::check_setting;
use crate::data::Problem;
use crate::data::augment::{Changes, PictureChanges, PictureSize};
use crate::train::check::{at_least_one, check_patience};
use crate::{Error, Result};

/// How the support shrinks and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SupportRule {
    /// It begins larger, shrinks, and moves meanwhile.
    #[default]
    Anneal,
    /// Gradual magnitude pruning: all weights of the dense network at first, and none is grown.
    Gmp,
    /// `RigL`: as many weights all the time; those of the largest gradients are grown.
    Rigl,
    /// `SET`: the same with random growth.
    Set,
    /// After sparse momentum: gradients over ten batches, and layers that become larger and smaller.
    Momentum,
}

impl SupportRule {
    /// Its settings.
    const fn params(self, nnz: usize) -> Params {
        let own = Params::new(nnz);
        match self {
            Self::Anneal => Params { factor: DynamicOptions::default_factor(nnz), ..own },
            // As many as there are.
            Self::Gmp => Params { factor: f32::MAX, ..own.gradual() },
            Self::Rigl => own.rigl(),
            Self::Set => own.set(),
            Self::Momentum => own.momentum(),
        }
    }
}

/// How rows are changed whenever they are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Augmentation {
    /// They are pictures of this size, changed as suits the nonzeros ([`PictureChanges::for_nnz`]).
    Images(PictureSize),
    /// By amounts that are given.
    Changes(Changes),
}

impl Augmentation {
    /// What is done to rows for a network of so many nonzeros.
    pub(crate) const fn changes(self, nnz: usize) -> Changes {
        match self {
            Self::Images(size) => Changes::Pictures(PictureChanges::for_nnz(size, nnz)),
            Self::Changes(changes) => changes,
        }
    }
}

/// Inputs and outputs of a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

/// Settings of recipe `dynamic`; those that are none suit the nonzeros.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DynamicOptions {
    /// Passes over all rows; none for 20.
    pub epochs: Option<u32>,
    /// Rows of a batch, 0 for all; none for 128.
    pub batch: Option<usize>,
    /// The rate after the warm-up.
    pub rate: Option<f32>,
    /// Weight decay, decoupled from the gradient.
    pub decay: Option<f32>,
    /// First steps, over which the rate rises; none for 200.
    pub warmup: Option<u32>,
    /// How the support shrinks and moves.
    pub support: SupportRule,
    /// How Adam's moments are held.
    pub moments: Moments,
    /// Weights at the start, in units of s.
    pub factor: Option<f32>,
    /// Whether bytes are taken as 0 to 255, and not as fractions of 256.
    pub raw: bool,
    /// Share of the rows for the validation split, chosen by the seed; 0 for none. The result is the network
    /// that is best on it after an epoch of the last fifth, when the support has its last size.
    pub validation: f64,
    /// Such epochs without a better loss on the validation split after which a run ends; 0 for never.
    pub patience: u32,
    /// Trainings with seeds of their own, of which the one that is best on the validation split is the result; none for
    /// one.
    pub starts: Option<u32>,
    /// How rows are changed whenever they are read; none for not at all.
    pub augment: Option<Augmentation>,
    /// Rows that are scored in the end.
    pub test: Option<Arc<Problem>>,
}

impl DynamicOptions {
    /// Refuses what the core would refuse, in the words of the command line.
    pub(crate) fn check(&self) -> Result<()> {
        let holds = self.epochs != Some(0);
        check_setting(holds, "--epochs 1 or more", 0, "leave --epochs out for 20 or more")?;
        let all = [
            (self.factor, 1.0, f32::MAX, "--start-factor 1 or more", "from 3 to 10 are best"),
            (self.rate, f32::MIN_POSITIVE, f32::MAX, "--rate above 0", "leave --rate out for 0.02"),
            (self.decay, 0.0, 1e3, "--weight-decay 0 to 1000", "leave --weight-decay out for 0.1"),
        ];
        for (value, least, most, expected, help) in all {
            if let Some(value) = value {
                check_setting((least..=most).contains(&value), expected, value, help)?;
            }
        }
        check_patience(self.patience, self.validation)?;
        at_least_one("--starts", self.starts() as usize, "leave --starts out for one")?;
        if self.starts() > 1 && self.validation == 0.0 {
            return Err(Error::new(
                "several starts need a validation split, by which the best is chosen",
            )
            .expected("--starts with --validation above 0")
            .got(format_args!("--starts {} without it", self.starts()))
            .help("pass --validation 0.1 too, or leave --starts out"));
        }
        let rate = self.rate.unwrap_or(0.02);
        let decay = self.decay.unwrap_or(Params::new(1).decay);
        let help = "choose a smaller --weight-decay or --rate";
        let expected = "a product of --rate and --weight-decay below 1";
        check_setting(rate * decay < 1.0, expected, rate * decay, help)
    }

    /// How many trainings.
    pub(crate) fn starts(&self) -> u32 {
        self.starts.unwrap_or(1)
    }

    /// Passes over so many rows.
    pub(crate) fn passes(&self, nnz: usize, rows: usize) -> u32 {
        self.params(nnz, rows, 0).epochs
    }

    /// Whether pictures are augmented, of which a network of so many nonzeros learns more than of fixed ones.
    fn is_large_for_pictures(&self, nnz: f64) -> bool {
        let changes = self.augment.map(|of| of.changes(nnz as usize));
        nnz >= Self::LARGE as f64 && matches!(changes, Some(Changes::Pictures(_)))
    }

    /// Neurons of each hidden layer, of s nonzeros between such ends; other recipes have one layer of `one`.
    pub(crate) fn default_hidden(&self, nnz: f64, ends: Ends, one: usize) -> Vec<usize> {
        let is_narrow = nnz >= 8.0 * ends.inputs as f64 && nnz >= 24.0 * ends.outputs as f64;
        if !is_narrow && !self.is_large_for_pictures(nnz) {
            // A support that moves makes use of more neurons (MNIST, s = 1000: 96.4 %, 96.8 % with
            // three times as many; Fashion-MNIST 86.1 % and 86.7 %).
            return vec![(3 * one).min(Self::MOST_NEURONS).max(one)];
        }
        // Where inputs are few for s, weights are worth more between neurons (Covertype, s = 2000: 83 %, and 86 %),
        // and where pictures are augmented (MNIST, s = 5322: 98.7 % and 98.9 %).
        let first = (5.0 * nnz).sqrt().round() as usize;
        let first = first.clamp(4, Self::MOST_NEURONS);
        vec![first, first / 2]
    }

    /// The settings for so many nonzeros and rows to train on.
    pub(crate) fn params(&self, nnz: usize, rows: usize, seed: u64) -> Params {
        let own = self.support.params(nnz);
        // About a hundred batches an epoch, or more.
        let batch = self.batch.unwrap_or_else(|| (rows / 100).clamp(32, own.batch));
        let batch = if batch == 0 { rows } else { batch.min(rows) };
        let steps = rows.div_ceil(batch.max(1)).min(Self::LEAST_STEPS) as u32;
        let more = (Self::LEAST_STEPS as u32 / steps.max(1)).min(Self::MOST_EPOCHS);
        let epochs = self.epochs.unwrap_or_else(|| own.epochs.max(more));
        let steps = epochs.saturating_mul(steps);
        // As much in each epoch, however many steps that has.
        let many = Self::MANY_ROWS.max(rows as f32);
        // Rows that change regularise, too.
        let decay =
            if self.is_large_for_pictures(nnz as f64) { 0.5 * own.decay } else { own.decay };
        Params {
            factor: self.factor.unwrap_or(own.factor),
            epochs,
            batch,
            rate: self.rate.unwrap_or(Self::default_rate(nnz)),
            decay: self.decay.unwrap_or(decay * Self::MANY_ROWS / many),
            warmup: self.warmup.unwrap_or_else(|| own.warmup.min(steps / 20)),
            every: own.every.min(steps / 60).max(1),
            moments: self.moments,
            patience: self.patience,
            constant: true,
            seed,
            ..own
        }
    }

    /// Steps that a training has, as far as [`Self::MOST_EPOCHS`] go: few rows take more epochs.
    const LEAST_STEPS: usize = 6000;
    const MOST_EPOCHS: u32 = 200;
    /// Nonzeros of a large network.
    const LARGE: usize = 3500;
    /// Rows from which on the weight decay falls.
    const MANY_ROWS: f32 = 60_000.0;
    /// Neurons of a layer, by default, of other recipes too.
    pub(crate) const MOST_NEURONS: usize = 1000;

    /// More weights at the start help most where few are left.
    const fn default_factor(nnz: usize) -> f32 {
        (20_000.0 / nnz as f32).clamp(3.0, 10.0)
    }

    /// Smaller steps for larger networks; the same for every rule of the support, whose validation rows were right
    /// most often with these and the same weight decay, or within 1 % of it (MNIST, of 19 settings).
    const fn default_rate(nnz: usize) -> f32 {
        if nnz < Self::LARGE { 0.02 } else { 0.01 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn layers_by_default_follow_what_inputs_and_outputs_have() {
        let hidden = |nnz, inputs, outputs, one| {
            DynamicOptions::default().default_hidden(nnz, Ends { inputs, outputs }, one)
        };
        // MNIST, Covertype, letters and a table of one input.
        assert_eq!(hidden(1000.0, 784, 10, 32), [96]);
        assert_eq!(hidden(2000.0, 54, 7, 45), [100, 50]);
        assert_eq!(hidden(500.0, 16, 26, 22), [66]);
        assert_eq!(hidden(624.0, 16, 26, 25), [56, 28]);
        assert_eq!(hidden(24.0, 1, 1, 12), [11, 5]);
        // As many as there may be, or more where few inputs need them.
        assert_eq!(hidden(1e6, 784, 10, 1000), [1000, 500]);
        assert_eq!(hidden(1e6, 200_000, 10, 1500), [1500]);
    }

    #[test]
    fn large_networks_of_changed_pictures_have_two_layers_and_less_weight_decay() {
        let images = Some(Augmentation::Images(PictureSize::square(28)));
        let own = DynamicOptions { augment: images, ..Default::default() };
        let ends = Ends { inputs: 784, outputs: 10 };
        assert_eq!(own.default_hidden(5322.0, ends, 73), [163, 81]);
        assert_eq!(own.default_hidden(1000.0, ends, 32), [96]);
        let decay = |nnz| own.params(nnz, 60_000, 0).decay;
        assert_eq!([decay(1000), decay(5322)], [0.1, 0.05]);
        let noise = Some(Augmentation::Changes(Changes::Noise(0.1)));
        let noise = DynamicOptions { augment: noise, ..own };
        assert_eq!(noise.default_hidden(5322.0, ends, 73), [219]);
        assert_eq!(noise.params(5322, 60_000, 0).decay, 0.1);
    }

    #[test]
    fn many_rows_have_as_much_weight_decay_in_an_epoch() {
        let decay = |rows| DynamicOptions::default().params(1000, rows, 0).decay;
        assert_eq!([decay(100), decay(60_000), decay(240_000)], [0.1, 0.1, 0.025]);
        let own = DynamicOptions { decay: Some(0.3), ..DynamicOptions::default() };
        assert_eq!(own.params(1000, 240_000, 0).decay, 0.3);
    }
}
