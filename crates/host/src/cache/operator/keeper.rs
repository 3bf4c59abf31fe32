//! Takes a controller's orders for this process's operator, over TCP streams, with one answer per message.
//!
//! The controller repeats what was not answered. So any error closes the stream, and is counted by reason.

use super::parts::{LocalOperator, SelectedBy};
use crate::background::{Background, runtime};
use crate::cache::control_stream::secret::{End, Opener, Sealer, Unsealed};
use crate::cache::control_stream::{NotBegun, Secret, begin};
use crate::cache::log_limit::LogLimit;
use crate::clock;
use crate::driver::lock;
use crate::error::Error;
use crate::process::failing::Failing;
use crate::switch::Switch;
use midflight_cache::control::keeper::KeeperCounters;
use midflight_cache::control::{Refusal, Refused, RuleKeeper, Term};
use midflight_connections::{ConnectionPlace, Connections, listen};
use midflight_dataplane::cache::CacheProgram;
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::{self, ControlMessage};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Connections at a time, including those about to be refused.
const CONNECTIONS_MAX: usize = 256;
/// Streams per address. Older streams of a controller may not have ended; the oldest is evicted.
const STREAMS_EACH: usize = 4;
/// Idle timeout of a stream; a controller sends several messages per second.
const PATIENCE: Duration = Duration::from_secs(30);
/// Timeout of the peer's proof. Until then, other streams of its address may evict the stream after `SILENT_FOR`, which exceeds the proof's
/// two round trips.
const PROVED_WITHIN: Duration = Duration::from_secs(5);
const SILENT_FOR: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const CHUNK: usize = 64 << 10;
/// What the thread does, for the message when it has ended.
const TAKES: &str = "takes the orders of controllers";

/// Options of a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperOptions {
    /// Listening address, TCP.
    pub listen: SocketAddr,
    /// Addresses of controllers; others are refused.
    pub controllers: BTreeSet<IpAddr>,
    /// Secret shared with the controllers.
    pub secret: Secret,
}

midflight_endpoint::counters! {
    /// Counts of closed streams by reason.
    pub struct StreamCounters {
        /// From other addresses than a controller's.
        pub foreign,
        /// The peer did not prove the secret.
        pub unproved,
        /// Malformed message or another version.
        pub malformed,
        /// Idle, or an answer was not read.
        pub silent,
        /// Evicted for newer streams of the same controller.
        pub made_room,
        /// The switch did not carry out an order in time.
        pub without_switch,
    } counted by StreamCounts
}

/// The state of a keeper.
#[derive(Clone, Copy, Debug)]
pub struct KeeperReport {
    /// The term that it follows.
    pub term: Term,
    /// Time since a controller of that term sent something; `None`: none has.
    pub heard: Option<Duration>,
    /// Rules of the operator.
    pub rules: usize,
    /// Counts of messages.
    pub messages: KeeperCounters,
    /// Counts of streams.
    pub streams: StreamCounters,
}

/// A keeper that listens but does not serve yet.
#[derive(Debug)]
pub struct BoundKeeper {
    listener: std::net::TcpListener,
    address: SocketAddr,
    controllers: BTreeSet<IpAddr>,
    secret: Secret,
}

/// A running keeper. Dropping it stops it.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    address: SocketAddr,
    background: Background,
}

#[derive(Clone, Copy, Debug)]
struct KeeperSnapshot {
    term: Term,
    heard: Option<Nanos>,
    rules: usize,
    messages: KeeperCounters,
}

impl KeeperSnapshot {
    fn by(keeper: &RuleKeeper) -> Self {
        Self { term: keeper.term(), heard: keeper.heard(), rules: keeper.rules().count(), messages: keeper.counters() }
    }
}

#[derive(Debug)]
struct Shared {
    keeper: Mutex<RuleKeeper>,
    /// The latest snapshot, so that readers do not wait for an order.
    published: Mutex<KeeperSnapshot>,
    /// Limits of the log lines by [`Warning`].
    warnings: [LogLimit; 4],
    /// Whether the log has mentioned a selector at another address.
    has_warned_of_selector: AtomicBool,
    switch: Weak<Switch<CacheProgram>>,
    selected_by: SelectedBy,
    /// Random; identifies the core's selection.
    incarnation: u64,
    controllers: BTreeSet<IpAddr>,
    secret: Secret,
    connections: Arc<Connections>,
    /// By controller, oldest first. Dropping a sender ends the stream.
    streams: Mutex<HashMap<IpAddr, VecDeque<oneshot::Sender<()>>>>,
    counts: StreamCounts,
    /// Ends the process: otherwise the rules would silently never change again.
    failing: Failing,
}

