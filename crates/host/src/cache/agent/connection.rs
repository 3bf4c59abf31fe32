//! A connection to the backend. Sends one request at a time and rejects a response that does not match it.

use midflight_cache::backend::{Answer, At, BackendAddress, Dialect, Wrong};
use midflight_wire::cache::backend::BackendRequest;
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// Least free buffer space for a read.
const READ_BYTES: usize = 16 << 10;
/// A buffer grown beyond this by a long value is freed.
const KEPT_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    dialect: Dialect,
    come: Vec<u8>,
    pub(super) has_answered: bool,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnedAnswer {
    Value { value: Vec<u8>, flags: u32 },
    Missing,
    Done,
    Refused(String),
}

#[derive(Debug)]
pub(super) enum Break {
    /// Closed or broken. `began`: after part of a response.
    Closed {
        began: bool,
    },
    Wrong(Wrong),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleState {
    Nothing,
    Closed,
    SpokeUnasked,
}

impl Connection {
    /// Connects and sends the dialect's preamble. The error is one line.
    pub(super) async fn open(address: &BackendAddress) -> Result<Self, String> {
        let stream = match &address.at {
            At::Tcp(place) => TcpStream::connect(place).await.map(|stream| {
                // If this fails, the socket is dead and the next use reports it.
                let _ = stream.set_nodelay(true);
                Stream::Tcp(stream)
            }),
            At::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
        };
        let stream = stream.map_err(|error| error.to_string())?;
        let mut connection = Self { stream, dialect: address.dialect, come: Vec::new(), has_answered: false };
        connection.greet().await?;
        Ok(connection)
    }

    async fn greet(&mut self) -> Result<(), String> {
        let mut greeting = Vec::new();
        if !self.dialect.write_greeting(&mut greeting) {
            return Ok(());
        }
        let dialect = self.dialect;
        let said = self.exchange(&greeting, |bytes| dialect.read_greeting(bytes)).await;
        match said {
            Ok(OwnedAnswer::Refused(why)) => Err(format!("it does not select the database: {why}")),
            Ok(_) => Ok(()),
            Err(Break::Closed { .. }) => Err("it closed the connection when it should select the database".into()),
            Err(Break::Wrong(wrong)) => Err(format!("it did not select the database: {wrong}")),
        }
    }

    /// What arrived since the last response. Asks the kernel, because the runtime may not have noticed new bytes yet.
    pub(super) fn idle_state(&self) -> IdleState {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match &self.stream {
            Stream::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Stream::Unix(stream) => SockRef::from(stream).peek(&mut byte),
        };
        match peeked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => IdleState::Nothing,
            Ok(1..) => IdleState::SpokeUnasked,
            Ok(0) | Err(_) => IdleState::Closed,
        }
    }

    /// Sends a request and reads the response. Drop the connection if this future is dropped: a late response would be taken for the next
    /// request's.
    pub(super) async fn ask(&mut self, request: &BackendRequest<'_>, written: &[u8]) -> Result<OwnedAnswer, Break> {
        let dialect = self.dialect;
        let said = self.exchange(written, |bytes| dialect.read(request, bytes)).await?;
        self.has_answered = true;
        Ok(said)
    }

    async fn exchange(
        &mut self,
        written: &[u8],
        read: impl for<'a> Fn(&'a [u8]) -> Result<Option<(Answer<'a>, usize)>, Wrong>,
    ) -> Result<OwnedAnswer, Break> {
        self.come.clear();
        self.come.shrink_to(KEPT_BYTES);
        self.stream.write_all(written).await.map_err(|_| Break::Closed { began: false })?;
        loop {
            self.come.reserve(READ_BYTES);
            let length = self.stream.read(&mut self.come).await.unwrap_or(0);
            if length == 0 {
                return Err(Break::Closed { began: !self.come.is_empty() });
            }
            if let Some((answer, length)) = read(&self.come).map_err(Break::Wrong)? {
                if length < self.come.len() {
                    return Err(Break::Wrong(Wrong::Garbage("more than one answer")));
                }
                return Ok(answer.into());
            }
        }
    }
}

impl Stream {
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    async fn read(&mut self, to: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_buf(to).await,
            Self::Unix(stream) => stream.read_buf(to).await,
        }
    }
}

impl From<Answer<'_>> for OwnedAnswer {
    fn from(answer: Answer<'_>) -> Self {
        match answer {
            Answer::Value { value, flags } => Self::Value { value: value.to_vec(), flags },
            Answer::Missing => Self::Missing,
            Answer::Done => Self::Done,
            Answer::Refused(why) => Self::Refused(why.to_owned()),
        }
    }
}
