//! Long values, SET and DELETE over TCP: requests in sequence, answered in order. One task per connection.

use super::backend::{Failure, Reply};
use super::counters::{Counts, count};
use super::{SERVES, Shared};
use crate::clock;
use crate::driver::lock;
use midflight_connections::ConnectionPlace;
use midflight_wire::cache::backend::{
    BACKEND_VERSION, BackendAnswer, BackendReject, BackendRequest, parse_request, write_answer,
};
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes to be transferred within `progress_timeout`, or the rest if less.
const PROGRESS_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 16 << 10;
/// A buffer grown beyond this by a long value is freed.
const KEPT_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
enum Closing {
    NotServed,
    Malformed,
    OtherVersion,
    Silent,
    Idle,
    Late,
    Stalled,
    Broken,
    Left,
}

impl Counts {
    fn closed(&self, closing: Closing) {
        count(match closing {
            Closing::NotServed => &self.stream_not_served,
            Closing::Malformed => &self.stream_malformed,
            Closing::OtherVersion => &self.other_version,
            Closing::Silent => &self.stream_silent,
            Closing::Idle => &self.stream_idle,
            Closing::Late => &self.stream_late,
            Closing::Stalled => &self.stream_stalled,
            Closing::Broken => &self.stream_broken,
            Closing::Left => &self.stream_left,
        });
    }
}

/// Accepts connections until dropped. Returns only if it cannot start.
pub(super) async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let _watch = shared.failing.watch(SERVES);
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.failing.fail(format!("the agent cannot take connections: {error}")),
    };
    let mut refusal = Vec::new();
    write_answer(&BackendAnswer::Refused { why: "too many connections from this address" }, &mut refusal);
    let serve = |stream, place| {
        let shared = Arc::clone(&shared);
        async move { serve(stream, &shared, &place).await }
    };
    match shared.connections.accept(&listener, &refusal, serve).await {}
}

impl Shared {
    fn serves(&self, stream: &TcpStream) -> bool {
        let Some(users) = &self.users else { return true };
        let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
        lock(users).serves_stream(clock::now(), own, peer) == Some(true)
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared, place: &ConnectionPlace) {
    let _watch = shared.failing.watch(SERVES);
    // Counted before the stream closes, for tests that wait for the close.
    if let Err(closing) = converse(&mut stream, shared, place).await {
        shared.counts.closed(closing);
    }
}

async fn converse(stream: &mut TcpStream, shared: &Shared, place: &ConnectionPlace) -> Result<(), Closing> {
    if !shared.serves(stream) {
        return Err(Closing::NotServed);
    }
    let options = &shared.options;
    let (mut come, mut answer) = (Vec::new(), Vec::new());
    let mut patience = (options.request_timeout, Closing::Silent);
    while let Some(length) = read_request(stream, &mut come, patience, shared, place).await? {
        place.progress();
        answer.clear();
        let busy = Busy::new(&shared.streams_busy);
        if let Ok(Some((request, _))) = parse_request(&come[..length]) {
            carry_out(&request, stream, shared, &mut answer).await?;
        }
        for part in answer.chunks(PROGRESS_BYTES) {
            write(stream, part, options.progress_timeout).await?;
            place.progress();
        }
        drop(busy);
        come.drain(..length);
        come.shrink_to(KEPT_BYTES);
        answer.clear();
        answer.shrink_to(KEPT_BYTES);
        patience = (options.idle_timeout, Closing::Idle);
    }
    Ok(())
}

/// Reads a whole request into `come` and returns its length; `None` if the client has left.
async fn read_request(
    stream: &mut TcpStream,
    come: &mut Vec<u8>,
    (patience, closing): (Duration, Closing),
    shared: &Shared,
    place: &ConnectionPlace,
) -> Result<Option<usize>, Closing> {
    let options = &shared.options;
    let (mut deadline, mut closing) = (Instant::now() + patience, closing);
    if !come.is_empty() {
        (deadline, closing) = (Instant::now() + options.request_timeout, Closing::Late);
    }
    let mut next_progress = PROGRESS_BYTES;
    loop {
        match parse_request(come) {
            Ok(Some((_, length))) => return Ok(Some(length)),
            Ok(None) => {}
            Err(BackendReject::BadVersion(_)) => {
                let mut answer = Vec::new();
                write_answer(&BackendAnswer::OtherVersion { version: BACKEND_VERSION }, &mut answer);
                write(stream, &answer, options.progress_timeout).await?;
                return Err(Closing::OtherVersion);
            }
            Err(_) => return Err(Closing::Malformed),
        }
        come.reserve(READ_BYTES);
        let read = timeout_at(deadline, stream.read_buf(come)).await.map_err(|_late| closing)?;
        let length = read.map_err(broken)?;
        if length == 0 {
            return if come.is_empty() { Ok(None) } else { Err(Closing::Broken) };
        }
        if come.len() == length {
            (deadline, closing) = (Instant::now() + options.request_timeout, Closing::Late);
        }
        if come.len() >= next_progress {
            next_progress += PROGRESS_BYTES;
            deadline = Instant::now() + options.progress_timeout;
            place.progress();
        }
    }
}

/// Asks the backend and appends the response. Skips the request if its stream has ended: the client may have set the key elsewhere since.
async fn carry_out(
    request: &BackendRequest<'_>,
    stream: &TcpStream,
    shared: &Shared,
    to: &mut Vec<u8>,
) -> Result<(), Closing> {
    let counts = &shared.counts;
    count(match request {
        BackendRequest::Get { .. } => &counts.stream_gets,
        BackendRequest::Set { .. } => &counts.stream_sets,
        BackendRequest::Delete { .. } => &counts.stream_deletes,
    });
    let outcome = if shared.ending.load(Ordering::SeqCst) {
        count(&counts.ending);
        Err(Failure::Refused("the agent ends".into()))
    } else {
        shared.stream_pool.ask(request, || !has_ended(stream)).await
    };
    let answer = match &outcome {
        Ok(Reply::Value { value, flags }) => BackendAnswer::Value { value, flags: *flags },
        Ok(Reply::Missing) => BackendAnswer::Missing,
        Ok(Reply::Done) => BackendAnswer::Done,
        Err(Failure::Refused(why)) => BackendAnswer::Refused { why },
        Err(Failure::NotWanted) => return Err(Closing::Left),
    };
    write_answer(&answer, to);
    Ok(())
}

/// Whether the kernel has seen the client close. Unread bytes before the end hide it.
fn has_ended(stream: &TcpStream) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    match SockRef::from(stream).peek(&mut byte) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// Counts a request until its response is written or its connection ends.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::SeqCst);
        Self(busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn write(stream: &mut TcpStream, bytes: &[u8], within: Duration) -> Result<(), Closing> {
    timeout(within, stream.write_all(bytes)).await.map_err(|_late| Closing::Stalled)?.map_err(broken)
}

fn broken(_: io::Error) -> Closing {
    Closing::Broken
}