impl BoundKeeper {
    /// Listens.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub fn bind(options: KeeperOptions) -> Result<Self, Error> {
        let KeeperOptions { listen: address, controllers, secret } = options;
        let controllers = controllers.iter().map(IpAddr::to_canonical).collect();
        let refused = Error::bind("TCP", address);
        let listener = listen(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, controllers, secret })
    }

    /// The listening address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves controllers: passes their orders to this switch and its selector. The operator has no rules yet. On a later failure the
    /// thread calls `on_failure`; see [`Keeper::failure`].
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn serve(
        self,
        switch: &Arc<Switch<CacheProgram>>,
        selected_by: SelectedBy,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Keeper, Error> {
        let Self { listener, address, controllers, secret } = self;
        let runtime = runtime("listen to controllers")?;
        let incarnation = rand::random_range(1..=u64::MAX);
        let keeper = RuleKeeper::new(rand::random(), selected_by.incarnation(incarnation));
        let shared = Arc::new(Shared {
            published: Mutex::new(KeeperSnapshot::by(&keeper)),
            keeper: Mutex::new(keeper),
            warnings: Default::default(),
            has_warned_of_selector: AtomicBool::new(false),
            switch: Arc::downgrade(switch),
            selected_by,
            incarnation,
            controllers,
            secret,
            connections: Connections::evicting_silent(CONNECTIONS_MAX, PATIENCE, SILENT_FOR),
            streams: Mutex::default(),
            counts: StreamCounts::default(),
            failing: Failing::new(on_failure),
        });
        let of_thread = Arc::clone(&shared);
        let run = async move || {
            let _watch = of_thread.failing.watch(TAKES);
            tokio::select! {
                error = accept(listener, &of_thread) => {
                    of_thread.failing.fail(format!("it cannot take orders of controllers on {address}: {error}"));
                }
                () = of_thread.watch_selector() => {}
            }
        };
        Ok(Keeper { background: Background::start("mf-keeper", runtime, run)?, shared, address })
    }
}

impl Keeper {
    /// The listening address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Why the keeper failed, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failing.why()
    }

    /// Makes its thread panic, for tests.
    #[doc(hidden)]
    pub fn panic_in_thread(&mut self) {
        self.background.panic();
    }

    /// The current state.
    #[must_use]
    pub fn report(&self) -> KeeperReport {
        let Shared { published, counts, .. } = &*self.shared;
        let KeeperSnapshot { term, heard, rules, messages } = *lock(published);
        KeeperReport {
            term,
            heard: heard.map(|heard| Duration::from_nanos(clock::now().saturating_sub(heard))),
            rules,
            messages,
            streams: counts.read(),
        }
    }
}

async fn accept(listener: std::net::TcpListener, shared: &Arc<Shared>) -> std::io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let serve = |stream: TcpStream, place: ConnectionPlace| {
        let shared = Arc::clone(shared);
        async move {
            let _watch = shared.failing.watch(TAKES);
            let closed = match stream.peer_addr().map(|peer| peer.ip().to_canonical()) {
                Ok(peer) if shared.controllers.contains(&peer) => shared.serve(stream, peer, &place).await,
                peer => {
                    shared.warn(Warning::Foreign, || {
                        let peer = peer.map_or_else(|_| "an address that is gone".into(), |peer| peer.to_string());
                        format!("{peer} is no controller of cache.control.from: its orders are not taken")
                    });
                    Closed::Foreign
                }
            };
            shared.counts.count(closed);
            drop(place);
        }
    };
    match shared.connections.accept(&listener, &[], serve).await {}
}

struct Proved {
    sealer: Sealer,
    opener: Opener,
    come: Vec<u8>,
}

/// Kinds of log lines, each at most once a minute.
#[derive(Clone, Copy, Debug)]
enum Warning {
    Foreign,
    Unproved,
    Malformed,
    Term,
}

#[derive(Clone, Copy, Debug)]
enum Closed {
    /// By the controller, or broken.
    Ended,
    Foreign,
    Unproved,
    Malformed,
    Silent,
    MadeRoom,
    WithoutSwitch,
}

