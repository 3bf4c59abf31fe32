use super::events::Read;
use crate::select::Server;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Deadlines, Nanos};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    /// To be sent in this turn of the driver.
    Ready,
    /// As `Ready`, but repeats the last attempt with the new cookie.
    ReadyAgain,
    Sent,
    /// To be sent again later: its server had no room, or rate control holds it.
    Pausing,
}

/// The last transmission of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) to: SocketAddr,
    pub(super) server: SocketAddr,
    /// Direct mode: RV, which names the attempt.
    pub(super) retained: u16,
    /// Direct mode: the server's number, for its cookie.
    pub(super) number: Option<Server>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) read: Read,
    pub(super) state: State,
    pub(super) deadline: Nanos,
    /// When the timer must look at it.
    due: Nanos,
    /// Transmissions, without repeats for a cookie.
    pub(super) sent: u32,
    pub(super) last_sent_at: Nanos,
    pub(super) last: Option<Sending>,
    /// Whether a cookie may cause a transmission at once.
    pub(super) heeds_cookie: bool,
    /// Current timeout for an answer.
    pub(super) patience: Nanos,
    pub(super) pause: Nanos,
}

impl Request {
    pub(super) fn new(read: Read, deadline: Nanos) -> Self {
        Self {
            read,
            state: State::Queued,
            deadline,
            due: deadline,
            sent: 0,
            last_sent_at: 0,
            last: None,
            heeds_cookie: false,
            patience: 0,
            pause: 0,
        }
    }

    pub(super) fn backup(&self) -> Option<SocketAddr> {
        let at = self.sent as usize % self.read.backups.len().max(1);
        self.read.backups.get(at).copied()
    }
}

#[derive(Default)]
pub(super) struct Requests {
    open: HashMap<u64, Request>,
    deadlines: Deadlines,
    ready: VecDeque<u64>,
    /// Numbers of queued reads, and of `ended` former ones.
    queued: VecDeque<u64>,
    ended: usize,
    under_way: usize,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn queued(&self) -> usize {
        self.open.len() - self.under_way
    }

    /// `number` must not be in use.
    pub(super) fn insert(&mut self, number: u64, request: Request, under_way_max: usize) {
        let due = request.due;
        self.open.insert(number, request);
        self.schedule(number, due);
        self.queued.push_back(number);
        self.fill(under_way_max);
    }

    fn fill(&mut self, under_way_max: usize) {
        while self.under_way < under_way_max {
            let Some(number) = self.queued.pop_front() else { return };
            let Some(request) = self.open.get_mut(&number) else {
                self.ended -= 1;
                continue;
            };
            request.state = State::Ready;
            self.ready.push_back(number);
            self.under_way += 1;
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Request> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Request> {
        self.open.get_mut(&number)
    }

    pub(super) fn remove(&mut self, number: u64, under_way_max: usize) -> Option<Request> {
        let request = self.open.remove(&number)?;
        if request.state == State::Queued {
            self.ended += 1;
            // Otherwise the numbers of ended reads would pile up if no read in flight ends. Half of the queue at a time, so that a
            // million ends do not take quadratic time.
            if 2 * self.ended > self.queued.len() {
                self.queued.retain(|queued| self.open.contains_key(queued));
                self.ended = 0;
            }
        } else {
            self.under_way -= usize::from(!(planted(245) && request.state == State::Pausing));
            self.fill(under_way_max);
        }
        Some(request)
    }

    pub(super) fn make_ready(&mut self, number: u64, state: State) {
        if let Some(request) = self.open.get_mut(&number) {
            request.state = state;
            self.ready.push_back(number);
        }
    }

    pub(super) fn next_ready(&mut self) -> Option<u64> {
        while let Some(number) = self.ready.pop_front() {
            let state = self.open.get(&number).map(|request| request.state);
            if matches!(state, Some(State::Ready | State::ReadyAgain)) {
                return Some(number);
            }
        }
        None
    }

    /// Sets a timer for the request, at its deadline at the latest.
    pub(super) fn schedule(&mut self, number: u64, at: Nanos) {
        let Some(request) = self.open.get_mut(&number) else { return };
        request.due = at.min(request.deadline);
        let due = request.due;
        let Self { open, deadlines, .. } = self;
        deadlines.push(due, number, open.len(), |at, number| is_due(open, at, number));
        deadlines.tidy(|at, number| is_due(open, at, number));
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.deadlines.next()
    }

    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<u64> {
        while let Some((at, number)) = self.deadlines.pop_due(now) {
            if is_due(&self.open, at, number) {
                return Some(number);
            }
        }
        None
    }

    /// Drops timers of ended reads.
    pub(super) fn tidy(&mut self) {
        let Self { open, deadlines, .. } = self;
        deadlines.tidy(|at, number| is_due(open, at, number));
    }
}

fn is_due(open: &HashMap<u64, Request>, at: Nanos, number: u64) -> bool {
    open.get(&number).is_some_and(|request| request.due == at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n8_reads_that_end_while_they_wait_leave_nothing_behind() {
        let read = |key: u8| Read { group: 0, asked: vec![key], backups: vec![([10, 0, 0, 1], 7800).into()] };
        let mut requests = Requests::default();
        (0..1_000).for_each(|number| requests.insert(number, Request::new(read(number as u8), 1_000 + number), 1));
        for number in (1..1_000).filter(|number| number % 10 != 0) {
            assert!(requests.remove(number, 1).is_some());
            assert!(
                requests.queued.len() <= 2 * requests.queued(),
                "{} of {}",
                requests.queued.len(),
                requests.queued()
            );
        }
        let mut turns = Vec::new();
        while let Some(number) = requests.next_ready() {
            turns.push(number);
            requests.remove(number, 1);
        }
        assert_eq!(turns, (0..1_000).step_by(10).collect::<Vec<_>>(), "in their order");
        assert_eq!((requests.len(), requests.queued.len(), requests.ended), (0, 0, 0));
    }
}
