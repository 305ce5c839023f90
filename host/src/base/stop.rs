//! A wish to end that long work looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Asks long work to end: from anywhere, or when a time has come. Copies are one and the same wish.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tamis_host::base::Stop;
/// let stop = Stop::new();
/// let limited = stop.until(Instant::now() + Duration::from_secs(3600));
/// assert!(!stop.asked() && !limited.asked());
/// stop.ask();
/// assert!(stop.asked() && limited.asked());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    deadline: Option<Instant>,
    begun: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// Not asked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same wish, which `deadline` also expresses once it has come.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// The same wish, whose deadline counts only once `begun` is true: for work that should not be
    /// cut off before there is something to show.
    #[must_use]
    pub fn once(&self, begun: &Arc<AtomicBool>) -> Self {
        Self { begun: Some(Arc::clone(begun)), ..self.clone() }
    }

    /// Asks for the end, for good.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work should end.
    #[must_use]
    pub fn asked(&self) -> bool {
        let begun = || self.begun.as_ref().is_none_or(|begun| begun.load(Ordering::Relaxed));
        let late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.asked.load(Ordering::Relaxed) || begun() && late()
    }
}
