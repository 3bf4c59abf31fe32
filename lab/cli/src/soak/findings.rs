use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of findings kept as text; the rest are only counted, because one bug usually causes many.
const KEPT_MAX: usize = 30;

/// Shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Findings(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    count: u64,
    first: Vec<String>,
}

impl Findings {
    pub(crate) fn add(&self, what: impl Into<String>) {
        let mut found = self.lock();
        found.count += 1;
        if found.first.len() < KEPT_MAX {
            let what = what.into();
            eprintln!("WRONG: {what}");
            found.first.push(what);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    pub(crate) fn first(&self) -> Vec<String> {
        self.lock().first.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
