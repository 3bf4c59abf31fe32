//! The protocol on the submitter's socket: each side sends a greeting, then messages with their lengths.

use crate::model::{EndedRow, JobRow, JobSpec, JobState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Version of the messages.
pub const VERSION: u16 = 1;
/// Sent in place of a version: the submitter already has [`CONNECTIONS_MAX`] connections.
const BUSY: u16 = u16::MAX;
/// Number of concurrent connections.
pub const CONNECTIONS_MAX: usize = 256;
/// Bytes of a message.
pub const MESSAGE_MAX: usize = 8 << 20;
/// Bytes of an output, or of command lines, in one message.
pub const PIECE_MAX: usize = 1 << 20;
const MAGIC: &[u8; 14] = b"midflight-jobs";

/// Why the communication failed.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The connection failed.
    #[error("the submitter has closed the connection: {0}")]
    Io(io::Error),
    /// The peer is silent.
    #[error("the submitter does not answer: its process is stopped (kill -CONT continues it), or its disk hangs")]
    Silent,
    /// The peer is of another version of Midflight.
    #[error(
        "the submitter that runs is of another version of midflight (protocol {0}, here {VERSION}): end that one (its process has the file `lock` open), and run the command again"
    )]
    Version(u16),
    /// The submitter has as many connections as it may.
    #[error("the submitter has {CONNECTIONS_MAX} connections, of `job wait` for example: try again when one has ended")]
    Busy,
    /// Something else listens there.
    #[error("what listens on the socket is no submitter of midflight")]
    NoSubmitter,
    /// A message is too long or malformed.
    #[error("a message of the submitter is malformed")]
    Malformed,
}

impl From<io::Error> for ProtocolError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock { Self::Silent } else { Self::Io(error) }
    }
}

/// A request of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Submits a job to these switches. If each command has its own line, [`Self::Items`] follow.
    Submit {
        /// The job.
        spec: Box<JobSpec>,
        /// Addresses of the switches.
        switches: Vec<SocketAddr>,
    },
    /// Command lines of the job that is being submitted.
    Items(Vec<Vec<u8>>),
    /// The last [`Self::Items`] were sent.
    End,
    /// Lists jobs in the order of their numbers.
    List {
        /// The first job's number.
        first: u64,
    },
    /// Shows one job.
    Show {
        /// The job.
        job: u64,
    },
    /// Lists a job's commands that have ended.
    Ended {
        /// The job.
        job: u64,
        /// The first place.
        place: u32,
    },
    /// Fetches the outputs of a command.
    Output {
        /// The job.
        job: u64,
        /// The command's place.
        place: u32,
    },
    /// Waits a few seconds for a change since `seen`.
    Wait {
        /// The value of the last [`Answer::Changed`]; 0 at first.
        seen: u64,
    },
    /// Cancels these jobs: their commands are not started, or are stopped.
    Cancel(Vec<u64>),
    /// Removes these jobs.
    Remove(Vec<u64>),
    /// Asks for the submitter's status; the next one includes the switch's answer.
    Status,
}

/// The status of a submitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process id.
    pub pid: u32,
    /// The switches; none before the first job.
    pub switches: Vec<SocketAddr>,
    /// Time since one of the switches last answered.
    pub answered: Option<Duration>,
    /// For how long no switch has answered a request; `None` while there is no request.
    pub unanswered: Option<Duration>,
    /// Commands that were begun and have not ended.
    pub open: u32,
    /// Bytes of command lines and outputs.
    pub bytes: u64,
    /// The bound on `bytes`.
    pub bytes_max: u64,
    /// An error that keeps it from saving, such as a full disk.
    pub trouble: Option<String>,
}

