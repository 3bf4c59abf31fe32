//! Gets that no datagram answered: long values and unusable answers. Threads, started on demand, ask the replicas over TCP in sequence.

use super::counters::{Counts, add};
use super::error::{CacheError, ServerError};
use super::exchange::Answer;
use super::pending::{Ending, GetOutcome};
use super::streams::Streams;
use crate::driver::{lock, spawn};
use crate::tasks::client::Fetches;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// An address that does not answer gets at most half of them while others wait.
const THREADS: usize = 8;
const NO_THREAD: ServerError = ServerError::Unreachable(ErrorKind::OutOfMemory);

pub(super) struct Wanted {
    pub(super) ending: Ending,
    /// As sent by datagram.
    pub(super) request: Vec<u8>,
    pub(super) servers: Vec<SocketAddr>,
    pub(super) failed: Vec<(SocketAddr, ServerError)>,
    pub(super) deadline: Instant,
}

pub(super) struct LongGets {
    fetches: Fetches<SocketAddr, Wanted>,
    streams: Arc<Streams>,
    counts: Arc<Counts>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl LongGets {
    pub(super) fn new(streams: Arc<Streams>, counts: Arc<Counts>) -> Self {
        Self { fetches: Fetches::new(THREADS), streams, counts, threads: Mutex::default() }
    }

    /// Queues a get. After `close` it ends at once.
    pub(super) fn push(self: &Arc<Self>, wanted: Wanted) {
        let Some(first) = wanted.servers.first().copied() else {
            return wanted.ending.end(Err(CacheError::Unusable(wanted.failed).into()));
        };
        if !self.start() {
            return wanted.ending.end(Err(CacheError::Unusable(vec![(first, NO_THREAD)]).into()));
        }
        // Dropping a refused one ends it.
        self.fetches.push(first, wanted);
    }

    fn start(self: &Arc<Self>) -> bool {
        let mut threads = lock(&self.threads);
        while threads.len() < THREADS {
            let of_thread = Arc::clone(self);
            match spawn("mf-cache-long", move || of_thread.fetches.serve(|wanted| of_thread.fetch(wanted))) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    tracing::error!("{error}");
                    break;
                }
            }
        }
        !threads.is_empty()
    }

    fn fetch(&self, mut wanted: Wanted) {
        let outcome = self.ask(&wanted.request, &wanted.servers, &mut wanted.failed, wanted.deadline);
        match &outcome {
            Ok(Some(_)) => add(&self.counts.values),
            Ok(None) => add(&self.counts.missing),
            Err(_) => {}
        }
        wanted.ending.end(outcome);
    }

    fn ask(
        &self,
        request: &[u8],
        servers: &[SocketAddr],
        failed: &mut Vec<(SocketAddr, ServerError)>,
        deadline: Instant,
    ) -> GetOutcome {
        for (asked, server) in servers.iter().enumerate() {
            // Leaves time for the servers that follow.
            let (now, left) = (Instant::now(), (servers.len() - asked) as u32);
            let until = now + deadline.saturating_duration_since(now) / left;
            let outcomes = self.streams.ask(std::slice::from_ref(server), request, until)?;
            match outcomes.into_iter().next().unwrap_or(Err(ServerError::TimedOut)) {
                Ok(Answer::Value(value)) => return Ok(Some(value)),
                Ok(Answer::Missing) => return Ok(None),
                Ok(Answer::Done) => {
                    self.counts.server_failed(&ServerError::Unfit);
                    failed.push((*server, ServerError::Unfit));
                }
                Err(why) => failed.push((*server, why)),
            }
        }
        Err(CacheError::Unusable(std::mem::take(failed)).into())
    }

    pub(super) fn close(&self) {
        self.streams.close();
        self.fetches.close();
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
    }
}
