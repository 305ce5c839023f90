//! `tamis train`

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;

use super::anneal::{self, AnnealArgs};
use super::deep::{self, DeepArgs};
use super::imp::{self, ImpArgs};
use super::paper::{self, PaperArgs};
use super::parse::{self, Recipe, SignsName, TaskName, ToKeep};
use super::path::{self, PathArgs};
use super::recover::{self, RecoverArgs};
use super::source::SourceArgs;
use super::{Common, Console, interrupt};
use crate::run::{self, KeepList, Limits, Memory, Problem, Size, Task};
use crate::{Error, Result, file};

/// Train a sparse network on your own data, to a model of at most S nonzero weights.
///
/// Ctrl-C ends the run within a step, saves the model that the steps so far have reached and exits with 130; before the
/// first step nothing is saved. During the trials the best start so far is run again first. Where rows are held out, recipe
/// anneal saves the best on them since the support has shrunk to S. A second Ctrl-C ends at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 50 -o model.tamis
  tamis train --data X.npy --labels ten-columns.npy --task regression --hidden 10 --nnz 50 -o ten.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 10,10 --nnz 50 --time-limit 60 -o two-layers.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 25,50,100 --folds 5 -o sizes
  tamis train --data X.npy --labels y.npy --task regression --hidden 20 --nnz 400 --time-limit 3600 \
      --checkpoint search.state --resume -o model.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 10 --nnz 50 --recipe paper \\
      --must-keep 0:3,0:17 -o with-two-columns.tamis
  tamis train --data table.csv --target price --task regression --hidden 20 --density 0.1 --time-limit 30 -o m.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --keep-labels 0,1 --task binary --hidden 10 --nnz 100 --time-limit 60 --ram 4M -o zero-one.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --task multiclass --hidden 32 --nnz 1000 -o digits.tamis
  tamis train --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
      --task multiclass --hidden 64,32 --nnz 1000 -o deep.tamis
  tamis train --data X.npy --labels y.npy --task regression --hidden 64,32 --nnz 500 \\
      --recipe imp --checkpoint pruning --resume -o pruned.tamis")]
pub(super) struct Train {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// What the output stands for
    #[arg(long)]
    task: TaskName,
    /// Hidden neurons; for several classes about the square root of S is a good number, such as 32 for 1000 weights. Several
    /// numbers are several hidden layers, as in 64,32: recipe imp trains them together, lm two of them for labels of one column that
    /// are not negative, and else the others one by one and then together
    #[arg(long, value_name = "M", value_delimiter = ',', required = true, value_parser = parse::whole::<usize>)]
    pub(super) hidden: Vec<usize>,
    /// Nonzero weights that the model may have. Several numbers, rising, make a model each
    #[arg(long, value_name = "S", value_delimiter = ',', required_unless_present = "density", conflicts_with = "density", value_parser = parse::whole::<usize>)]
    nnz: Vec<usize>,
    /// The same as a part of all weights, above 0 and at most 1
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    density: Option<f64>,
    /// How to train; auto is anneal for classes and lm for numbers, for fewer than 10 weights or one neuron and where one of its settings is
    /// given, paper where one of its settings is given and in place of lm with --must-keep
    #[arg(long, value_enum, default_value_t = Recipe::Auto)]
    recipe: Recipe,
    /// Weights that stay whatever their size, from INPUT to NEURON, counted from 0: neurons up to M, inputs in the order of the
    /// columns without the labels, so that 0:3,0:17 are the weights of the first neuron from the fourth column and the
    /// eighteenth. They count in S, and are in the model also where they come out as 0. @FILE stands for the names in a file, whose
    /// path has no comma: one in a line or several, with commas or blanks between them; # begins a comment. For one hidden layer and
    /// the recipes paper, paper-safe and anneal
    #[arg(long, value_name = "NEURON:INPUT|@FILE", value_delimiter = ',', value_parser = parse::to_keep)]
    must_keep: Vec<ToKeep>,
    /// The same with what the files name, once they are read.
    #[arg(skip)]
    keep_list: OnceLock<KeepList>,
    /// Signs of the output weights, but for several classes and labels of several columns [default: positive; lm: free where a label is negative]
    #[arg(long, value_enum)]
    pub(super) signs: Option<SignsName>,
    /// Neurons of a gradient panel: fewer take less memory and more time, and change the result in rounding only
    #[arg(long, value_name = "P", conflicts_with = "ram", value_parser = parse::whole::<usize>)]
    panel: Option<usize>,
    /// Most bytes for state and workspace, beside the data; with K, M or G for powers of 1024
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = parse::bytes)]
    ram: Option<u64>,
    /// The model to write; with several sizes a folder: s50.tamis and so on, path.json, path.svg, and chosen.tamis where there are folds
    #[arg(short, long, value_name = "M.tamis")]
    pub(super) output: PathBuf,
    // Last, since the heading of a group holds for all flags behind it.
    #[command(flatten)]
    pub(super) passes: PassArgs,
    #[command(flatten)]
    pub(super) held: HeldArgs,
    #[command(flatten)]
    pub(super) kept: KeptArgs,
    #[command(flatten)]
    pub(super) course: CourseArgs,
    #[command(flatten)]
    pub(super) recover: RecoverArgs,
    #[command(flatten)]
    pub(super) anneal: AnnealArgs,
    #[command(flatten)]
    pub(super) paper: PaperArgs,
    #[command(flatten)]
    pub(super) imp: ImpArgs,
    #[command(flatten)]
    pub(super) deep: DeepArgs,
    #[command(flatten)]
    pub(super) path: PathArgs,
}

