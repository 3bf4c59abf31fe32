//! This process and its children, as the kernel sees them.
//!
//! | file | subject |
//! |---|---|
//! | `children` | child processes that end with this one, and their output |
//! | `failing` | ends the process when a part of it fails |
//! | `open_files` | limit of open files, here and in commands |
//! | `privileges` | dropping privileges after the start |

pub mod children;
pub(crate) mod failing;
pub(crate) mod open_files;
pub mod privileges;
