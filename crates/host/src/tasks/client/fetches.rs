//! Queue of fetches: results, and long values of a cache. Addresses share the fetchers, so a slow or silent one delays only its own fetches
//! (T14).

use crate::driver::lock;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Fetches<A, T> {
    state: Mutex<State<A, T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<A, T> {
    waiting: HashMap<A, VecDeque<T>>,
    /// Addresses with queued fetches, each once, in order of their turns.
    turns: VecDeque<A>,
    /// Fetchers in use per address.
    busy: HashMap<A, usize>,
    idle: usize,
    closed: bool,
}

impl<A: Copy + Eq + Hash, T> Fetches<A, T> {
    pub(crate) fn new(fetchers: usize) -> Self {
        let (waiting, turns, busy) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self {
            state: Mutex::new(State { waiting, turns, busy, idle: fetchers, closed: false }),
            changed: Condvar::new(),
        }
    }

    /// Queues a fetch. Returns `false` after `close`.
    pub(crate) fn push(&self, from: A, wanted: T) -> bool {
        let mut state = lock(&self.state);
        if state.closed {
            return false;
        }
        let waiting = state.waiting.entry(from).or_default();
        waiting.push_back(wanted);
        if waiting.len() == 1 {
            state.turns.push_back(from);
        }
        self.changed.notify_one();
        true
    }

    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.waiting.clear();
        state.turns.clear();
        self.changed.notify_all();
    }

    pub(crate) fn serve(&self, mut fetch: impl FnMut(T)) {
        while let Some((from, wanted)) = self.next() {
            fetch(wanted);
            lock(&self.state).end(from);
            self.changed.notify_one();
        }
    }

    fn next(&self) -> Option<(A, T)> {
        let mut state = lock(&self.state);
        while !state.closed {
            if let Some(next) = state.begin() {
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl<A: Copy + Eq + Hash, T> State<A, T> {
    /// The next fetch. Addresses take turns; one with as many fetchers as are idle waits. So a single address gets half of them, and
    /// another always finds one.
    fn begin(&mut self) -> Option<(A, T)> {
        let may_begin = |from: &A| self.busy.get(from).copied().unwrap_or(0) < self.idle;
        let from = self.turns.iter().position(may_begin).and_then(|turn| self.turns.remove(turn))?;
        let waiting = self.waiting.get_mut(&from)?;
        let wanted = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&from);
        } else {
            self.turns.push_back(from);
        }
        *self.busy.entry(from).or_default() += 1;
        self.idle -= 1;
        Some((from, wanted))
    }

    fn end(&mut self, from: A) {
        self.idle += 1;
        if let Some(busy) = self.busy.get_mut(&from) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn t14_an_address_that_never_ends_leaves_fetchers_to_others() {
        let fetches = Fetches::new(16);
        for slow in 1..=4 {
            (0..100).for_each(|number| assert!(fetches.push(address(slow), number)));
            while lock(&fetches.state).begin().is_some() {}
        }
        let busy = |of: u8| lock(&fetches.state).busy.get(&address(of)).copied().unwrap_or(0);
        assert_eq!((1..=4).map(busy).collect::<Vec<_>>(), [8, 4, 2, 1]);
        for number in 0..100 {
            assert!(fetches.push(address(5), number));
            assert_eq!(fetches.next(), Some((address(5), number)), "in order");
            lock(&fetches.state).end(address(5));
        }
    }

    #[test]
    fn addresses_take_turns_and_a_single_fetcher_serves_all() {
        let fetches = Fetches::new(1);
        for (of, number) in [(1, 1), (1, 2), (2, 3), (1, 4)] {
            assert!(fetches.push(address(of), number));
        }
        let mut served = Vec::new();
        fetches.serve(|number| {
            served.push(number);
            if served.len() == 4 {
                fetches.close();
            }
        });
        assert_eq!(served, [1, 3, 2, 4]);
        assert!(!fetches.push(address(1), 5), "closed");
    }
}
