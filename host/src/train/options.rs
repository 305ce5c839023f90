//! Options of training, and the recipes with their settings.

use std::path::PathBuf;
use std::time::Duration;

use tamis::learn::anneal;
use tamis::learn::deep::{shrink, tune};

use crate::base::limits::Limits;
use crate::data::{Problem, Task};
use crate::operator::Device;
use crate::train::budget::{Budget, Memory};
use crate::train::check::{dense_weights, weighted_outputs, weights_between};
use crate::train::dense::Head;
use crate::train::dense::job::ImpSettings;
use crate::train::dynamic_options::{DynamicOptions, Ends};
use crate::train::lm_options::LmOptions;
use crate::train::masked::MaskedSettings;
use crate::train::paper_options::PaperOptions;
use crate::train::pinned::PinnedWeights;
use crate::train::scaling::{Scale, Scaling};
use crate::{Error, Result};

/// How to train. A [`Budget`] alone converts into the default options.
///
/// ```
/// use tamis_host::{Budget, Options};
/// let options = Options { hidden: vec![16], seed: 3, ..Options::new(Budget::nnz(40)) };
/// assert!(options.checkpoint.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// How many weights stay, over all layers.
    pub budget: Budget,
    /// Neurons of each hidden layer; empty for what suits the recipe and s, 0 alone for none: a linear model.
    pub hidden: Vec<usize>,
    /// What trains.
    pub recipe: Recipe,
    /// How several hidden layers are trained one by one; none for the default, in which recipe `lm`
    /// searches for two at once where it can.
    pub layers: Option<LayersOptions>,
    /// Weights that stay whatever their size: one hidden layer, recipes `paper` and `anneal`.
    pub pinned: PinnedWeights,
    /// How columns are mapped before training.
    pub scale: Scale,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// How much memory to take.
    pub memory: Memory,
    /// Threads; 0 for one per core. They never change the result.
    pub threads: usize,
    /// Where `lm`, `anneal` and `paper` train; all else, and layers one by one, are on the CPU.
    pub device: Device,
    /// Limits of time and passes; what was reached until then is the result.
    pub limits: Limits,
    /// Where checkpoints are written, if they are.
    pub checkpoint: Option<CheckpointOptions>,
}

/// Where checkpoints are written: a file, or for recipe `imp` a folder.
#[derive(Debug, Clone)]
pub struct CheckpointOptions {
    /// The file or folder.
    pub path: PathBuf,
    /// Resume from the checkpoint that is there, if there is one.
    pub resume: bool,
    /// Least time between two writes.
    pub every: Duration,
    /// Hears once of a checkpoint that cannot be written; the last one is an error of the run.
    pub on_error: fn(&Error),
}

impl CheckpointOptions {
    /// Checkpoints in this file, from which the run resumes where there is one.
    #[must_use]
    pub fn resume(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), resume: true, every: Duration::from_secs(5), on_error: |_| () }
    }
}

impl Options {
    /// The default recipe on all cores, with seed 0 and no limits.
    #[must_use]
    pub const fn new(budget: Budget) -> Self {
        Self {
            budget,
            hidden: Vec::new(),
            recipe: Recipe::Auto,
            layers: None,
            pinned: PinnedWeights::NONE,
            scale: Scale::Auto,
            seed: 0,
            memory: Memory::Auto,
            threads: 0,
            device: Device::Cpu,
            limits: Limits::NONE,
            checkpoint: None,
        }
    }

    /// Neurons of each hidden layer, and the recipe, with defaults resolved for a problem.
    pub(crate) fn resolve(&self, problem: &Problem) -> Result<(Vec<usize>, Recipe)> {
        let mut hidden = if let Recipe::Masked(settings) = &self.recipe {
            settings.start.hidden().to_vec()
        } else if self.hidden.is_empty() {
            vec![self.default_hidden(problem)]
        } else if self.is_linear() {
            Vec::new()
        } else {
            self.hidden.clone()
        };
        let recipe = match &self.recipe {
            Recipe::Auto => {
                Recipe::auto(problem.task, &hidden, self.budget, !self.pinned.is_empty())
            }
            recipe => recipe.clone(),
        };
        if let (Recipe::Dynamic(settings), true) = (&recipe, self.hidden.is_empty()) {
            let (inputs, outputs) = (problem.data.cols, problem.network_outputs());
            let ends = Ends { inputs, outputs };
            let nnz = self.nnz_by_width(inputs + outputs);
            hidden = settings.default_hidden(nnz, ends, hidden[0]);
        }
        check_recipe(recipe.name(), problem.task)?;
        self.check_pinned(&recipe, hidden.len())?;
        check_linear(&hidden, &recipe)?;
        Ok((hidden, recipe))
    }

