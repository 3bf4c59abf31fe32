//! `midflight._native`, the native part of Midflight's Python package: `docs/internals/python.md`. The package in `python/` is what
//! users see; nothing here is for them.
//!
//! | file | subject |
//! |---|---|
//! | `client` | the client as Python sees it |
//! | `calls` | calls of one function: their heads and entries |
//! | `submitter` | tasks on their way to the switch and back, several at a time where they come fast |
//! | `queue` | calls that are not sent yet |
//! | `jobs` | tasks that are open |
//! | `completions` | ends of tasks on their way to Python, and threads that wait for them |
//! | `waiters` | Python objects that wait for tasks |
//! | `fork` | what belongs to the process that has made it |
//! | `buffer` | the bytes of a large result |

mod buffer;
mod calls;
mod client;
mod completions;
mod fork;
mod jobs;
mod queue;
mod submitter;
mod waiters;

/// The module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::calls::Calls;
    #[pymodule_export]
    use super::client::{Blob, Client};

    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        Ok(super::fork::watch()?)
    }
}
