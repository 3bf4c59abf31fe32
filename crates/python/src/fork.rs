//! What belongs to the process that has made it. After a fork the child has a copy of a client, but neither its threads nor a right to its
//! socket, and locks may be held by threads that are not there. It has a copy of the generator of random numbers, too.

use crate::client::ClientClosed;
use pyo3::PyResult;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between this process and the one that has loaded the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// From now on the C library calls [`in_child`] in each child, also after a fork that Python does not know of, such as one by a library.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn watch() -> io::Result<()> {
    // SAFETY: the function is there for as long as the process, as Python unloads no module.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A child is to draw other identities and secrets than its parent and its siblings. Waits for no lock, as the thread that holds it may
/// not be there.
unsafe extern "C" fn in_child() {
    midflight_host::draw_anew();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Before a client is made: the same in a child of which the C library does not tell either, as it was made by the system call itself.
pub(crate) fn before_client() {
    static DRAWN_IN: AtomicU32 = AtomicU32::new(0);
    let here = std::process::id();
    if DRAWN_IN.swap(here, Ordering::Relaxed) != here {
        midflight_host::draw_anew();
    }
}

/// Can be used, and is dropped, only in the process that has made it. A child lets its copy be.
pub(crate) struct Own<T> {
    inner: ManuallyDrop<T>,
    /// The process: its id, and as another process may have the same one, how many forks led to it.
    made_in: (u32, u32),
}

fn here() -> (u32, u32) {
    (std::process::id(), FORKS.load(Ordering::Relaxed))
}

impl<T> Own<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner: ManuallyDrop::new(inner), made_in: here() }
    }

    /// `None` in a child.
    pub(crate) fn here(&self) -> Option<&T> {
        (self.made_in == here()).then_some(&*self.inner)
    }

    /// An exception in a child.
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
            // SAFETY: this is the only place that drops it, and nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}