    /// What to say where layers that were asked for have more neurons than recipe `dynamic` can feed.
    pub(crate) fn starved(&self, problem: &Problem) -> Option<String> {
        let (hidden, recipe) = self.resolve(problem).ok()?;
        let widest = hidden.iter().copied().max().filter(|_| !self.hidden.is_empty())?;
        let Recipe::Dynamic(_) = recipe else { return None };
        let nnz = self.nonzeros(problem)?;
        // Each neuron takes a weight to it and one from it, and each output one to it.
        let takes = |most: usize| {
            let ends = [1].into_iter().chain(hidden.iter().map(|&width| width.min(most)));
            let widths: Vec<usize> = ends.chain([problem.network_outputs()]).collect();
            let layers = widths.windows(2).map(|pair| pair[0].max(pair[1]));
            layers.fold(0, usize::saturating_add)
        };
        // The most that it takes at most s for, between these.
        let (mut fed, mut over) = (0, widest.min(nnz) + 1);
        while over - fed > 1 {
            let middle = fed.midpoint(over);
            if takes(middle) <= nnz { fed = middle } else { over = middle }
        }
        (widest > fed).then(|| {
            format!(
                "{nnz} nonzeros feed at most {fed} of the neurons of each layer; a layer of {widest} is asked for"
            )
        })
    }

    /// s, of the network that the options have.
    pub(crate) fn nonzeros(&self, problem: &Problem) -> Option<usize> {
        let (hidden, _) = self.resolve(problem).ok()?;
        self.budget.count(dense_weights(problem, &hidden), hidden.len() + 1).ok()
    }

