//! One TCP connection: hellos, then messages both ways until it ends.

use super::hello::{HELLO_BYTES, Hello};
use super::state::{Live, Shared, count};
use midflight_endpoint::{Lane, Link};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Pauses between attempts to connect: initial and longest. They double.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));
/// The kernel counts these times in whole seconds.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
/// First allocation for a message; it grows as the message arrives.
const FIRST_BYTES: usize = 64 << 10;

/// How often the higher node checks whether the lower one has connected.
const LOOKS: Duration = Duration::from_millis(200);

/// Reconnects for ever. The higher node connects only while there is no link: the lower one may not know it yet.
pub(super) async fn keep(shared: Arc<Shared>, peer: u64, address: SocketAddr, lane: Lane) {
    let mut pause = PAUSES.0;
    loop {
        if peer < shared.options.node {
            sleep(LOOKS).await;
            if shared.has_link(peer, lane) {
                continue;
            }
        }
        match connect(&shared, peer, address, lane).await {
            Some((stream, link)) => {
                pause = PAUSES.0;
                serve(&shared, stream, link).await;
            }
            None => count(&shared.counts.not_reached),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

async fn connect(shared: &Shared, peer: u64, address: SocketAddr, lane: Lane) -> Option<(TcpStream, Link)> {
    let options = &shared.options;
    let mut stream = timeout(options.patience, TcpStream::connect(address)).await.ok()?.ok()?;
    prepare(&stream, options.patience).ok()?;
    let generation = shared.next_generation(peer);
    let hello = Hello { cluster: options.cluster, set: options.set, from: options.node, to: peer, lane, generation };
    stream.write_all(&hello.encode()).await.ok()?;
    let answer = read_hello(shared, &mut stream).await?;
    (answer == hello.answer()).then_some((stream, Link { peer, lane, generation }))
}

/// Handles an incoming connection.
pub(super) async fn accepted(shared: &Shared, mut stream: TcpStream) -> Option<(TcpStream, Link)> {
    prepare(&stream, shared.options.patience).ok()?;
    let hello = read_hello(shared, &mut stream).await?;
    if let Some(refused) = refusal(shared, hello) {
        count(refused);
        return None;
    }
    stream.write_all(&hello.answer().encode()).await.ok()?;
    Some((stream, Link { peer: hello.from, lane: hello.lane, generation: hello.generation }))
}

fn refusal(shared: &Shared, hello: Hello) -> Option<&AtomicU64> {
    let (options, counts) = (&shared.options, &shared.counts);
    if (hello.cluster, hello.set) != (options.cluster, options.set) {
        return Some(&counts.foreign);
    }
    if hello.to != options.node || hello.from == options.node {
        return Some(&counts.not_for_us);
    }
    // The lower node's connection takes precedence.
    let is_second = hello.from > options.node && shared.has_link(hello.from, hello.lane);
    if is_second {
        return Some(&counts.second);
    }
    (!shared.has_place(hello.from, hello.lane)).then_some(&counts.too_many)
}

/// Sets timeouts for silent peers and disables Nagle's algorithm.
fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let idle = patience.max(KEEPALIVE_MIN);
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(KEEPALIVE_MIN).with_retries(2);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(patience))?;
    socket.set_tcp_keepalive(&keepalive)
}

async fn read_hello(shared: &Shared, stream: &mut TcpStream) -> Option<Hello> {
    let mut bytes = [0; HELLO_BYTES];
    let Ok(read) = timeout(shared.options.patience, stream.read_exact(&mut bytes)).await else {
        count(&shared.counts.silent);
        return None;
    };
    read.ok()?;
    let hello = Hello::decode(&bytes);
    if hello.is_none() {
        count(&shared.counts.malformed);
    }
    hello
}

/// Breaks the link when its task ends for any reason.
struct Guard<'a>(&'a Shared, Arc<Live>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.broken(&self.1);
    }
}

/// Carries messages both ways, until the connection ends or is replaced.
pub(super) async fn serve(shared: &Arc<Shared>, stream: TcpStream, link: Link) {
    let Some(live) = shared.up(link) else { return };
    let guard = Guard(shared, live);
    let live = &guard.1;
    let (mut reader, mut writer) = stream.into_split();
    tokio::select! {
        _ = read(shared, &mut reader, live) => {}
        _ = write(shared, &mut writer, live) => {}
        () = live.end.notified() => {}
    }
}

async fn read(shared: &Shared, stream: &mut (impl AsyncRead + Unpin), live: &Arc<Live>) -> io::Result<()> {
    let options = &shared.options;
    loop {
        let length = stream.read_u32().await? as usize;
        if length > options.message_max {
            count(&shared.counts.too_long);
            return Ok(());
        }
        let share = shared.cost(length);
        let Ok(share) = Arc::clone(&live.arriving).acquire_many_owned(share).await else { return Ok(()) };
        let mut message = Vec::with_capacity(length.min(FIRST_BYTES));
        if (&mut *stream).take(length as u64).read_to_end(&mut message).await? < length {
            return Ok(());
        }
        shared.arrived(live, message, share);
    }
}

async fn write(shared: &Shared, stream: &mut (impl AsyncWrite + Unpin), live: &Live) -> io::Result<()> {
    loop {
        while let Some(message) = Shared::next_message(live) {
            stream.write_u32(message.len() as u32).await?;
            stream.write_all(&message).await?;
            shared.written(live, message.len());
        }
        live.filled.notified().await;
    }
}
