//! How a mask is made.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tamis::network::mask::allocate::Allocation;
use tamis::network::mask::initial::Law;
use tamis::network::mask::schedule::Schedule;
use tamis::network::mask::select::Choice;

use crate::base::check_setting;
use crate::train::Budget;
use crate::{Error, Result};

/// What a weight's score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Its share of the flow through the network: no data
    Synflow,
    /// |w g|, g the gradient of the loss: labelled rows
    Snip,
    /// w (H g), H the Hessian of the loss: labelled rows
    Grasp,
    /// |w|
    Magnitude,
    /// Chance, the same density in every layer
    Random,
    /// Chance, densities by Erdős–Rényi
    Erk,
    /// |J| |w|, J the Jacobian of the outputs: rows without labels
    Ntk,
    /// |a| |w|, a the layer's input: rows without labels, each layer by itself
    Sketch,
    /// |w| after --epochs of training in each round, then back to the initial values: labelled rows
    Imp,
}

impl Method {
    /// As `--method` calls it.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether its scores are computed on rows, and whether with their labels.
    #[must_use]
    pub const fn needs(self) -> RowsNeeded {
        match self {
            Self::Snip | Self::Grasp | Self::Imp => RowsNeeded::Labelled,
            Self::Ntk | Self::Sketch => RowsNeeded::Unlabelled,
            Self::Synflow | Self::Magnitude | Self::Random | Self::Erk => RowsNeeded::None,
        }
    }

    /// Whether scores of several layers cannot be compared.
    pub(super) const fn is_by_layer(self) -> bool {
        matches!(self, Self::Random | Self::Erk | Self::Sketch)
    }

    /// Whether its scores are chance.
    pub(super) const fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::Erk)
    }
}

/// Rows that a method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsNeeded {
    /// No rows.
    None,
    /// Rows.
    Unlabelled,
    /// Rows and their labels.
    Labelled,
}

/// Among which weights the largest scores are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// All of the network
    Global,
    /// Those of each layer, which gets its share
    Layer,
}

/// What flows into the network, for method `synflow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum InputSize {
    /// 1 for every input, as published
    #[default]
    Ones,
    /// Lengths of random normal vectors, drawn anew in every round
    Chi,
    /// The root mean square of each input over the data
    PixelRms,
    /// The standard deviation of each input over the data
    PixelSd,
}

impl InputSize {
    /// Whether it comes from data.
    #[must_use]
    pub const fn needs_rows(self) -> bool {
        matches!(self, Self::PixelRms | Self::PixelSd)
    }
}

/// The law of initial weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WeightLaw {
    /// Normal with variance 2 / inputs
    #[default]
    He,
    /// Uniform in ±1 / √inputs, as PyTorch's Linear
    Pytorch,
    /// ±√(2 / inputs), one bit a weight; synflow takes sizes that differ by chance, by up to a quarter
    Signs,
}

impl From<WeightLaw> for Law {
    fn from(law: WeightLaw) -> Self {
        match law {
            WeightLaw::He => Self::HeNormal,
            WeightLaw::Pytorch => Self::Uniform,
            WeightLaw::Signs => Self::Signs,
        }
    }
}

/// How a mask is made: by default the largest scores of one round, or of as many as the method is
/// known to need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaskOptions {
    /// What a weight's score is.
    pub method: Method,
    /// Which weights are kept by their scores.
    pub choice: Choice,
    /// How many are kept.
    pub size: Budget,
    /// Rounds of pruning; none for the method's default.
    pub rounds: Option<u32>,
    /// How many weights each round leaves; none for the default.
    pub schedule: Option<Schedule>,
    /// Among which weights; none for the method's default.
    pub scope: Option<Scope>,
    /// How the weights are shared out over the layers, where each is by itself.
    pub allocation: Option<Allocation>,
    /// Weights that each layer keeps at least.
    pub least: usize,
    /// What flows into the network, for method `synflow`.
    pub input: InputSize,
    /// What logits are divided by, for method `grasp`.
    pub temperature: f32,
    /// Epochs of training in each round, for method `imp`.
    pub epochs: u32,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Whether weights from a seed are held in memory all the same, and rounds are exact.
    pub exact: bool,
}