    /// Whether the model has no hidden layer: a linear or logistic one.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.hidden == [0]
    }

    /// The most nonzeros that the budget of a network may name; none of several layers trained one by
    /// one, of a mask, and where the options do not suit the problem.
    #[must_use]
    pub fn all_weights(&self, problem: &Problem) -> Option<usize> {
        let (hidden, recipe) = self.resolve(problem).ok()?;
        let all = self.weights_of(problem, &hidden, &recipe, 0)?;
        let is_more = matches!(self.budget, Budget::Nonzeros(nnz) if nnz > all);
        let of_inputs = matches!(recipe, Recipe::Lm(_) | Recipe::Anneal(_) | Recipe::Paper(_));
        let maps = || match self.scale {
            Scale::None => false,
            Scale::Auto => self.pinned.is_empty() && Scaling::is_needed(problem, false),
            _ => true,
        };
        // Mapped columns give the neurons biases.
        let ones = usize::from(is_more && of_inputs && maps());
        self.weights_of(problem, &hidden, &recipe, ones)
    }

    /// The same of layers of these widths, with so many inputs beside those of the problem.
    fn weights_of(
        &self,
        problem: &Problem,
        hidden: &[usize],
        recipe: &Recipe,
        ones: usize,
    ) -> Option<usize> {
        let inputs = problem.data.cols + ones;
        let of_all = |outputs: usize| weights_between(&[&[inputs], hidden, &[outputs]].concat());
        let of_one = |outputs: usize| (hidden.len() == 1).then(|| of_all(outputs));
        match recipe {
            Recipe::Masked(_) => None,
            Recipe::Imp(settings) if settings.head == Head::Sum => Some(of_all(0)),
            Recipe::Imp(_) => Some(of_all(problem.network_outputs())),
            // Two layers are searched for at once.
            Recipe::Lm(_) if hidden.len() == 2 && self.layers.is_none() => Some(of_all(0)),
            Recipe::Dynamic(_) => Some(dense_weights(problem, hidden)),
            // The log-odds of two classes are one output with weights.
            Recipe::Anneal(_) => of_one(weighted_outputs(problem).max(1)),
            _ => of_one(weighted_outputs(problem)),
        }
    }

    /// The same with all weights that there are where the budget asks for more.
    #[must_use]
    pub(crate) fn within(mut self, problem: &Problem) -> Self {
        if let (Budget::Nonzeros(nnz), Some(all)) = (self.budget, self.all_weights(problem)) {
            self.budget = Budget::Nonzeros(nnz.min(all));
        }
        self
    }

    /// About √s neurons, since a neuron then has as many weights as there are neurons; more where the
    /// inputs are so few that these have no room for s.
    pub(crate) fn default_hidden(&self, problem: &Problem) -> usize {
        let (inputs, outputs) = (problem.data.cols, problem.network_outputs());
        let hidden = self.nnz_by_width(inputs + outputs).sqrt().round() as usize;
        hidden.max(self.least_hidden(problem)).clamp(2, DynamicOptions::MOST_NEURONS)
    }

    /// Neurons of one layer that have as many weights as the budget names.
    pub(crate) fn least_hidden(&self, problem: &Problem) -> usize {
        let outputs = problem.network_outputs();
        // Of one output the weights are signs, which are none of the s.
        let weights = problem.data.cols + if outputs > 1 { outputs } else { 0 };
        match self.budget {
            Budget::Nonzeros(nnz) => nnz.div_ceil(weights.max(1)),
            Budget::Density(_) => 0,
        }
    }

    /// s; where it is a density that of √s neurons between so many inputs and outputs, m of which have
    /// density m (d + c) weights.
    fn nnz_by_width(&self, ends: usize) -> f64 {
        match self.budget {
            Budget::Nonzeros(nnz) => nnz as f64,
            Budget::Density(share) => (share * ends as f64).powi(2),
        }
    }

    /// Refuses pinned weights where there are several hidden layers, or a recipe in which weights
    /// have no place that lasts.
    fn check_pinned(&self, recipe: &Recipe, layers: usize) -> Result<()> {
        if self.pinned.is_empty() {
            return Ok(());
        }
        // Two layers may be the default of this one, which pins none anyway.
        if layers > 1 && !matches!(recipe, Recipe::Dynamic(_)) {
            return Err(Error::new("weights are pinned in networks of one hidden layer only")
                .expected("one number for --hidden with --must-keep")
                .got(format_args!("{layers} hidden layers"))
                .help("leave --must-keep out, or pass one number to --hidden"));
        }
        let why = match recipe {
            Recipe::Lm(_) | Recipe::Auto => {
                "its search moves, splits and merges neurons, so that NEURON:INPUT names no \
                 weight for long"
            }
            Recipe::Masked(_) => "all weights of its mask stay",
            Recipe::Dynamic(_) => "its support moves by what weights are worth",
            Recipe::Imp(_) => {
                "it prunes dense layers by magnitude alone, as the baseline that it is"
            }
            Recipe::Paper(_) | Recipe::Anneal(_) => return Ok(()),
        };
        Err(Error::new(format!("recipe {} cannot pin weights: {why}", recipe.name()))
            .expected("--recipe paper, paper-safe or anneal with --must-keep")
            .got(format_args!("recipe {}", recipe.name()))
            .help("choose --recipe paper, or leave --must-keep out"))
    }
}

impl From<Budget> for Options {
    fn from(budget: Budget) -> Self {
        Self::new(budget)
    }
}

