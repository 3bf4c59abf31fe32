//! Streams to operators, one task each. Messages sent without a stream are lost; the controller repeats them.

use crate::cache::control_stream::secret::{End, Opener, Sealer, Unsealed};
use crate::cache::control_stream::{NotBegun, Secret, begin};
use crate::cache::log_limit::LogLimit;
use crate::clock;
use crate::process::failing::Failing;
use midflight_wire::cache::control::ControlMessage;
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

const WAITING_MAX: usize = 64;
const COME_MAX: usize = 256;
/// Pause after a stream broke or was refused; it doubles up to `PAUSE_MAX`.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 << 10;

/// Counts of streams to operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsReport {
    /// Whether there is a stream, by operator.
    pub connected: Vec<bool>,
    /// Failed attempts to connect.
    pub not_reached: u64,
    /// Streams that broke or timed out.
    pub broken: u64,
    /// Streams that an operator refused, or whose operator did not prove the secret.
    pub unproved: u64,
    /// Streams closed for malformed messages or another version.
    pub malformed: u64,
    /// Messages dropped because the operator was unreachable or did not read.
    pub dropped: u64,
}

impl StreamsReport {
    pub(super) fn new(operators: usize) -> Self {
        Self { connected: vec![false; operators], ..Self::default() }
    }
}

/// Streams to all operators. Dropping it closes them.
pub(super) struct Operators {
    come: mpsc::Receiver<(usize, ControlMessage)>,
    /// Keeps `come` from ending.
    _come: mpsc::Sender<(usize, ControlMessage)>,
    peers: Vec<(mpsc::Sender<Vec<u8>>, Arc<Peer>)>,
    dropped: u64,
    _tasks: JoinSet<Infallible>,
}

#[derive(Debug, Default)]
struct Peer {
    is_connected: AtomicBool,
    not_reached: AtomicU64,
    broken: AtomicU64,
    unproved: AtomicU64,
    malformed: AtomicU64,
    /// Limits the log lines about refused streams.
    refused: LogLimit,
}

enum Ended {
    Broken,
    Unproved,
    Malformed(Unsealed),
}

impl Operators {
    /// Requires a tokio runtime. `source`: local address. `patience`: timeout for connecting and for silence.
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

    /// The next message with its operator. Cancel-safe.
    pub(super) async fn next(&mut self) -> (usize, ControlMessage) {
        match self.come.recv().await {
            Some(come) => come,
            None => std::future::pending().await,
        }
    }

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
        // Messages are short and urgent.
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
                "the operator at {address} refuses this controller, or is none: it needs the same secret (cache.control.secret) and the \
                 address of this controller (cache.control.from); its log says which"
            );
        }
    }
}

async fn keep(
    place: Place,
    peer: Arc<Peer>,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    come: mpsc::Sender<(usize, ControlMessage)>,
) -> Infallible {
    let mut pause = PAUSE_MIN;
    loop {
        if let Ok(Ok(stream)) = timeout(place.patience, place.connect()).await {
            let (ended, has_answered) = serve(stream, &place, &peer, &mut waiting, &come).await;
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
            pause = if has_answered { PAUSE_MIN } else { pause };
        } else {
            peer.not_reached.fetch_add(1, Relaxed);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Returns why the stream ended and whether a message had come. Reads while writing blocks; otherwise two blocked writers would deadlock.
async fn serve(
    mut stream: TcpStream,
    place: &Place,
    peer: &Peer,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    come: &mpsc::Sender<(usize, ControlMessage)>,
) -> (Ended, bool) {
    let begun = timeout(place.patience, begin(&mut stream, &place.secret, End::Controller)).await;
    let (sealer, opener) = match begun {
        Err(_) => return (Ended::Broken, false),
        // An operator refuses a controller by closing the connection.
        Ok(Err(NotBegun::Closed(_) | NotBegun::Unsealed(Unsealed::NotProved))) => return (Ended::Unproved, false),
        Ok(Err(NotBegun::Unsealed(why))) => return (Ended::Malformed(why), false),
        Ok(Ok(begun)) => begun,
    };
    // Drops messages meant for the previous stream.
    while waiting.try_recv().is_ok() {}
    peer.is_connected.store(true, Relaxed);
    let (reading, writing) = stream.split();
    let mut has_answered = false;
    let ended = tokio::select! {
        ended = read(reading, place, opener, come, &mut has_answered) => ended,
        () = write(writing, place.patience, sealer, waiting) => Ended::Broken,
    };
    (ended, has_answered)
}

async fn read(
    mut stream: ReadHalf<'_>,
    place: &Place,
    mut opener: Opener,
    come: &mpsc::Sender<(usize, ControlMessage)>,
    has_answered: &mut bool,
) -> Ended {
    let (mut bytes, mut taken) = (Vec::new(), 0);
    loop {
        match opener.open(&mut bytes[taken..]) {
            Ok(Some((message, length))) => {
                taken += length;
                *has_answered = true;
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
