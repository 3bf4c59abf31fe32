//! The studies: what measures Midflight, and what checks it. Each is a subcommand of `midflight`, with its arguments
//! (`Args`) and
//! `run`, which returns the exit code.
//!
//! | study | subject |
//! |---|---|
//! | [`mod@bench`] | numbers of this machine: the core, processes, labs, other systems |
//! | [`replay`] | a workload through a switch in real time |
//! | [`sim`] | the simulator: figures, sweeps, scenarios, the fault campaign |
//! | [`check`] | every state of small instances of the asic engine and of the protocol of reads; histories of a store |
//! | [`store`] | a load on a store |
//! | [`cache`] | a load on a replicated cache |
//! | [`soak`], [`attack`] | a cluster in a lab, under load and disturbances, and under attack |

#[macro_use(eprint, eprintln)]
extern crate midflight_terminal;

pub mod attack;
pub mod bench;
pub mod cache;
mod cells;
pub mod check;
mod engines;
mod lab_guard;
mod median;
mod memory;
mod processes;
pub mod replay;
mod report;
pub mod sim;
pub mod soak;
pub mod store;