/// What trains a network. Seeds within the settings are those of [`Options::seed`].
#[derive(Debug, Clone, Default)]
#[allow(clippy::large_enum_variant, reason = "there is one of it a run")]
pub enum Recipe {
    /// What suits the task: [`Recipe::auto`].
    #[default]
    Auto,
    /// Levenberg-Marquardt hard thresholding with a local search: exact recovery, regression and
    /// two classes.
    Lm(LmOptions),
    /// Adam on a support that shrinks to s: classification.
    Anneal(AnnealOptions),
    /// The published method.
    Paper(PaperOptions),
    /// Iterative magnitude pruning of a dense network: the baseline, in dense memory.
    Imp(ImpSettings),
    /// The weights that a mask keeps, from their initial values.
    Masked(MaskedSettings),
    /// Any number of layers at once, on a support that shrinks and moves.
    Dynamic(DynamicOptions),
}

impl Recipe {
    /// Nonzeros from which two classes are told apart by their log-odds. Fewer than that are too
    /// few for weights on both sides of neurons for and against a class; and `lm` exchanges each of
    /// them for the best of others, which takes longer the more there are.
    const CLASSED: usize = 21;
    /// The same with pinned weights, which are not exchanged.
    const PINNED_CLASSED: usize = 10;

    /// The recipe that [`Recipe::Auto`] stands for where nothing is compared: `dynamic` for classes and
    /// without a hidden layer, `lm` for regression; with pinned weights, and for two classes with one
    /// hidden layer and at most twenty nonzeros, that of [`Recipe::layered`].
    ///
    /// ```
    /// use tamis_host::{Budget, Recipe, data::Task};
    /// let auto = |task, pinned| Recipe::auto(task, &[10], Budget::nnz(100), pinned).name();
    /// assert_eq!(auto(Task::Binary, false), "dynamic");
    /// let few = |nnz, pinned| Recipe::auto(Task::Binary, &[10], Budget::nnz(nnz), pinned).name();
    /// assert_eq!([few(1, false), few(20, false), few(21, false)], ["lm", "lm", "dynamic"]);
    /// assert_eq!([few(9, true), few(10, true)], ["paper", "anneal"]);
    /// assert_eq!(auto(Task::Regression, false), "lm");
    /// assert_eq!(auto(Task::Multiclass, true), "anneal");
    /// ```
    #[must_use]
    pub fn auto(task: Task, hidden: &[usize], budget: Budget, pinned: bool) -> Self {
        let is_linear = hidden.is_empty();
        let is_small = Self::are_few(budget, pinned) && hidden.len() == 1;
        match task {
            _ if is_linear => Self::Dynamic(DynamicOptions::default()),
            Task::Binary if is_small => Self::layered(task, hidden, budget, pinned),
            Task::Binary | Task::Multiclass if !pinned => Self::Dynamic(DynamicOptions::default()),
            _ => Self::layered(task, hidden, budget, pinned),
        }
    }

    /// The same among recipes of one hidden layer, which train several layer by layer: for classes
    /// `anneal`, but `lm` for two classes with at most twenty nonzeros, or one neuron, which cannot be
    /// for one class and for the other; `lm` for regression; and with pinned weights `paper` in place
    /// of `lm`, for two classes with fewer than ten nonzeros.
    #[must_use]
    pub fn layered(task: Task, hidden: &[usize], budget: Budget, pinned: bool) -> Self {
        match (task, hidden, budget) {
            (Task::Multiclass, ..) => Self::Anneal(AnnealOptions::default()),
            (Task::Binary, &[m], _) if m != 1 && !Self::are_few(budget, pinned) => {
                Self::Anneal(AnnealOptions::default())
            }
            _ if pinned => Self::Paper(PaperOptions::default()),
            _ => Self::Lm(LmOptions::of(task, hidden, budget)),
        }
    }

    const fn are_few(budget: Budget, pinned: bool) -> bool {
        let enough = if pinned { Self::PINNED_CLASSED } else { Self::CLASSED };
        matches!(budget, Budget::Nonzeros(nnz) if nnz < enough)
    }

    /// As `--recipe` calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Lm(_) => "lm",
            Self::Anneal(_) => "anneal",
            Self::Paper(paper) if paper.outputs.safe => "paper-safe",
            Self::Paper(_) => "paper",
            Self::Imp(_) => "imp",
            Self::Masked(_) => "masked",
            Self::Dynamic(_) => "dynamic",
        }
    }
}

