//! Requests by datagram, from the endpoint's slots to the backend and back.

use super::backend::{Backend, Failure, Reply};
use super::counters::{Counts, count};
use super::load::{Load, LoadReport};
use super::{SERVES, Shared};
use crate::clock;
use crate::driver::{Driver, Handler, Hands, lock};
use crate::socket::Socket;
use crate::socket::reply_limit::ReplyLimit;
use crate::socket::users::Users;
use midflight_cache::server::{Event, ServeKey, Server};
use midflight_dataplane::cache::CacheProgram;
use midflight_dataplane::program::Program;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::cache::backend::{
    BACKEND_VERSION, BackendAnswer, BackendReject, BackendRequest, parse_request, write_answer,
};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// Batches received before other tasks run, so that a flood does not starve them.
const IN_A_ROW: u32 = 4;
const TURN_EVERY: Nanos = 100 * MS;

pub(super) struct Ask {
    key: ServeKey,
    asked: Vec<u8>,
}

pub(super) struct Requests {
    /// Holds at most one request per slot.
    asks: mpsc::UnboundedSender<Ask>,
    backend: Arc<Backend>,
    counts: Arc<Counts>,
    ending: Arc<AtomicBool>,
    turned: Arc<AtomicU64>,
    load: Load,
    reply_limit: ReplyLimit,
    next_turn: Nanos,
    users: Option<Arc<Mutex<Users>>>,
}

impl Requests {
    pub(super) fn new(asks: mpsc::UnboundedSender<Ask>, shared: &Shared) -> Self {
        Self {
            asks,
            backend: Arc::clone(&shared.backend),
            counts: Arc::clone(&shared.counts),
            ending: Arc::clone(&shared.ending),
            turned: Arc::clone(&shared.turned),
            load: Load::new(clock::now(), shared.options.slots),
            reply_limit: ReplyLimit::new(),
            next_turn: 0,
            users: shared.users.clone(),
        }
    }

    pub(super) fn load(&self) -> LoadReport {
        self.load.report()
    }

    fn serve(&mut self, server: &mut Server, key: ServeKey, asked: Vec<u8>) {
        let refusal = match parse_request(&asked) {
            // A datagram holds exactly one request.
            Ok(Some((_, length))) if length != asked.len() => &self.counts.malformed_questions,
            Ok(Some((BackendRequest::Get { .. }, _))) if self.ending.load(Ordering::SeqCst) => &self.counts.ending,
            Ok(Some((BackendRequest::Get { .. }, _))) if self.backend.is_gone() => &self.counts.backend_gone,
            Ok(Some((BackendRequest::Get { .. }, _))) => {
                // Fails only if the backend's task has ended; then the process ends too.
                let _ = self.asks.send(Ask { key, asked });
                return;
            }
            Ok(Some((BackendRequest::Set { .. } | BackendRequest::Delete { .. }, _))) => &self.counts.not_get,
            Err(BackendReject::BadVersion(_)) => {
                count(&self.counts.other_version);
                let answer = BackendAnswer::OtherVersion { version: BACKEND_VERSION };
                return answer_in_datagram(clock::now(), server, key, &answer);
            }
            Ok(None) | Err(_) => &self.counts.malformed_questions,
        };
        count(refusal);
        give_up(clock::now(), server, key);
    }
}

impl Handler<Server> for Requests {
    fn event(&mut self, server: &mut Server, event: Event) {
        match event {
            Event::Serve { key, asked, .. } => self.serve(server, key, asked),
            // Already counted and refused; the backend's response will be too late.
            Event::TooLong { .. } => {}
        }
        self.load.set(clock::now(), server.load().1);
    }

    /// Anyone can ask for COOKIE and VERSION, even from a forged address: limited as at an operator.
    fn may_send(&mut self, now: Nanos, socket: &Socket, to: SocketAddr, packet: &[u8]) -> bool {
        !CacheProgram::is_for_anybody(packet) || self.reply_limit.may_answer(now, to.ip(), socket)
    }

    fn serves(&mut self, now: Nanos, address: SocketAddr) -> bool {
        self.users.as_ref().is_none_or(|users| lock(users).serves(now, address))
    }

    fn deadline(&self) -> Option<Nanos> {
        Some(self.next_turn)
    }

