//! One hidden layer by any recipe, or two by a search: what the driver, layers of deep networks and
//! regularisation paths train.

use std::path::Path;

use crate::data::{Problem, Task};
use crate::train::anneal::AnnealSetup;
use crate::train::checkpoint::CheckpointFile;
use crate::train::options::Recipe;
use crate::train::paper::{FrozenLayers, PaperSetup};
use crate::train::plan::{self, Plan};
use crate::train::progress::Observer;
use crate::train::search::SearchSetup;
use crate::train::trained::{Job, Start, Trained};
use crate::train::{lm, resume};
use crate::{Error, Result};

/// A recipe that is ready to train a layer.
#[allow(clippy::large_enum_variant, reason = "there is one of it a run")]
pub(crate) enum LayerSetup<'a> {
    Lm(SearchSetup<'a>, u32),
    Anneal(AnnealSetup<'a>),
    Paper(PaperSetup<'a>),
}

impl<'a> LayerSetup<'a> {
    /// By a recipe that is not `auto`, for rows that are the inputs.
    pub(crate) fn new(recipe: &Recipe, problem: &Problem, job: &Job<'a>) -> Result<Self> {
        Ok(match recipe {
            Recipe::Lm(options) => {
                Self::Lm(SearchSetup::new(problem, options, job)?, options.turns)
            }
            Recipe::Anneal(options) => Self::Anneal(AnnealSetup::new(problem, options, job)?),
            Recipe::Paper(options) => {
                Self::Paper(PaperSetup::new(problem, &FrozenLayers::default(), options, job)?)
            }
            Recipe::Imp(_) | Recipe::Masked(_) | Recipe::Dynamic(_) | Recipe::Auto => {
                return Err(Error::new(format!("recipe {} trains no single layer", recipe.name()))
                    .expected("recipe lm, anneal or paper")
                    .got(recipe.name())
                    .help("choose another --recipe"));
            }
        })
    }

    /// The memory that it takes.
    pub(crate) const fn plan(&self) -> Plan {
        match self {
            Self::Lm(setup, _) => setup.plan,
            Self::Anneal(setup) => setup.plan,
            Self::Paper(setup) => setup.plan,
        }
    }

    /// s, and weights that it holds at a time, at most.
    pub(crate) fn weights(&self) -> [usize; 2] {
        match self {
            Self::Lm(setup, _) => [setup.sizes.dims.nnz, setup.budget.room()],
            Self::Anneal(setup) => [setup.sizes.dims.nnz, setup.support()],
            Self::Paper(setup) => [setup.sizes.dims.nnz; 2],
        }
    }

    /// Neurons that the operator is for.
    pub(crate) const fn neurons(&self) -> usize {
        match self {
            Self::Lm(setup, _) => setup.slots,
            Self::Anneal(setup) => setup.sizes.dims.hidden,
            Self::Paper(setup) => setup.sizes.dims.hidden,
        }
    }

    /// The file of its checkpoints.
    pub(crate) fn checkpoint_file(&self, path: &Path, problem: &Problem) -> CheckpointFile {
        let form = match self {
            Self::Lm(setup, _) => resume::lm_form(problem, setup),
            Self::Anneal(setup) => resume::anneal_form(problem, setup),
            Self::Paper(setup) => resume::paper_form(problem, setup),
        };
        CheckpointFile::new(path, form)
    }

    pub(crate) fn train(
        self,
        problem: Problem,
        threads: usize,
        start: Start<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Trained> {
        self.plan().check_room()?;
        plan::pool(threads)?.install(|| match self {
            Self::Lm(setup, turns) => lm::train(setup, turns, problem, start, observer),
            Self::Anneal(setup) => setup.train(problem, start, observer),
            Self::Paper(setup) => {
                let frozen = FrozenLayers::default();
                setup.train(problem, frozen, start, observer).map(|(trained, _)| trained)
            }
        })
    }
}

/// Whether two hidden layers can be searched for together: one output that is never negative, as a
/// sum of neurons is.
pub(crate) fn is_sum(problem: &Problem) -> bool {
    problem.task != Task::Multiclass
        && problem.outputs() == 1
        && problem.labels.iter().all(|&y| y >= 0.0)
}

/// Whether the layers of a network are trained one by one: those of `lm` where that is asked for, or
/// where they cannot be searched for together.
pub(crate) fn is_layer_by_layer(
    is_asked: bool,
    is_sum: bool,
    hidden: &[usize],
    recipe: &Recipe,
) -> bool {
    match (recipe, hidden) {
        (Recipe::Imp(_) | Recipe::Masked(_) | Recipe::Dynamic(_), _) | (_, [_]) => false,
        (Recipe::Lm(_), [_, _]) => is_asked || !is_sum,
        _ => true,
    }
}
