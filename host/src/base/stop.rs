//! A wish to end that long work looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

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

    /// The same wish, which `deadline` also expresses once it has come and `begun` is true: work is
    /// not cut off before there is something to show.
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
