//! A connection to the submitter of a state directory, which is started if there is none.

use crate::directory::StateDirectory;
use crate::protocol::{Answer, ProtocolError, Request, greet, receive, send};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a submitter may take to start: it may have to look through a large store.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to say who it is, for which it needs no disk.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Exit code of a submitter whose directory has one already.
pub const CODE_LOCKED: i32 = 3;
/// Bytes of a log at which the next submitter begins another one, and keeps this one beside it.
const LOG_MAX: u64 = 1 << 20;
/// Bytes of the log that are read for its last line.
const LOG_TAIL: u64 = 4_096;

/// Why there is no connection, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// It is not there, and could not be started.
    #[error("the submitter did not start: {0}")]
    NotStarted(String),
    /// It did not answer, or not in a way that this version understands.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// It does not do that.
    #[error("{0}")]
    Refused(String),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the submitter, if one runs.
    ///
    /// # Errors
    /// Where it is of another version.
    pub fn open(directory: &StateDirectory) -> Result<Option<Self>, ConnectError> {
        let Ok(mut stream) = UnixStream::connect(directory.socket()) else { return Ok(None) };
        limit(&stream, GREETING_PATIENCE)?;
        match greet(&mut stream) {
            Ok(()) => limit(&stream, ANSWER_PATIENCE)?,
            Err(ProtocolError::Io(_)) => return Ok(None), // it was just ending
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Self { stream }))
    }

    /// The same; starts `program submitter` in the background if none runs.
    ///
    /// # Errors
    /// Where it does not start, with what it says.
    pub fn open_or_start(directory: &StateDirectory, program: &Path) -> Result<Self, ConnectError> {
        if let Some(connection) = Self::open(directory)? {
            return Ok(connection);
        }
        let failed = |error: io::Error| ConnectError::NotStarted(error.to_string());
        if std::fs::metadata(directory.log()).is_ok_and(|about| about.len() > LOG_MAX) {
            let _ = std::fs::rename(directory.log(), directory.log().with_extension("log.1")); // else it becomes longer
        }
        let log = midflight_files::append(&directory.log()).map_err(failed)?;
        let from = log.metadata().map_or(0, |about| about.len());
        let spawn = || -> io::Result<Child> {
            Command::new(program)
                .args(["submitter", "--background"])
                .env("MIDFLIGHT_STATE", directory.path())
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log.try_clone()?)
                .spawn()
        };
        let mut child = spawn().map_err(failed)?;
        let began = Instant::now();
        while began.elapsed() < START_PATIENCE {
            if let Some(connection) = Self::open(directory)? {
                return Ok(connection);
            }
            std::thread::sleep(LOOK_EVERY);
            match child.try_wait().map_err(failed)? {
                None => {}
                // Another one has the directory, which may start or end at this moment.
                Some(status) if status.code() == Some(CODE_LOCKED) => child = spawn().map_err(failed)?,
                Some(_) => break,
            }
        }
        Err(ConnectError::NotStarted(last_line(&directory.log(), from)))
    }

    /// Asks, and hears the answer.
    ///
    /// # Errors
    /// Where there is none, or it refuses.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ConnectError> {
        self.tell(request)?;
        self.hear()
    }

    /// Sends what has no answer of its own.
    ///
    /// # Errors
    /// Where the connection is closed.
    pub fn tell(&mut self, request: &Request) -> Result<(), ConnectError> {
        Ok(send(&mut self.stream, request)?)
    }

    /// Hears one answer.
    ///
    /// # Errors
    /// Where there is none, or it refuses.
    pub fn hear(&mut self) -> Result<Answer, ConnectError> {
        match receive(&mut self.stream)? {
            Answer::Refused(why) => Err(ConnectError::Refused(why)),
            answer => Ok(answer),
        }
    }
}

/// Waits no longer than this for the submitter.
fn limit(stream: &UnixStream, patience: Duration) -> Result<(), ProtocolError> {
    let limited = stream.set_read_timeout(Some(patience));
    Ok(limited.and_then(|()| stream.set_write_timeout(Some(patience)))?)
}

/// What the log says last, since it had that many bytes.
fn last_line(log: &PathBuf, from: u64) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(LOG_TAIL))))?;
        let mut tail = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = read().unwrap_or_default();
    let tail = String::from_utf8_lossy(&tail);
    let last = tail.lines().rev().find(|line| !line.trim().is_empty());
    let said = last.map(|line| line.trim_start_matches("error: ").to_owned());
    said.unwrap_or_else(|| format!("it says nothing in {}: is its disk full?", log.display()))
}
