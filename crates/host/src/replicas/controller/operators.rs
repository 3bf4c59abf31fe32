//! The streams to operators, a task each. What is sent while there is no stream is lost: the controller repeats it.

use crate::clock;
use crate::failing::Failing;
use crate::replicas::LogLimit;
use crate::replicas::stream::{self, NotBegun};
use midflight_control::replicas::Secret;
use midflight_control::replicas::secret::{End, Opener, Sealer, Unsealed};
use midflight_wire::replicas::control::ControlMessage;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Messages that wait to be written to one operator.
const WAITING_MAX: usize = 64;
/// Messages of all operators that wait to be handled.
const COME_MAX: usize = 256;
/// A pause after a stream that broke or was refused, doubled each time up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// What became of streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsReport {
    /// By operator: whether there is a stream to it.
    pub connected: Vec<bool>,
    /// Attempts to connect that failed.
    pub not_reached: u64,
    /// Streams that broke, or on which nothing came for too long.
    pub broken: u64,
    /// Streams that an operator refused, or on which it did not prove that it knows the secret.
    pub unproved: u64,
    /// Streams that were closed because of bytes that are no message, or of another version.
    pub malformed: u64,
    /// Messages that were dropped because the operator could not be reached, or did not read.
    pub dropped: u64,
}

impl StreamsReport {
    pub(super) fn new(operators: usize) -> Self {
        Self { connected: vec![false; operators], ..Self::default() }
    }
}

/// The streams to all operators. Dropping it ends them.
pub(super) struct Operators {
    come: mpsc::Receiver<(usize, ControlMessage)>,
    /// Never the last sender, so that `come` does not end.
    _come: mpsc::Sender<(usize, ControlMessage)>,
    peers: Vec<(mpsc::Sender<Vec<u8>>, Arc<Peer>)>,
    dropped: u64,
    _tasks: JoinSet<Infallible>,
}

/// What is known of the stream to one operator.
#[derive(Debug, Default)]
struct Peer {
    is_connected: AtomicBool,
    not_reached: AtomicU64,
    broken: AtomicU64,
    unproved: AtomicU64,
    malformed: AtomicU64,
    /// When the log may be told again that it refuses streams.
    refused: LogLimit,
}

/// Why a stream has ended.
enum Ended {
    Broken,
    Unproved,
    Malformed(Unsealed),
}

impl Operators {
    /// Begins to connect to all of them; within a tokio runtime.
    /// `source`: from which address of this machine. `patience`: how long a connection may take, and an operator say nothing.
    pub(super) fn start(
        addresses: Vec<SocketAddr>,
        source: Option<IpAddr>,
        secret: Secret,
        patience: Duration,
        failing: &Arc<Failing>,
    ) -> Self {
        let (sender, come) = mpsc::channel(COME_MAX);
        let mut tasks = JoinSet::new();
        let peers = addresses.into_iter().enumerate().map(|(operator, address)| {
            let (send, waiting) = mpsc::channel(WAITING_MAX);
            let peer = Arc::new(Peer::default());
            let place = Place { operator, address, source, secret: secret.clone(), patience };
            let kept = keep(place, Arc::clone(&peer), waiting, sender.clone());
            let failing = Arc::clone(failing);
            tasks.spawn(async move {
                let _watch = failing.watch(super::DRIVES);
                kept.await
            });
            (send, peer)
        });
        Self { peers: peers.collect(), come, _come: sender, dropped: 0, _tasks: tasks }
    }

    /// The next message, and the operator that has sent it. It can be cancelled: then nothing is lost.
    pub(super) async fn next(&mut self) -> (usize, ControlMessage) {
        match self.come.recv().await {
            Some(come) => come,
            None => std::future::pending().await,
        }
    }

    /// Sends a message, if there is a stream.
    pub(super) fn send(&mut self, operator: usize, bytes: &[u8]) {
        let peer = self.peers.get(operator).filter(|(_, peer)| peer.is_connected.load(Relaxed));
        let is_sent = peer.is_some_and(|(send, _)| send.try_send(bytes.to_vec()).is_ok());
        self.dropped += u64::from(!is_sent);
    }

    pub(super) fn report(&self) -> StreamsReport {
        let sum = |count: fn(&Peer) -> &AtomicU64| self.peers.iter().map(|(_, peer)| count(peer).load(Relaxed)).sum();
        StreamsReport {
            connected: self.peers.iter().map(|(_, peer)| peer.is_connected.load(Relaxed)).collect(),
            not_reached: sum(|peer| &peer.not_reached),
            broken: sum(|peer| &peer.broken),
            unproved: sum(|peer| &peer.unproved),
            malformed: sum(|peer| &peer.malformed),
            dropped: self.dropped,
        }
    }
}

