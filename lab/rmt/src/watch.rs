//! The progress of a running search, of programs or of protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of a search, and a way to end it. Clones belong to the same search.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    states: Arc<AtomicU64>,
}

impl Watch {
    /// Ends searches when `stop` is set.
    #[must_use]
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..Self::default() }
    }

    /// States visited so far.
    #[must_use]
    pub fn states(&self) -> u64 {
        self.states.load(Ordering::Relaxed)
    }

    /// Whether the search must end.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts a visited state.
    pub fn count(&self) {
        self.states.fetch_add(1, Ordering::Relaxed);
    }
}
