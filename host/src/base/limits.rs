//! Limits of a run, and the wish to end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks long work to end: from anywhere, or when a time has come. Copies are one and the same wish.
///
/// ```
/// use tamis_host::base::Stop;
/// let stop = Stop::new();
/// let copy = stop.clone();
/// stop.ask();
/// assert!(copy.asked());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    limit: Option<(Instant, Arc<AtomicBool>)>,
}

impl Stop {
    /// Not asked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same wish, which `deadline` also expresses once it has come and `begun` is true.
    pub(crate) fn within(&self, deadline: Instant, begun: &Arc<AtomicBool>) -> Self {
        Self { limit: Some((deadline, Arc::clone(begun))), ..self.clone() }
    }

    /// Asks for the end, for good.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work should end.
    #[must_use]
    pub fn asked(&self) -> bool {
        let late = |(deadline, begun): &(Instant, Arc<AtomicBool>)| {
            begun.load(Ordering::Relaxed) && Instant::now() >= *deadline
        };
        self.asked.load(Ordering::Relaxed) || self.limit.as_ref().is_some_and(late)
    }
}

/// Time and pass limits: the steps until then give the result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// After so much time of this run.
    pub time: Option<Duration>,
    /// After so many passes over all rows, fractions of them and those before a resume included.
    pub passes: Option<f64>,
}

impl Limits {
    /// As long as it takes.
    pub const NONE: Self = Self { time: None, passes: None };
}

/// Other limits, where they are later, for a run whose loss has come down to this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near {
    pub loss: f64,
    pub limits: Limits,
}

/// Decides after every step whether a run continues.
#[derive(Debug)]
pub(crate) struct Watch<'s> {
    limits: Limits,
    /// Those of a run that is not near.
    far: Limits,
    near: Option<Near>,
    began: Instant,
    stop: &'s Stop,
    /// Whether the run has begun and continues, as far as the operator may know.
    begun: Arc<AtomicBool>,
    /// The limit that ended the run.
    limit: Option<&'static str>,
    /// Whether the observer or a stop ended it.
    interrupted: bool,
    /// Whether the next step is one that a run before this one has shown.
    resumed: bool,
}

impl<'s> Watch<'s> {
    /// Time counts from now on.
    pub(crate) fn new(limits: Limits, stop: &'s Stop) -> Self {
        let (began, begun) = (Instant::now(), Arc::default());
        let (near, limit) = (None, None);
        let (interrupted, resumed, far) = (false, false, limits);
        Self { limits, far, near, began, stop, begun, limit, interrupted, resumed }
    }

    /// The same with later limits where the run comes near its end.
    pub(crate) fn near(self, near: Near) -> Self {
        let (far, other) = (self.far, near.limits);
        let time = far.time.zip(other.time).map(|(a, b)| a.max(b));
        let passes = far.passes.zip(other.passes).map(|(a, b)| a.max(b));
        let limits = Limits { time, passes };
        Self { near: Some(Near { limits, ..near }), ..self }
    }

    /// The limits from now on, of a run with this loss: what a checkpoint says, so that a resumed run has the same.
    pub(crate) fn reach(&mut self, loss: f32) {
        let near = self.near.filter(|near| f64::from(loss) <= near.loss);
        self.limits = near.map_or(self.far, |near| near.limits);
    }

    /// The same for a run resumed from a checkpoint, if it is one: its first step was shown before.
    pub(crate) fn resumed(self, resumed: bool) -> Self {
        Self { resumed, ..self }
    }

    /// Shows a step to the observer; whether the run continues.
    pub(crate) fn show(&mut self, passes: f64, observe: impl FnOnce() -> bool) -> bool {
        let observed = std::mem::take(&mut self.resumed) || observe();
        self.goes_on(passes, observed)
    }

    /// What an operator heeds within a step: the wish to end, and the latest limit of time from the
    /// first step on.
    pub(crate) fn stop(&self) -> Stop {
        let limits = self.near.map_or(self.limits, |near| near.limits);
        let deadline = limits.time.and_then(|time| self.began.checked_add(time));
        deadline.map_or(self.stop.clone(), |deadline| self.stop.within(deadline, &self.begun))
    }

