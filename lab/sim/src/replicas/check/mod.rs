//! The fault campaign's subject: a replicated store behind operators, its faults, and the rules N1 to N9.
//!
//! | where | what |
//! |---|---|
//! | `trial` | a trial, as data |
//! | `draw` | a trial from a seed |
//! | `smaller` | steps that make a trial smaller |
//! | `run` | a world from a trial, and its faults |
//! | `network` | the network as real controllers know it |
//! | `script` | who sets the rules of operators and selectors, in the place of a controller |
//! | `heal` | after the last fault all must heal, and all counters must add up |
//! | `excuses` | which faults excuse what |
//! | `rules` | the names of the rules |
//! | `monitor` | follows each read, and checks what can be seen at once |
//! | `control` | follows real controllers, and checks what operators have of them |
//! | `guess` | what an attacker knows of the packets |
//! | `spy` | an attacker that sees requests |
//! | `trace` | the events, in words |
//! | `mutants` | bugs that the campaign must find |

mod control;
mod draw;
mod excuses;
mod guess;
mod heal;
mod monitor;
mod mutants;
mod network;
mod rules;
mod run;
mod script;
mod smaller;
mod spy;
mod trace;
mod trial;

pub use control::{Detections, take_detections};
pub use run::ReplicasSubject;
pub use trial::{ClientSpec, Fault, Party, ServerSpec, Trial, What};
