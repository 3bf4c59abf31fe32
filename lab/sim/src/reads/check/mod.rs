//! The fault campaign's subject: a store, its faults, and the rules R1 to R7.
//!
//! | where | what |
//! |---|---|
//! | `trial` | a trial, as data |
//! | `draw`, `scenes`, `changes` | a trial from a seed; faults that meet; changes of the members among them |
//! | `smaller` | steps that make a trial smaller |
//! | `run` | a world from a trial, and its faults |
//! | `heal` | after the last fault all must heal, and the history must be linearizable |
//! | `operator` | who is to be a member, and what is asked of the leader until it is so |
//! | `rules` | the names of the rules |
//! | `monitor` | writes the history, and checks what can be seen at once |
//! | `guess`, `rogue` | what an attacker knows of the packets; a client that keeps no rule |
//! | `trace` | the events, in words |
//! | `mutants` | bugs that the campaign must find |

mod changes;
mod draw;
mod guess;
mod heal;
mod monitor;
mod mutants;
mod operator;
mod rogue;
mod rules;
mod run;
mod scenes;
mod smaller;
mod trace;
mod trial;

pub use run::ReadsSubject;
pub use trial::{ClientSpec, Fault, Kind, Mode, Party, SetSpec, Trial, What};