/// An answer of the submitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// A job was accepted.
    Submitted {
        /// Its number.
        job: u64,
        /// Its state.
        state: JobState,
    },
    /// A page of jobs, in the order of their numbers.
    Jobs(Vec<JobRow>),
    /// Commands that have ended, with their places.
    Ended(Vec<(u32, EndedRow)>),
    /// A piece of an output: stdout first, then stderr.
    Piece {
        /// Whether it is stderr.
        stderr: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// After the last [`Self::Piece`]: how the command ended, if it has.
    EndOfOutput(Option<EndedRow>),
    /// The new count of changes; something may have changed.
    Changed(u64),
    /// The request was carried out.
    Done,
    /// See [`Status`].
    Status(Status),
    /// The request was refused, and why.
    Refused(String),
}

/// Exchanges the greetings.
///
/// # Errors
/// If the peer is no submitter or command of this version.
pub fn greet(stream: &mut (impl Read + Write)) -> Result<(), ProtocolError> {
    let sent = stream.write_all(&greeting(VERSION)); // a peer that refuses us may have closed already, and can still be read
    let mut theirs = [0; MAGIC.len() + 2];
    stream.read_exact(&mut theirs)?;
    let (magic, version) = theirs.split_at(MAGIC.len());
    let version = u16::from_be_bytes([version[0], version[1]]);
    match (magic == MAGIC, version) {
        (false, _) => Err(ProtocolError::NoSubmitter),
        (true, VERSION) => Ok(sent?),
        (true, BUSY) => Err(ProtocolError::Busy),
        (true, other) => Err(ProtocolError::Version(other)),
    }
}

/// Refuses a connection because there are too many.
///
/// # Errors
/// If the connection is closed.
pub(crate) fn refuse(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(&greeting(BUSY))
}

fn greeting(version: u16) -> Vec<u8> {
    [MAGIC.as_slice(), &version.to_be_bytes()].concat()
}

/// Sends a message.
///
/// # Errors
/// If the connection is closed, or the message too long.
pub fn send(stream: &mut impl Write, message: &impl Serialize) -> Result<(), ProtocolError> {
    let bytes = postcard::to_allocvec(message).map_err(|_| ProtocolError::Malformed)?;
    if bytes.len() > MESSAGE_MAX {
        return Err(ProtocolError::Malformed);
    }
    let mut framed = Vec::with_capacity(4 + bytes.len());
    framed.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    framed.extend_from_slice(&bytes);
    Ok(stream.write_all(&framed)?)
}

/// Receives a message.
///
/// # Errors
/// If the connection is closed, or the message too long or malformed.
pub fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, ProtocolError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MESSAGE_MAX {
        return Err(ProtocolError::Malformed);
    }
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    postcard::from_bytes(&bytes).map_err(|_| ProtocolError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn another_version_and_another_program_are_named() {
        let says = |bytes: &[u8]| {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(bytes).unwrap();
            greet(&mut ours)
        };
        assert!(says(b"midflight-jobs\0\x01").is_ok());
        assert!(matches!(says(b"midflight-jobs\0\x07"), Err(ProtocolError::Version(7))));
        assert!(matches!(says(b"midflight-jobs\xff\xff"), Err(ProtocolError::Busy)));
        assert!(matches!(says(b"HTTP/1.1 400 Bad request"), Err(ProtocolError::NoSubmitter)));
    }

    #[test]
    fn who_says_nothing_is_named() {
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(matches!(greet(&mut ours), Err(ProtocolError::Silent)));
    }

    #[test]
    fn a_message_that_is_too_long_or_malformed_is_refused() {
        let mut bytes = Vec::new();
        send(&mut bytes, &Request::Show { job: 7 }).unwrap();
        assert_eq!(receive::<Request>(&mut bytes.as_slice()).unwrap(), Request::Show { job: 7 });
        let cut = receive::<Request>(&mut &bytes[..bytes.len() - 1]);
        assert!(matches!(cut, Err(ProtocolError::Io(_))), "{cut:?}");
        let long = receive::<Request>(&mut [0xff; 8].as_slice());
        assert!(matches!(long, Err(ProtocolError::Malformed)), "{long:?}");
        let strange = receive::<Request>(&mut [0, 0, 0, 1, 0xee].as_slice());
        assert!(matches!(strange, Err(ProtocolError::Malformed)), "{strange:?}");
    }
}
