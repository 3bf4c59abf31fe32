//! The engines of Midflight's programs.
//!
//! | module | what |
//! |---|---|
//! | [`program`] | a [`Program`](program::Program), and an [`Engine`](program::Engine) that runs one |
//! | [`Native`] | the soft engine in this process: a safe interface to a program in C |
//! | [`kernel`] | the soft engine in the kernel (feature `kernel`) |
//! | [`tasks`] | the tasks program: the cluster's task queue |
//! | [`store`] | the store program: sends each read to an up-to-date replica |
//!
//! `lab/spec` has the reference models: what the protocols require for each packet. `lab/asic` runs the programs in the model of a switch's
//! pipeline.

pub mod cache;
mod cookie;
#[cfg(feature = "serde")]
pub mod duration;
#[cfg(feature = "kernel")]
pub mod kernel;
mod memory;
#[cfg(feature = "mutants")]
mod mutants;
mod native;
mod out;
pub mod program;
mod raw;
pub mod store;
mod survey;
pub mod tasks;
mod verdict;
mod xdp_mode;

pub use cookie::Cookies;
pub use native::Native;
pub use out::{Forward, Out};
pub use program::ConfigError;
pub use raw::{RawDatagram, RawOut};
pub use tasks::read::read;
pub use tasks::{
    OPERATIONS, Purge, Stats, Survey, SurveyedClient, SurveyedSlot, SurveyedState, SurveyedTask, TICK_SLOTS,
    TaskTotals, Tasks, TasksConfig, TasksProgram, Verdict, WAIT_BUCKETS, Which,
};
pub use verdict::BAD_VERSION;
pub use xdp_mode::XdpMode;

/// A datagram and its receiver.
pub type Datagram = (std::net::SocketAddr, Vec<u8>);