/// Settings that several recipes share; the search goes without, and does not mind them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Epochs and batches (recipes paper, anneal and imp)")]
pub(super) struct PassArgs {
    /// Passes over all batches; a search (lm) has none and does not mind them: --passes-limit and --time-limit end it [default: 15; anneal: 100, and more where they are fewer than 2000 steps; imp: 20 each training]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    pub(super) epochs: Option<u32>,
    /// Rows of a batch; 0 for all rows [default: 0; anneal: a hundredth of the rows, 32 to 512; imp: 256]
    #[arg(long, value_name = "N", value_parser = parse::whole::<usize>)]
    pub(super) batch: Option<usize>,
    /// Learning rate (recipes anneal and imp) [default: anneal: at most 0.02, for inputs brought to the unit range; imp: 0.001, sgd 0.1]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    pub(super) rate: Option<f64>,
}

/// Rows held out, which the published recipe has not.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows held out (recipes lm and anneal)")]
pub(super) struct HeldArgs {
    /// Part of the rows that no step looks at, chosen by the seed: the network that is best on them is the result, of at most
    /// S weights; 0 for none [default: 0; anneal: 0.1]
    #[arg(long, value_name = "PART", value_parser = parse::number)]
    pub(super) validation: Option<f64>,
    /// End after N rounds without a better loss on the rows held out: kicks of a search on the same rows (lm), epochs on the
    /// final support (anneal); 0 for never [default: 0]
    #[arg(long, value_name = "N", value_parser = parse::whole::<u32>)]
    pub(super) patience: Option<u32>,
}

impl HeldArgs {
    /// The first flag that was given, if any.
    fn given(&self) -> Option<&'static str> {
        first_given(&[(self.validation.is_some(), "--validation"), (self.patience.is_some(), "--patience")])
    }
}

/// Runs that are ended and gone on with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints")]
pub(super) struct KeptArgs {
    /// Keep the state of the run, for --resume: in this file, written every 5 seconds at most, between two steps (lm: two stages),
    /// and when the run ends or is ended. imp: in this folder, written after every training
    #[arg(long, value_name = "PATH")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Go on from the state that --checkpoint has kept, where there is one, to the model that a run without a break would have
    /// given; with the same data and settings, but for limits, threads and outputs
    #[arg(long, requires = "checkpoint")]
    pub(super) resume: bool,
}

/// What ends a run before its last step, and what tells of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, log and picture (recipes lm, anneal and paper)")]
pub(super) struct CourseArgs {
    /// Seconds after which this run ends; what it has found until then becomes the model, which takes a little more
    #[arg(long, value_name = "SECONDS", value_parser = parse::number)]
    time_limit: Option<f64>,
    /// Passes over all rows after which the run ends in the same way, those of the parts before --resume included; bringing what a
    /// search has found to S weights can take some hundred more
    #[arg(long, value_name = "P", value_parser = parse::number)]
    passes_limit: Option<f64>,
    /// Write one JSON object per step to this file, and a last one of the result; with --resume behind the steps that it holds of the
    /// part before; of more than 10000 steps anneal logs the ends of epochs, and paper every few
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    /// Draw this run to this file: loss, support, live neurons
    #[arg(long, value_name = "FILE.svg")]
    pub(super) picture: Option<PathBuf>,
}

