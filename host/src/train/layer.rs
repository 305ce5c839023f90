//! One hidden layer by any recipe, or two by a search: what the driver, layers of deep networks and
//! regularisation paths train.

use std::path::Path;

use crate::data::Problem;
use crate::operator::Stop;
use crate::train::anneal::AnnealSetup;
use crate::train::checkpoint::{CheckpointFile, Form};
use crate::train::frozen::FrozenLayers;
use crate::train::lm;
use crate::train::options::{PaperOptions, Recipe};
use crate::train::paper::PaperSetup;
use crate::train::paper_outputs::OutputsSetup;
use crate::train::plan::{self, Plan};
use crate::train::progress::Observer;
use crate::train::resume;
use crate::train::returned::ReturnedData;
use crate::train::search::SearchSetup;
use crate::train::trained::{Job, Start, Trained};
use crate::{Error, Result};

/// A recipe that is ready to train a layer.
#[allow(clippy::large_enum_variant, reason = "there is one of it a run")]
pub(crate) enum LayerSetup<'a> {
    Lm(SearchSetup<'a>, u32),
    Anneal(AnnealSetup<'a>),
    Paper(PaperSetup<'a>),
    Outputs(OutputsSetup<'a>),
}

impl<'a> LayerSetup<'a> {
    /// By a recipe that is not `auto`, for rows that are the inputs.
    ///
    /// # Errors
    /// Sizes or settings out of bounds, labels outside the task, a memory budget that is too small.
    pub(crate) fn new(recipe: &Recipe, problem: &Problem, job: &Job<'a>) -> Result<Self> {
        Ok(match recipe {
            Recipe::Lm(options) => {
                Self::Lm(SearchSetup::new(problem, options, job)?, options.turns)
            }
            Recipe::Anneal(options) => Self::Anneal(AnnealSetup::new(problem, options, job)?),
            Recipe::Paper(options) => {
                Self::published(options, problem, &FrozenLayers::default(), job)?
            }
            Recipe::Imp(_) | Recipe::Auto => return Err(no_layer(recipe)),
        })
    }

    /// The published method behind frozen layers, by the settings for one output or for several.
    pub(crate) fn published(
        options: &PaperOptions,
        problem: &Problem,
        frozen: &FrozenLayers,
        job: &Job<'a>,
    ) -> Result<Self> {
        Ok(if problem.has_several_outputs() {
            Self::Outputs(OutputsSetup::new(problem, frozen, &options.outputs, job)?)
        } else if options.outputs.safe {
            return Err(Error::new("recipe paper-safe is for several outputs")
                .expected("labels of several columns, or --task multiclass")
                .got("labels of one column")
                .help("choose --recipe paper: its steps for one output do not diverge"));
        } else {
            Self::Paper(PaperSetup::new(problem, frozen, options, job)?)
        })
    }

    /// Starts from there instead.
    pub(crate) fn start(&mut self, start: Start<'a>) {
        match self {
            Self::Lm(setup, _) => setup.job.start = start,
            Self::Anneal(setup) => setup.job.start = start,
            Self::Paper(setup) => setup.job.start = start,
            Self::Outputs(setup) => setup.job.start = start,
        }
    }

    /// The memory that it takes.
    pub(crate) fn plan(&self) -> Plan {
        match self {
            Self::Lm(setup, _) => setup.plan.plan,
            Self::Anneal(setup) => setup.plan,
            Self::Paper(setup) => setup.plan,
            Self::Outputs(setup) => setup.plan,
        }
    }

    /// The file of its checkpoints.
    pub(crate) fn checkpoint_file(&self, path: &Path, problem: &Problem) -> CheckpointFile {
        let form: Form = match self {
            Self::Lm(setup, _) => resume::lm_form(problem, setup),
            Self::Anneal(setup) => resume::anneal_form(problem, setup),
            Self::Paper(setup) => resume::paper_form(problem, setup),
            Self::Outputs(setup) => resume::outputs_form(problem, setup),
        };
        CheckpointFile::new(path, form)
    }

    /// Trains on so many threads.
    ///
    /// # Errors
    /// Want of memory, steps that diverge, nothing that could be learnt; or the run was ended
    /// before its first step.
    pub(crate) fn train(
        self,
        problem: Problem,
        threads: usize,
        stop: &Stop,
        observer: &mut Observer<'_>,
    ) -> Result<Trained> {
        self.plan().check_room()?;
        plan::pool(threads)?.install(|| match self {
            Self::Lm(setup, turns) => lm::train(setup, turns, problem, stop, observer),
            Self::Anneal(setup) => setup.train(problem, stop, observer),
            published => published
                .lend(problem, FrozenLayers::default(), stop, observer)
                .map(|(trained, _)| trained),
        })
    }

    /// Trains by the published method behind frozen layers, and gives the data back; on so many
    /// threads.
    pub(crate) fn train_on_loan(
        self,
        problem: Problem,
        frozen: FrozenLayers,
        threads: usize,
        stop: &Stop,
        observer: &mut Observer<'_>,
    ) -> Result<(Trained, ReturnedData)> {
        self.plan().check_room()?;
        plan::pool(threads)?.install(|| self.lend(problem, frozen, stop, observer))
    }

    fn lend(
        self,
        problem: Problem,
        frozen: FrozenLayers,
        stop: &Stop,
        observer: &mut Observer<'_>,
    ) -> Result<(Trained, ReturnedData)> {
        match self {
            Self::Paper(setup) => setup.train(problem, frozen, stop, observer),
            Self::Outputs(setup) => setup.train(problem, frozen, stop, observer),
            Self::Lm(..) | Self::Anneal(_) => {
                Err(Error::new("the recipe changes the rows that it is given"))
            }
        }
    }
}

fn no_layer(recipe: &Recipe) -> Error {
    Error::new(format!("recipe {} trains no single layer", recipe.name()))
        .expected("recipe lm, anneal or paper")
        .got(recipe.name())
        .help("choose another --recipe")
}
