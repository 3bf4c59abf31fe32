//! A connection to the submitter of a state directory, which starts it if none runs.

use crate::directory::StateDirectory;
use crate::protocol::{Answer, ProtocolError, Request, greet, receive, send};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for a submitter's start: it may have to read a large store.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Timeout for a submitter's greeting, which needs no disk.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Exit code of a submitter whose directory already has one.
pub const CODE_LOCKED: i32 = 3;
/// Size in bytes at which the next submitter rotates the log; one old log is kept.
const LOG_MAX: u64 = 1 << 20;
const LOG_TAIL: u64 = 4_096;

/// Why there is no connection, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No submitter runs, and none could be started.
    #[error("the submitter did not start: {0}")]
    NotStarted(String),
    /// No answer, or one that this version does not understand.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The submitter refused the request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a submitter.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects to the submitter, if one runs.
    ///
    /// # Errors
    /// If it is of another version.
    pub fn open(directory: &StateDirectory) -> Result<Option<Self>, ConnectError> {
        let Ok(mut stream) = UnixStream::connect(directory.socket()) else { return Ok(None) };
        limit(&stream, GREETING_PATIENCE)?;
        match greet(&mut stream) {
            Ok(()) => limit(&stream, ANSWER_PATIENCE)?,
            Err(ProtocolError::Io(_)) => return Ok(None), // it was ending
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Self { stream }))
    }

    /// As [`Self::open`], but starts `program submitter` in the background if none runs.
    ///
    /// # Errors
    /// If it does not start, with the last line of its log.
    pub fn open_or_start(directory: &StateDirectory, program: &Path) -> Result<Self, ConnectError> {
        if let Some(connection) = Self::open(directory)? {
            return Ok(connection);
        }
        let failed = |error: io::Error| ConnectError::NotStarted(error.to_string());
        if std::fs::metadata(directory.log()).is_ok_and(|about| about.len() > LOG_MAX) {
            let _ = std::fs::rename(directory.log(), directory.log().with_extension("log.1")); // if that fails, the log grows
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
                // Another submitter has the directory, and may be starting or ending.
                Some(status) if status.code() == Some(CODE_LOCKED) => child = spawn().map_err(failed)?,
                Some(_) => break,
            }
        }
        Err(ConnectError::NotStarted(last_line(&directory.log(), from)))
    }

    /// Sends a request and receives its answer.
    ///
    /// # Errors
    /// If there is no answer, or the submitter refuses.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ConnectError> {
        self.tell(request)?;
        self.hear()
    }

    /// Sends a request that has no answer of its own.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn tell(&mut self, request: &Request) -> Result<(), ConnectError> {
        Ok(send(&mut self.stream, request)?)
    }

    /// Receives one answer.
    ///
    /// # Errors
    /// If there is none, or the submitter refuses.
    pub fn hear(&mut self) -> Result<Answer, ConnectError> {
        match receive(&mut self.stream)? {
            Answer::Refused(why) => Err(ConnectError::Refused(why)),
            answer => Ok(answer),
        }
    }
}

fn limit(stream: &UnixStream, patience: Duration) -> Result<(), ProtocolError> {
    let limited = stream.set_read_timeout(Some(patience));
    Ok(limited.and_then(|()| stream.set_write_timeout(Some(patience)))?)
}

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
