//! Directories, files and sockets that only their owner may use. An existing one keeps its mode: its owner may have chosen it.

use rustix::fs::{Mode, OFlags, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen as start_listening, socket_with,
};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Modes of a file that another user may read, or a group write.
const OPEN_TO_OTHERS: u32 = 0o027;
/// As the standard library's.
const BACKLOG: i32 = 128;

/// Creates a directory and its missing parents.
///
/// # Errors
/// The kernel's; an existing directory is none.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Options to open a file; if they create it, it is private.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Creates a file, or truncates an existing one.
///
/// # Errors
/// The kernel's.
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Opens a file with a secret, which belongs to this user or root (such as systemd's credentials) and which no other user may read or
/// change.
///
/// # Errors
/// The kernel's; and who else knows the secret, or may change it.
pub fn open_secret(path: &Path) -> io::Result<File> {
    // Does not wait for who writes to a pipe.
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("is no file"));
    }
    let owner = metadata.uid();
    if ![0, geteuid().as_raw()].contains(&owner) {
        let why = format!("belongs to user {owner}, who knows this secret and can change it: make one of your own");
        return Err(io::Error::other(why));
    }
    if metadata.mode() & OPEN_TO_OTHERS != 0 {
        return Err(io::Error::other(
            "other users may read or change this secret: chmod 600 it, and make a new one if they have read it",
        ));
    }
    Ok(file)
}

/// Opens a file to append; creates it if there is none.
///
/// # Errors
/// The kernel's.
pub fn append(path: &Path) -> io::Result<File> {
    options().append(true).create(true).open(path)
}

/// Writes a whole file.
///
/// # Errors
/// The kernel's.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Listens on a Unix socket. Linux creates the file with the mode that the socket has before `bind`, so no other user can connect before a
/// later `chmod`.
///
/// # Errors
/// The kernel's.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    start_listening(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    /// `crates/cli/tests/modes.rs` sets the umask, which belongs to the whole process, to 0. The usual one leaves 0755 and 0644, which also
    /// shows the difference.
    #[test]
    fn what_is_made_is_its_owners_only() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        create_directory(&at("a/b")).unwrap();
        create_directory(&at("a/b")).unwrap();
        assert_eq!((mode(&at("a")), mode(&at("a/b"))), (0o700, 0o700));
        write(&at("written"), "12").unwrap();
        append(&at("appended")).unwrap().write_all(b"1").unwrap();
        append(&at("appended")).unwrap().write_all(b"2").unwrap();
        create(&at("created")).unwrap();
        let listener = listen(&at("socket")).unwrap();
        for name in ["written", "appended", "created", "socket"] {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        assert_eq!(std::fs::read(at("appended")).unwrap(), b"12");
        let client = UnixStream::connect(at("socket")).unwrap();
        listener.accept().unwrap();
        drop(client);
        let taken = listen(&at("socket")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