    /// Whether the run continues after so many passes and what the observer wishes.
    pub(crate) fn goes_on(&mut self, passes: f64, observed: bool) -> bool {
        let Limits { time, passes: most } = self.limits;
        if self.limit.is_none() && time.is_some_and(|limit| self.began.elapsed() >= limit) {
            self.limit = Some("time");
        } else if self.limit.is_none() && most.is_some_and(|limit| passes >= limit) {
            self.limit = Some("passes");
        }
        self.interrupted |= !observed || self.stop.asked();
        let goes_on = self.limit.is_none() && !self.interrupted;
        self.begun.store(goes_on, Ordering::Relaxed);
        goes_on
    }

    /// The limit that ended a run, and whether it was interrupted, if it has ended before its last
    /// step, `early`: a limit is no interruption.
    pub(crate) fn ended(&mut self, early: bool) -> (Option<&'static str>, bool) {
        if early && self.limit.is_none() && !self.interrupted {
            // The operator ended it within a step.
            self.goes_on(0.0, true);
        }
        let interrupted = self.interrupted || early && (self.limit.is_none() || self.stop.asked());
        (self.limit, interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_stays_and_is_no_interruption() {
        let stop = Stop::new();
        let mut watch =
            Watch::new(Limits { time: Some(Duration::from_secs(3600)), passes: Some(2.0) }, &stop);
        assert!(watch.goes_on(1.9, true) && watch.limit.is_none());
        assert!(!watch.goes_on(2.0, true));
        watch.limits.time = Some(Duration::ZERO);
        assert!(!watch.goes_on(3.0, true));
        assert_eq!(watch.ended(true), (Some("passes"), false));
        stop.ask();
        assert!(watch.ended(true).1);
        assert!(!watch.goes_on(3.0, true) && watch.ended(false).1);
    }

    #[test]
    fn time_limit_seen_only_by_operator_is_reported() {
        let stop = Stop::new();
        let mut watch =
            Watch::new(Limits { time: Some(Duration::from_secs(3600)), passes: None }, &stop);
        assert!(watch.goes_on(1.0, true));
        watch.limits.time = Some(Duration::ZERO);
        assert_eq!(watch.ended(true), (Some("time"), false));
    }

    #[test]
    fn a_run_that_is_near_has_later_limits() {
        let stop = Stop::new();
        let of = |passes| Limits { time: None, passes: Some(passes) };
        let watch = |near| Watch::new(of(2.0), &stop).near(Near { loss: 0.5, limits: of(near) });
        let mut near = watch(4.0);
        near.reach(0.6);
        assert!(near.goes_on(1.0, true));
        near.reach(0.5);
        assert!(near.goes_on(3.0, true) && !near.goes_on(4.0, true));
        let mut far = watch(4.0);
        far.reach(0.5);
        far.reach(0.6);
        assert!(!far.goes_on(2.0, true));
        // Never earlier ones.
        let mut near = watch(1.0);
        near.reach(0.5);
        assert!(near.goes_on(1.5, true) && !near.goes_on(2.0, true));
        // The operator ends nothing before the latest limit.
        let time = |seconds| Limits { time: Some(Duration::from_secs(seconds)), passes: None };
        let mut watch = Watch::new(time(0), &stop).near(Near { loss: 0.5, limits: time(3600) });
        watch.begun.store(true, Ordering::Relaxed);
        assert!(!watch.stop().asked());
        watch.near = None;
        assert!(watch.stop().asked());
    }

    #[test]
    fn resumed_run_repeats_no_progress_but_obeys_limits() {
        let stop = Stop::new();
        let limits = Limits { time: None, passes: Some(2.0) };
        let mut watch = Watch::new(limits, &stop).resumed(true);
        assert!(watch.show(1.0, || false) && !watch.show(1.5, || false));
        let mut watch = Watch::new(limits, &stop).resumed(true);
        assert!(!watch.show(2.0, || true) && watch.limit == Some("passes"));
    }

    #[test]
    fn without_limits_only_observer_or_operator_stops_run() {
        let stop = Stop::new();
        let mut watch = Watch::new(Limits::NONE, &stop);
        assert!(watch.goes_on(f64::MAX, true));
        // An operator that stopped is not seen by the watch.
        assert!(watch.ended(true).1 && !watch.ended(false).1);
        assert!(!watch.goes_on(0.0, false) && watch.ended(false) == (None, true));
    }
}
