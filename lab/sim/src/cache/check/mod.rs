//! The fault campaign's subject: a replicated cache behind operators, its faults, and the rules N1 to N9.
//!
//! | where | what |
//! |---|---|
//! | `trial` | a trial, as data |
//! | `draw` | a trial from a seed |
//! | `smaller` | ways to shrink a trial |
//! | `run` | a world from a trial, and its faults |
//! | `network` | the network as real controllers know it |
//! | `script` | sets the rules of operators and selectors instead of a controller |
//! | `recovery` | recovery after the last fault, and totals |
//! | `excuses` | which faults excuse what |
//! | `rules` | the names of the rules |
//! | `monitor` | follows each read, and checks what is visible at once |
//! | `control` | checks real controllers by their operators |
//! | `guess` | an attacker's knowledge of packets |
//! | `spy` | an attacker that sees requests |
//! | `trace` | the events, in words |
//! | `mutants` | bugs that the campaign must find |

mod control;
mod draw;
mod excuses;
mod guess;
mod monitor;
mod mutants;
mod network;
mod recovery;
mod rules;
mod run;
mod script;
mod smaller;
mod spy;
mod trace;
mod trial;

pub use control::{Detections, take_detections};
pub use run::CacheSubject;
pub use trial::{ClientSpec, Fault, FaultKind, Party, ServerSpec, Trial};
