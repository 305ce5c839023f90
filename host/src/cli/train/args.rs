//! The flags of `tamis train`.

use std::path::PathBuf;

use clap::Args;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::optimiser::Optimiser;
use tamis::learn::train::Rank;
use tamis::network::gates::{Empty, Signs};

use super::super::parse::{
    self, AugmentName, DeviceName, EMPTY, MOMENTS, OPTIMISERS, RecipeName, SIGNS, SUPPORTS, ToPin,
};
use super::super::settings::Given;
use super::super::source::SourceArgs;
use crate::convert::named::Layout;
use crate::data::Task;
use crate::mask::WeightLaw;
use crate::train::{Moments, Scale, SupportRule};

/// Train a sparse network on your own data, to a model of at most S nonzero weights.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings of tables and recipes: tamis train --help --recipe lm (dynamic, paper, imp, masked, …)
Ctrl-C ends the run within a step and saves the model that was reached.

Examples:
  tamis train --data table.csv --target diagnosis --nnz 20 -o m.tamis
  tamis train --data X.npy --labels y.npy --task multiclass --hidden 32 --nnz 999 -o m.tamis")]
pub(crate) struct Train {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// regression, binary or multiclass [default: as the labels are]
    #[arg(long, value_name = "TASK", value_enum, hide_possible_values = true)]
    pub(super) task: Option<Task>,
    /// Hidden neurons; M1,M2,… a layer each; 0: linear [default: by S]
    #[arg(long, value_name = "M", value_delimiter = ',', conflicts_with = "mask",
          value_parser = parse::whole::<usize>)]
    pub(super) hidden: Vec<usize>,
    /// Nonzero weights of the model; S1,S2,… rising, for a model each
    #[arg(long, value_name = "S", value_delimiter = ',',
          conflicts_with_all = ["density", "mask"], value_parser = parse::whole::<usize>)]
    pub(super) nnz: Vec<usize>,
    /// The same as a fraction of all weights, above 0 and at most 1
    #[arg(long, value_name = "FRACTION", conflicts_with = "mask", value_parser = parse::number)]
    pub(super) density: Option<f64>,
    /// Map columns: none, standard, minmax; auto: standard if needed
    #[arg(long, value_name = "SCALE", value_enum, hide_possible_values = true,
          hide_default_value = true, default_value_t = Scale::Auto)]
    pub(super) scale: Scale,
    /// Train the weights that a mask keeps (made by tamis mask)
    #[arg(long, value_name = "MASK")]
    pub(super) mask: Option<PathBuf>,
    /// dynamic, lm, anneal, paper, paper-safe, imp, masked, group, auto
    #[arg(long, value_name = "RECIPE", value_enum, hide_possible_values = true,
          hide_default_value = true, default_value_t = RecipeName::Auto)]
    pub(super) recipe: RecipeName,
    /// Pinned weights, which are never pruned: 0:3 is the one from the fourth column to the
    /// first neuron; @FILE names them in a file, one in a line or several, with commas or blanks
    /// between them, and # begins a comment. They count in S. For one hidden layer and the recipes
    /// paper, paper-safe and anneal
    #[arg(long, value_name = "NEURON:INPUT|@FILE", value_delimiter = ',',
          value_parser = parse::to_pin)]
    pub(super) must_keep: Vec<ToPin>,
    /// The settings that were given and not every recipe takes.
    #[arg(skip)]
    pub(crate) given: Given,
    /// Signs of the output weights (not for several classes or columns of labels) [default: positive;
    /// lm: free where a label is negative]
    #[arg(long, value_parser = parse::named(SIGNS))]
    pub(super) signs: Option<Signs>,
    /// Neurons of a gradient panel: fewer take less memory and more time, and change the result in
    /// rounding only
    #[arg(long, value_name = "P", conflicts_with = "ram", value_parser = parse::whole::<usize>)]
    pub(super) panel: Option<usize>,
    /// Most bytes of state and workspace, beside the data; with K, M or G
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = parse::bytes)]
    pub(super) ram: Option<u64>,
    /// Where to train: cpu, gpu, or auto, which takes a GPU for large problems (recipes lm, anneal,
    /// paper and paper-safe, one hidden layer or two that are searched for; imp, masked in gpu/dense)
    /// [default: cpu]
    #[arg(long, value_name = "DEVICE", value_enum, hide_possible_values = true)]
    pub(super) device: Option<DeviceName>,
    /// The GPU, by its name or a part of it (tamis devices lists them) [default: the first one]
    #[arg(long, value_name = "NAME", requires = "device")]
    pub(super) adapter: Option<String>,
    /// Say what memory training would take, and train nothing
    #[arg(long)]
    pub(super) plan: bool,
    /// Time the kernels of the GPU, and say what each of them took
    #[arg(long, requires = "device")]
    pub(super) profile: bool,
    /// The model to write; for several sizes a folder
    #[arg(
        short,
        long,
        value_name = "M.tamis",
        required = false,
        required_unless_present = "plan",
        default_value_if("plan", clap::builder::ArgPredicate::IsPresent, "unnamed.tamis")
    )]
    pub(super) output: PathBuf,
    // Last, since the heading of a group holds for all flags behind it.
    #[command(flatten)]
    pub(super) passes: PassArgs,
    #[command(flatten)]
    pub(super) validation: ValidationArgs,
    #[command(flatten)]
    pub(super) checkpoints: CheckpointArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) lm: LmArgs,
    #[command(flatten)]
    pub(super) anneal: AnnealArgs,
    #[command(flatten)]
    pub(super) paper: PaperArgs,
    #[command(flatten)]
    pub(super) imp: ImpArgs,
    #[command(flatten)]
    pub(super) masked: MaskedArgs,
    #[command(flatten)]
    pub(super) layers: LayersArgs,
    #[command(flatten)]
    pub(super) path: PathArgs,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Epochs and batches (recipes paper, anneal, dynamic, imp and masked)"
)]
pub(super) struct PassArgs {
    /// Passes over all batches; --passes-limit and --time-limit end a search (lm) [default: 15;
    /// anneal: 100, and more where they are fewer than 2000 steps; dynamic: 20, and more where they
    /// are fewer than 6000; imp: 20 each training; masked: 10]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    pub(super) epochs: Option<u32>,
    /// Rows of a batch; 0 for all rows [default: 0; anneal: a hundredth of the rows, 32 to 512;
    /// imp: 256; dynamic: a hundredth of the rows, 32 to 128; masked: 128]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) batch: Option<usize>,
    /// Change rows a little whenever they are read (recipe dynamic): images, or images=28x28, for
    /// pictures that are moved, turned, stretched and bent; noise=D adds normal numbers of that
    /// deviation
    #[arg(long, value_name = "HOW", value_parser = parse::augment)]
    pub(super) augment: Option<AugmentName>,
    /// How the support shrinks and moves (recipe dynamic) [default: anneal]
    #[arg(long, value_parser = parse::named(SUPPORTS))]
    pub(super) support: Option<SupportRule>,
    /// How Adam's moments are held (recipe dynamic): bf16 takes 4 bytes a weight less [default: f32]
    #[arg(long, value_parser = parse::named(MOMENTS))]
    pub(super) moments: Option<Moments>,
    /// Learning rate (recipes anneal, dynamic, imp and masked) [default: anneal: at most 0.02, for inputs
    /// brought to the unit range; dynamic: 0.02, from S = 3500 on 0.01; imp and masked: adam
    /// 0.001, sgd 0.1]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    pub(super) rate: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Validation split (recipes lm, anneal and dynamic)")]
pub(super) struct ValidationArgs {
    /// Fraction of the rows for the validation split, chosen by the seed: the network of at most S
    /// weights that is best on it is the result; 0 for none [default: 0; anneal:
    /// 0.1]
    #[arg(long, value_name = "FRACTION", value_parser = parse::number)]
    pub(super) validation: Option<f64>,
    /// Early stopping after N perturbations of a search (lm) or epochs on the final support
    /// (anneal; dynamic: in the last fifth of the epochs) without a better loss on the validation split;
    /// 0 for never [default: 0]
    #[arg(long, value_name = "N", value_parser = parse::whole::<u32>)]
    pub(super) patience: Option<u32>,
    /// Random starts that are trained, of which the best on the validation split is the result (dynamic)
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = parse::whole::<u32>)]
    pub(super) starts: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints")]
