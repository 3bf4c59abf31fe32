//! Transcripts: text files of packets in and packets out, which every engine must reproduce.
//!
//! A line is a comment (`#`), a command, or, indented by four spaces, an engine's answer to the command above it.
//! [`run`] gives the commands to an engine and returns the transcript with its actual answers. A test compares the two.
//!
//! ```text
//! # Two tasks find no executor and wait; the first executor gets the older one.
//! switch queue=8
//! client ann
//! executor eve
//! ann submit 1: 100, 101 level 2 needs AB
//!     ok
//!     -> ann SUBMIT_ACK 1: taken 0-1, room 6
//! ```
//!
//! Where the asic engine may answer differently, a line indented by two spaces names the rule that allows it, and its
//! answer follows:
//!
//! ```text
//! eve retrieve: 0 wait 1
//!     ok, repeated_wait 1
//!     -> eve ASSIGN
//!          0 wait 1: task 100 (ann 1.0), attempt 1, waited 3us
//!   asic (T2: a repeated RETRIEVE is another one)
//!     ok
//!     -> eve ASSIGN
//!          0 wait 1: task 101 (ann 1.1, half of the token, no uid, jid 1), attempt 1, waited 0us
//! ```
//!
//! Random numbers are never shown: slots and generations appear as the executor's local number and its registration
//! count (`0`, `eve/0@1`), clients and executors by name, masks as letters (`AB`). The runner fills in cookies,
//! counters and tokens, and shows them only if they are wrong. `transcripts/README.md` lists the commands.

mod cache;
mod cookie;
mod engines;
mod runner;
mod steps;
mod store;
mod tasks;
mod vocabulary;
mod words;

pub use cache::CacheVocabulary;
pub use engines::{CheckedNative, EngineExt};
#[cfg(feature = "kernel")]
pub use engines::{KernelOnce, Spare};
pub use runner::{AnyEngine, Start, TranscriptError, run, run_asic};
pub use store::StoreVocabulary;
pub use tasks::{Heard, PollingAsic, TasksVocabulary};
pub use vocabulary::{ConfigOf, Every, Moment, OrderOf, Sending, StatsOf, Vocabulary};
