//! Recipe `auto` on small data: which network is trained is chosen by cross-validation, and trained on
//! all rows then.
//!
//! ```text
//! 1  linear, and √s/2, √s, 2√s neurons      at the default weight decay
//! 2  linear, and the best of these widths   at other weight decays
//! 3  the best; a linear model where it is within a standard error; of regression `lm` where it is better,
//!    than a linear model by a standard error
//! 4  it is trained with three seeds on all rows: the least loss is taken
//! ```
//!
//! On seven public tables, three splits of each and 12 to 500 nonzeros, the mean of test scores is .883; the
//! best network of each split, as its test rows would choose, has .890, and any one kind at the default
//! decay .870 to .875.

use rayon::prelude::*;

use crate::base::Limits;
use crate::data::{Problem, Task};
use crate::model::score_model;
use crate::operator::Stop;
use crate::train::budget::{Budget, Memory};
use crate::train::dynamic_options::DynamicOptions;
use crate::train::folds::cut;
use crate::train::lm_options::LmOptions;
use crate::train::options::{Options, Recipe};
use crate::train::plan;
use crate::train::report::{Choice, Tried};
use crate::train::trained::{Start, Trained};
use crate::{Error, Result};

/// Weight decays; the first is the default.
const DECAYS: [f32; 4] = [0.1, 0.0, 0.3, 1.0];
/// Fewest and most rows.
const ROWS: std::ops::RangeInclusive<usize> = 20..=10_000;
/// The most products of a training: about a second.
const MOST_WORK: f64 = 3e8;
/// The same of a search, rows times columns times weights.
const MOST_SEARCH: f64 = 1e7;
/// Changes of a support, and rows that each looks at.
const CHANGES: f64 = 60.0 * 512.0;
/// Rows up to which there are five folds, and not three.
const FIVE_FOLDS: usize = 1000;
/// Trainings of the chosen network on all rows, of seeds that follow each other.
const SEEDS: u64 = 3;
/// Folds that searches are compared on.
const SEARCH_FOLDS: usize = 2;

/// What is compared, with its score on each fold: larger is better.
struct Candidate {
    hidden: usize,
    recipe: Recipe,
    scores: Vec<Held>,
}

/// A score on rows that were left out.
#[derive(Clone, Copy)]
struct Held {
    accuracy: Option<f64>,
    loss: f64,
}

impl Held {
    /// Larger is better: of classes the share that is right.
    fn worth(self) -> f64 {
        self.accuracy.unwrap_or(-self.loss)
    }
}

/// A rank: accuracy first, then the loss.
#[derive(Clone, Copy)]
struct Rank {
    worth: f64,
    loss: f64,
}

fn mean(of: impl Iterator<Item = f64> + Clone) -> f64 {
    of.clone().sum::<f64>() / of.count().max(1) as f64
}

impl Candidate {
    fn new(hidden: usize, decay: f32) -> Self {
        let settings = DynamicOptions { decay: Some(decay), ..DynamicOptions::default() };
        Self { hidden, recipe: Recipe::Dynamic(settings), scores: Vec::new() }
    }

    fn options(&self, options: &Options) -> Options {
        Options { hidden: vec![self.hidden], recipe: self.recipe.clone(), ..options.clone() }
    }

    fn rank(&self) -> Rank {
        let scores = || self.scores.iter().copied();
        Rank { worth: mean(scores().map(Held::worth)), loss: -mean(scores().map(|of| of.loss)) }
    }

    /// The standard error of its mean score.
    fn error(&self, rows: usize) -> f64 {
        let at = self.rank().worth;
        if self.scores.iter().any(|of| of.accuracy.is_some()) {
            // As of two more rows of either kind (Agresti and Coull): 0 errors are no certainty.
            let rows = rows as f64 + 4.0;
            let share = (at * (rows - 4.0) + 2.0) / rows;
            return (share * (1.0 - share) / rows).sqrt();
        }
        let n = self.scores.len() as f64;
        let squares = self.scores.iter().map(|of| (of.worth() - at).powi(2)).sum::<f64>();
        (squares / (n - 1.0).max(1.0) / n.max(1.0)).sqrt()
    }

    fn tried(&self) -> Tried {
        let scores = || self.scores.iter().copied();
        Tried {
            recipe: self.recipe.name(),
            hidden: self.hidden,
            weight_decay: match &self.recipe {
                Recipe::Dynamic(settings) => settings.decay,
                _ => None,
            },
            accuracy: self.scores.iter().all(|of| of.accuracy.is_some()).then(|| self.rank().worth),
            loss: mean(scores().map(|of| of.loss)),
            folds: self.scores.len(),
        }
    }
}

