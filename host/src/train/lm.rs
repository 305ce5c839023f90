//! The recovery recipe: a search; and where it ends without an exact fit, steps of the
//! published method alternate with searches from where they end.
//!
//! Large networks are searched for with neurons of any orientation first, after steps of Adam; where
//! that does not fit exactly, with oriented ones, from what it found or from nothing, and the better
//! network goes on. Two layers with few weights for their neurons are searched for with all of them first, and with
//! fewer then.
//!
//! ```text
//! search ──exact─────────────────────────────────────────────────────────────────────> its network
//!    └─not exact─> published steps from there ─> search from there ─┬─no better─> the best
//!                          ^──────────────────better─────────────────┘
//! ```

use std::time::Duration;

use tamis::learn::lm::{self, Params, Progress};
use tamis::network::gates::Signs;

use crate::Result;
use crate::base::limits::{Limits, Near, Watch};
use crate::base::peak_rss_bytes;
use crate::base::statistics::mean_square;
use crate::data::Problem;
use crate::operator::Stop;
use crate::train::budget::Budget;
use crate::train::paper::{FrozenLayers, PaperSetup};
use crate::train::paper_options::PaperOptions;
use crate::train::progress::Observer;
use crate::train::report::{Details, Report};
use crate::train::search::SearchSetup;
use crate::train::threshold;
use crate::train::trained::{Job, ReturnedData, Start, Stopwatch, Trained};

/// Share of a limit of time that a search leaves for what follows it.
const TIME: f64 = 0.15;

/// Share of a limit of passes that it leaves, which are more often tight.
const PASSES: f64 = 0.3;

/// Share of the limits that a search has where another one follows, …
const FIRST: f64 = 0.6;

/// … unless it has come down to this part of the mean square of the labels: then it has that of any search.
const NEARLY_EXACT: f64 = 1e-5;

/// Oriented neurons go on from a network with less than this part of the mean square of the labels, and two layers
/// keep all of the limits.
const NEAR: f64 = 1e-3;

/// Weights of a neuron of two layers, where fewer neurons may fit better, …
const FED: usize = 40;
/// … of which there are at least so many.
const FEWEST: usize = 5;

/// Fewest passes that it leaves, but no more than half of all; and most.
const LEFT: (f64, f64) = (300.0, 20000.0);

/// Epochs of the published method from a network, on all rows.
const STEPS: u32 = 50;

/// Epochs of the published method from zero, as for its images.
const EPOCHS: u32 = 100;

/// Most of the loss that an alternation may leave for another one to follow.
const GAIN: f64 = 0.99;

/// The limits of a search that something follows.
fn search_limits(limits: Limits) -> Limits {
    let left = |passes: f64| (PASSES * passes).clamp(LEFT.0, LEFT.1).min(0.5 * passes);
    Limits {
        time: limits.time.map(|time| time.mul_f64(1.0 - TIME)),
        passes: limits.passes.map(|passes| passes - left(passes)),
    }
}

/// The limits of a search that another one follows.
fn first_limits(limits: Limits) -> Limits {
    Limits {
        time: limits.time.map(|time| time.mul_f64(FIRST)),
        passes: limits.passes.map(|passes| FIRST * passes),
    }
}

/// What is left of limits; none where that is nothing.
fn remaining(limits: Limits, start: &Stopwatch, passes: f64) -> Option<Limits> {
    let spent = Duration::try_from_secs_f64(start.seconds()).unwrap_or_default();
    let time = limits.time.map(|time| time.saturating_sub(spent));
    let passes = limits.passes.map(|limit| limit - passes);
    let is_over =
        time.is_some_and(|time| time.is_zero()) || passes.is_some_and(|passes| passes <= 0.0);
    (!is_over).then_some(Limits { time, passes })
}

