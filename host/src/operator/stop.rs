//! A wish to end that long work looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Asks long work to end: from anywhere, or when a time has come. Copies are one and the same wish.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tamis_host::operator::Stop;
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
    heeded: Option<Arc<AtomicBool>>,
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

    /// The same wish, which counts only as long as `heeded` is true: for work that can be cut off at first, and must be
    /// brought to an end later.
    #[must_use]
    pub fn heeded(&self, heeded: &Arc<AtomicBool>) -> Self {
        Self { heeded: Some(Arc::clone(heeded)), ..self.clone() }
    }

    /// Asks for the end, for good.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work should end.
    #[must_use]
    pub fn asked(&self) -> bool {
        let asked = self.asked.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        asked && self.heeded.as_ref().is_none_or(|heeded| heeded.load(Ordering::Relaxed))
    }
}
