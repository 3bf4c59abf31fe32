//! A server's TCP connections, shared between source addresses (T14): a host that opens connections without end and sends nothing cannot
//! block others.
//!
//! A source ([`Host`]) may open a connection only while it holds fewer than eight times the number of free places. A single source gets 8/9
//! of the table, and a second source always finds room; tables of up to 8 entries are unaffected. In a full table, a source that holds
//! fewer than eight connections evicts the one that is longest without progress.
//!
//! With [`Connections::evicting_silent`], a source that holds its share may replace a connection of its own, so that a silent flood
//! does not block clients that share its address, such as a probe on the same machine. Evicted are, in this order:
//!
//! 1. connections that have made no progress for a while since they were opened;
//! 2. connections that were served and are idle ([`ConnectionPlace::rest`]).
//!
//! A full table evicts in the same order, active connections last; among equals, the one that is longest without progress.

mod table;
#[doc(hidden)]
pub mod testing;

use midflight_wire::Host;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use table::Table;
pub use table::may_take;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Limited by `net.core.somaxconn`. In a burst beyond it, connections wait seconds for TCP's retransmissions.
const BACKLOG: i32 = 4096;
/// Pause after `accept` failed, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Counters of one table of connections, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Open now.
    pub open: u64,
    /// Refused because their source held its share.
    pub refused: u64,
    /// Evicted, from a full table or for another connection of their source.
    pub made_room: u64,
    /// Failures of `accept`, usually for lack of file descriptors.
    pub accept_failed: u64,
}

/// The connections of a server.
#[derive(Debug)]
pub struct Connections {
    unread_timeout: Duration,
    table: Mutex<Table<oneshot::Sender<Infallible>>>,
    refused: AtomicU64,
    made_room: AtomicU64,
    accept_failed: AtomicU64,
}

/// A connection's place in the table; dropping it frees the place.
#[derive(Debug)]
pub struct ConnectionPlace {
    connections: Arc<Connections>,
    id: u64,
    source: Host,
}

