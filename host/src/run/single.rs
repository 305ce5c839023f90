//! One hidden layer by any recipe: what layers of deep networks and paths over several sizes are trained by.

use super::before::Before;
use super::limits::Limits;
use super::rest::Rest;
use super::train::Origin;
use super::{
    AnnealOptions, Options, Outcome, OutputsOptions, Plan, Problem, RecoverOptions, Size, anneal, outputs,
    recover, train,
};
use crate::Result;
use crate::operator::Stop;

/// A recipe and its settings; neurons, size, limits and threads are said where it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LayerRecipe<'k> {
    /// Exact recovery; of two hidden layers, where [`RecoverOptions::second`] says so.
    Lm(RecoverOptions),
    /// The annealed support, for classes.
    Anneal(AnnealOptions<'k>),
    /// The published method: for one output, and for several.
    Paper(Options<'k>, OutputsOptions<'k>),
}

impl LayerRecipe<'_> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Lm(_) => "lm",
            Self::Anneal(_) => "anneal",
            Self::Paper(_, outputs) if outputs.safe => "paper-safe",
            Self::Paper(..) => "paper",
        }
    }

    /// Whether a run can start from the network of another one.
    pub(super) fn starts_warm(&self, problem: &Problem) -> bool {
        match self {
            Self::Lm(_) => true,
            Self::Anneal(_) => false,
            Self::Paper(..) => !problem.has_several_outputs(),
        }
    }
}

/// What a run is given beside its recipe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) hidden: usize,
    pub(super) size: Size,
    pub(super) limits: Limits,
    pub(super) threads: usize,
    /// A network to start from, where the recipe can.
    pub(super) from: Option<&'a Outcome>,
}

/// What every recipe tells of its result.
#[derive(Debug)]
pub(super) struct Single {
    pub(super) model: Vec<u8>,
    pub(super) plan: Plan,
    pub(super) nnz: usize,
    pub(super) live: usize,
    pub(super) loss: f64,
    pub(super) psnr_db: Option<f64>,
    pub(super) accuracy: Option<f64>,
    pub(super) passes: f64,
    pub(super) seconds: f64,
    pub(super) limit: Option<&'static str>,
    pub(super) stopped: bool,
    /// To start another run from, where the recipe can.
    pub(super) network: Option<Outcome>,
}

/// Trains on `problem`; `tell` hears of every step: its number, that of all or 0 where that is open, and the loss.
pub(super) fn single(
    recipe: &LayerRecipe<'_>,
    asked: Asked<'_>,
    problem: Problem,
    stop: &Stop,
    tell: &mut (dyn FnMut(u32, u32, f32) -> bool + Send),
) -> Result<Single> {
    let Asked { hidden, size, limits, threads, from } = asked;
    let outcome = match *recipe {
        LayerRecipe::Lm(inner) => {
            let inner = RecoverOptions { hidden, size, limits, threads, ..inner };
            let tell = |progress: &tamis::lm::Progress<'_>| tell(progress.step, 0, progress.best);
            match from {
                Some(from) => recover::recover_from(problem, &inner, from, stop, tell),
                None => recover(problem, &inner, stop, tell),
            }
        }
        LayerRecipe::Paper(one, several) => {
            let given = (problem, Before::default());
            return published((&one, &several), asked, given, stop, tell).map(|(single, _)| single);
        }
        LayerRecipe::Anneal(inner) => {
            let inner = AnnealOptions { hidden, size, limits, threads, ..inner };
            let tell =
                |progress: &tamis::anneal::Progress<'_>| tell(progress.step, progress.steps, progress.loss);
            let done = anneal(problem, &inner, stop, tell)?;
            let r = done.report;
            return Ok(Single {
                model: done.model,
                plan: r.plan,
                nnz: r.nnz,
                live: r.live,
                loss: r.loss,
                psnr_db: None,
                accuracy: Some(r.accuracy),
                passes: r.passes,
                seconds: r.seconds,
                limit: r.limit,
                stopped: r.stopped,
                network: None,
            });
        }
    }?;
    Ok(Single::of(outcome))
}

/// The published method behind finished layers, by the settings for one output or for several, and what is left of the problem.
pub(super) fn published(
    (one, several): (&Options<'_>, &OutputsOptions<'_>),
    asked: Asked<'_>,
    (problem, before): (Problem, Before),
    stop: &Stop,
    tell: &mut (dyn FnMut(u32, u32, f32) -> bool + Send),
) -> Result<(Single, Rest)> {
    let Asked { hidden, size, limits, threads, from } = asked;
    let mut tell = |progress: &tamis::train::Progress<'_>| tell(progress.step, progress.steps, progress.loss);
    let (outcome, rest) = if problem.has_several_outputs() {
        let options = OutputsOptions { hidden, size, limits, threads, ..*several };
        outputs::start((problem, before), &options, None, stop, &mut tell)
    } else {
        let options = Options { hidden, size, limits, threads, ..*one };
        let origin = from.map_or(Origin::Zero, Origin::Network);
        train::start_behind((problem, before), &options, origin, stop, &mut tell)
    }?;
    Ok((Single::of(outcome), rest))
}

impl Single {
    fn of(outcome: Outcome) -> Self {
        let r = &outcome.report;
        Self {
            model: outcome.model.clone(),
            plan: r.plan,
            nnz: r.nnz,
            live: r.live,
            loss: r.loss,
            psnr_db: r.psnr_db,
            accuracy: r.accuracy,
            passes: r.passes,
            seconds: r.seconds,
            limit: r.limit,
            stopped: r.stopped,
            network: Some(outcome),
        }
    }
}
