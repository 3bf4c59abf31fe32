//! The operator's interface to a running process: a Unix socket for root and the user who started it. A request and its answer are one line
//! of JSON each. Each process defines its own requests; this module has those of the task queue.
//!
//! HTTP, which a whole network may reach, does not offer them, because they change what others have queued.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of the process for a whole request and for its answer to be read, and of a client for the answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
const LOOKED_AT: usize = 1024;
/// The process of a younger socket may just be starting to listen.
const JUST_MADE: Duration = Duration::from_secs(10);
const REQUEST_MAX: u64 = 4096;

/// A request to the switch of a task queue; the answer is a number of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Purge queued tasks.
    Purge(Which),
}

/// The tasks that a request means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// Tasks of the client with this label (`watch::label`).
    Client(String),
    /// Tasks that need all of these resources, a mask.
    Resources(u8),
    /// Tasks of clients at this address; an IPv6 address stands for its /64.
    Address(IpAddr),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply<A> {
    Done(A),
    Error(String),
}

/// The default path of a process's socket: in `/run/midflight` for root, otherwise in the user's runtime directory.
#[must_use]
pub fn default_path(process: &str, which: impl Display) -> PathBuf {
    let user = rustix::process::geteuid();
    let directory = match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => PathBuf::from("/run/midflight"),
        Some(own) if !own.is_empty() => PathBuf::from(own).join("midflight"),
        _ => std::env::temp_dir().join(format!("midflight-{}", user.as_raw())),
    };
    directory.join(format!("{process}-{which}.sock"))
}

/// Listens on `path`, for the owner and root only. Removes socket files of dead processes, there and next to it.
///
/// # Errors
/// If another process listens there, the directory is another user's, or it cannot be created.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Some(directory) = path.parent() {
        own_directory(directory)?;
        remove_dead(directory, path);
    }
    match midflight_files::listen(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            midflight_files::listen(path)
        }
        bound => bound,
    }
}

