//! What follows a search that ended without an exact fit: by turns steps of the published method, and a search from where they end.
//!
//! ```text
//! search ──exact─────────────────────────────────────────────────────────────────────> its network
//!    └─not exact─> published steps from there ─> search from there, no kicks ─┬─no better─> the best
//!                          ^──────────────────────better──────────────────────┘
//! ```
//!
//! Where labels have an exact fit, moves of whole neurons find it. Where they have none, as those of images, a search ends where no
//! move of its list helps; steps that weigh every weight of every neuron against all others lead out of there, and it goes on.

use std::time::Duration;

use tamis::gates::Signs;
use tamis::lm::Progress;

use super::limits::Limits;
use super::recipe::published;
use super::recover::{RecoverOptions, Settled};
use super::rest::Rest;
use super::train::{Options, Origin, Outcome, Report, Size, Start};
use super::{peak_rss_bytes, train};
use crate::Result;
use crate::operator::Stop;

/// Part of a limit of time that a search leaves for what follows it.
const TIME: f64 = 0.15;

/// Part of a limit of passes that it leaves, which are more often tight.
const PASSES: f64 = 0.3;

/// Fewest passes that it leaves, but no more than half of all; and most.
const LEFT: (f64, f64) = (300.0, 20000.0);

/// Epochs of the published method from a network, on all rows.
const STEPS: u32 = 50;

/// Epochs of the published method from zero, as for its images.
const EPOCHS: u32 = 100;

/// What a turn must leave of the loss at most, for another one to follow.
const GAIN: f64 = 0.99;

/// The limits of a search that something follows.
pub(super) fn searching(limits: Limits) -> Limits {
    let left = |passes: f64| (PASSES * passes).clamp(LEFT.0, LEFT.1).min(0.5 * passes);
    Limits {
        time: limits.time.map(|time| time.mul_f64(1.0 - TIME)),
        passes: limits.passes.map(|passes| passes - left(passes)),
    }
}

/// What is left of limits; none where that is nothing.
fn rest(limits: Limits, start: &Start, passes: f64) -> Option<Limits> {
    let spent = Duration::try_from_secs_f64(start.seconds()).unwrap_or_default();
    let time = limits.time.map(|time| time.saturating_sub(spent));
    let passes = limits.passes.map(|limit| limit - passes);
    let is_over = time.is_some_and(|time| time.is_zero()) || passes.is_some_and(|passes| passes <= 0.0);
    (!is_over).then_some(Limits { time, passes })
}

impl Settled {
    /// Whether anything follows a search that ended without an exact fit: the published method is for one hidden layer and one output
    /// to which all neurons add, and it holds no rows out.
    pub(super) fn falls_back(&self) -> bool {
        let RecoverOptions { params, second, turns, .. } = &self.options;
        let is_plain = self.outputs == 0 && second.is_none() && params.signs == Signs::Positive;
        is_plain && params.validation == 0 && *turns > 0
    }
}

impl Report {
    /// Whether the fit might become better: it is not exact, and nobody has ended the run.
    fn is_open(&self) -> bool {
        !self.stopped && self.search.is_some_and(|search| !search.exact)
    }
}

impl Outcome {
    /// Counts what another run on the same rows did, and takes its network where that is better.
    fn add(&mut self, other: Self, start: &Start) {
        let (own, found) = (&mut self.report, &other.report);
        own.passes += found.passes;
        own.limit = own.limit.or(found.limit);
        own.stopped |= found.stopped;
        own.seconds = start.seconds();
        own.peak_rss_bytes = peak_rss_bytes();
        if let (Some(search), Some(more)) = (&mut own.search, &found.search) {
            own.steps += found.steps;
            own.epochs += found.epochs;
            search.moves += more.moves;
            search.tried += more.tried;
            search.kicks += more.kicks;
            search.merges += more.merges;
            search.flips += more.flips;
        }
        if found.loss >= own.loss {
            return;
        }
        if let Some(search) = &mut own.search {
            search.exact = found.search.is_some_and(|search| search.exact);
            search.turns += u32::from(found.search.is_none());
        }
        (own.nnz, own.live) = (found.nnz, found.live);
        (own.loss, own.psnr_db, own.accuracy) = (found.loss, found.psnr_db, found.accuracy);
        (self.index, self.value, self.model) = (other.index, other.value, other.model);
    }
}