/// Listens on `address`, ready for [`Connections::accept`].
///
/// # Errors
/// If the address is taken or is not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Connections {
    /// A table of `max` connections. The kernel drops data that the peer has not read within `unread_timeout`; otherwise it could keep
    /// megabytes for a closed connection.
    #[must_use]
    pub fn new(max: usize, unread_timeout: Duration) -> Arc<Self> {
        Self::with(max, unread_timeout, None)
    }

    /// As [`Self::new`], but a source may evict its own connections without progress once they are `silent_for` old. If that is zero, a new
    /// connection lasts only as long as its neighbours need to refill the table. Each connection must report [`ConnectionPlace::progress`].
    #[must_use]
    pub fn evicting_silent(max: usize, unread_timeout: Duration, silent_for: Duration) -> Arc<Self> {
        Self::with(max, unread_timeout, Some(silent_for))
    }

    fn with(max: usize, unread_timeout: Duration, give_way_after: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            unread_timeout,
            table: Mutex::new(Table::new(max, give_way_after)),
            refused: AtomicU64::new(0),
            made_room: AtomicU64::new(0),
            accept_failed: AtomicU64::new(0),
        })
    }

    /// Accepts connections and serves each in its own task; eviction ends the task. A refused connection gets `refusal`.
    pub async fn accept<F>(
        self: &Arc<Self>,
        listener: &TcpListener,
        refusal: &[u8],
        serve: impl Fn(TcpStream, ConnectionPlace) -> F,
    ) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => match self.enter(peer) {
                    Some((place, gone)) => {
                        self.prepare(&stream);
                        drop(tokio::spawn(until(gone, serve(stream, place))));
                        // Otherwise a flood is accepted faster than it is served: new connections are evicted before they are greeted, and
                        // evicted ones stay open until their tasks are polled.
                        tokio::task::yield_now().await;
                    }
                    None => refuse(stream, refusal),
                },
                Err(error) => self.failed(&error).await,
            }
        }
    }

    /// Ignores errors: if an option cannot be set, the socket is dead.
    fn prepare(&self, stream: &TcpStream) {
        let socket = socket2::SockRef::from(stream);
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_tcp_user_timeout(Some(self.unread_timeout));
    }

    async fn failed(&self, error: &io::Error) {
        self.accept_failed.fetch_add(1, Relaxed);
        // The peer may have closed the connection already; that is no error.
        if !matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
            tracing::warn!("cannot accept a connection: {error}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    /// The future resolves when the connection is evicted.
    fn enter(self: &Arc<Self>, peer: SocketAddr) -> Option<(ConnectionPlace, oneshot::Receiver<Infallible>)> {
        let (kept, gone) = oneshot::channel();
        let source = testing::host_of(peer.ip());
        let admitted = self.table().admit(source, Instant::now(), kept);
        let Ok(admitted) = admitted else {
            self.refused.fetch_add(1, Relaxed);
            return None;
        };
        if admitted.made_room.is_some() {
            self.made_room.fetch_add(1, Relaxed);
        }
        Some((ConnectionPlace { connections: Arc::clone(self), id: admitted.id, source }, gone))
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        ConnectionCounters {
            open: self.table().len() as u64,
            refused: self.refused.load(Relaxed),
            made_room: self.made_room.load(Relaxed),
            accept_failed: self.accept_failed.load(Relaxed),
        }
    }

    /// Ignores poisoning: no method of the table panics half-way.
    fn table(&self) -> MutexGuard<'_, Table<oneshot::Sender<Infallible>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// The connection's source.
    #[must_use]
    pub const fn source(&self) -> Host {
        self.source
    }

    /// Reports progress: the connection is active.
    pub fn progress(&self) {
        self.connections.table().progress(self.id, Instant::now());
    }

    /// Marks the connection idle: closing it before its next [`ConnectionPlace::progress`] loses nothing.
    pub fn rest(&self) {
        self.connections.table().rest(self.id);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        drop(self.connections.table().leave(self.id));
    }
}

async fn until(gone: oneshot::Receiver<Infallible>, serving: impl Future<Output = ()>) {
    tokio::select! {
        () = serving => {}
        _ = gone => {}
    }
}

/// Does not wait: the few bytes fit into the socket's buffer, or the peer is gone.
fn refuse(stream: TcpStream, refusal: &[u8]) {
    let _ = stream.into_std().and_then(|mut stream| stream.write_all(refusal));
}

#[cfg(test)]
mod tests {
    use super::testing::{PATIENCE, connect};
    use super::*;
    use std::io::Read;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REFUSAL: &[u8] = b"no";

    fn serve(max: usize) -> (tokio::runtime::Runtime, Arc<Connections>, SocketAddr) {
        serve_by(Connections::new(max, PATIENCE))
    }

    fn serve_by(connections: Arc<Connections>) -> (tokio::runtime::Runtime, Arc<Connections>, SocketAddr) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = runtime.block_on(async { TcpListener::from_std(listener) }).unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = Arc::clone(&connections);
        runtime.spawn(async move { accepting.accept(&listener, REFUSAL, echo).await });
        (runtime, connections, address)
    }

    async fn echo(mut stream: TcpStream, place: ConnectionPlace) {
        while let Ok(byte) = stream.read_u8().await {
            place.progress();
            let _ = stream.write_u8(byte).await;
        }
    }

    fn echoes(mut stream: &std::net::TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").is_ok() && stream.read(&mut byte).is_ok_and(|n| n == 1) && byte == *b"x"
    }

    fn read_to_end(mut stream: std::net::TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn t14_a_source_that_takes_all_it_can_keeps_no_other_out() {
        let (_runtime, connections, address) = serve(18);
        let mut idle: Vec<_> = (0..20).map(|_| connect(2, address)).collect();
        assert!(echoes(&connect(3, address)));
        assert_eq!(connections.counters().refused, 4);
        let refused = idle.split_off(16);
        assert!(refused.into_iter().all(|stream| read_to_end(stream) == REFUSAL));
        assert!(idle.iter().all(echoes));
    }

    #[test]
    fn t14_who_opens_connections_and_says_nothing_does_not_keep_its_own_address_out() {
        let (_runtime, connections, address) =
            serve_by(Connections::evicting_silent(18, PATIENCE, Duration::from_millis(100)));
        let silent: Vec<_> = (0..16).map(|_| connect(2, address)).collect();
        while connections.counters().open < 16 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(150));
        assert!((0..16).all(|_| echoes(&connect(2, address))));
        assert_eq!(connections.counters().refused, 0);
        drop(silent);
    }

    #[test]
    fn t14_the_idlest_makes_room() {
        let (_runtime, connections, address) = serve(2);
        let (first, second) = (connect(2, address), connect(3, address));
        assert!(echoes(&second) && echoes(&first));
        assert!(echoes(&connect(4, address)));
        assert!(read_to_end(second).is_empty());
        assert!(echoes(&first));
        assert_eq!((connections.counters().made_room, connections.counters().refused), (1, 0));
    }

    #[test]
    fn t14_a_place_is_free_when_its_connection_ends() {
        let (_runtime, connections, address) = serve(9);
        for _ in 0..50 {
            assert!(echoes(&connect(2, address)));
            while connections.counters().open > 0 {
                std::thread::yield_now();
            }
        }
        let counters = connections.counters();
        assert_eq!((counters.refused, counters.made_room), (0, 0));
    }
}
