//! Serves what a [`BlobStore`] keeps: one thread, one light task per connection.

use super::{
    ANSWER_BYTES, BlobStore, Closing, Content, MAGIC, OPERATION_PART, OPERATION_WHOLE, PART_BYTES, PROGRESS_BYTES,
    Piece, REQUEST_BYTES, STATUS_HERE, STATUS_NO_PLACE, STATUS_UNKNOWN, VERSION,
};
use crate::error::Error;
use midflight_connections::{ConnectionPlace, listen};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A running server; dropping it ends it.
#[derive(Debug)]
pub(crate) struct BlobServer {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BlobServer {
    /// Listens on `address`. With `expire`, blobs are dropped after the store's bound.
    pub(crate) fn start(address: SocketAddr, store: Arc<BlobStore>, expire: bool) -> Result<Self, Error> {
        let refused = |source| Error::Bind { protocol: "TCP", address, source };
        let listener = listen(address).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let failed = |source| Error::Resources { what: "start the blob server", source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("mf-blobs".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    error = accept(listener, &store) => {
                        tracing::error!("the blob server on port {port} cannot begin: {error}");
                    }
                    () = sweep(&store, expire) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { port, stop: Some(stop), thread: Some(thread.map_err(failed)?) })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for BlobServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn sweep(store: &BlobStore, expire: bool) {
    let mut reported = 0;
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        if expire {
            store.expire();
        }
        let refused = store.counters().refused;
        if refused > reported {
            tracing::warn!("refused {} connections: their source addresses held their share", refused - reported);
            reported = refused;
        }
    }
}

/// Returns only if it cannot start.
async fn accept(listener: std::net::TcpListener, store: &Arc<BlobStore>) -> io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let serve = |stream, place| {
        let store = Arc::clone(store);
        async move { serve(stream, &store, &place).await }
    };
    match store.connections.accept(&listener, &answer(STATUS_NO_PLACE, 0), serve).await {}
}

async fn serve(mut stream: TcpStream, store: &BlobStore, place: &ConnectionPlace) {
    // Counted before the stream is dropped, so that a test that sees the connection end finds it counted.
    if let Err(closing) = converse(&mut stream, store, place).await {
        store.counts.closed(closing);
    }
}

/// Serves one request after the other, until the other end closes between two of them or asks for an unknown id.
async fn converse(stream: &mut TcpStream, store: &BlobStore, place: &ConnectionPlace) -> Result<(), Closing> {
    let options = store.options();
    let mut patience = (options.request_timeout, Closing::Silent);
    while let Some(request) = read_request(stream, patience, options.request_timeout).await? {
        place.progress();
        let is_here = match request {
            Request::Whole { id } => send_whole(stream, store, id, place).await?,
            Request::Part { id, offset, most } => send_part(stream, store, id, offset, most).await?,
        };
        if !is_here {
            return write(stream, &answer(STATUS_UNKNOWN, 0), options.progress_timeout).await;
        }
        patience = (options.idle_timeout, Closing::Idle);
    }
    Ok(())
}

/// Whether there is such a blob.
async fn send_whole(
    stream: &mut TcpStream,
    store: &BlobStore,
    id: u64,
    place: &ConnectionPlace,
) -> Result<bool, Closing> {
    let Some(blob) = store.find(id) else { return Ok(false) };
    let within = store.options().progress_timeout;
    write(stream, &answer(STATUS_HERE, blob.len() as u32), within).await?;
    for index in 0..blob.pieces().len() {
        send_piece(stream, &blob, index, within, place).await?;
    }
    Ok(true)
}

/// Whether there is such a pack, which has a byte there.
async fn send_part(
    stream: &mut TcpStream,
    store: &BlobStore,
    id: u64,
    offset: u32,
    most: u32,
) -> Result<bool, Closing> {
    let Some(part) = store.find_part(id, offset, most) else { return Ok(false) };
    let whole = [&answer(STATUS_HERE, part.len() as u32), part.as_slice()].concat();
    write(stream, &whole, store.options().progress_timeout).await?;
    Ok(true)
}

async fn send_piece(
    stream: &mut TcpStream,
    blob: &Arc<Content>,
    index: usize,
    within: Duration,
    place: &ConnectionPlace,
) -> Result<(), Closing> {
    match &blob.pieces()[index] {
        Piece::Memory(bytes) => {
            for chunk in bytes.chunks(PROGRESS_BYTES) {
                write(stream, chunk, within).await?;
                place.progress();
            }
        }
        Piece::File(file) => {
            let mut at = 0;
            while at < file.len() {
                let chunk = read_chunk(Arc::clone(blob), index, at).await?;
                write(stream, &chunk, within).await?;
                place.progress();
                at += chunk.len() as u64;
            }
        }
    }
    Ok(())
}

/// Reads from a file on a thread that may wait for the disk.
async fn read_chunk(blob: Arc<Content>, index: usize, at: u64) -> Result<Vec<u8>, Closing> {
    let read = move || match &blob.pieces()[index] {
        Piece::Memory(_) => Ok(Vec::new()),
        Piece::File(file) => {
            let mut chunk = vec![0; (file.len() - at).min(PROGRESS_BYTES as u64) as usize];
            file.read_exact_at(&mut chunk, at).map(|()| chunk)
        }
    };
    let chunk = tokio::task::spawn_blocking(read).await.map_err(io::Error::other).flatten();
    chunk.map_err(|error| {
        tracing::error!("cannot read a result from its file: {error}");
        Closing::Unreadable
    })
}

/// What is asked for.
enum Request {
    Whole { id: u64 },
    Part { id: u64, offset: u32, most: u32 },
}

/// The next request, whose first byte comes within `patience` and whose last one `whole_within` later; `None` where the
/// other end has left.
async fn read_request(
    stream: &mut TcpStream,
    (patience, closing): (Duration, Closing),
    whole_within: Duration,
) -> Result<Option<Request>, Closing> {
    let mut head = [0; REQUEST_BYTES];
    let first = timeout(patience, stream.read(&mut head)).await.map_err(|_late| closing)?;
    let length = first.map_err(broken)?;
    if length == 0 {
        return Ok(None);
    }
    let request = timeout(whole_within, finish_request(stream, head, length)).await;
    request.map_err(|_late| Closing::Late)?.map(Some)
}

/// The request whose first `length` bytes are in `head`.
async fn finish_request(
    stream: &mut TcpStream,
    mut head: [u8; REQUEST_BYTES],
    length: usize,
) -> Result<Request, Closing> {
    stream.read_exact(&mut head[length..]).await.map_err(broken)?;
    let [m0, m1, version, operation, _, _, _, _, id @ ..] = head;
    if [m0, m1] != MAGIC || version != VERSION {
        return Err(Closing::Malformed);
    }
    let id = u64::from_be_bytes(id);
    match operation {
        OPERATION_WHOLE => Ok(Request::Whole { id }),
        OPERATION_PART => {
            let mut part = [0; PART_BYTES];
            stream.read_exact(&mut part).await.map_err(broken)?;
            let [o0, o1, o2, o3, most @ ..] = part;
            Ok(Request::Part { id, offset: u32::from_be_bytes([o0, o1, o2, o3]), most: u32::from_be_bytes(most) })
        }
        _ => Err(Closing::Malformed),
    }
}

async fn write(stream: &mut TcpStream, bytes: &[u8], within: Duration) -> Result<(), Closing> {
    timeout(within, stream.write_all(bytes)).await.map_err(|_late| Closing::Stalled)?.map_err(broken)
}

fn broken(_: io::Error) -> Closing {
    Closing::Broken
}

/// The header of an answer of `length` bytes.
fn answer(status: u8, length: u32) -> [u8; ANSWER_BYTES] {
    let mut answer = [0; ANSWER_BYTES];
    answer[..2].copy_from_slice(&MAGIC);
    answer[2..4].copy_from_slice(&[VERSION, status]);
    answer[4..].copy_from_slice(&length.to_be_bytes());
    answer
}
