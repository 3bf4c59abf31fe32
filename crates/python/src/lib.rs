//! `midflight._native`, the native part of Midflight's Python package: `docs/internals/python.md`. The package in `python/` is what
//! users see; nothing here is for them.
//!
//! | file | subject |
//! |---|---|
//! | `client` | the client as Python sees it |
//! | `calls` | calls of one function: their heads and entries |
//! | `submitter` | tasks on their way to the switch, several at a time where they come fast |
//! | `completions` | outcomes on their way to Python, and who waits for them |
//! | `buffer` | the bytes of a large result |

mod buffer;
mod calls;
mod client;
mod completions;
mod submitter;

/// The module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::calls::Calls;
    #[pymodule_export]
    use super::client::{Blob, Client};
}
