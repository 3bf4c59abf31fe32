//! Fetches blobs over connections that are kept for reuse.

use super::PROGRESS_BYTES;
use super::format::{Answer, Greeting, Request, STATUS_OK, STATUS_REFUSED};
use crate::disk::spill::{SpillError, SpillFile};
use crate::driver::lock;
use midflight_tasks::blob::{Asked, BlobSecret, Ends};
use midflight_wire::tasks::BlobRef;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};
use zerocopy::{FromZeros, IntoBytes};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A server flooded with connections may be late to greet.
const GREETED_WITHIN: Duration = Duration::from_secs(2);
/// A kept connection must answer within this time: another process may have the server's port now.
const KEPT_PATIENCE: Duration = Duration::from_secs(1);
const IDLE_MAX: usize = 32;
/// Largest allocation before bytes arrive, so that a forged length costs no more.
const FIRST_ALLOCATION: usize = 1 << 20;
/// Pause after a refused connection; doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("cannot fetch from {address}: {source}; client and executor must reach one another (no NAT, no firewall)")]
    Io { address: SocketAddr, source: io::Error },
    #[error(
        "{0} has no free connection for this address: start fewer executors behind one address, or raise \
         BlobOptions::max_connections there (or it is of an earlier version)"
    )]
    NoPlace(SocketAddr),
    #[error("the bytes are not kept any more, or addresses are translated on the way (NAT)")]
    Gone,
    #[error("{expected} bytes were announced, {got} are there")]
    Length { expected: u32, got: u32 },
    #[error("{0} does not answer like a blob server of this version")]
    NotABlobServer(SocketAddr),
    #[error(
        "the process at {0} is not the one that has these bytes: probably that one has ended, and another one has its port"
    )]
    Forged(SocketAddr),
    #[error("{length} bytes exceed {max}")]
    TooLarge { length: u32, max: u32 },
    #[error("{length} bytes were not kept: {source}")]
    NotKept { length: u32, source: SpillError },
}

trait Sink {
    fn take(&mut self, reader: Within<'_>, wanted: usize) -> Result<usize, Refused>;
}

enum Refused {
    Reading(io::Error),
    Keeping(SpillError),
}

impl Sink for Vec<u8> {
    fn take(&mut self, reader: Within<'_>, wanted: usize) -> Result<usize, Refused> {
        reader.take(wanted as u64).read_to_end(self).map_err(Refused::Reading)
    }
}

impl Sink for SpillFile {
    fn take(&mut self, reader: Within<'_>, wanted: usize) -> Result<usize, Refused> {
        let mut chunk = Vec::with_capacity(wanted);
        let length = reader.take(wanted as u64).read_to_end(&mut chunk).map_err(Refused::Reading)?;
        self.append(&chunk).map_err(Refused::Keeping)?;
        Ok(length)
    }
}

struct Wanted {
    secret: BlobSecret,
    length: u32,
}

impl Wanted {
    fn request(&self, connection: &Connection, nonce: u64) -> Request {
        let Connection { ends, challenge, requests: earlier, .. } = *connection;
        Request::new(self.secret, &Asked { ends, challenge, earlier, nonce })
    }

    fn is_proved(&self, connection: &Connection, nonce: u64, answer: &Answer) -> bool {
        self.secret.answer_proof(nonce, connection.ends, answer.length.get()) == answer.proof.get()
    }
}

impl From<&BlobRef> for Wanted {
    fn from(blob: &BlobRef) -> Self {
        Self { secret: blob.into(), length: blob.length.get() }
    }
}

/// Each answer proves that the server knows the id.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    ends: Ends,
    challenge: u64,
    /// Requests sent.
    requests: u64,
}

fn server(ip: IpAddr, blob: &BlobRef) -> SocketAddr {
    SocketAddr::new(ip, blob.port.get())
}

#[derive(Debug)]
pub(crate) struct Fetcher {
    idle: Mutex<HashMap<SocketAddr, Vec<Connection>>>,
    progress_timeout: Duration,
}

impl Fetcher {
    pub(crate) fn new(progress_timeout: Duration) -> Self {
        Self { idle: Mutex::default(), progress_timeout }
    }

    /// Fetches `blob` from `ip`, if it has at most `max` bytes.
    pub(crate) fn fetch(&self, ip: IpAddr, blob: &BlobRef, max: u32) -> Result<Vec<u8>, FetchError> {
        let length = blob.length.get();
        if length > max {
            return Err(FetchError::TooLarge { length, max });
        }
        let mut bytes = Vec::with_capacity((length as usize).min(FIRST_ALLOCATION));
        self.fetch_into(&mut bytes, server(ip, blob), &blob.into()).map(|()| bytes)
    }

    /// Like [`Self::fetch`], into an empty file, without a length limit.
    pub(crate) fn fetch_to_file(&self, ip: IpAddr, blob: &BlobRef, file: &mut SpillFile) -> Result<(), FetchError> {
        self.fetch_into(file, server(ip, blob), &blob.into())
    }

