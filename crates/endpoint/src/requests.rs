//! The open requests of a client: which to send now, which to send again and when, and which have timed out.

use crate::backoff::grow;
use crate::{Deadlines, Nanos};
use rand::Rng;
use rand_pcg::Pcg32;
use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;

/// The state of an open request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its owner has not released it yet.
    Waiting,
    /// To be sent in this turn of the driver.
    Ready,
    /// Sent and unanswered.
    Sent,
    /// To be sent later.
    Paused,
}

/// An open request; `T` is its owner's part.
#[derive(Debug)]
pub struct Request<T> {
    /// The owner's part.
    pub body: T,
    state: State,
    deadline: Nanos,
    /// Time of its current timer, at most the deadline.
    due: Nanos,
    sent: u32,
    first_sent_at: Nanos,
    last_sent_at: Nanos,
    pause: Nanos,
}

impl<T> Request<T> {
    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// When it times out.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Number of transmissions.
    #[must_use]
    pub fn transmissions(&self) -> u32 {
        self.sent
    }

    /// Time of the last transmission; 0 before the first.
    #[must_use]
    pub fn last_sent_at(&self) -> Nanos {
        self.last_sent_at
    }

    /// Time of a transmission, counted from 0. Known for the first and the last only.
    #[must_use]
    pub fn sent_at(&self, transmission: u32) -> Option<Nanos> {
        match transmission {
            _ if transmission + 1 == self.sent => Some(self.last_sent_at),
            0 => Some(self.first_sent_at),
            _ => None,
        }
    }
}

/// What a timer has shown about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Its deadline has passed, and its owner must remove it.
    Deadline,
    /// Its last transmission was not answered in time. It is ready again.
    Unanswered,
    /// Its pause is over. It is ready again.
    Pause,
}

/// Open requests by number. Each has one timer, and leaves the table when its owner removes it: at its final answer, or at its
/// deadline.
pub struct Requests<T> {
    open: HashMap<u64, Request<T>>,
    deadlines: Deadlines,
    /// Numbers of the ready requests in order, and of some that are not ready any more.
    ready: VecDeque<u64>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self { open: HashMap::new(), deadlines: Deadlines::default(), ready: VecDeque::new() }
    }
}

impl<T> Requests<T> {
    /// Number of open requests.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Adds a waiting request under a random number. An answer counts by this number, so it never recurs, and seeing one reveals no
    /// other.
    pub fn insert(&mut self, deadline: Nanos, body: T, secrets: &mut impl Rng) -> u64 {
        let mut number = secrets.next_u64();
        while self.open.contains_key(&number) {
            number = secrets.next_u64();
        }
        let (state, due) = (State::Waiting, deadline);
        let request = Request { body, state, deadline, due, sent: 0, first_sent_at: 0, last_sent_at: 0, pause: 0 };
        self.open.insert(number, request);
        self.schedule(number, deadline);
        number
    }

    /// Whether a request is open.
    #[must_use]
    pub fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// An open request.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Request<T>> {
        self.open.get(&number)
    }

    /// An open request.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Request<T>> {
        self.open.get_mut(&number)
    }

    /// Ends a request.
    pub fn remove(&mut self, number: u64) -> Option<Request<T>> {
        let request = self.open.remove(&number)?;
        self.tidy();
        Some(request)
    }

    /// Releases a request: it is to be sent now.
    pub fn make_ready(&mut self, number: u64) {
        if let Some(request) = self.open.get_mut(&number).filter(|request| request.state != State::Ready) {
            request.state = State::Ready;
            self.ready.push_back(number);
        }
    }

    /// The next request to send. The owner then calls `mark_sent`, `hold` or `remove`.
    pub fn next_ready(&mut self) -> Option<u64> {
        while let Some(number) = self.ready.pop_front() {
            if self.open.get(&number).is_some_and(|request| request.state == State::Ready) {
                return Some(number);
            }
        }
        None
    }

    /// A request was sent. Without an answer it is sent again after `timeout`.
    pub fn mark_sent(&mut self, now: Nanos, number: u64, timeout: Nanos) {
        let Some(request) = self.open.get_mut(&number) else { return };
        if request.sent == 0 {
            request.first_sent_at = now;
        }
        (request.state, request.last_sent_at) = (State::Sent, now);
        request.sent += 1;
        self.schedule(number, now.saturating_add(timeout));
    }

    /// Sends the request again at this time, if its deadline is later.
    pub fn hold(&mut self, number: u64, until: Nanos) {
        if let Some(request) = self.open.get_mut(&number) {
            request.state = State::Paused;
            self.schedule(number, until);
        }
    }

    /// A full peer refused the request: sends it again after a pause within these bounds, which doubles each time.
    pub fn pause(&mut self, now: Nanos, number: u64, bounds: RangeInclusive<Nanos>, rng: &mut Pcg32) {
        if let Some(request) = self.open.get_mut(&number) {
            let pause = grow(&mut request.pause, &bounds, rng);
            self.hold(number, now.saturating_add(pause));
        }
    }

    fn schedule(&mut self, number: u64, at: Nanos) {
        let Some(request) = self.open.get_mut(&number) else { return };
        request.due = at.min(request.deadline);
        let (due, open) = (request.due, &self.open);
        self.deadlines.push(due, number, open.len(), |at, number| is_due(open, at, number));
        self.tidy();
    }

    fn tidy(&mut self) {
        let open = &self.open;
        self.deadlines.tidy(|at, number| is_due(open, at, number));
    }

    /// Time of the next timer.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        self.deadlines.next()
    }

    /// The next timer that is due. Call it until it returns `None`.
    pub fn expire(&mut self, now: Nanos) -> Option<(u64, Expiry)> {
        while let Some((at, number)) = self.deadlines.pop_due(now) {
            let Some(request) = self.open.get(&number).filter(|request| request.due == at) else { continue };
            if request.deadline <= now {
                return Some((number, Expiry::Deadline));
            }
            let is_sent = request.state == State::Sent;
            self.make_ready(number);
            return Some((number, if is_sent { Expiry::Unanswered } else { Expiry::Pause }));
        }
        self.tidy();
        None
    }
}

