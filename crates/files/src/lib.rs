//! Files of commands: created for their owner only, and read within a bound.
//!
//! This crate creates every directory, file and socket of a command, whatever the umask, so that no other user can use it at any moment.
//! `docs/internals/security.md` lists the exceptions; `crates/cli/tests/modes.rs` looks for others.

mod bounded;
mod private;

pub use bounded::{BoundedReader, MIB, read, read_text, reader};
pub use private::{append, create, create_directory, listen, open_secret, options, write};