/// Which operator, and how it is connected to.
struct Place {
    operator: usize,
    address: SocketAddr,
    source: Option<IpAddr>,
    secret: Secret,
    patience: Duration,
}

impl Place {
    async fn connect(&self) -> std::io::Result<TcpStream> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(source) = self.source.filter(|source| source.is_ipv4() == self.address.is_ipv4()) {
            socket.bind(SocketAddr::new(source, 0))?;
        }
        let stream = socket.connect(self.address).await?;
        // Questions are short, and wait for nothing.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Place {
    fn warn(&self, ended: Ended) {
        let address = self.address;
        if let Ended::Malformed(why) = ended {
            tracing::warn!(
                "the operator at {address} sent what is no message ({why}): use one release of Midflight everywhere"
            );
        } else {
            tracing::warn!(
                "the operator at {address} refuses this controller, or is none: it needs the same secret (replicas.control.secret) and the \
                 address of this controller (replicas.control.from); its log says which"
            );
        }
    }
}

/// Keeps a stream to an operator.
async fn keep(
    place: Place,
    peer: Arc<Peer>,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    come: mpsc::Sender<(usize, ControlMessage)>,
) -> Infallible {
    let mut pause = PAUSE_MIN;
    loop {
        if let Ok(Ok(stream)) = timeout(place.patience, place.connect()).await {
            let (ended, has_begun) = serve(stream, &place, &peer, &mut waiting, &come).await;
            peer.is_connected.store(false, Relaxed);
            let counter = match ended {
                Ended::Broken => &peer.broken,
                Ended::Unproved => &peer.unproved,
                Ended::Malformed(_) => &peer.malformed,
            };
            counter.fetch_add(1, Relaxed);
            if !matches!(ended, Ended::Broken) && peer.refused.may_log(clock::now()) {
                place.warn(ended);
            }
            pause = if has_begun { PAUSE_MIN } else { pause };
        } else {
            peer.not_reached.fetch_add(1, Relaxed);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Serves a stream until it ends: why, and whether it had begun. Reading does not wait for writing, else two ends that both write would
/// wait for each other.
async fn serve(
    mut stream: TcpStream,
    place: &Place,
    peer: &Peer,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    come: &mpsc::Sender<(usize, ControlMessage)>,
) -> (Ended, bool) {
    let begun = timeout(place.patience, stream::begin(&mut stream, &place.secret, End::Controller)).await;
    let (sealer, opener) = match begun {
        Err(_) => return (Ended::Broken, false),
        // An operator that refuses a controller closes the connection.
        Ok(Err(NotBegun::Closed(_) | NotBegun::Unsealed(Unsealed::NotProved))) => return (Ended::Unproved, false),
        Ok(Err(NotBegun::Unsealed(why))) => return (Ended::Malformed(why), false),
        Ok(Ok(begun)) => begun,
    };
    // What was for the stream before is not for this one.
    while waiting.try_recv().is_ok() {}
    peer.is_connected.store(true, Relaxed);
    let (reading, writing) = stream.split();
    let ended = tokio::select! {
        ended = read(reading, place, opener, come) => ended,
        () = write(writing, place.patience, sealer, waiting) => Ended::Broken,
    };
    (ended, true)
}

async fn read(
    mut stream: ReadHalf<'_>,
    place: &Place,
    mut opener: Opener,
    come: &mpsc::Sender<(usize, ControlMessage)>,
) -> Ended {
    let (mut bytes, mut taken) = (Vec::new(), 0);
    loop {
        match opener.open(&mut bytes[taken..]) {
            Ok(Some((message, length))) => {
                taken += length;
                if come.send((place.operator, message)).await.is_err() {
                    return Ended::Broken;
                }
            }
            Ok(None) => {
                bytes.drain(..std::mem::take(&mut taken));
                bytes.shrink_to(CHUNK);
                bytes.reserve(CHUNK);
                match timeout(place.patience, stream.read_buf(&mut bytes)).await {
                    Ok(Ok(count)) if count > 0 => {}
                    _ => return Ended::Broken,
                }
            }
            Err(Unsealed::NotProved) => return Ended::Unproved,
            Err(why) => return Ended::Malformed(why),
        }
    }
}

/// Returns when nothing more can be written.
async fn write(
    mut stream: WriteHalf<'_>,
    patience: Duration,
    mut sealer: Sealer,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
) {
    let mut sealed = Vec::new();
    while let Some(bytes) = waiting.recv().await {
        sealed.clear();
        if !sealer.seal(&bytes, &mut sealed) {
            return;
        }
        match timeout(patience, stream.write_all(&sealed)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}
