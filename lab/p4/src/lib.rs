//! The P4 programs in `p4/`: finds their tools, compiles them, runs them in BMv2 for a controller, and compares them with the model of a
//! switch (feature `compare`).
//!
//! `docs/internals/p4.md` describes the comparison, and how to read the programs.
//!
//! | file | subject |
//! |---|---|
//! | `sources` | the programs' sources |
//! | `tofino` | compiling for Tofino, and the compiler's report |
//! | `tools` | paths and timeouts of the compilers and BMv2; compiling for BMv2 |
//! | `run` | runs a compiler |
//! | `process`, `thrift`, `tables`, `ports` | a running switch: its process, its tables and registers, its ports |
//! | `live` | a switch for a controller, at a machine's interfaces |
//! | `frame` | frames of the wire |
//! | `bmv2`, `around` | a switch for the comparison, and its surroundings |
//! | `twin` | the model: expected results of a pass, and expected registers |
//! | `random`, `heard` | random frames of all kinds; the datagrams of transcripts |
//! | `watch` | finds a switch's lost tasks in its frames |
//! | `differential` | compares switch and model |

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
    /// All programs.
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