    /// The answer begins within the progress timeout, retries included.
    fn fetch_into(&self, sink: &mut impl Sink, address: SocketAddr, wanted: &Wanted) -> Result<(), FetchError> {
        let (connection, length) = self.answered(address, wanted)?;
        self.receive(sink, &connection.stream, length as usize).map_err(|refused| match refused {
            Refused::Reading(source) => FetchError::Io { address, source },
            Refused::Keeping(source) => FetchError::NotKept { length, source },
        })?;
        self.keep_idle(address, connection);
        Ok(())
    }

    /// A connection that has answered, and the length that follows. If a kept connection fails, tries a new one: the server may have
    /// restarted.
    fn answered(&self, address: SocketAddr, wanted: &Wanted) -> Result<(Connection, u32), FetchError> {
        let begun = Instant::now();
        let (deadline, mut pause) = (begun + self.progress_timeout, FIRST_PAUSE);
        if let Some(kept) = self.take_idle(address) {
            match ask(kept, address, wanted, deadline.min(begun + KEPT_PATIENCE)) {
                Ok(answered) => return Ok(answered),
                Err(error) => tracing::debug!("a kept connection to {address} is of no use: {error}"),
            }
        }
        loop {
            let connected = self.connect(address, deadline);
            match connected.and_then(|connection| ask(connection, address, wanted, deadline)) {
                Err(FetchError::NoPlace(_)) if Instant::now() + pause < deadline => sleep(pause),
                answered => return answered,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn connect(&self, address: SocketAddr, deadline: Instant) -> Result<Connection, FetchError> {
        let connect = || {
            let left = deadline.saturating_duration_since(Instant::now()).min(CONNECT_TIMEOUT);
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            let stream = TcpStream::connect_timeout(&address, left)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(self.progress_timeout))?;
            let ends = Ends { server: stream.peer_addr()?, client: stream.local_addr()? };
            Ok((stream, ends))
        };
        let (stream, ends) = connect().map_err(|source| FetchError::Io { address, source })?;
        let (mut greeting, soon) = (Greeting::new_zeroed(), deadline.min(Instant::now() + GREETED_WITHIN));
        let greeted = Within { stream: &stream, deadline: soon }.read_exact(greeting.as_mut_bytes());
        greeted.map_err(|error| match error.kind() {
            ErrorKind::TimedOut if soon < deadline => FetchError::NoPlace(address),
            _ => unanswered(address, error),
        })?;
        match greeting.start.code {
            _ if !greeting.start.is_ours() => Err(FetchError::NotABlobServer(address)),
            STATUS_OK => Ok(Connection { stream, ends, challenge: greeting.challenge.get(), requests: 0 }),
            STATUS_REFUSED => Err(FetchError::NoPlace(address)),
            _ => Err(FetchError::NotABlobServer(address)),
        }
    }

    fn receive(&self, sink: &mut impl Sink, stream: &TcpStream, length: usize) -> Result<(), Refused> {
        let mut left = length;
        while left > 0 {
            let wanted = PROGRESS_BYTES.min(left);
            let deadline = Instant::now() + self.progress_timeout;
            if sink.take(Within { stream, deadline }, wanted)? < wanted {
                return Err(Refused::Reading(ErrorKind::UnexpectedEof.into()));
            }
            left -= wanted;
        }
        Ok(())
    }

    fn take_idle(&self, address: SocketAddr) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        let kept = idle.get_mut(&address)?;
        let connection = kept.pop();
        if kept.is_empty() {
            idle.remove(&address);
        }
        connection
    }

    fn keep_idle(&self, address: SocketAddr, connection: Connection) {
        let mut idle = lock(&self.idle);
        if idle.values().map(Vec::len).sum::<usize>() >= IDLE_MAX {
            idle.clear(); // evicts connections to servers that have ended
        }
        idle.entry(address).or_default().push(connection);
    }
}

fn ask(
    mut connection: Connection,
    address: SocketAddr,
    wanted: &Wanted,
    deadline: Instant,
) -> Result<(Connection, u32), FetchError> {
    let (nonce, mut answer) = (rand::random(), Answer::new_zeroed());
    let request = wanted.request(&connection, nonce);
    connection.requests += 1;
    let asked = connection.stream.write_all(request.as_bytes());
    let answered = asked.and_then(|()| {
        let mut reader = Within { stream: &connection.stream, deadline };
        reader.read_exact(answer.as_mut_bytes())
    });
    answered.map_err(|error| unanswered(address, error))?;

    let (expected, got) = (wanted.length, answer.length.get());
    match answer.start.code {
        _ if !answer.start.is_ours() => Err(FetchError::NotABlobServer(address)),
        STATUS_REFUSED => Err(FetchError::Gone),
        STATUS_OK if !wanted.is_proved(&connection, nonce, &answer) => Err(FetchError::Forged(address)),
        STATUS_OK if expected != got => Err(FetchError::Length { expected, got }),
        STATUS_OK => Ok((connection, got)),
        _ => Err(FetchError::NotABlobServer(address)),
    }
}

/// A stream with a deadline for all reads together, however small.
struct Within<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Within<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let read = self.stream.read(buffer);
        read.map_err(|error| if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error })
    }
}

/// A server that closes a connection before answering has evicted it.
fn unanswered(address: SocketAddr, source: io::Error) -> FetchError {
    if is_closed(&source) { FetchError::NoPlace(address) } else { FetchError::Io { address, source } }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
