//! Ends the processes inside a lab: a namespace lives as long as one of them.

use crate::{LabError, netns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::Metadata;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// After SIGTERM, and again after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(1);

/// Device and inode.
type Identity = (u64, u64);

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino())
}

fn namespace_of(process: &str) -> Option<Identity> {
    std::fs::metadata(format!("/proc/{process}/ns/net")).ok().as_ref().map(identity)
}

/// Of the namespaces that still exist.
fn identities(namespaces: &[String]) -> Vec<Identity> {
    namespaces.iter().filter_map(|name| std::fs::metadata(netns::path(name)).ok()).map(|file| identity(&file)).collect()
}

pub(crate) fn we_are_inside(namespaces: &[String]) -> bool {
    namespace_of("self").is_some_and(|ours| identities(namespaces).contains(&ours))
}

/// Ends all processes in these namespaces: SIGTERM, wait, SIGKILL.
pub(crate) fn end_all(namespaces: &[String]) -> Result<(), LabError> {
    let namespaces = identities(namespaces);
    for signal in [Signal::TERM, Signal::KILL] {
        let processes = inside(&namespaces)?;
        for process in &processes {
            let _ = pidfd_send_signal(process, signal); // an error means that it has exited
        }
        wait_for(&processes);
    }
    Ok(())
}

/// Pidfds of the processes inside, so that a reused pid cannot be hit.
fn inside(namespaces: &[Identity]) -> Result<Vec<OwnedFd>, LabError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").map_err(LabError::io("list /proc"))?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_inside = || namespace_of(name).is_some_and(|its| namespaces.contains(&its));
        let Some(pid) = name.parse().ok().and_then(Pid::from_raw) else { continue };
        if is_inside()
            && let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
            && is_inside()
        {
            found.push(process);
        }
    }
    Ok(found)
}

fn wait_for(processes: &[OwnedFd]) {
    let deadline = Instant::now() + PATIENCE;
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return };
        // On error, treats the process as running: it gets the next signal.
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout));
    }
}