    fn due(&mut self, now: Nanos, server: &mut Server) {
        self.turned.store(now, Ordering::Relaxed);
        if now >= self.next_turn {
            self.next_turn = now + TURN_EVERY;
            let counters = server.counters();
            let refused = counters.queue_full + counters.waited_too_long + counters.given_up + counters.served_too_long;
            self.load.tick(now, counters.answered, refused);
        }
    }
}

pub(super) async fn receive(driver: Arc<Driver<Server, Requests>>, shared: Arc<Shared>) {
    let _watch = shared.failing.watch(SERVES);
    let Err(error) = receive_for(&driver).await;
    shared.failing.fail(format!("the agent cannot receive: {error}"));
}

/// Returns only if the system refuses to watch the socket.
async fn receive_for(driver: &Driver<Server, Requests>) -> io::Result<Infallible> {
    // The runtime needs its own descriptor of the socket.
    let readable = UdpSocket::from_std(driver.socket.as_fd().try_clone_to_owned()?.into())?;
    let mut hands = Hands::new();
    // Always earlier than the requests' timers. Otherwise setting one of these would wake the thread.
    let mut timer = pin!(sleep(Duration::ZERO));
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            ready = readable.readable() => {
                ready?;
                let poll = || driver.poll(&mut hands).then_some(()).ok_or(io::ErrorKind::WouldBlock.into());
                // An error means that the socket is empty.
                let received = readable.try_io(Interest::READABLE, poll).is_ok();
                in_a_row = if received { in_a_row + 1 } else { 0 };
                if in_a_row == IN_A_ROW {
                    in_a_row = 0;
                    yield_now().await;
                }
            }
            () = &mut timer => driver.handle_timeouts(),
        }
        let due = Instant::now() + Duration::from_nanos(driver.next_timeout().saturating_sub(clock::now()));
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
    }
}

pub(super) struct Asks {
    pub(super) waiting: mpsc::UnboundedReceiver<Ask>,
    pub(super) driver: Arc<Driver<Server, Requests>>,
    pub(super) shared: Arc<Shared>,
}

impl Asks {
    pub(super) async fn carry_out(mut self) {
        let shared = Arc::clone(&self.shared);
        let _watch = shared.failing.watch(SERVES);
        while let Some(ask) = self.waiting.recv().await {
            let (driver, shared) = (Arc::clone(&self.driver), Arc::clone(&self.shared));
            tokio::spawn(async move {
                let _watch = shared.failing.watch(SERVES);
                carry_out(ask, &driver, &shared).await;
            });
        }
    }
}

async fn carry_out(ask: Ask, driver: &Driver<Server, Requests>, shared: &Shared) {
    let Ok(Some((request, _))) = parse_request(&ask.asked) else { return };
    let outcome = shared.pool.ask(&request, || true).await;
    driver.with(|now, server, requests| {
        match outcome {
            Ok(reply) => told(now, server, ask.key, &reply, shared),
            // Already counted by the caller that found it.
            Err(Failure::Refused(_) | Failure::NotWanted) => give_up(now, server, ask.key),
        }
        requests.load.set(now, server.load().1);
    });
}

fn told(now: Nanos, server: &mut Server, key: ServeKey, reply: &Reply, shared: &Shared) {
    let counts = &shared.counts;
    let (answer, counter) = match reply {
        Reply::Value { value, flags } if value.len() <= shared.options.value_in_datagram_max() => {
            (BackendAnswer::Value { value, flags: *flags }, &counts.values)
        }
        // The value has at most 1 MiB.
        Reply::Value { value, .. } => (BackendAnswer::Long { length: value.len() as u32 }, &counts.long_values),
        // A GET is never answered with DONE.
        Reply::Missing | Reply::Done => (BackendAnswer::Missing, &counts.missing),
    };
    count(counter);
    answer_in_datagram(now, server, key, &answer);
}

fn answer_in_datagram(now: Nanos, server: &mut Server, key: ServeKey, answer: &BackendAnswer<'_>) {
    let mut bytes = Vec::new();
    write_answer(answer, &mut bytes);
    // Fails if the answer is too late, which the endpoint counts.
    let _ = server.answer(now, key, &bytes);
}

fn give_up(now: Nanos, server: &mut Server, key: ServeKey) {
    let _ = server.give_up(now, key);
}
