//! The TCP connections of a server, shared between source addresses (T14): a host that opens connections without end, and
//! never sends anything, cannot block others.
//!
//! A source ([`Host`]) may open a further connection only while it holds fewer than
//! eight times the connections that are free. Alone it gets 8/9 of the table, and a second source always finds room;
//! tables of up to 8 entries are unaffected. In a table that many sources have filled, the connection that is longest without
//! progress makes room for a source that holds fewer than eight.
//!
//! A table may also be told to close connections of a source for others of the same source ([`Connections::where_silent_give_way`]), so that
//! who opens connections and sends nothing keeps out neither others nor those who share its address, such as a probe on the same
//! machine. A source that holds its share then gets a further place if one of its own connections can be closed, in this order:
//!
//! 1. those that have made no progress for a while since they were opened;
//! 2. those that were served and wait for a further request ([`ConnectionPlace::rest`]).
//!
//! A full table closes connections in the same order; of equal ones, and behind these, that which is longest without progress.

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

/// The listen backlog, if `net.core.somaxconn` allows it. If a burst exceeds it, others wait seconds for TCP's
/// retransmissions.
const BACKLOG: i32 = 4096;
/// The pause after `accept` failed, usually for lack of file descriptors, which may become free soon.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Counts of one table of connections, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Open now.
    pub open: u64,
    /// Refused: their source address held its share.
    pub refused: u64,
    /// Closed to make room, in a full table or for another connection of their source.
    pub made_room: u64,
    /// The kernel could not hand one over, usually for want of file descriptors.
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

/// A connection's place in the table, free when it is dropped.
#[derive(Debug)]
pub struct ConnectionPlace {
    connections: Arc<Connections>,
    id: u64,
    source: Host,
}

/// Listens on `address`, ready for [`Connections::accept`].
///
/// # Errors
/// The address is taken or not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Connections {
    /// A table of `max` connections. After `unread_timeout` the kernel drops data that the other end does not read;
    /// otherwise it could keep megabytes for a connection that we have closed.
    #[must_use]
    pub fn new(max: usize, unread_timeout: Duration) -> Arc<Self> {
        Self::with(max, unread_timeout, None)
    }

    /// The same, where a source's connections give way to others of it. Those that have made no progress do so `silent_for` after they were
    /// opened. With no time at all, a further connection keeps its place for as long as its neighbours need to fill the table anew. Each
    /// connection must tell of its [`ConnectionPlace::progress`].
    #[must_use]
    pub fn where_silent_give_way(max: usize, unread_timeout: Duration, silent_for: Duration) -> Arc<Self> {
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

    /// Accepts connections and serves each in a task of its own, which ends early if its connection must make room. A
    /// connection that is refused gets `refusal`.
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
                        // Else a flood is accepted faster than it is served: newcomers make room before they were greeted, and those that
                        // have made room stay open until their tasks are polled.
                        tokio::task::yield_now().await;
                    }
                    None => refuse(stream, refusal),
                },
                Err(error) => self.failed(&error).await,
            }
        }
    }

    /// Ignores errors: if setting an option fails, the socket is dead, and serving it will show that.
    fn prepare(&self, stream: &TcpStream) {
        let socket = socket2::SockRef::from(stream);
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_tcp_user_timeout(Some(self.unread_timeout));
    }

    async fn failed(&self, error: &io::Error) {
        self.accept_failed.fetch_add(1, Relaxed);
        // The other end may have closed already, so an error does not matter.
        if !matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
            tracing::warn!("cannot accept a connection: {error}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    /// A place for a connection, and a future that is ready when it must make room.
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

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        ConnectionCounters {
            open: self.table().len() as u64,
            refused: self.refused.load(Relaxed),
            made_room: self.made_room.load(Relaxed),
            accept_failed: self.accept_failed.load(Relaxed),
        }
    }

    /// A thread that panicked while it held the lock left the table consistent: no method of the table panics half-way.
    fn table(&self) -> MutexGuard<'_, Table<oneshot::Sender<Infallible>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Whose connection it is.
    #[must_use]
    pub const fn source(&self) -> Host {
        self.source
    }

    /// The connection made progress: it is not idle.
    pub fn progress(&self) {
        self.connections.table().progress(self.id, Instant::now());
    }

    /// What was asked has been answered, and nothing is lost if the connection is closed before its next [`ConnectionPlace::progress`].
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

/// The few bytes fit into the socket's buffer, or the other end is gone already.
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

    /// Serves an echo to at most `max` connections at a time.
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
            serve_by(Connections::where_silent_give_way(18, PATIENCE, Duration::from_millis(100)));
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
