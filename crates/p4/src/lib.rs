//! The P4 programs in `p4/`: finding their tools, compiling them, running them in BMv2, and holding them to the model of a switch.
//!
//! `docs/internals/p4.md` says what is compared with what, and how to read the programs.
//!
//! | file | subject |
//! |---|---|
//! | `tools` | where the compilers and BMv2 are; compiling |
//! | `bmv2`, `thrift`, `ports` | a running switch: its process, its tables and registers, its ports |
//! | `frame` | frames of the wire, and the form that a packet has on its way round |
//! | `twin` | the model beside the switch: what must come out of a pass, and what the registers must be |
//! | `random`, `heard` | frames of all kinds, drawn; the datagrams of transcripts |
//! | `differential` | both side by side |

mod bmv2;
pub mod differential;
mod error;
mod frame;
mod heard;
mod ports;
mod random;
#[cfg(test)]
mod tests;
mod thrift;
pub mod tools;
mod twin;

pub use error::P4Error;

/// A program of `p4/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The safe queue.
    Safe,
    /// The papers' queue.
    Published,
}

impl Program {
    /// All.
    pub const ALL: [Self; 2] = [Self::Safe, Self::Published];

    /// The name of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "tasks_safe",
            Self::Published => "tasks_published",
        }
    }
}
