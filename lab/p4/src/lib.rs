//! The P4 programs in `p4/`: finding their tools, compiling them, running them in BMv2 for a controller, and holding them to the model of a
//! switch (feature `compare`).
//!
//! `docs/internals/p4.md` says what is compared with what, and how to read the programs.
//!
//! | file | subject |
//! |---|---|
//! | `sources` | the programs' sources |
//! | `tofino` | compiling for Tofino, and what the compiler says of a program |
//! | `tools` | where the compilers and BMv2 are, and how long they may take; compiling for BMv2 |
//! | `run` | a compiler that runs |
//! | `process`, `thrift`, `tables`, `ports` | a running switch: its process, its tables and registers, its ports |
//! | `live` | the same as a controller needs it, at a machine's interfaces |
//! | `frame` | frames of the wire |
//! | `bmv2`, `around` | the same as the comparison needs it, and who is around it |
//! | `twin` | the model beside the switch: what must come out of a pass, and what the registers must be |
//! | `random`, `heard` | frames of all kinds, drawn; the datagrams of transcripts |
//! | `watch` | what a switch has lost, for who sees all its frames |
//! | `differential` | both side by side |

#[cfg(feature = "compare")]
mod around;
#[cfg(feature = "compare")]
mod bmv2;
#[cfg(feature = "compare")]
pub mod differential;
mod error;
#[cfg(all(test, feature = "compare"))]
mod failures;
mod frame;
#[cfg(feature = "compare")]
mod heard;
pub mod live;
mod ports;
mod process;
#[cfg(feature = "compare")]
mod random;
mod run;
pub mod sources;
mod tables;
#[cfg(all(test, feature = "compare"))]
mod tests;
mod thrift;
pub mod tofino;
pub mod tools;
#[cfg(feature = "compare")]
mod twin;
#[cfg(feature = "compare")]
pub mod watch;

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
