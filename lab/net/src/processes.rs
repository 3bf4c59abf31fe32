//! The processes inside a lab, which end with it: a namespace lives as long as one of them does.

use crate::{LabError, netns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::Metadata;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long a process may take to end by itself, and then to be gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// Which namespace a file stands for.
type Identity = (u64, u64);

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino())
}

fn namespace_of(process: &str) -> Option<Identity> {
    std::fs::metadata(format!("/proc/{process}/ns/net")).ok().as_ref().map(identity)
}

/// What is left of these namespaces, by identity.
fn identities(namespaces: &[String]) -> Vec<Identity> {
    namespaces.iter().filter_map(|name| std::fs::metadata(netns::path(name)).ok()).map(|file| identity(&file)).collect()
}

/// Whether this process is in one of them itself.
pub(crate) fn we_are_inside(namespaces: &[String]) -> bool {
    namespace_of("self").is_some_and(|ours| identities(namespaces).contains(&ours))
}

/// Ends all processes in these namespaces: asks them, waits, kills.
pub(crate) fn end_all(namespaces: &[String]) -> Result<(), LabError> {
    let namespaces = identities(namespaces);
    for signal in [Signal::TERM, Signal::KILL] {
        let processes = inside(&namespaces)?;
        for process in &processes {
            let _ = pidfd_send_signal(process, signal); // an error means that it has ended already
        }
        wait_for(&processes);
    }
    Ok(())
}

/// Handles of the processes inside, none of which can have become another process.
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

/// Until all have ended, or it takes too long.
fn wait_for(processes: &[OwnedFd]) {
    let deadline = Instant::now() + PATIENCE;
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return };
        // An error counts as a process that has not ended: it gets the next signal.
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout));
    }
}