fn best(of: &[Candidate], is_one: impl Fn(&Candidate) -> bool) -> Option<usize> {
    let all = of.iter().enumerate().filter(|(_, one)| is_one(one));
    // Of equal ones the first.
    all.rev()
        .max_by(|(_, a), (_, b)| {
            let (a, b) = (a.rank(), b.rank());
            a.worth.total_cmp(&b.worth).then(a.loss.total_cmp(&b.loss))
        })
        .map(|(at, _)| at)
}

/// Whether the network is chosen by cross-validation: recipe `auto` with at most one hidden layer, on data
/// so small that a training takes a second at the most.
///
/// # Errors
/// As [`Problem::check`], of data that are small enough.
pub(crate) fn is_wanted(problem: &Problem, options: &Options, start: &Start<'_>) -> Result<bool> {
    let Options { budget, hidden, recipe, pinned, memory, limits, checkpoint, layers, .. } =
        options;
    let is_plain = matches!(recipe, Recipe::Auto)
        && matches!(start, Start::Zero)
        && hidden.len() <= 1
        && pinned.is_empty()
        && layers.is_none()
        && *memory == Memory::Auto
        // Which a search would have before it is known whether it is taken.
        && (checkpoint.is_none() && *limits == Limits::NONE || problem.task != Task::Regression);
    let rows = problem.data.rows;
    let &Budget::Nonzeros(nnz) = budget else { return Ok(false) };
    if !is_plain || !ROWS.contains(&rows) {
        return Ok(false);
    }
    let passes = f64::from(DynamicOptions::default().passes(nnz, rows));
    let [n, d, s] = [rows, problem.data.cols, nnz].map(|size| size as f64);
    let outputs = problem.network_outputs();
    let width = options.default_hidden(problem).max(outputs) as f64;
    let work = n * passes * (s + d) + CHANGES * d * width;
    if work > MOST_WORK || problem.task == Task::Regression && n * d * s > MOST_SEARCH {
        return Ok(false);
    }
    problem.check()?;
    // Rows of at least two classes are left out in turn.
    let is_regression = problem.task == Task::Regression;
    Ok(is_regression || problem.class_rows().iter().filter(|&&rows| rows >= 2).count() >= 2)
}

