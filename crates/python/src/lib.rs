//! `midflight._native`, the internal native part of Midflight's Python package (`docs/internals/python.md`). Users see the package in
//! `python/`.
//!
//! | file | subject |
//! |---|---|
//! | `client` | the client class for Python |
//! | `calls` | calls of one function: their heads and entries |
//! | `queue` | calls that are not sent yet; joins successive ones of a function into a task |
//! | `submitter` | sends what the queue has as jobs |
//! | `jobs` | open tasks |
//! | `completions` | completions on their way to Python, and threads that wait for them |
//! | `waiters` | Python objects that wait for tasks |
//! | `fork` | objects that belong to the process that made them |
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