impl<'a> SearchSetup<'a> {
    /// The search that follows where this one does not fit exactly: of oriented neurons after unoriented ones, without
    /// steps before it, and of fewer neurons of two layers where the weights are few for them; none else.
    fn other(&self, bytes: bool) -> Option<Result<Self>> {
        let Self { mut sizes, mut params, mut second, ref job, .. } = *self;
        let fewer = (sizes.dims.nnz / FED).max(FEWEST);
        if params.signs == Signs::Unoriented {
            params = Params { signs: Signs::Positive, first: 0, ..params };
        } else if second.is_some() && fewer < sizes.dims.hidden {
            sizes.dims.hidden = fewer;
            second = second.map(|second| second.min(fewer));
        } else {
            return None;
        }
        let slots = lm::slots(sizes.dims.hidden, params.signs);
        // A layout for fewer neurons may be larger, and the plan of a run is that of its first search.
        let most = Some(self.plan.layout);
        Some(Self::planned(sizes, second, params, bytes, slots, job, most))
    }
}

/// A search and its alternations with published steps.
struct LmRun<'a> {
    setup: SearchSetup<'a>,
    turns: u32,
    stopwatch: Stopwatch,
}

/// Searches, and alternates with published steps where the fit is not exact; on the current pool.
pub(crate) fn train(
    setup: SearchSetup<'_>,
    turns: u32,
    problem: Problem,
    start: Start<'_>,
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    let mut run = LmRun { setup, turns, stopwatch: Stopwatch::start(&problem) };
    let SearchSetup { job, sizes, .. } = &run.setup;
    let (stop, setup) = (observer.stop, &run.setup);
    let other = setup.other(problem.data.is_bytes()).transpose()?;
    let is_narrower = other.as_ref().is_some_and(|other| other.sizes != setup.sizes);
    let watch = if other.is_some() {
        // Nothing follows a search of fewer neurons.
        let (part, limits) = if is_narrower {
            (NEAR, job.limits)
        } else {
            (NEARLY_EXACT, search_limits(job.limits))
        };
        let near = Near { loss: part * mean_square(&problem.labels), limits };
        Watch::new(first_limits(job.limits), stop).near(near)
    } else {
        Watch::new(run.limits(job.limits), stop)
    };
    let rows = sizes.dims.samples;
    let (mut trained, mut returned) =
        setup.search(problem, start, watch, &mut |progress| observer.lm(progress, rows))?;
    let Some(other) = other else { return Ok(run.improve(trained, returned, observer)) };
    // Where neurons of any orientation, or all of them, do not fit exactly, others may fit better.
    run.setup = other;
    let left = remaining(run.setup.job.limits, &run.stopwatch, trained.report.passes);
    // One that its share of a limit has ended goes on in the same way, exact or not.
    let goes_on = is_open(&trained.report) || trained.report.limit.is_some();
    if let Some(limits) = left.filter(|_| goes_on && !trained.report.stopped) {
        let done = trained.report.clone();
        let mut observe = |progress: &Progress<'_>| {
            // A run is resumed within the search before.
            progress.checkpoint.is_some() || observer.lm(&after(&done, *progress), rows)
        };
        let watch = Watch::new(run.limits(limits), stop);
        let is_near = !is_narrower && trained.report.loss <= NEAR * mean_square(&returned.labels);
        let (setup, problem) = (&run.setup, returned.shuffled());
        let from = if is_near { Start::Network(&trained) } else { Start::Zero };
        match setup.search(problem, from, watch, &mut observe) {
            Ok((found, again)) => {
                let limit = found.report.limit;
                run.add(&mut trained, found);
                // What ended the search before has not ended the run.
                trained.report.limit = limit;
                returned = again;
            }
            Err(error) => {
                trained.report.stopped |= error.is_interrupted();
                return Ok(trained);
            }
        }
    }
    Ok(run.improve(trained, returned, observer))
}

/// The steps of an alternation.
#[derive(PartialEq)]
enum Alternate {
    /// Published steps from the best network.
    Steps,
    /// In the first alternation, the published method from zero.
    Anew,
    /// A search from the best network.
    Search,
}

