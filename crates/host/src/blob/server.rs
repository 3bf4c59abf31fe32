//! Serves the blobs of a [`BlobStore`]: one thread, one task per connection.

use super::format::{Answer, Greeting, OPERATION_FETCH, Request};
use super::{BlobStore, Closing, Content, PROGRESS_BYTES, Piece};
use crate::error::Error;
use midflight_connections::{ConnectionPlace, listen};
use midflight_tasks::blob::{Asked, BlobSecret, Ends};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use zerocopy::{FromZeros, IntoBytes};

const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Dropping it stops it.
#[derive(Debug)]
pub(crate) struct BlobServer {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BlobServer {
    /// Listens on `address`. With `expire`, blobs are dropped after `result_ttl`.
    pub(crate) fn start(address: SocketAddr, store: Arc<BlobStore>, expire: bool) -> Result<Self, Error> {
        let refused = Error::bind("TCP", address);
        let listener = listen(address).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let failed = Error::resources("start the blob server");
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

async fn accept(listener: std::net::TcpListener, store: &Arc<BlobStore>) -> io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let serve = |stream, place| {
        let store = Arc::clone(store);
        async move { serve(stream, &store, &place).await }
    };
    match store.connections.accept(&listener, Greeting::no_place().as_bytes(), serve).await {}
}

async fn serve(mut stream: TcpStream, store: &BlobStore, place: &ConnectionPlace) {
    // Counted before the stream closes, for tests that wait for the close.
    if let Err(closing) = converse(&mut stream, store, place).await {
        store.counts.closed(closing);
    }
}

/// Serves requests until the client closes or asks for an unknown name.
async fn converse(stream: &mut TcpStream, store: &BlobStore, place: &ConnectionPlace) -> Result<(), Closing> {
    let options = store.options();
    let [server, client] = [stream.local_addr(), stream.peer_addr()].map(|end| end.map_err(broken));
    let (ends, challenge) = (Ends { server: server?, client: client? }, rand::random());
    let mut next = Asked { ends, challenge, earlier: 0, nonce: 0 };
    write(stream, Greeting::welcome(challenge).as_bytes(), options.progress_timeout).await?;
    let mut patience = (options.request_timeout, Closing::Silent);
    while let Some(request) = read_request(stream, patience, options.request_timeout).await? {
        let here =
            |secret: BlobSecret, length| Answer::here(length, secret.answer_proof(request.nonce.get(), ends, length));
        let may = |secret| {
            let is_proved = request.is_proved(secret, &next);
            if is_proved {
                place.progress();
            }
            is_proved
        };
        let found = store.find(request.name.get(), may);
        let is_here = send(stream, found, here, options.progress_timeout, place).await?;
        if !is_here {
            return write(stream, Answer::not_here().as_bytes(), options.progress_timeout).await;
        }
        place.rest();
        next.earlier += 1;
        patience = (options.idle_timeout, Closing::Idle);
    }
    Ok(())
}

async fn send(
    stream: &mut TcpStream,
    found: Option<(BlobSecret, Arc<Content>)>,
    here: impl Fn(BlobSecret, u32) -> Answer,
    within: Duration,
    place: &ConnectionPlace,
) -> Result<bool, Closing> {
    let Some((secret, blob)) = found else { return Ok(false) };
    write(stream, here(secret, blob.len() as u32).as_bytes(), within).await?;
    for index in 0..blob.pieces().len() {
        send_piece(stream, &blob, index, within, place).await?;
    }
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

/// Reads from a file, on a thread that may block.
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

/// Reads a request: the first byte within `patience`, the rest within `whole_within`. `None` if the client has left.
async fn read_request(
    stream: &mut TcpStream,
    (patience, closing): (Duration, Closing),
    whole_within: Duration,
) -> Result<Option<Request>, Closing> {
    let mut request = Request::new_zeroed();
    let first = timeout(patience, stream.read(request.as_mut_bytes())).await.map_err(|_late| closing)?;
    let length = first.map_err(broken)?;
    if length == 0 {
        return Ok(None);
    }
    let rest = timeout(whole_within, stream.read_exact(&mut request.as_mut_bytes()[length..])).await;
    rest.map_err(|_late| Closing::Late)?.map_err(broken)?;
    let is_good = request.start.is_ours() && request.start.code == OPERATION_FETCH;
    if is_good { Ok(Some(request)) } else { Err(Closing::Malformed) }
}

async fn write(stream: &mut TcpStream, bytes: &[u8], within: Duration) -> Result<(), Closing> {
    timeout(within, stream.write_all(bytes)).await.map_err(|_late| Closing::Stalled)?.map_err(broken)
}

fn broken(_: io::Error) -> Closing {
    Closing::Broken
}
