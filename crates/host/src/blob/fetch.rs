//! Fetches blobs, over connections that are kept for the next one.

use super::{ANSWER_BYTES, MAGIC, OPERATION_FETCH, REQUEST_BYTES, STALL_TIMEOUT, STATUS_HERE, STATUS_UNKNOWN, VERSION};
use crate::driver::lock;
use midflight_wire::{BLOB_MAX, BlobRef};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections kept for the next fetch, over all servers.
const IDLE_MAX: usize = 32;
/// What is allocated before bytes have arrived: a forged length costs no more.
const FIRST_ALLOCATION: usize = 1 << 20;

/// Why bytes could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("cannot fetch from {address}: {source}; client and executor must reach one another (no NAT, no firewall)")]
    Io { address: SocketAddr, source: io::Error },
    #[error("the bytes are not kept any more")]
    Gone,
    #[error("{expected} bytes were announced, {got} are there")]
    Length { expected: u32, got: u32 },
    #[error("{0} does not answer like a blob server")]
    NotABlobServer(SocketAddr),
}

/// Any number of threads fetch through one of these.
#[derive(Debug, Default)]
pub(crate) struct Fetcher {
    idle: Mutex<HashMap<SocketAddr, Vec<TcpStream>>>,
}

impl Fetcher {
    /// The bytes that `blob` names, served at `ip`.
    pub(crate) fn fetch(&self, ip: IpAddr, blob: &BlobRef) -> Result<Vec<u8>, FetchError> {
        let (expected, address) = (blob.length.get(), SocketAddr::new(ip, blob.port.get()));
        if expected > BLOB_MAX {
            return Err(FetchError::Length { expected, got: BLOB_MAX });
        }
        if let Some(kept) = self.take_idle(address) {
            // The server may have closed it meanwhile: then, and only then, a new one.
            match self.request(kept, address, blob) {
                Err(FetchError::Io { .. }) => {}
                answer => return answer,
            }
        }
        let failed = |source| FetchError::Io { address, source };
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(STALL_TIMEOUT)).map_err(failed)?;
        stream.set_write_timeout(Some(STALL_TIMEOUT)).map_err(failed)?;
        self.request(stream, address, blob)
    }

    fn request(&self, mut stream: TcpStream, address: SocketAddr, blob: &BlobRef) -> Result<Vec<u8>, FetchError> {
        let failed = |source| FetchError::Io { address, source };
        let mut request = [0; REQUEST_BYTES];
        request[..2].copy_from_slice(&MAGIC);
        request[2] = VERSION;
        request[3] = OPERATION_FETCH;
        request[8..].copy_from_slice(&blob.id.get().to_be_bytes());
        stream.write_all(&request).map_err(failed)?;

        let mut answer = [0; ANSWER_BYTES];
        stream.read_exact(&mut answer).map_err(failed)?;
        let [m0, m1, version, status, length @ ..] = answer;
        if [m0, m1] != MAGIC || version != VERSION {
            return Err(FetchError::NotABlobServer(address));
        }
        let (expected, got) = (blob.length.get(), u32::from_be_bytes(length));
        match status {
            STATUS_UNKNOWN => {
                self.keep_idle(address, stream);
                return Err(FetchError::Gone);
            }
            STATUS_HERE if got != expected => return Err(FetchError::Length { expected, got }),
            STATUS_HERE => {}
            _ => return Err(FetchError::NotABlobServer(address)),
        }
        let mut bytes = Vec::with_capacity((expected as usize).min(FIRST_ALLOCATION));
        (&mut stream).take(u64::from(expected)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() != expected as usize {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        self.keep_idle(address, stream);
        Ok(bytes)
    }

    fn take_idle(&self, address: SocketAddr) -> Option<TcpStream> {
        let mut idle = lock(&self.idle);
        let kept = idle.get_mut(&address)?;
        let stream = kept.pop();
        if kept.is_empty() {
            idle.remove(&address);
        }
        stream
    }

    fn keep_idle(&self, address: SocketAddr, stream: TcpStream) {
        let mut idle = lock(&self.idle);
        if idle.values().map(Vec::len).sum::<usize>() >= IDLE_MAX {
            idle.clear(); // servers that are gone must not hold all places
        }
        idle.entry(address).or_default().push(stream);
    }
}