impl LmRun<'_> {
    /// Whether anything follows a search that ended without an exact fit: the published method is
    /// for one hidden layer and one output to which all neurons add, and it has no validation
    /// split.
    fn has_turns(&self) -> bool {
        let SearchSetup { sizes, second, params, .. } = &self.setup;
        let is_plain = sizes.outputs == 0 && second.is_none() && params.signs == Signs::Positive;
        is_plain && params.validation == 0 && self.turns > 0
    }

    /// The limits of a search before what may follow it.
    fn limits(&self, limits: Limits) -> Limits {
        if self.has_turns() { search_limits(limits) } else { limits }
    }

    /// The network of the search, or a better one that alternations lead to within the limits.
    fn improve(
        &self,
        mut best: Trained,
        returned: ReturnedData,
        observer: &mut Observer<'_>,
    ) -> Trained {
        if !self.has_turns() || best.report.nnz == 0 || !is_open(&best.report) {
            return best;
        }
        let power = mean_square(&returned.labels);
        if let Err(error) = self.turns(&mut best, returned.shuffled(), observer) {
            best.report.stopped |= error.is_interrupted();
        }
        // As a search says it; published steps do not.
        let is_exact = best.report.loss <= f64::from(self.setup.params.exact) * power;
        if let Details::Lm(search) = &mut best.report.details
            && is_exact
            && best.network.value.iter().all(|weight| weight.is_normal())
        {
            search.exact = true;
            best.report.limit = None;
        }
        best
    }

    /// Alternates until the fit is exact or nothing is gained.
    fn turns(
        &self,
        best: &mut Trained,
        mut problem: Problem,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        let params = Params { perturbations: 0, ..self.setup.params };
        let setup = SearchSetup { params, ..self.setup.clone() };
        let (rows, stop) = (setup.sizes.dims.samples, observer.stop);
        for turn in 0..self.turns {
            let before = best.report.loss;
            for stage in [Alternate::Steps, Alternate::Anew, Alternate::Search] {
                if stage == Alternate::Anew && turn > 0 {
                    continue;
                }
                let limits = remaining(setup.job.limits, &self.stopwatch, best.report.passes);
                let Some(limits) = limits.filter(|_| is_open(&best.report)) else { return Ok(()) };
                let from = Start::Network(best);
                let (mut found, returned) = match stage {
                    Alternate::Steps => self.published(problem, STEPS, from, limits, stop)?,
                    Alternate::Anew => {
                        self.published(problem, EPOCHS, Start::Zero, limits, stop)?
                    }
                    Alternate::Search => {
                        let done = best.report.clone();
                        let mut observe = |progress: &Progress<'_>| {
                            // A run is resumed within the search before all alternations.
                            progress.checkpoint.is_some()
                                || observer.lm(&after(&done, *progress), rows)
                        };
                        setup.search(problem, from, Watch::new(limits, stop), &mut observe)?
                    }
                };
                problem = returned.shuffled();
                if stage != Alternate::Search {
                    found = threshold::of_trained(found, &problem)?;
                }
                self.add(best, found);
            }
            if best.report.loss > GAIN * before {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Epochs of the published method, on all rows and unseen.
    fn published(
        &self,
        problem: Problem,
        epochs: u32,
        start: Start<'_>,
        limits: Limits,
        stop: &Stop,
    ) -> Result<(Trained, ReturnedData)> {
        let SearchSetup { sizes, job, .. } = &self.setup;
        let schedule = PaperOptions::published(epochs, 0);
        let options = PaperOptions { schedule, ..PaperOptions::default() };
        let budget = Budget::Nonzeros(sizes.dims.nnz);
        let job = Job { budget, limits, checkpoints: false, ..*job };
        let frozen = FrozenLayers::default();
        let setup = PaperSetup::new(&problem, &frozen, &options, &job)?;
        setup.plan.check_room()?;
        let mut tell = |_: &_| std::ops::ControlFlow::Continue(());
        setup.train(problem, frozen, start, &mut Observer::new(stop, &mut tell))
    }

    /// Counts what another run on the same rows did, and takes its network where that is better.
    fn add(&self, best: &mut Trained, other: Trained) {
        let (own, found) = (&mut best.report, &other.report);
        own.passes += found.passes;
        own.transferred_bytes = match (own.transferred_bytes, found.transferred_bytes) {
            (Some(own), Some(found)) => Some(own + found),
            (own, _) => own,
        };
        own.limit = own.limit.or(found.limit);
        own.stopped |= found.stopped;
        own.seconds = self.stopwatch.seconds();
        own.peak_rss_bytes = peak_rss_bytes();
        let Details::Lm(search) = &mut own.details else { return };
        if let Some(more) = found.search() {
            own.steps += found.steps;
            own.epochs += found.epochs;
            search.moves += more.moves;
            search.tried += more.tried;
            search.kicks += more.kicks;
            search.merges += more.merges;
            search.flips += more.flips;
        }
        let held =
            search.validation_loss.zip(found.search().and_then(|found| found.validation_loss));
        let (before, after) = held.unwrap_or((own.loss, found.loss));
        if after >= before {
            return;
        }
        if let Some(better) = found.search() {
            search.second_live = better.second_live;
            search.validation_loss = better.validation_loss;
            search.validation_psnr_db = better.validation_psnr_db;
            search.validation_accuracy = better.validation_accuracy;
            search.early = better.early;
        }
        search.exact = found.search().is_some_and(|search| search.exact);
        search.turns += u32::from(found.search().is_none());
        (own.nnz, own.live) = (found.nnz, found.live.clone());
        (own.loss, own.psnr_db) = (found.loss, found.psnr_db);
        (own.accuracy, own.class_from) = (found.accuracy, found.class_from);
        (best.model, best.network) = (other.model, other.network);
    }
}

/// Whether the fit might become better: it is not exact, and nobody has ended the run.
fn is_open(report: &Report) -> bool {
    !report.stopped && report.search().is_some_and(|search| !search.exact)
}

/// Where a search stands, what was done before it counted too.
fn after<'a>(done: &Report, mut progress: Progress<'a>) -> Progress<'a> {
    let search = done.search().copied().unwrap_or_default();
    progress.step += done.epochs;
    progress.moves += search.moves;
    progress.perturbations += search.kicks;
    progress.rows_read += (done.passes * done.samples as f64) as u64;
    progress
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Task, Values};
    use crate::train::lm_options::LmOptions;

    #[test]
    fn a_search_leaves_a_part_of_every_limit() {
        let of = |time: u64, passes| Limits {
            time: Some(Duration::from_secs(time)),
            passes: Some(passes),
        };
        assert_eq!(search_limits(of(100, 20000.0)), of(85, 14000.0));
        // At least some epochs, but no more than half.
        assert_eq!(search_limits(of(20, 800.0)), of(17, 500.0));
        assert_eq!(search_limits(of(20, 400.0)), of(17, 200.0));
        assert_eq!(search_limits(of(20, 1e6)), of(17, 980000.0));
        assert_eq!(search_limits(Limits::NONE), Limits::NONE);
    }

    #[test]
    fn two_layers_of_few_weights_for_their_neurons_are_searched_for_with_fewer() {
        let (n, d) = (60, 10);
        let at = |k: usize, j: usize| ((k * 7919 + j * 104_729) % 997) as f32 / 997.0 - 0.5;
        let values = (0..n * d).map(|e| at(e / d, e % d)).collect();
        let labels = (0..n).map(|k| (at(k, 0) + at(k, 3)).max(0.0)).collect();
        let data = Matrix::new(n, d, Values::F32(values)).unwrap();
        let problem = Problem { data, labels, task: Task::Regression };
        let of = |hidden: usize, second: Option<usize>, nnz: usize| {
            let job = Job { second, ..Job::plain(hidden, nnz) };
            let setup = SearchSetup::new(&problem, &LmOptions::default(), &job).unwrap();
            let other = setup.other(false)?.unwrap();
            Some((other.sizes.dims.hidden, other.second))
        };
        assert_eq!(of(50, Some(20), 280), Some((7, Some(7))));
        assert_eq!(of(50, Some(6), 40), Some((5, Some(5))));
        // Not where neurons have weights enough, nor of one layer.
        assert_eq!(of(5, Some(5), 40), None);
        assert_eq!(of(50, None, 40), None);
    }
}
