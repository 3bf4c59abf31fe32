//! Dropping privileges. A switch needs them to load and attach programs and to listen on low ports, but not to serve: open descriptors stay
//! usable.

use crate::error::Error;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};
use std::fmt;
use std::io;

/// `nobody` and `nogroup`, under any name.
const NOBODY: u32 = 65_534;

/// What is left after dropping privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The user that the process runs as.
    pub user: u32,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runs as user {} without capabilities, and can gain none", self.user)
    }
}

/// Drops all capabilities for good, and changes root to `nobody`. Call it before the first thread starts: capabilities belong to a thread
/// and are inherited.
///
/// If that user does not exist, as in some containers, root stays root without capabilities.
///
/// # Errors
///
/// If the kernel refuses and privileges would remain.
pub fn drop_all() -> Result<Left, Error> {
    let failed =
        |what| move |source: rustix::io::Errno| Error::Privileges { what, source: io::Error::from(source).into() };
    // This needs a capability itself; without it no_new_privs prevents gaining any.
    for number in 0..u64::BITS {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
    }
    if rustix::process::geteuid().is_root()
        && let Err(error) = become_nobody()
    {
        tracing::warn!("cannot become user {NOBODY}: {error}; this process stays root, without capabilities");
    }
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(failed("set capabilities"))?;
    set_no_new_privs(true).map_err(failed("set no_new_privs"))?;
    Ok(Left { user: rustix::process::geteuid().as_raw() })
}

/// By the C library, which changes all threads.
fn become_nobody() -> io::Result<()> {
    let (user, group) = (Uid::from_raw(NOBODY).as_raw(), Gid::from_raw(NOBODY).as_raw());
    let done = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: system calls with numbers, and an empty list.
    unsafe {
        done(libc::setgroups(0, std::ptr::null()))?;
        done(libc::setresgid(group, group, group))?;
        done(libc::setresuid(user, user, user))
    }
}
