use super::Operation;
use midflight_endpoint::{Deadlines, Nanos};
use std::collections::{HashMap, VecDeque};

pub(super) enum Body {
    Operation(Operation),
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In a queue, or until its lane has a client id.
    Waiting,
    Ready,
    Sent,
    Pausing,
}

pub(super) struct Request {
    pub(super) body: Body,
    pub(super) state: State,
    pub(super) hash: u32,
    /// Only writes and openings have one.
    pub(super) lane: Option<usize>,
    /// A write's number in its lane; random for an opening.
    pub(super) number: u64,
    pub(super) deadline: Nanos,
    /// When the timer must look at it.
    due: Nanos,
    /// Transmissions; the packet's sequence number counts them from 0.
    pub(super) sent: u32,
    /// Transmissions under an earlier client id.
    pub(super) sent_before: u32,
    pub(super) first_sent_at: Nanos,
    pub(super) last_sent_at: Nanos,
    /// Switch and cookie of the last transmission.
    pub(super) switch: usize,
    pub(super) cookie: u64,
    pub(super) asked_direct: Option<usize>,
    /// From this time on, a cookie may cause a transmission at once.
    pub(super) heeds_cookies_from: Nanos,
    /// Current timeout for an answer; 0: the measured one.
    pub(super) patience: Nanos,
    pub(super) pause: Nanos,
}

impl Request {
    pub(super) fn new(body: Body, hash: u32, deadline: Nanos) -> Self {
        Self {
            body,
            state: State::Waiting,
            hash,
            lane: None,
            number: 0,
            deadline,
            due: deadline,
            sent: 0,
            sent_before: 0,
            first_sent_at: 0,
            last_sent_at: 0,
            switch: 0,
            cookie: 0,
            asked_direct: None,
            heeds_cookies_from: 0,
            patience: 0,
            pause: 0,
        }
    }

    pub(super) fn is_write(&self) -> bool {
        match &self.body {
            Body::Operation(operation) => operation.is_write(),
            Body::Open => true,
        }
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.body, Body::Open)
    }

    /// When the transmission with this sequence number left. Known for the first and the last only.
    pub(super) fn sent_at(&self, sequence: u32) -> Option<Nanos> {
        match sequence {
            _ if sequence + 1 == self.sent => Some(self.last_sent_at),
            0 => Some(self.first_sent_at),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Requests {
    open: HashMap<u64, Request>,
    deadlines: Deadlines,
    ready: VecDeque<u64>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// `number` must not be in use.
    pub(super) fn insert(&mut self, number: u64, request: Request) {
        let due = request.due;
        self.open.insert(number, request);
        self.schedule(number, due);
    }

    pub(super) fn get(&self, number: u64) -> Option<&Request> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Request> {
        self.open.get_mut(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Request> {
        let request = self.open.remove(&number)?;
        let open = &self.open;
        self.deadlines.tidy(|at, number| is_due(open, at, number));
        Some(request)
    }

    /// Sets a timer for the request, at its deadline at the latest.
    pub(super) fn schedule(&mut self, number: u64, at: Nanos) {
        let Some(request) = self.open.get_mut(&number) else { return };
        request.due = at.min(request.deadline);
        let (due, open) = (request.due, &self.open);
        self.deadlines.push(due, number, open.len(), |at, number| is_due(open, at, number));
        self.deadlines.tidy(|at, number| is_due(open, at, number));
    }

    pub(super) fn make_ready(&mut self, number: u64) {
        let Some(request) = self.open.get_mut(&number) else { return };
        if request.state != State::Ready {
            request.state = State::Ready;
            self.ready.push_back(number);
        }
    }

    pub(super) fn send_at(&mut self, number: u64, at: Nanos, now: Nanos) {
        if at <= now {
            return self.make_ready(number);
        }
        if let Some(request) = self.open.get_mut(&number) {
            request.state = State::Pausing;
            self.schedule(number, at);
        }
    }

    pub(super) fn pop_ready(&mut self) -> Option<u64> {
        while let Some(number) = self.ready.pop_front() {
            if self.open.get(&number).is_some_and(|request| request.state == State::Ready) {
                return Some(number);
            }
        }
        None
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
}

fn is_due(open: &HashMap<u64, Request>, at: Nanos, number: u64) -> bool {
    open.get(&number).is_some_and(|request| request.due == at)
}
