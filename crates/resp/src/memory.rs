//! A bound on the bytes of all connections together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that connections share.
#[derive(Debug)]
pub struct Memory {
    left: AtomicUsize,
}

/// Bytes that were taken. Dropping it gives them back.
#[derive(Debug)]
pub struct Held {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Memory {
    /// A pool of this size.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(bytes) })
    }

    pub(crate) fn nothing(self: &Arc<Self>) -> Held {
        Held { memory: Arc::clone(self), bytes: 0 }
    }

    /// Takes bytes; `None` if fewer are left.
    #[must_use]
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        held.resize(bytes).then_some(held)
    }
}

impl Held {
    /// Takes more, or gives some back. Returns whether it could.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let left = &self.memory.left;
        let could = match bytes.checked_sub(self.bytes) {
            Some(more) => left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(more)).is_ok(),
            None => {
                left.fetch_add(self.bytes - bytes, Relaxed);
                true
            }
        };
        if could {
            self.bytes = bytes;
        }
        could
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let memory = Memory::new(10);
        let mut first = memory.take(6).expect("room");
        assert!(memory.take(5).is_none());
        let second = memory.take(4).expect("room");
        assert!(!first.resize(7) && first.resize(3) && first.resize(6));
        drop(second);
        assert!(first.resize(10));
        drop(first);
        assert!(memory.take(10).is_some());
    }
}
