//! A nonblocking request to a server over a stream, with its answer.

use super::client::Value;
use super::error::ServerError;
use midflight_wire::cache::backend::{BACKEND_VERSION, BackendAnswer, parse_answer};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

const CHUNK: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(Value),
    Missing,
    Done,
}

/// Converts an answer. LONG is invalid over TCP, where values are sent.
pub(super) fn read_answer(answer: &BackendAnswer<'_>) -> Result<Answer, ServerError> {
    Ok(match *answer {
        BackendAnswer::Value { value, flags } => Answer::Value(Value { bytes: value.to_vec(), flags }),
        BackendAnswer::Missing => Answer::Missing,
        BackendAnswer::Done => Answer::Done,
        BackendAnswer::Long { .. } => return Err(ServerError::Unfit),
        BackendAnswer::Refused { why } => return Err(ServerError::Refused(why.to_owned())),
        // A server of our version has no reason to say this.
        BackendAnswer::OtherVersion { version: BACKEND_VERSION } => return Err(ServerError::Unfit),
        BackendAnswer::OtherVersion { version } => return Err(ServerError::OtherVersion(version)),
    })
}

pub(super) struct Exchange<'a> {
    pub(super) server: SocketAddr,
    request: &'a [u8],
    stream: TcpStream,
    /// A kept stream may have been closed by the server.
    is_kept: bool,
    is_connecting: bool,
    sent: usize,
    came: Vec<u8>,
}

pub(super) enum Step {
    Waits,
    /// A kept stream was closed before any answer: try a new one.
    KeptClosed,
    Ended(Result<Answer, ServerError>),
}

impl<'a> Exchange<'a> {
    pub(super) fn kept(server: SocketAddr, request: &'a [u8], stream: TcpStream) -> Self {
        Self { server, request, stream, is_kept: true, is_connecting: false, sent: 0, came: Vec::new() }
    }

    pub(super) fn connect(server: SocketAddr, request: &'a [u8]) -> Result<Self, ServerError> {
        let unreachable = |error: io::Error| ServerError::Unreachable(error.kind());
        let socket =
            Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP)).map_err(unreachable)?;
        socket.set_nonblocking(true).and_then(|()| socket.set_tcp_nodelay(true)).map_err(unreachable)?;
        let is_connecting = match socket.connect(&server.into()) {
            Ok(()) => false,
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => true,
            Err(error) => return Err(unreachable(error)),
        };
        Ok(Self { server, request, stream: socket.into(), is_kept: false, is_connecting, sent: 0, came: Vec::new() })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn wants(&self) -> PollFlags {
        if self.is_connecting {
            PollFlags::OUT
        } else if self.sent < self.request.len() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// Requires [`is_clean`](Self::is_clean).
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Whether all was sent and nothing followed the answer.
    pub(super) fn is_clean(&self) -> bool {
        self.sent == self.request.len() && self.came.is_empty()
    }

    /// Makes progress without blocking. `is_ready`: poll reported the stream.
    pub(super) fn step(&mut self, is_ready: bool) -> Step {
        if self.is_connecting {
            match self.stream.take_error() {
                Ok(None) if is_ready => self.is_connecting = false,
                Ok(None) => return Step::Waits,
                Ok(Some(error)) | Err(error) => return Step::Ended(Err(ServerError::Unreachable(error.kind()))),
            }
        }
        let is_broken = self.send().is_err();
        // A server may refuse a request before reading all of it.
        match self.receive() {
            Ok(Some(answer)) => Step::Ended(answer),
            Ok(None) if !is_broken => Step::Waits,
            Ok(None) | Err(_) if self.is_kept && self.came.is_empty() => Step::KeptClosed,
            Ok(None) => Step::Ended(Err(ServerError::Closed)),
            Err(kind) if kind == ErrorKind::UnexpectedEof || kind == ErrorKind::ConnectionReset => {
                Step::Ended(Err(ServerError::Closed))
            }
            Err(kind) => Step::Ended(Err(ServerError::Unreachable(kind))),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Result<Answer, ServerError>>, ErrorKind> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof),
                Ok(count) => self.came.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.kind()),
            }
            match parse_answer(&self.came) {
                Ok(None) => {}
                Ok(Some((answer, length))) => {
                    let answer = read_answer(&answer);
                    self.came.drain(..length);
                    return Ok(Some(answer));
                }
                Err(reject) => return Ok(Some(Err(ServerError::Garbage(reject)))),
            }
        }
    }
}
