//! Serves what a [`BlobStore`] keeps: one thread, one light task per connection.

use super::{
    ANSWER_BYTES, BlobStore, IDLE_TIMEOUT, MAGIC, OPERATION_FETCH, REQUEST_BYTES, STALL_TIMEOUT, STATUS_HERE,
    STATUS_UNKNOWN, VERSION,
};
use crate::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Written at once; each has to make it within the stall timeout.
const CHUNK_BYTES: usize = 256 << 10;
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
        let listener = std::net::TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let failed = |source| Error::Resources { what: "start the blob server", source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("mf-blobs".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    result = accept(listener, Arc::clone(&store)) => if let Err(error) = result {
                        tracing::error!("the blob server on port {port} ended: {error}");
                    },
                    () = sweep(&store), if expire => {}
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

async fn sweep(store: &BlobStore) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        store.expire();
    }
}

async fn accept(listener: std::net::TcpListener, store: Arc<BlobStore>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(store.options().max_connections));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
        match listener.accept().await {
            Ok((stream, _)) => {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let _ = serve(stream, &store).await; // a peer that went away is no news
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, usually: others may be closed soon.
                tracing::warn!("the blob server cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(mut stream: TcpStream, store: &BlobStore) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = [0; REQUEST_BYTES];
        timeout(IDLE_TIMEOUT, stream.read_exact(&mut request)).await??;
        let [m0, m1, version, operation, _, _, _, _, id @ ..] = request;
        if [m0, m1] != MAGIC || version != VERSION || operation != OPERATION_FETCH {
            store.malformed.fetch_add(1, Relaxed);
            return Ok(());
        }
        let blob = store.find(u64::from_be_bytes(id));
        let (status, bytes) = blob.as_ref().map_or((STATUS_UNKNOWN, &[][..]), |blob| (STATUS_HERE, &blob[..]));
        let mut answer = [0; ANSWER_BYTES];
        answer[..2].copy_from_slice(&MAGIC);
        answer[2..4].copy_from_slice(&[VERSION, status]);
        answer[4..].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
        timeout(STALL_TIMEOUT, stream.write_all(&answer)).await??;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            timeout(STALL_TIMEOUT, stream.write_all(chunk)).await??;
        }
    }
}
