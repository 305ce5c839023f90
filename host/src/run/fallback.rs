//! What follows a search that ended without an exact fit: the published method, and a search from where that ended.
//!
//! ```text
//! search ──exact─────────────────────────────────────> its network
//!    └─not exact─> published method ──no better──────> the network of the search
//!                          └─better─> search on ─────> the better of the last two
//! ```
//!
//! Where labels have an exact fit, moves of whole neurons find it. Where they have none, as those of images, steps that look at every
//! weight of every neuron can end better.

use std::time::Duration;

use tamis::lm::{Params, Progress};

use super::limits::Limits;
use super::recipe::published;
use super::recover::{Search, Settled};
use super::train::{Options, Origin, Outcome, Report, Size, Start};
use super::{Problem, peak_rss_bytes, train};
use crate::Result;
use crate::operator::Stop;

/// Part of a limit that a search leaves for what follows it.
const PART: f64 = 0.1;

/// Passes that it leaves at least, but no more than half of all.
const LEAST: f64 = 300.0;

/// Passes of an epoch of the published method on all rows.
const EPOCH: f64 = 16.0;

/// Fewest and most epochs of the published method: those of its grid, and those of its images.
const EPOCHS: (f64, f64) = (15.0, 100.0);

/// The limits of a search that something follows.
pub(super) fn searching(limits: Limits) -> Limits {
    let left = |passes: f64| (PART * passes).max(LEAST).min(0.5 * passes);
    Limits {
        time: limits.time.map(|time| time.mul_f64(1.0 - PART)),
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

impl Report {
    /// Whether the search might have ended better: it is not exact, and nobody ended it.
    fn is_open(&self) -> bool {
        !self.stopped && self.search.is_some_and(|search| !search.exact)
    }

    /// What was done, of both runs.
    fn add(&mut self, other: &Self, start: &Start) {
        self.passes += other.passes;
        self.limit = self.limit.or(other.limit);
        self.stopped |= other.stopped;
        self.seconds = start.seconds();
        self.peak_rss_bytes = peak_rss_bytes();
        if let (Some(search), Some(other_search)) = (&mut self.search, &other.search) {
            self.steps += other.steps;
            self.epochs += other.epochs;
            search.moves += other_search.moves;
            search.tried += other_search.tried;
            search.kicks += other_search.kicks;
            search.merges += other_search.merges;
            search.flips += other_search.flips;
        }
    }
}

impl Outcome {
    /// Takes the network of another run on the same rows.
    fn take(&mut self, other: Self) {
        let found = other.report;
        let exact = found.search.is_some_and(|search| search.exact);
        self.report = Report {
            nnz: found.nnz,
            live: found.live,
            loss: found.loss,
            psnr_db: found.psnr_db,
            accuracy: found.accuracy,
            search: self.report.search.map(|search| Search { exact, from_published: true, ..search }),
            ..self.report.clone()
        };
        Self { report: _, index: self.index, value: self.value, model: self.model, .. } = other;
    }
}

/// The best of the network that a search has found on `problem`, of one that the published method finds, and of one that a search
/// from there finds; as far as the limits go.
///
/// # Errors
/// Those of a search; the published method may fail.
pub(super) fn better(
    settled: &Settled,
    (mut best, problem): (Outcome, Problem),
    (start, stop): (&Start, &Stop),
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> Result<Outcome> {
    let Settled { dims, options, .. } = settled;
    if !settled.falls_back() || !best.report.is_open() {
        return Ok(best);
    }
    let spent = best.report.passes;
    let Some(limits) = rest(options.limits, start, spent) else { return Ok(best) };
    let epochs = (PART * spent / EPOCH).clamp(EPOCHS.0, EPOCHS.1) as u32;
    let settings = Options {
        schedule: published(epochs, 0, options.params.seed),
        memory: options.memory,
        threads: options.threads,
        limits,
        ..Options::new(dims.hidden, Size::Nonzeros(dims.nnz))
    };
    let (found, problem) = match train::start(problem, &settings, Origin::Zero, stop, |_| true) {
        Ok(found) => found,
        Err(error) => {
            best.report.stopped |= error.is_interrupted();
            return Ok(best);
        }
    };
    best.report.add(&found.report, start);
    if found.report.loss >= best.report.loss {
        return Ok(best);
    }
    best.take(found);
    let limits = rest(options.limits, start, best.report.passes);
    let Some(limits) = limits.filter(|_| !best.report.stopped) else { return Ok(best) };
    // Where kicks have found nothing, none follow.
    let mut again = settled.clone();
    again.options.params = Params { kicks: 0, ..options.params };
    let before = best.report.clone();
    let search = before.search.unwrap_or_default();
    let observe = |progress: &Progress<'_>| {
        let mut progress = *progress;
        progress.step += before.steps;
        progress.moves += search.moves;
        progress.kicks += search.kicks;
        progress.rows_read += (before.passes * dims.samples as f64) as u64;
        // A resumed run goes on with the first search.
        progress.checkpoint.is_some() || observe(&progress)
    };
    let found = again.search(problem, Origin::Network(&best), (limits, stop), observe);
    let found = match found {
        Ok((found, _)) => found,
        Err(error) if error.is_interrupted() => {
            best.report.stopped = true;
            return Ok(best);
        }
        Err(error) => return Err(error),
    };
    best.report.add(&found.report, start);
    if found.report.loss < best.report.loss {
        best.take(found);
    }
    Ok(best)
}
