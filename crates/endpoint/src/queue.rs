//! The queue in front of a bounded number of concurrent requests.

use std::collections::VecDeque;

/// Requests that wait, in order. At most `max` are admitted at a time.
#[derive(Debug)]
pub struct Queue {
    waiting: VecDeque<u64>,
    admitted: usize,
    max: usize,
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { waiting: VecDeque::new(), admitted: 0, max }
    }

    /// Number of requests that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a request waits that could be admitted.
    #[must_use]
    pub fn can_admit(&self) -> bool {
        self.admitted < self.max && !self.waiting.is_empty()
    }

    /// Appends a request.
    pub fn push(&mut self, number: u64) {
        self.waiting.push_back(number);
    }

    /// Admits the next open request.
    pub fn admit(&mut self, is_open: impl Fn(u64) -> bool) -> Option<u64> {
        if self.admitted == self.max {
            return None;
        }
        let number = std::iter::from_fn(|| self.waiting.pop_front()).find(|&number| is_open(number))?;
        self.admitted += 1;
        Some(number)
    }

    /// An admitted request has ended.
    pub fn release(&mut self) {
        self.admitted -= 1;
    }

    /// Drops ended requests from the front. If all have the same timeout, no ended one stays behind an open one for long.
    pub fn drop_ended(&mut self, is_open: impl Fn(u64) -> bool) {
        while self.waiting.front().is_some_and(|&number| !is_open(number)) {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n8_requests_are_admitted_in_order_and_ended_ones_take_no_place() {
        let mut queue = Queue::new(2);
        (0..6).for_each(|number| queue.push(number));
        let is_open = |number| number != 1 && number != 2;
        assert!(queue.can_admit());
        assert_eq!([queue.admit(is_open), queue.admit(is_open), queue.admit(is_open)], [Some(0), Some(3), None]);
        assert!(!queue.can_admit());
        assert_eq!((queue.admitted, queue.waiting()), (2, 2));
        queue.drop_ended(|number| number == 5);
        assert_eq!(queue.waiting(), 1);
        queue.release();
        assert_eq!((queue.admit(|_| false), queue.admitted, queue.waiting()), (None, 1, 0));
    }
}
