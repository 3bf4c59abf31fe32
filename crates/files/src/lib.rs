//! Files of commands: made for their owner only, and read within a bound.
//!
//! Every directory, file and socket that a command makes is made by this crate, whatever the umask is, so that no other user can read or
//! change it at any moment. Exceptions are listed in `docs/internals/security.md`, and `crates/cli/tests/modes.rs` looks for others.

mod bounded;
mod private;

pub use bounded::{BoundedReader, MIB, read, read_text, reader};
pub use private::{append, create, create_directory, listen, options, write};
