//! One memory limit for functions and shared arguments at executor and workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(super) struct Memory {
    max: u64,
    used: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Reserved {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    pub(super) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicU64::new(0) })
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.max
    }

    /// Never fails: data in use may exceed the limit.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64) -> Reserved {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Reserved { memory: Arc::clone(self), bytes }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_free_again() {
        let memory = Memory::new(10);
        let first = memory.reserve(10);
        assert!(!memory.is_exceeded());
        let second = Arc::new(memory.reserve(1));
        let holder = Arc::clone(&second);
        drop(second);
        assert!(memory.is_exceeded(), "one has it yet");
        drop(holder);
        assert!(!memory.is_exceeded());
        drop(first);
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