impl CourseArgs {
    /// The first flag that was given, if any.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.time_limit.is_some(), "--time-limit"),
            (self.passes_limit.is_some(), "--passes-limit"),
            (self.log.is_some(), "--log"),
            (self.picture.is_some(), "--picture"),
        ])
    }

    /// The first flag that was given and is not for networks of several hidden layers.
    fn one_layer_only(&self) -> Option<&'static str> {
        first_given(&[(self.log.is_some(), "--log"), (self.picture.is_some(), "--picture")])
    }

    pub(super) fn limits(&self) -> Result<Limits> {
        let limit = |flag: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value.is_finite()) => Err(Error::new("a limit is out of bounds")
                .expected(format_args!("{flag} above 0"))
                .got(value)
                .help(format!("leave {flag} out for no limit"))),
            value => Ok(value),
        };
        let seconds = limit("--time-limit", self.time_limit)?;
        let time = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        Ok(Limits { time, passes: limit("--passes-limit", self.passes_limit)? })
    }
}

/// The recipe that limits, log and picture belong to: all but the dense baseline have them.
fn told_by(recipe: Recipe, task: Task) -> Recipe {
    match recipe {
        Recipe::Imp => held_by(recipe, task),
        recipe => recipe,
    }
}

/// The recipe that rows held out belong to: the chosen one where it has such, else the one for the task.
fn held_by(recipe: Recipe, task: Task) -> Recipe {
    match (recipe, task) {
        (Recipe::Anneal, _) | (_, Task::Multiclass) => Recipe::Anneal,
        _ => Recipe::Lm,
    }
}

/// The first flag that was given, if any.
pub(super) fn first_given(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find_map(|&(given, flag)| given.then_some(flag))
}

impl Train {
    pub(super) fn run(&self, common: &Common, console: &Console) -> Result<()> {
        let task = Task::from(self.task);
        if self.passes.epochs == Some(0) {
            return Err(Error::new("training needs an epoch")
                .expected("--epochs 1 or more")
                .got(0)
                .help("leave --epochs out for the usual number; recipe lm needs none"));
        }
        if let (1, Some(flag)) = (self.hidden.len(), self.deep.given()) {
            return Err(Error::new("a setting is for networks of several hidden layers")
                .expected("several numbers for --hidden, such as 64,32")
                .got(flag)
                .help(format!("leave {flag} out")));
        }
        if let (0 | 1, Some(flag)) = (self.nnz.len(), self.path.given()) {
            return Err(Error::new("a setting is for several sizes")
                .expected("several numbers for --nnz, such as 50,100,200")
                .got(flag)
                .help(format!("leave {flag} out")));
        }
        let recipe = self.recipe(task)?;
        self.check_must_keep(recipe)?;
        match recipe {
            recipe if self.nnz.len() > 1 => path::run(self, (task, recipe), common, console),
            Recipe::Lm if self.hidden.len() == 2 && self.deep.given().is_none() => {
                recover::run(self, task, common, console)
            }
            recipe if self.hidden.len() > 1 && recipe != Recipe::Imp => {
                deep::run(self, (task, recipe), common, console)
            }
            Recipe::Anneal => anneal::run(self, task, common, console),
            recipe @ (Recipe::Paper | Recipe::PaperSafe) => paper::run(self, (task, recipe), common, console),
            Recipe::Imp => imp::run(self, task, common, console),
            Recipe::Lm | Recipe::Auto => recover::run(self, task, common, console),
        }
    }

    /// The recipe that is meant, and not auto; one that does not suit the task and settings of another one are refused.
    fn recipe(&self, task: Task) -> Result<Recipe> {
        let searched = self.recover.given().is_some() || self.signs.is_some() || self.hidden.len() > 1;
        // A search gives no weight a place that lasts.
        let kept = !self.must_keep.is_empty() && self.hidden.len() == 1 && self.recover.given().is_none();
        let published = self.paper.given().is_some() || (kept && self.signs.is_some());
        let recipe = match (self.recipe, task) {
            (Recipe::Auto, Task::Regression | Task::Binary) if published => Recipe::Paper,
            (Recipe::Auto, Task::Binary) if searched => Recipe::Lm,
            (Recipe::Auto, _) => match Recipe::usual(task, self.one_hidden(), self.size()) {
                Recipe::Lm if kept => Recipe::Paper,
                usual => usual,
            },
            (recipe, _) => recipe,
        };
        run::check_recipe(recipe.name(), task)?;
        let groups = [
            (Recipe::Lm, self.recover.given()),
            (Recipe::Anneal, self.anneal.given()),
            (if recipe == Recipe::PaperSafe { recipe } else { Recipe::Paper }, self.paper.given()),
            (Recipe::Imp, self.imp.given()),
            (if recipe == Recipe::Imp { Recipe::Lm } else { recipe }, self.deep.given()),
            // Shared by the recipes that take steps of Adam.
            (
                if recipe == Recipe::Anneal { Recipe::Anneal } else { Recipe::Imp },
                self.passes.rate.map(|_| "--rate"),
            ),
            // Shared by the recipes whose output weights are signs.
            (
                if matches!(recipe, Recipe::Paper | Recipe::PaperSafe) { recipe } else { Recipe::Lm },
                self.signs.map(|_| "--signs"),
            ),
            // Shared by the others.
            (held_by(recipe, task), self.held.given()),
            (told_by(recipe, task), self.course.given()),
        ];
        let foreign = groups.into_iter().filter(|(of, _)| *of != recipe);
        let Some((of, flag)) = foreign.filter_map(|(of, flag)| Some((of, flag?))).next() else {
            return Ok(recipe);
        };
        Err(Error::new("a setting does not belong to the recipe")
            .expected(format_args!("settings of recipe {}", recipe.name()))
            .got(flag)
            .help(match run::check_recipe(of.name(), task) {
                Ok(()) if of == Recipe::Paper && task == Task::Multiclass && flag != "--rank" => {
                    format!("leave {flag} out: it belongs to --recipe paper for one output")
                }
                Ok(()) => format!("leave {flag} out, or choose --recipe {}", of.name()),
                Err(_) => format!(
                    "leave {flag} out: it belongs to --recipe {}, which does not train for --task {}",
                    of.name(),
                    task.name()
                ),
            }))
    }