/// Removes sockets of dead processes of the same kind: if the system chooses the port, no later process replaces them.
fn remove_dead(directory: &Path, path: &Path) {
    let process = |path: &Path| Some(path.file_name()?.to_str()?.strip_suffix(".sock")?.split_once('-')?.0.to_owned());
    let (Some(own), Ok(files)) = (process(path), std::fs::read_dir(directory)) else { return };
    for file in files.flatten().take(LOOKED_AT) {
        let path = file.path();
        let Ok(about) = file.metadata() else { continue };
        let age = about.modified().ok().and_then(|made| made.elapsed().ok());
        if process(&path).as_ref() == Some(&own)
            && about.file_type().is_socket()
            && age.is_some_and(|age| age > JUST_MADE)
            && UnixStream::connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Checks that no other user can put a socket into the directory.
fn own_directory(directory: &Path) -> io::Result<()> {
    if !directory.exists() {
        midflight_files::create_directory(directory)?;
    }
    // In /tmp another user may have put a link to one of our directories here.
    let (named, about) = (directory.symlink_metadata()?, directory.metadata()?);
    if is_trusted(named.uid()) && is_trusted(about.uid()) && about.mode() & 0o022 == 0 {
        return Ok(());
    }
    let directory = directory.display();
    let why = format!("others may write to {directory}: take that away (chmod go-w {directory}), or name another path");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Whether only we or root can have made the file.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Answers requests one after the other, until the process ends. An error is one line.
pub fn serve<Q: DeserializeOwned, A: Serialize>(
    listener: &UnixListener,
    mut answer: impl FnMut(Q) -> Result<A, String>,
) {
    for stream in listener.incoming() {
        let served = stream.and_then(|stream| serve_one(stream, &mut answer));
        if let Err(error) = served {
            tracing::debug!("an operator's request failed: {error}");
        }
    }
}

fn serve_one<Q: DeserializeOwned, A: Serialize>(
    mut stream: UnixStream,
    answer: &mut impl FnMut(Q) -> Result<A, String>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer(request),
        Err(error) => Err(format!("not a request: {error}")),
    };
    let said = answer.map_or_else(Reply::Error, Reply::Done);
    writeln!(stream, "{}", serde_json::to_string(&said)?)
}

/// Sends a request; its error is one line. A stopped process takes no request, so the caller gives up after `patience`.
///
/// # Errors
/// If no process listens there, this user may not use the socket, or it belongs to another user, who could read a client's identity from
/// the request and answer anything. Root may use all sockets.
pub fn ask<A: DeserializeOwned>(
    path: &Path,
    request: &impl Serialize,
    patience: Duration,
) -> io::Result<Result<A, String>> {
    let mut stream = UnixStream::connect(path)?;
    let server = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    if !is_trusted(server.as_raw()) && !rustix::process::geteuid().is_root() {
        let why = format!("user {} listens at {}, and no process of ours", server.as_raw(), path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let late = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no answer for {} s", patience.as_secs_f64()))
        }
        _ => error,
    };
    writeln!(stream, "{}", serde_json::to_string(request)?).map_err(late)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(late)?;
    Ok(match serde_json::from_str(&line)? {
        Reply::Done(answer) => Ok(answer),
        Reply::Error(why) => Err(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("midflight-admin-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    #[test]
    fn a_request_gets_its_answer() {
        let path = directory("ask").join("switch.sock");
        let listener = listen(&path).unwrap();
        thread::spawn(move || {
            serve(&listener, |request| match request {
                Request::Purge(Which::Resources(mask)) => Ok(u32::from(mask)),
                Request::Purge(which) => Err(format!("{which:?}")),
            });
        });
        let purge = |which| ask::<u32>(&path, &Request::Purge(which), PATIENCE).unwrap();
        assert_eq!(purge(Which::Resources(4)), Ok(4));
        assert_eq!(purge(Which::Client("07".into())), Err("Client(\"07\")".into()));
        let mut raw = UnixStream::connect(&path).unwrap();
        raw.write_all(b"nonsense\n").unwrap();
        let mut said = String::new();
        raw.read_to_string(&mut said).unwrap();
        assert!(said.contains("not a request"), "{said}");
    }

    #[test]
    fn nobody_waits_for_ever_for_a_process_that_is_stopped() {
        let path = directory("silent").join("switch.sock");
        let _listens = listen(&path).unwrap();
        let said =
            ask::<u32>(&path, &Request::Purge(Which::Client("07".into())), Duration::from_millis(50)).unwrap_err();
        assert_eq!((said.kind(), said.to_string()), (io::ErrorKind::TimedOut, "no answer for 0.05 s".into()));
    }

    #[test]
    fn a_socket_of_the_dead_is_replaced_and_one_of_the_living_is_not() {
        let path = directory("again").join("switch.sock");
        drop(listen(&path).unwrap());
        let second = listen(&path).unwrap();
        assert!(listen(&path).is_err());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        drop(second);
    }

    #[test]
    fn sockets_of_the_dead_are_removed_by_the_next_of_their_kind() {
        let directory = directory("dead");
        let at = |name: &str| directory.join(name);
        let old = |path: &Path| {
            let file = std::fs::File::open(path.parent().unwrap()).unwrap();
            let long_ago = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
            let times = rustix::fs::Timestamps { last_access: long_ago, last_modification: long_ago };
            rustix::fs::utimensat(&file, path.file_name().unwrap(), &times, rustix::fs::AtFlags::empty()).unwrap();
        };
        let living = listen(&at("switch-1.sock")).unwrap();
        for name in ["switch-2.sock", "switch-3.sock", "replica-4.sock"] {
            drop(listen(&at(name)).unwrap());
        }
        std::fs::write(at("switch-5.sock"), "no socket").unwrap();
        for name in ["switch-1.sock", "switch-2.sock", "replica-4.sock", "switch-5.sock"] {
            old(&at(name));
        }
        let _next = listen(&at("switch-6.sock")).unwrap();
        let there = |name: &str| at(name).exists();
        assert!(!there("switch-2.sock"), "its process has ended");
        assert!(there("switch-1.sock"), "it lives");
        assert!(there("switch-3.sock"), "it was just made");
        assert!(there("replica-4.sock") && there("switch-5.sock"), "of others");
        drop(living);
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let open = directory("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(listen(&open.join("switch.sock")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_link_that_another_user_has_put_there_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return; // only root can give a link to another user
        }
        let (own, link) = (directory("own"), directory("link"));
        std::fs::create_dir(&own).unwrap();
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&own, &link).unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(listen(&link.join("switch.sock")).is_ok());
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert_eq!(listen(&link.join("other.sock")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