impl StreamCounts {
    fn count(&self, closed: Closed) {
        let counter = match closed {
            Closed::Ended => return,
            Closed::Foreign => &self.foreign,
            Closed::Unproved => &self.unproved,
            Closed::Malformed => &self.malformed,
            Closed::Silent => &self.silent,
            Closed::MadeRoom => &self.made_room,
            Closed::WithoutSwitch => &self.without_switch,
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl Shared {
    /// The returned receiver completes when the stream must end.
    fn begin_stream(&self, controller: IpAddr) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let mut streams = lock(&self.streams);
        let streams = streams.entry(controller).or_default();
        streams.retain(|end| !end.is_closed());
        if streams.len() >= STREAMS_EACH {
            streams.pop_front();
        }
        streams.push_back(end);
        ended
    }

    /// Only a proved stream takes one of the controller's places.
    async fn serve(&self, mut stream: TcpStream, from: IpAddr, place: &ConnectionPlace) -> Closed {
        let begun = timeout(PROVED_WITHIN, begin(&mut stream, &self.secret, End::Keeper)).await;
        let (sealer, opener) = match begun {
            Err(_) => return Closed::Silent,
            Ok(Err(NotBegun::Closed(_))) => return Closed::Ended,
            Ok(Err(NotBegun::Unsealed(why))) => return self.refused(from, why),
            Ok(Ok(begun)) => begun,
        };
        place.progress();
        let mut proved = Proved { sealer, opener, come: Vec::new() };
        let end = self.begin_stream(from);
        tokio::select! {
            closed = self.converse(&mut stream, from, &mut proved) => closed,
            _ = end => Closed::MadeRoom,
        }
    }

    async fn next(&self, stream: &mut TcpStream, from: IpAddr, proved: &mut Proved) -> Result<ControlMessage, Closed> {
        let Proved { opener, come, .. } = proved;
        loop {
            if let Some((message, length)) = opener.open(come).map_err(|why| self.refused(from, why))? {
                come.drain(..length);
                return Ok(message);
            }
            come.reserve(CHUNK);
            match timeout(PATIENCE, stream.read_buf(come)).await {
                Err(_) => return Err(Closed::Silent),
                Ok(Ok(0) | Err(_)) => return Err(Closed::Ended),
                Ok(Ok(_)) => {}
            }
        }
    }

    async fn converse(&self, stream: &mut TcpStream, from: IpAddr, proved: &mut Proved) -> Closed {
        let (mut answers, mut bytes) = (Vec::new(), Vec::new());
        loop {
            let message = match self.next(stream, from, proved).await {
                Ok(message) => message,
                Err(closed) => return closed,
            };
            let Ok(answer) = self.answer(&message) else { return Closed::WithoutSwitch };
            let Some(answer) = answer else { return Closed::Malformed };
            self.warn_of_term(from, &answer);
            bytes.clear();
            answers.clear();
            control::write(&answer, &mut bytes);
            if !proved.sealer.seal(&bytes, &mut answers) {
                return Closed::Ended; // the controller reconnects
            }
            match timeout(PATIENCE, stream.write_all(&answers)).await {
                Err(_) => return Closed::Silent,
                Ok(Err(_)) => return Closed::Ended,
                Ok(Ok(())) => {}
            }
        }
    }

    fn warn_of_term(&self, from: IpAddr, answer: &ControlMessage) {
        let ControlMessage::Refused(Refused { term, why: Refusal::OlderTerm, .. }) = answer else { return };
        self.warn(Warning::Term, || {
            format!(
                "a controller at {from} is refused: its term is older than {}, which is followed here, or too far beyond it",
                term.number
            )
        });
    }

    fn refused(&self, from: IpAddr, why: Unsealed) -> Closed {
        if why == Unsealed::NotProved {
            self.warn(Warning::Unproved, || {
                format!("{from} does not know the secret of cache.control.secret: its orders are not taken; copy the controllers' file here")
            });
            return Closed::Unproved;
        }
        self.warn(Warning::Malformed, || {
            format!("{from} sent what is no message ({why}): use one release of Midflight everywhere")
        });
        Closed::Malformed
    }

    fn warn(&self, which: Warning, text: impl FnOnce() -> String) {
        if self.warnings[which as usize].may_log(clock::now()) {
            tracing::warn!("{}", text());
        }
    }

    /// Redirects requests to their backups when the selector dies, even without a controller.
    async fn watch_selector(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(switch) = self.switch.upgrade() else { continue };
            let mut parts = self.local_operator(&switch);
            self.look_beside(&mut lock(&self.keeper), &mut parts);
        }
    }

    fn local_operator<'a>(&'a self, switch: &'a Switch<CacheProgram>) -> LocalOperator<'a> {
        LocalOperator::new(switch, &self.selected_by, &self.has_warned_of_selector)
    }

    fn look_beside(&self, keeper: &mut RuleKeeper, parts: &mut LocalOperator<'_>) {
        let present = self.selected_by.incarnation(self.incarnation);
        if keeper.selector() != present {
            let before = keeper.clone();
            keeper.set_selector(present, parts);
            if parts.have_failed() {
                // Retried while there is a switch.
                *keeper = before;
            }
        }
    }

    /// Blocks other streams only for the switch's thread, never for another machine.
    fn answer(&self, message: &ControlMessage) -> Result<Option<ControlMessage>, NoSwitch> {
        let switch = self.switch.upgrade().ok_or(NoSwitch)?;
        let mut parts = self.local_operator(&switch);
        let mut keeper = lock(&self.keeper);
        self.look_beside(&mut keeper, &mut parts);
        let before = matches!(message, ControlMessage::Set(_)).then(|| keeper.clone());
        let answer = keeper.handle(clock::now(), message, &mut parts);
        if parts.have_failed() {
            // The same orders will be repeated, and must not count as carried out.
            if let Some(before) = before {
                *keeper = before;
            }
            return Err(NoSwitch);
        }
        *lock(&self.published) = KeeperSnapshot::by(&keeper);
        Ok(answer)
    }
}

/// The switch has ended, hangs, or its engine cannot be called.
struct NoSwitch;