fn is_due<T>(open: &HashMap<u64, Request<T>>, at: Nanos, number: u64) -> bool {
    open.get(&number).is_some_and(|request| request.due == at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use rand::SeedableRng;

    fn table(deadlines: impl IntoIterator<Item = Nanos>) -> (Requests<()>, Vec<u64>) {
        let mut secrets = Pcg32::seed_from_u64(7);
        let mut requests = Requests::default();
        let numbers = deadlines.into_iter().map(|deadline| requests.insert(deadline, (), &mut secrets)).collect();
        (requests, numbers)
    }

    fn ready(requests: &mut Requests<()>) -> Vec<u64> {
        std::iter::from_fn(|| requests.next_ready()).collect()
    }

    fn expired(requests: &mut Requests<()>, now: Nanos) -> Vec<(u64, Expiry)> {
        std::iter::from_fn(|| requests.expire(now)).collect()
    }

    #[test]
    fn a_request_is_repeated_until_its_deadline() {
        let (mut requests, numbers) = table([100]);
        let number = numbers[0];
        assert_eq!((requests.next_due(), ready(&mut requests)), (Some(100), vec![]), "not released yet");
        requests.make_ready(number);
        requests.make_ready(number);
        for (now, due) in [(10, 40), (40, 70)] {
            assert_eq!(ready(&mut requests), [number], "once");
            requests.mark_sent(now, number, 30);
            assert_eq!((requests.next_due(), expired(&mut requests, due - 1)), (Some(due), vec![]));
            assert_eq!(expired(&mut requests, due), [(number, Expiry::Unanswered)]);
        }
        assert_eq!(requests.next_ready(), Some(number));
        requests.mark_sent(70, number, 40);
        assert_eq!((requests.next_due(), requests.expire(100)), (Some(100), Some((number, Expiry::Deadline))));
        let request = requests.remove(number).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| request.sent_at(n)), [Some(10), None, Some(70), None]);
        assert_eq!((request.transmissions(), request.last_sent_at(), requests.next_due()), (3, 70, None));
    }

    #[test]
    fn an_ended_or_rescheduled_request_leaves_no_timer_and_is_not_sent() {
        let (mut requests, numbers) = table([100, 100, 100]);
        numbers.iter().for_each(|&number| requests.make_ready(number));
        assert!(requests.remove(numbers[0]).is_some() && requests.remove(numbers[0]).is_none());
        requests.hold(numbers[1], 50);
        assert_eq!(ready(&mut requests), [numbers[2]]);
        requests.mark_sent(1, numbers[2], Nanos::MAX);
        assert_eq!(requests.next_due(), Some(50));
        assert_eq!(expired(&mut requests, 50), [(numbers[1], Expiry::Pause)]);
        assert_eq!((ready(&mut requests), requests.next_due()), (vec![numbers[1]], Some(100)));
        assert!(requests.remove(numbers[2]).is_some());
        assert_eq!(requests.next_due(), None, "a request that is ready has no timer but its owner's turn");
        assert_eq!((requests.open(), requests.is_open(numbers[1])), (1, true));
    }

    #[test]
    fn pauses_double_within_their_bounds_with_jitter() {
        let (mut requests, numbers) = table([Nanos::MAX]);
        let mut rng = Pcg32::seed_from_u64(7);
        for wait in [1, 2, 4, 8, 10, 10] {
            requests.pause(0, numbers[0], MS..=10 * MS, &mut rng);
            let due = requests.next_due().unwrap();
            assert!((wait * MS / 2..=wait * MS).contains(&due), "{due} of {wait} ms");
        }
    }
}