    /// Reads the weights to keep, and refuses them where there are several hidden layers, or a recipe in which weights have no place
    /// that lasts.
    fn check_must_keep(&self, recipe: Recipe) -> Result<()> {
        if self.must_keep.is_empty() {
            return Ok(());
        }
        if self.hidden.len() > 1 {
            return Err(Error::new("weights are kept in networks of one hidden layer only")
                .expected("one number for --hidden with --must-keep")
                .got(format_args!("{} hidden layers", self.hidden.len()))
                .help("leave --must-keep out, or pass one number to --hidden"));
        }
        let why = match recipe {
            Recipe::Lm | Recipe::Auto => {
                "its search moves, splits and merges neurons, so that NEURON:INPUT names no weight for long"
            }
            Recipe::Imp => "it prunes dense layers by magnitude alone, as the baseline that it is",
            Recipe::Paper | Recipe::PaperSafe | Recipe::Anneal => {
                let mut list = KeepList::default();
                for named in &self.must_keep {
                    match named {
                        ToKeep::Weight(neuron, input) => list.add(*neuron, *input),
                        ToKeep::File(path) => list.read(path)?,
                    }
                }
                self.keep_list.get_or_init(|| list);
                return Ok(());
            }
        };
        Err(Error::new(format!("recipe {} cannot keep weights whatever their size: {why}", recipe.name()))
            .expected("--recipe paper, paper-safe or anneal with --must-keep")
            .got(format_args!("recipe {}", recipe.name()))
            .help("choose --recipe paper, or leave --must-keep out"))
    }

    /// The flat indices of the weights that must be kept.
    pub(super) fn must_keep(&self, problem: &Problem) -> Result<Vec<u32>> {
        let Some(list) = self.keep_list.get() else { return Ok(Vec::new()) };
        list.flat((self.one_hidden(), problem.data.cols))
    }

    /// The neurons of the one hidden layer.
    pub(super) fn one_hidden(&self) -> usize {
        self.hidden.first().copied().unwrap_or(0)
    }

    /// The first flag that was given for a network of one hidden layer only, if any.
    pub(super) fn one_layer_only(&self) -> Option<&'static str> {
        first_given(&[(self.kept.checkpoint.is_some(), "--checkpoint")])
            .or_else(|| self.course.one_layer_only())
    }

    pub(super) fn size(&self) -> Size {
        match (self.nnz.first(), self.density) {
            (None, Some(part)) => Size::Density(part),
            (nnz, _) => Size::Nonzeros(nnz.copied().unwrap_or(0)),
        }
    }

    /// All sizes that were given as numbers.
    pub(super) fn sizes(&self) -> &[usize] {
        &self.nnz
    }

    pub(super) fn memory(&self) -> Memory {
        match (self.ram, self.panel) {
            (Some(ram), _) => Memory::Ram(ram),
            (None, Some(panel)) => Memory::Panel(panel),
            (None, None) => Memory::Auto,
        }
    }

    /// The flag that bounds the memory, if one was given.
    pub(super) fn memory_given(&self) -> Option<&'static str> {
        first_given(&[(self.ram.is_some(), "--ram"), (self.panel.is_some(), "--panel")])
    }
}

/// Writes the bytes of a model.
pub(super) fn save(path: &Path, model: &[u8]) -> Result<()> {
    interrupt::saving(|| file::write(path, |w| std::io::Write::write_all(w, model)))
}
