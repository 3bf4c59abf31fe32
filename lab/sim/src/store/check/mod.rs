//! The fault campaign's subject: a store, its faults, and the rules R1 to R7.
//!
//! | where | what |
//! |---|---|
//! | `trial` | a trial, as data |
//! | `draw`, `scenes`, `changes` | a trial from a seed; combined faults; membership changes |
//! | `smaller` | ways to shrink a trial |
//! | `run` | a world from a trial, and its faults |
//! | `recovery` | recovery after the last fault, and linearizability |
//! | `operator` | the intended membership, and the requests to the leader for it |
//! | `rules` | the names of the rules |
//! | `monitor` | records the history, and checks what is visible at once |
//! | `guess`, `rogue` | an attacker's knowledge of packets; a client that breaks the rules |
//! | `trace` | the events, in words |
//! | `mutants` | bugs that the campaign must find |

mod changes;
mod draw;
mod guess;
mod monitor;
mod mutants;
mod operator;
mod recovery;
mod rogue;
mod rules;
mod run;
mod scenes;
mod smaller;
mod trace;
mod trial;

pub use run::StoreSubject;
pub use trial::{ClientSpec, Fault, FaultKind, Kind, Mode, Party, SetSpec, Trial};
