//! Network namespaces in the directory of `ip netns`: entering them and running commands inside.

use crate::{LabError, names};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `NETNS_RUN_DIR` of iproute2.
const DIRECTORY: &str = "/var/run/netns";

pub(crate) fn path(namespace: &str) -> PathBuf {
    Path::new(DIRECTORY).join(namespace)
}

/// With their labs.
pub(crate) fn all() -> Result<Vec<(String, String)>, LabError> {
    let failed = || LabError::io(format!("list {DIRECTORY}"));
    let entries = match std::fs::read_dir(DIRECTORY) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let namespace = entry.map_err(failed())?.file_name();
        if let Some(namespace) = namespace.to_str()
            && let Some((lab, _)) = names::of_namespace(namespace)
        {
            found.push((lab.to_owned(), namespace.to_owned()));
        }
    }
    Ok(found)
}

pub(crate) fn of(lab: &str) -> Result<Vec<String>, LabError> {
    Ok(all()?.into_iter().filter(|(owner, _)| owner == lab).map(|(_, namespace)| namespace).collect())
}

/// Neither allocates nor locks, so it may run between fork and exec.
fn enter(path: &CStr) -> io::Result<()> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Names were checked, so they contain no NUL.
fn c_path(namespace: &str) -> CString {
    CString::new(format!("{DIRECTORY}/{namespace}")).unwrap_or_default()
}

/// On its own thread. Sockets stay where they were opened.
pub(crate) fn within<T: Send>(namespace: &str, act: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    let path = c_path(namespace);
    let entered = std::thread::scope(|scope| {
        let thread = scope.spawn(|| enter(&path).map(|()| act()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    entered.map_err(LabError::io(format!("enter the network namespace {namespace}")))
}

pub(crate) fn command(namespace: &str, program: &OsStr) -> Command {
    let path = c_path(namespace);
    let mut command = Command::new(program);
    // SAFETY: `enter` makes three system calls; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || enter(&path)) };
    command
}
