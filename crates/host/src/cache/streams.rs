//! Connections to servers, kept for reuse, and the limit of concurrent exchanges.

use super::counters::{Counts, add};
use super::error::ServerError;
use super::exchange::{Answer, Exchange, Step};
use crate::driver::lock;
use crate::error::Error;
use rustix::event::{PollFd, Timespec, poll};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Concurrent exchanges over all servers; further operations wait.
const OPEN_MAX: usize = 64;
const KEPT_MAX: usize = 64;
/// Kept connections expire before an agent closes them, after 5 s.
const KEPT_FOR: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) type Outcome = Result<Answer, ServerError>;

#[derive(Debug)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Notified when an exchange ends.
    room: Condvar,
    closed: AtomicBool,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    kept: HashMap<SocketAddr, Vec<(TcpStream, Instant)>>,
    open: usize,
}

struct Turn<'a>(&'a Streams, usize);

impl Turn<'_> {
    /// Frees all but `open` places while one server is slow.
    fn keep(&mut self, open: usize) {
        if open < self.1 {
            lock(&self.0.state).open -= self.1 - open;
            self.1 = open;
            self.0.room.notify_all();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.keep(0);
    }
}

impl Streams {
    pub(super) fn new(counts: Arc<Counts>) -> Self {
        Self { state: Mutex::default(), room: Condvar::new(), closed: AtomicBool::new(false), counts }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        lock(&self.state).kept.clear();
        self.room.notify_all();
    }

    /// Sends the request to all servers at the same time. Returns the outcomes in their order.
    ///
    /// # Errors
    ///
    /// If there is no turn before the deadline.
    pub(super) fn ask(&self, servers: &[SocketAddr], request: &[u8], deadline: Instant) -> Result<Vec<Outcome>, Error> {
        let full = Error::TooManyOpen { open: OPEN_MAX, asked: servers.len(), max: OPEN_MAX };
        let mut outcomes: Vec<Option<Outcome>> = vec![None; servers.len()];
        let turn = self.wait_for_turn(servers.len(), deadline).ok_or(full)?;
        let mut exchanges: Vec<Option<Exchange<'_>>> = Vec::new();
        for (server, outcome) in servers.iter().zip(&mut outcomes) {
            exchanges.push(self.begin(*server, request, outcome));
        }
        self.drive(turn, &mut exchanges, &mut outcomes, request, deadline);
        let in_time = |outcome: Option<Outcome>| outcome.unwrap_or(Err(ServerError::TimedOut));
        let outcomes: Vec<Outcome> = outcomes.into_iter().map(in_time).collect();
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).for_each(|why| self.counts.server_failed(why));
        Ok(outcomes)
    }

    fn wait_for_turn(&self, count: usize, deadline: Instant) -> Option<Turn<'_>> {
        let mut state = lock(&self.state);
        while state.open > 0 && state.open + count > OPEN_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.closed.load(Ordering::Acquire) {
                return None;
            }
            state = self.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open += count;
        Some(Turn(self, count))
    }

    fn drive<'a>(
        &self,
        mut turn: Turn<'_>,
        exchanges: &mut [Option<Exchange<'a>>],
        outcomes: &mut [Option<Outcome>],
        request: &'a [u8],
        deadline: Instant,
    ) {
        let mut ready = vec![false; exchanges.len()];
        loop {
            for ((place, outcome), is_ready) in exchanges.iter_mut().zip(outcomes.iter_mut()).zip(&ready) {
                self.step(place, outcome, request, *is_ready);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            turn.keep(exchanges.iter().flatten().count());
            let all_ended = exchanges.iter().all(Option::is_none);
            if all_ended || left.is_zero() || self.closed.load(Ordering::Acquire) {
                return;
            }
            wait(exchanges, &mut ready, left.min(LOOK_EVERY));
        }
    }

    fn step<'a>(
        &self,
        place: &mut Option<Exchange<'a>>,
        outcome: &mut Option<Outcome>,
        request: &'a [u8],
        is_ready: bool,
    ) {
        let Some(exchange) = place else { return };
        let server = exchange.server;
        match exchange.step(is_ready) {
            Step::Waits => {}
            // Closed before the request arrived: send it again.
            Step::KeptClosed => {
                add(&self.counts.kept_closed);
                *place = self.connect(server, request, outcome);
            }
            Step::Ended(ended) => {
                let can_be_used = matches!(ended, Ok(_) | Err(ServerError::Refused(_)));
                if let Some(exchange) = place.take()
                    && can_be_used
                    && exchange.is_clean()
                {
                    self.keep(server, exchange.into_stream());
                }
                *outcome = Some(ended);
            }
        }
    }

    fn begin<'a>(&self, server: SocketAddr, request: &'a [u8], outcome: &mut Option<Outcome>) -> Option<Exchange<'a>> {
        match self.take_kept(server) {
            Some(stream) => Some(Exchange::kept(server, request, stream)),
            None => self.connect(server, request, outcome),
        }
    }

    fn connect<'a>(
        &self,
        server: SocketAddr,
        request: &'a [u8],
        outcome: &mut Option<Outcome>,
    ) -> Option<Exchange<'a>> {
        match Exchange::connect(server, request) {
            Ok(exchange) => {
                add(&self.counts.connections);
                Some(exchange)
            }
            Err(why) => {
                *outcome = Some(Err(why));
                None
            }
        }
    }

    fn take_kept(&self, server: SocketAddr) -> Option<TcpStream> {
        loop {
            let (mut stream, since) = lock(&self.state).kept.get_mut(&server)?.pop()?;
            if since.elapsed() > KEPT_FOR {
                continue;
            }
            match stream.read(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(stream),
                Ok(1..) => add(&self.counts.kept_stray),
                Ok(0) | Err(_) => add(&self.counts.kept_closed),
            }
        }
    }

    fn keep(&self, server: SocketAddr, stream: TcpStream) {
        let mut state = lock(&self.state);
        if state.kept.values().map(Vec::len).sum::<usize>() >= KEPT_MAX {
            state.kept.clear(); // evicts connections to servers that have ended
        }
        if !self.closed.load(Ordering::Acquire) {
            state.kept.entry(server).or_default().push((stream, Instant::now()));
        }
    }
}

fn wait(exchanges: &[Option<Exchange<'_>>], ready: &mut [bool], longest: Duration) {
    let waits = || exchanges.iter().enumerate().filter_map(|(place, exchange)| Some((place, exchange.as_ref()?)));
    let mut fds: Vec<_> = waits().map(|(_, exchange)| PollFd::new(exchange.stream(), exchange.wants())).collect();
    let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
    // A signal ends the wait early; every exchange checks again.
    let has_waited = poll(&mut fds, Some(&timeout)).is_ok();
    ready.fill(false);
    for ((place, _), fd) in waits().zip(&fds) {
        ready[place] = has_waited && !fd.revents().is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation without a turn is not begun: no server is blamed, and none is told to delete the key.
    #[test]
    fn without_a_turn_nothing_is_sent() {
        let counts = Arc::new(Counts::default());
        let streams = Streams::new(Arc::clone(&counts));
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let soon = || Instant::now() + Duration::from_millis(20);
        let mut slow = streams.wait_for_turn(OPEN_MAX, soon()).unwrap();
        assert!(matches!(streams.ask(&[nowhere], b"", soon()), Err(Error::TooManyOpen { asked: 1, .. })));
        assert_eq!((counts.read().timed_out, counts.read().connections), (0, 0));
        // Ended exchanges free their places while one server is slow.
        slow.keep(1);
        assert!(streams.ask(&[nowhere; 3], b"", soon()).is_ok());
    }
}