impl MaskOptions {
    /// Rounds of `synflow` on weights in memory.
    pub const SYNFLOW_ROUNDS: u32 = 100;
    /// Rounds of `imp`: each drops 37 % of the weights where a hundredth is kept.
    pub const IMP_ROUNDS: u32 = 10;
    /// Most rounds.
    pub const MOST_ROUNDS: u32 = 10_000;

    /// The largest scores of a method, and its published settings.
    #[must_use]
    pub const fn new(method: Method, size: Budget) -> Self {
        Self {
            method,
            choice: Choice::Largest,
            size,
            rounds: None,
            schedule: None,
            scope: None,
            allocation: None,
            least: 0,
            input: InputSize::Ones,
            temperature: 200.0,
            epochs: 20,
            seed: 0,
            exact: false,
        }
    }

    pub(super) fn scope(&self) -> Scope {
        let default = if self.method.is_by_layer() { Scope::Layer } else { Scope::Global };
        self.scope.unwrap_or(default)
    }

    pub(super) fn allocation(&self) -> Allocation {
        let default = match self.method {
            Method::Erk | Method::Sketch => Allocation::ErdosRenyi,
            _ => Allocation::Uniform,
        };
        self.allocation.unwrap_or(default)
    }

    /// Rounds on weights in memory.
    pub(super) fn exact_rounds(&self) -> u32 {
        let default = match self.method {
            Method::Synflow => Self::SYNFLOW_ROUNDS,
            Method::Imp => Self::IMP_ROUNDS,
            _ => 1,
        };
        self.rounds.unwrap_or(default)
    }

    /// How many of the weights of a network are kept.
    pub(super) fn count(&self, all: usize, layers: usize) -> Result<usize> {
        let expected = "a density above 0 and below 1";
        let help = "pass --density 0.05 to keep a twentieth of the weights";
        if let Budget::Density(density) = self.size {
            check_setting(density > 0.0 && density < 1.0, expected, density, help)?;
        }
        let count = match self.size {
            Budget::Density(density) => (density * all as f64).round() as usize,
            Budget::Nonzeros(count) => count,
        };
        if count < layers || count >= all {
            let at_most = all.saturating_sub(1);
            if at_most < layers {
                return Err(Error::new("the network has too few weights for a mask")
                    .expected("more weights than layers")
                    .got(format_args!("{all} weights in {layers} layers"))
                    .help("choose wider --layers"));
            }
            return Err(Error::new("the number of weights of the mask is out of bounds")
                .expected(format_args!(
                    "{layers} to {at_most} weights: one for each layer at least, and not all"
                ))
                .got(format_args!("{count} of {all}"))
                .help("choose another --density or --nnz"));
        }
        Ok(count)
    }

    pub(super) fn check(&self) -> Result<()> {
        let rounds = self.rounds.unwrap_or(1);
        let expected = format!("--rounds 1 to {}", Self::MOST_ROUNDS);
        let help = "leave --rounds out for the method's default";
        check_setting((1..=Self::MOST_ROUNDS).contains(&rounds), expected, rounds, help)?;
        let holds = self.temperature > 0.0 && self.temperature.is_finite();
        let help = "leave --temperature out for 200, as published";
        check_setting(holds, "a --temperature above 0", self.temperature, help)?;
        check_setting(
            self.epochs > 0,
            "--epochs 1 or more",
            self.epochs,
            "leave --epochs out for 20",
        )?;
        if self.method.is_random() && self.scope == Some(Scope::Global) {
            return Err(Error::new("chance has a count for each layer")
                .mismatch("--scope layer", "--scope global")
                .help("leave --scope out; --method erk gives small layers more"));
        }
        Ok(())
    }
}