/// Settings of recipe `anneal`; by default those of `docs/results/multiclass.md`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnealOptions {
    /// Epochs and rates. Batch, validation, scale of the inputs, pinned weights and seed are set
    /// from here and the data.
    pub params: anneal::Params<'static>,
    /// Share of the rows of the validation split, which chooses the best iterate; from 0 up to but
    /// not 1.
    pub validation: f64,
    /// Rows of a batch, 0 for all; without it a hundredth of the rows, at least 32 and at most 512,
    /// so that an epoch has about a hundred steps or more.
    pub batch: Option<usize>,
    /// Steps that a run has at least: for few rows there are more epochs than `params` says.
    pub least_steps: u32,
}

impl Default for AnnealOptions {
    fn default() -> Self {
        Self { params: anneal::Params::DEFAULT, validation: 0.1, batch: None, least_steps: 2000 }
    }
}

/// How several hidden layers are trained: one by one, then all together.
#[derive(Debug, Clone, PartialEq)]
pub struct LayersOptions {
    /// Weights that the layers are trained to, in units of s, 1 or more: all layers together are
    /// then brought down to s. One after the other is tried until the labels are fitted exactly,
    /// and the best network is the result. The published method takes no more than s, and nor does
    /// a run without a joint fit. Empty for the default: [`Self::GROWTH`], of it the first alone
    /// for classes, and 1 within a budget of memory.
    pub grow: Vec<f64>,
    /// Whether every layer has the same share of s, as published: weights to outputs that are thrown
    /// away, and those that a layer does not take, are lost. By default the layers behind it get them.
    pub even: bool,
    /// How they are brought down; its seed is that of [`Options`].
    pub shrink: shrink::Params,
    /// How all layers are fitted together in the end; no epochs for not at all. Its seed is that of
    /// [`Options`].
    pub tune: tune::Params,
}

impl LayersOptions {
    /// Weights that layers are trained to, in units of s; for classes the first only, since a fit
    /// of classes is never exact.
    pub const GROWTH: [f64; 3] = [3.0, 2.0, 4.0];
}

impl Default for LayersOptions {
    fn default() -> Self {
        let (shrink, tune) = (shrink::Params::DEFAULT, tune::Params::DEFAULT);
        Self { grow: Vec::new(), even: false, shrink, tune }
    }
}

/// Only recipe `dynamic` trains without a hidden layer.
fn check_linear(hidden: &[usize], recipe: &Recipe) -> Result<()> {
    if !hidden.is_empty() || matches!(recipe, Recipe::Dynamic(_)) {
        return Ok(());
    }
    Err(Error::new(format!("recipe {} trains hidden layers", recipe.name()))
        .expected("--recipe dynamic with --hidden 0, or another --hidden")
        .got(format_args!("--hidden 0 with recipe {}", recipe.name()))
        .help("leave --recipe out for a linear model"))
}

/// Checks that a recipe is one for the task: `anneal` for classes, `lm` for regression and two
/// classes, `paper` and `imp` for all.
pub(crate) fn check_recipe(recipe: &str, task: Task) -> Result<()> {
    let (tasks, other, help) = match (recipe, task) {
        ("auto" | "imp" | "masked" | "dynamic" | "group", _)
        | ("anneal", Task::Binary | Task::Multiclass) => {
            return Ok(());
        }
        ("anneal", _) => (
            "--task binary or multiclass",
            "lm or paper",
            "labels 0 and 1 are classes too: pass --task binary, or leave --recipe out",
        ),
        ("paper" | "paper-safe", Task::Multiclass) => return Ok(()),
        ("paper-safe", Task::Binary) => (
            "--task regression with several outputs, or --task multiclass",
            "paper",
            "labels 0 and 1 are classes too: pass --task multiclass",
        ),
        (_, Task::Multiclass) => ("--task regression or binary", "dynamic", "leave --recipe out"),
        _ => return Ok(()),
    };
    Err(Error::new(format!("recipe {recipe} does not train for this task"))
        .expected(format_args!("{tasks}, or --recipe {other}"))
        .got(format_args!("--task {} with recipe {recipe}", task.name()))
        .help(help))
}
