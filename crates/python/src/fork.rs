//! Objects that belong to the process that made them. After a fork, the child has a copy of a client without its threads, which may hold
//! locks, and without the right to use its socket. It also has a copy of the random number generator.

use crate::client::ClientClosed;
use pyo3::PyResult;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between this process and the one that loaded the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Makes the C library call [`in_child`] in each child, even if Python does not know of the fork, such as one by a library.
///
/// # Errors
/// If there is no memory for it.
pub(crate) fn watch() -> io::Result<()> {
    // SAFETY: the function exists as long as the process, because Python unloads no module.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Reseeds the random number generators after `fork`; the child inherits its parent's state. Waits for no lock: the child may lack the
/// thread that holds it.
unsafe extern "C" fn in_child() {
    midflight_host::draw_anew();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Before a client is made: the same in a child made by the bare system call, unknown to the C library.
pub(crate) fn before_client() {
    static DRAWN_IN: AtomicU32 = AtomicU32::new(0);
    let here = std::process::id();
    if DRAWN_IN.swap(here, Ordering::Relaxed) != here {
        midflight_host::draw_anew();
    }
}

/// A value that is used and dropped only in the process that made it; a child leaks its copy.
pub(crate) struct Own<T> {
    inner: ManuallyDrop<T>,
    /// The process: its id, and the number of forks that led to it, because ids are reused.
    made_in: (u32, u32),
}

fn here() -> (u32, u32) {
    (std::process::id(), FORKS.load(Ordering::Relaxed))
}

impl<T> Own<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner: ManuallyDrop::new(inner), made_in: here() }
    }

    pub(crate) fn here(&self) -> Option<&T> {
        (self.made_in == here()).then_some(&*self.inner)
    }

    pub(crate) fn get(&self) -> PyResult<&T> {
        self.here().ok_or_else(|| {
            ClientClosed::new_err(
                "a client does not survive fork: make a new one in the child, or start it by \"spawn\"",
            )
        })
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.here().is_some() {
            // SAFETY: only this dropped it, and nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}