/// Chooses by cross-validation and trains on all rows; `run` trains with options whose recipe is not `auto`.
pub(crate) fn train(
    problem: &Problem,
    options: &Options,
    stop: &Stop,
    run: impl Fn(Problem, &Options) -> Result<Trained> + Sync,
    mut last: impl FnMut(Problem, &Options) -> Result<Trained>,
) -> Result<Trained> {
    let began = std::time::Instant::now();
    let is_linear = options.is_linear();
    // A search that fits exactly needs no comparison.
    let mut searched = None;
    if problem.task == Task::Regression && !is_linear {
        let own = Options { recipe: Recipe::Lm(LmOptions::default()), ..options.clone() };
        let trained = last(problem.clone(), &own)?;
        if trained.report.search().is_none_or(|search| search.exact) || trained.report.stopped {
            return Ok(trained);
        }
        searched = Some(trained);
    }
    let rows = problem.data.rows;
    let folds = if rows <= FIVE_FOLDS { 5 } else { 3 };
    let cuts: Vec<(Problem, Problem)> =
        (0..folds).map(|fold| cut(problem, folds, options.seed, fold)).collect::<Result<_>>()?;
    let pool = plan::pool(options.threads)?;
    let compare = |candidates: &mut Vec<Candidate>, cuts: &[(Problem, Problem)]| {
        let jobs = candidates.iter().flat_map(|one| cuts.iter().map(move |cut| (one, cut)));
        let jobs: Vec<_> = jobs.collect();
        let score = |&(one, (train, held)): &(&Candidate, &(Problem, Problem))| {
            // Limits and checkpoints are of the last training.
            let (limits, checkpoint) = (Limits::NONE, None);
            let own = Options { threads: 1, limits, checkpoint, ..one.options(options) };
            let own = own.within(train);
            let trained = run(train.clone(), &own)?;
            let score = score_model(trained.model.bytes(), held)?;
            Ok(Held { accuracy: score.accuracy, loss: score.loss })
        };
        let scores: Vec<Result<Held>> = pool.install(|| jobs.par_iter().map(score).collect());
        if stop.asked() {
            return Err(Error::interrupted().help(
                "networks were still being compared: --recipe dynamic or lm trains without that",
            ));
        }
        let mut scores = scores.into_iter();
        let (mut kept, mut failed) = (Vec::new(), None);
        // One that cannot be trained, such as one that has no room for a path to every output, is none.
        for mut one in std::mem::take(candidates) {
            let own: Vec<_> = scores.by_ref().take(cuts.len()).collect();
            match own.into_iter().collect::<Result<Vec<_>>>() {
                Ok(scores) => {
                    one.scores = scores;
                    kept.push(one);
                }
                Err(error) => failed = Some(failed.unwrap_or(error)),
            }
        }
        *candidates = kept;
        Ok(failed)
    };
    let compared = || -> Result<(Vec<Candidate>, usize)> {
        let widths = widths(options, problem).into_iter();
        let mut all: Vec<_> = widths.map(|hidden| Candidate::new(hidden, DECAYS[0])).collect();
        if let (Some(error), true) = (compare(&mut all, &cuts)?, all.is_empty()) {
            return Err(error);
        }
        let linear = best(&all, |one| one.hidden == 0).map(|at| all[at].hidden);
        let hidden = best(&all, |one| one.hidden > 0).map(|at| all[at].hidden);
        let others = linear.into_iter().chain(hidden);
        let decays = |hidden| DECAYS[1..].iter().map(move |&decay| Candidate::new(hidden, decay));
        let mut others: Vec<Candidate> = others.flat_map(decays).collect();
        compare(&mut others, &cuts)?;
        all.append(&mut others);
        let mut chosen = best(&all, |_| true).unwrap_or(0);
        let error = all[chosen].error(rows);
        if let Some(linear) = best(&all, |one| one.hidden == 0)
            && all[linear].rank().worth >= all[chosen].rank().worth - error
        {
            chosen = linear;
        }
        if let Some(trained) = &searched {
            let recipe = Recipe::Lm(LmOptions::default());
            let hidden = trained.report.hidden.first();
            let mut search = vec![Candidate { hidden, recipe, scores: Vec::new() }];
            compare(&mut search, &cuts[..SEARCH_FOLDS])?;
            let same = all[chosen].scores.iter().take(SEARCH_FOLDS).map(|of| of.worth());
            // A linear model stays where the search is better by chance, as before other networks.
            let margin = if all[chosen].hidden == 0 { all[chosen].error(rows) } else { 0.0 };
            let wanted = mean(same) + margin;
            if search.first().is_some_and(|search| search.rank().worth > wanted) {
                chosen = all.len();
            }
            all.append(&mut search);
        }
        Ok((all, chosen))
    };
    let (all, chosen) = match (compared(), searched.as_mut()) {
        (Ok(compared), _) => compared,
        // The search is a model.
        (Err(error), Some(trained)) => {
            trained.report.stopped = error.is_interrupted();
            return searched.ok_or(error);
        }
        (Err(error), None) if error.is_interrupted() => return Err(error),
        // Rows of a fold may be too few, or all the same, where all of them are not.
        (Err(_), None) => {
            let recipe = Recipe::Dynamic(DynamicOptions::default());
            return last(problem.clone(), &Options { recipe, ..options.clone() });
        }
    };
    let choice = Choice { folds, tried: all.iter().map(Candidate::tried).collect(), chosen };
    let mut trained = match searched {
        Some(trained) if matches!(all[chosen].recipe, Recipe::Lm(_)) => trained,
        _ => {
            let own = all[chosen].options(options).within(problem);
            let first = last(problem.clone(), &own)?;
            let is_limited = own.limits != Limits::NONE || own.checkpoint.is_some();
            if own.is_linear() || is_limited || first.report.stopped {
                first
            } else {
                let threads = first.report.threads;
                let others = (1..SEEDS).into_par_iter().map(|more| {
                    let seed = own.seed.wrapping_add(more);
                    run(problem.clone(), &Options { seed, threads: 1, ..own.clone() })
                });
                let others: Vec<_> = pool.install(|| others.collect());
                // Of equal ones the first; one that failed or was interrupted is none.
                let mut best = others.into_iter().flatten().fold(first, |best, other| {
                    if other.report.loss < best.report.loss { other } else { best }
                });
                best.report.threads = threads;
                best
            }
        }
    };
    trained.report.choice = Some(choice);
    trained.report.seconds = began.elapsed().as_secs_f64();
    if let Budget::Nonzeros(nnz) = options.budget {
        trained.report.requested_nnz = nnz;
    }
    Ok(trained)
}

/// The widths to compare, with room for the nonzeros; 0 is a linear model.
fn widths(options: &Options, problem: &Problem) -> Vec<usize> {
    if let [hidden] = options.hidden[..] {
        return vec![hidden];
    }
    let (hidden, least) = (options.default_hidden(problem), options.least_hidden(problem));
    let mut all = Vec::new();
    for width in [0, hidden, (hidden / 2).max(2), 2 * hidden] {
        if !all.contains(&width) && (width == 0 || width >= least.min(hidden)) {
            all.push(width);
        }
    }
    all
}