pub(super) struct CheckpointArgs {
    /// Save checkpoints to this file (imp: folder), for --resume
    #[arg(long, value_name = "PATH")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Resume from the checkpoint, if there is one; bit-identical result
    #[arg(long, requires = "checkpoint")]
    pub(super) resume: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, log and picture (recipes dynamic, lm, anneal and paper)")]
pub(super) struct LimitArgs {
    /// End each training after so many seconds, with the model that was reached
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    pub(super) time_limit: Option<f64>,
    /// End after so many passes over all rows, those before --resume included; a search can take
    /// some hundred more to bring its network to S weights
    #[arg(long, value_name = "P", value_parser = parse::number)]
    pub(super) passes_limit: Option<f64>,
    /// Write one JSON object per step to this file, and a last one of the result; with --resume
    /// behind the steps that it holds; of more than 10000 steps anneal logs the ends of epochs, and
    /// paper every few
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    /// Draw this run to this file: loss, support, live neurons
    #[arg(long, value_name = "FILE.svg")]
    pub(super) picture: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Search (recipe lm)")]
pub(super) struct LmArgs {
    /// Rows that the search looks at first [default: 20 a nonzero, at least 1000; 10 a nonzero for
    /// large models]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) search_rows: Option<usize>,
    /// Perturbations: restarts of a search that found no better network, from its best one with
    /// some neurons dropped [default: 40; 0 for two classes with one neuron, or one hidden
    /// layer and up to 32 nonzeros]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) kicks: Option<u32>,
    /// Steps of Adam before the search, in which neurons may point either way, for one output [default: 20 S from
    /// S = 300 and 10 S rows on, else 0]
    #[arg(long, value_name = "N", value_parser = parse::whole::<u32>)]
    pub(super) adam_steps: Option<u32>,
    /// Perturbations without progress after which a search that is far from exact is given up
    /// [default: 12]
    #[arg(long, value_name = "K", value_parser = parse::whole::<u32>)]
    pub(super) idle_kicks: Option<u32>,
    /// Most alternations of steps of the published method and a search from there, after a search
    /// without an exact fit; 0 for none. For one output with positive signs and no validation
    /// split, and as long as they gain a hundredth of the loss; two classes are fitted to 0 and 1 then. The search leaves a share of the
    /// limits for them [default: 10; 0 for two classes with one neuron, or one hidden
    /// layer and up to 32 nonzeros]
    #[arg(long, value_name = "T", value_parser = parse::whole::<u32>)]
    pub(super) turns: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Classes (recipes anneal and dynamic)")]
pub(super) struct AnnealArgs {
    /// Entries of the first support in units of S; --ram may lower it [default: 10;
    /// dynamic: 3 to 10, fewer of large S]
    #[arg(long, value_name = "F", value_parser = parse::number)]
    pub(super) start_factor: Option<f64>,
    /// Fraction of the support that the first change of it drops and grows again, from 0 to 1
    /// [default: 0.3]
    #[arg(long, value_name = "FRACTION", value_parser = parse::number)]
    pub(super) drop: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Published method (recipe paper)")]
pub(super) struct PaperArgs {
    /// Random starts tried on some of the rows, of which the best continues; 1 for the published
    /// method alone [default: 32, of several outputs 8]
    #[arg(long, value_name = "R", value_parser = parse::whole::<u32>)]
    pub(super) trials: Option<u32>,
    /// Rows of a trial [default: 2000]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) trial_rows: Option<usize>,
    /// Step size: normalised, theory or fixed:ETA [default: normalised]
    #[arg(long, value_parser = parse::step)]
    pub(super) step: Option<Step>,
    /// Refinement on the chosen weights after each step: armijo, cg or none; cg:K takes K steps
    /// [default: armijo]
    #[arg(long, value_parser = parse::refine)]
    pub(super) refine: Option<Refine>,
    /// What becomes of neurons that lose all weights [default: freeze]
    #[arg(long, value_parser = parse::named(EMPTY))]
    pub(super) empty: Option<Empty>,
    /// Steps from one change of the gates to the next, once they follow the weights [default: 1]
    #[arg(long, value_name = "STEPS", value_parser = parse::whole::<u32>)]
    pub(super) refresh: Option<u32>,
    /// Keep random gates to the end: a convex problem, of whose answer the network is the weights
    #[arg(long, conflicts_with = "refresh")]
    pub(super) convex: bool,
    /// How the weights that stay are chosen where there are several outputs: exact, by their
    /// magnitudes, or sketch, by the sums of all their steps in a count sketch, which sketch:DECAY
    /// multiplies by DECAY before each step [default: sketch]
    #[arg(long, value_parser = parse::rank)]
    pub(super) rank: Option<Rank>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Dense baseline and masks (recipes imp and masked)")]
pub(super) struct ImpArgs {
    /// Fraction of the weights that each round prunes by magnitude [default: 0.1]
    #[arg(long, alias = "prune-part", value_name = "FRACTION", conflicts_with = "one_shot", value_parser = parse::number)]
    pub(super) prune_fraction: Option<f64>,
    /// Prune to S weights in one round
    #[arg(long)]
    pub(super) one_shot: bool,
    /// Set surviving weights back to those at the start of this epoch of the first training
    /// [default: 0, the initial ones]
    #[arg(long, value_name = "EPOCH", value_parser = parse::whole::<u32>)]
    pub(super) rewind: Option<u32>,
    /// How a gradient becomes a step [default: adam; masked: sgd]
    #[arg(long, value_parser = parse::named(OPTIMISERS))]
    pub(super) optimiser: Option<Optimiser>,
    /// Momentum of sgd [default: 0.9]
    #[arg(long, value_name = "FRACTION", value_parser = parse::number)]
    pub(super) momentum: Option<f64>,
    /// Weight decay, which shrinks weights as ridge regression does [default: 0; dynamic: 0.1, with
    /// --augment images and 3500 nonzeros or more 0.05, above 60,000 rows less, on small data by
    /// cross-validation]
    #[arg(long, visible_alias = "ridge", value_name = "DECAY", value_parser = parse::number)]
    pub(super) weight_decay: Option<f64>,
    /// Epochs of a level, counted from 0, at which the rate falls [default: none; masked: half and
    /// three quarters of all]
    #[arg(long, value_name = "E,E2…", value_delimiter = ',', value_parser = parse::whole::<u32>)]
    pub(super) rate_falls: Option<Vec<u32>>,
    /// What the rate is multiplied by when it falls [default: 0.1]
    #[arg(long, value_name = "FACTOR", value_parser = parse::number)]
    pub(super) rate_factor: Option<f64>,
    /// The output is the sum of the last hidden neurons, as in the figures of the paper; for one
    /// output
    #[arg(long)]
    pub(super) sum_output: bool,
    /// Take bytes as 0 to 255, as published, and do not bring them to the unit range for training
    #[arg(long)]
    pub(super) raw_inputs: bool,
    /// Rows to score after every level (imp), or in the end
    #[arg(long, value_name = "F[,F2…]")]
    pub(super) test_data: Option<PathBuf>,
    /// Labels of --test-data; without it they are in its column --target
    #[arg(long, value_name = "F[,F2…]", requires = "test_data")]
    pub(super) test_labels: Option<PathBuf>,
    /// Save mask and weights of every level to a file of their own in the folder of --checkpoint
    #[arg(long, requires = "checkpoint")]
    pub(super) keep_levels: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Masks (recipe masked)")]
pub(super) struct MaskedArgs {
    /// Initial weights and biases of the mask's network: NPZ, safetensors or ONNX [default: those
    /// of --seed]
    #[arg(long, value_name = "FILE", requires = "mask")]
    pub(super) weights: Option<PathBuf>,
    /// Which way weights lie in the file
    #[arg(long, value_enum, default_value_t = Layout::Auto, requires = "weights")]
    pub(super) layout: Layout,
    /// The law of weights from --seed
    #[arg(long, value_enum, default_value_t = WeightLaw::He, requires = "mask",
          conflicts_with = "weights")]
    pub(super) init: WeightLaw,
    /// First steps, over which the rate rises linearly (recipes masked and dynamic) [default: 100, or a
    /// tenth of them all; dynamic: 200, or a twentieth]
    #[arg(long, value_name = "STEPS", value_parser = parse::whole::<u32>)]
    pub(super) warmup: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Several hidden layers (recipes lm, anneal and paper)")]
pub(super) struct LayersArgs {
    /// Epochs that all layers are fitted together, on the support that each got by itself; 0 for
    /// none. Given, two layers are trained one by one too, where recipe lm would search for both at
    /// once [default: 20]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    pub(super) tune_epochs: Option<u32>,
    /// The first step of that fit, in units of the size of a layer's weights [default: 0.02]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    pub(super) tune_rate: Option<f64>,
    /// Weights that layers are trained to by lm and anneal, in units of s; all layers together are
    /// then brought down to s, level by level. Of several factors one after the other is tried
    /// until the labels are fitted exactly, and the best network is the result [default: 3,2,4; 3
    /// for classes; 1 with --ram or --tune-epochs 0]
    #[arg(long, value_name = "FACTOR", value_delimiter = ',', value_parser = parse::number)]
    pub(super) grow: Vec<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Regularisation path (--nnz S1,S2… -o FOLDER)")]
pub(super) struct PathArgs {
    /// Train every size by itself; without it each starts from the network of the size before
    /// (recipes lm, and paper for one output)
    #[arg(long)]
    pub(super) cold: bool,
    /// Folds of cross-validation: the least size whose mean loss is within a standard error of the
    /// least one is chosen; 0 for no choice [default: 0]
    #[arg(long, value_name = "K", value_parser = parse::whole::<usize>)]
    pub(super) folds: Option<usize>,
}
