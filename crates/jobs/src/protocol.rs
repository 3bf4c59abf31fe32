//! What commands and the submitter say to each other over its socket: each side its greeting, then messages, each with its length.

use crate::model::{EndedRow, JobRow, JobSpec, JobState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// The version of these messages.
pub const VERSION: u16 = 1;
/// In the place of a version: there are [`CONNECTIONS_MAX`] connections already.
const BUSY: u16 = u16::MAX;
/// Connections at one time.
pub const CONNECTIONS_MAX: usize = 256;
/// Bytes of a message.
pub const MESSAGE_MAX: usize = 8 << 20;
/// Bytes of an output, or of command lines, in one message.
pub const PIECE_MAX: usize = 1 << 20;
const MAGIC: &[u8; 14] = b"midflight-jobs";

/// Why the other side was not understood.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The connection.
    #[error("the submitter has closed the connection: {0}")]
    Io(io::Error),
    /// It says nothing.
    #[error("the submitter does not answer: its process is stopped (kill -CONT continues it), or its disk hangs")]
    Silent,
    /// Another version of Midflight.
    #[error(
        "the submitter that runs is of another version of midflight (protocol {0}, here {VERSION}): end that one (its process has the file `lock` open), and run the command again"
    )]
    Version(u16),
    /// It serves as many connections as it may.
    #[error("the submitter has {CONNECTIONS_MAX} connections, of `job wait` for example: try again when one has ended")]
    Busy,
    /// Something else listens there.
    #[error("what listens on the socket is no submitter of midflight")]
    NoSubmitter,
    /// A message that is too long or malformed.
    #[error("a message of the submitter is malformed")]
    Malformed,
}

impl From<io::Error> for ProtocolError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock { Self::Silent } else { Self::Io(error) }
    }
}

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// A job for these switches. If each command has its own line, [`Self::Items`] follow.
    Submit {
        /// What to run.
        spec: Box<JobSpec>,
        /// Where.
        switches: Vec<SocketAddr>,
    },
    /// Command lines of the job that is being submitted.
    Items(Vec<Vec<u8>>),
    /// They are complete.
    End,
    /// Jobs from this one on.
    List {
        /// The first one.
        first: u64,
    },
    /// One job.
    Show {
        /// Which.
        job: u64,
    },
    /// Commands of a job that have ended, from a place on.
    Ended {
        /// Which job.
        job: u64,
        /// The first place.
        place: u32,
    },
    /// The outputs of a command.
    Output {
        /// Which job.
        job: u64,
        /// Which place.
        place: u32,
    },
    /// Waits a few seconds until something has changed since `seen`.
    Wait {
        /// What the last [`Answer::Changed`] said; 0 before the first.
        seen: u64,
    },
    /// Commands of these jobs shall not run, or run no longer.
    Cancel(Vec<u64>),
    /// Forget these jobs.
    Remove(Vec<u64>),
    /// How the submitter is. It asks the switch, too: the next answer to this tells what the switch has said.
    Status,
}

/// How the submitter is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The switches; none before the first job.
    pub switches: Vec<SocketAddr>,
    /// How long ago one of them last answered.
    pub answered: Option<Duration>,
    /// For how long none has answered although one is asked; nothing while there is nothing to ask.
    pub unanswered: Option<Duration>,
    /// Commands that were begun and have not ended.
    pub open: u32,
    /// Bytes of command lines and outputs.
    pub bytes: u64,
    /// The bound on them.
    pub bytes_max: u64,
    /// What keeps it from saving anything, such as a full disk.
    pub trouble: Option<String>,
}

/// What the submitter answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// A job was accepted.
    Submitted {
        /// Its number.
        job: u64,
        /// Where it is.
        state: JobState,
    },
    /// Jobs in their order; more if there are any.
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
    /// After the last [`Self::Piece`]: how the command ended, or nothing as it has not.
    EndOfOutput(Option<EndedRow>),
    /// Something may have changed.
    Changed(u64),
    /// Done.
    Done,
    /// See [`Status`].
    Status(Status),
    /// It was not done, and why.
    Refused(String),
}

/// Says who we are, and hears who the other one is.
///
/// # Errors
/// Where that is nobody who understands us.
pub fn greet(stream: &mut (impl Read + Write)) -> Result<(), ProtocolError> {
    let sent = stream.write_all(&greeting(VERSION)); // one that refuses us may have closed already, and still be read
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

/// Says that there is no room for a connection.
///
/// # Errors
/// Where the connection is closed.
pub(crate) fn refuse(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(&greeting(BUSY))
}

fn greeting(version: u16) -> Vec<u8> {
    [MAGIC.as_slice(), &version.to_be_bytes()].concat()
}

/// Sends a message.
///
/// # Errors
/// Where the connection is closed, or the message too long.
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
/// Where the connection is closed, or the message too long or malformed.
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