/// What a turn consists of.
#[derive(PartialEq)]
enum Part {
    /// Published steps from the best network.
    Steps,
    /// In the first turn, the published method from zero.
    Anew,
    /// A search from the best network.
    Search,
}

/// The network that a search has found on `problem`, or a better one that turns lead to from there, as far as the limits go. What
/// fails makes nothing worse.
pub(super) fn better(
    settled: &Settled,
    (mut best, left): (Outcome, Rest),
    (start, stop): (&Start, &Stop),
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Outcome {
    if !settled.falls_back() || best.report.nnz == 0 || !best.report.is_open() {
        return best;
    }
    let labels = &left.labels;
    let power = labels.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / labels.len() as f64;
    if let Err(error) = turns(settled, (&mut best, left), (start, stop), observe) {
        best.report.stopped |= error.is_interrupted();
    }
    // As a search says it; published steps do not.
    let is_exact = best.report.loss <= f64::from(settled.options.params.exact) * power;
    if let Some(search) = &mut best.report.search
        && is_exact
        && best.value.iter().all(|weight| weight.is_normal())
    {
        search.exact = true;
        best.report.limit = None;
    }
    best
}

/// Turns until the fit is exact or a turn gains nothing.
///
/// # Errors
/// The run was ended before the first step of a part; or that part failed.
fn turns(
    settled: &Settled,
    (best, mut left): (&mut Outcome, Rest),
    (start, stop): (&Start, &Stop),
    observe: &mut (dyn FnMut(&Progress<'_>) -> bool + Send),
) -> Result<()> {
    let mut settled = settled.clone();
    settled.options.params.kicks = 0;
    let Settled { dims, options, .. } = &settled;
    let settings = |epochs, limits| Options {
        schedule: published(epochs, 0, options.params.seed),
        memory: options.memory,
        threads: options.threads,
        limits,
        ..Options::new(dims.hidden, Size::Nonzeros(dims.nnz))
    };
    for turn in 0..options.turns {
        let before = best.report.loss;
        for part in [Part::Steps, Part::Anew, Part::Search] {
            if part == Part::Anew && turn > 0 {
                continue;
            }
            let limits = rest(options.limits, start, best.report.passes).filter(|_| best.report.is_open());
            let Some(limits) = limits else { return Ok(()) };
            let problem = left.problem();
            let from = Origin::Network(best);
            let (found, again) = match part {
                Part::Steps => train::start(problem, &settings(STEPS, limits), from, stop, &mut |_| true)?,
                Part::Anew => {
                    train::start(problem, &settings(EPOCHS, limits), Origin::Zero, stop, &mut |_| true)?
                }
                Part::Search => {
                    let done = best.report.clone();
                    let mut observe = |progress: &Progress<'_>| {
                        // A run that is resumed goes on within the search before all turns.
                        progress.checkpoint.is_some() || observe(&after(&done, *progress))
                    };
                    settled.search(problem, from, (limits, stop), &mut observe)?
                }
            };
            best.add(found, start);
            left = again;
        }
        if best.report.loss > GAIN * before {
            return Ok(());
        }
    }
    Ok(())
}

/// Where a search stands, what was done before it counted too.
fn after<'a>(done: &Report, mut progress: Progress<'a>) -> Progress<'a> {
    let search = done.search.unwrap_or_default();
    progress.step += done.steps;
    progress.moves += search.moves;
    progress.kicks += search.kicks;
    progress.rows_read += (done.passes * done.samples as f64) as u64;
    progress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_leaves_a_part_of_every_limit() {
        let of = |time: u64, passes| Limits { time: Some(Duration::from_secs(time)), passes: Some(passes) };
        assert_eq!(searching(of(100, 20000.0)), of(85, 14000.0));
        // At least some epochs, but no more than half.
        assert_eq!(searching(of(20, 800.0)), of(17, 500.0));
        assert_eq!(searching(of(20, 400.0)), of(17, 200.0));
        assert_eq!(searching(of(20, 1e6)), of(17, 980000.0));
        assert_eq!(searching(Limits::NONE), Limits::NONE);
    }
}
