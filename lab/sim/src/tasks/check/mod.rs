//! The fault campaign's subject: a tasks cluster, its faults, and the rules T1 to T19.
//!
//! | where | what |
//! |---|---|
//! | `trial` | a trial, as data; its faults |
//! | `draw` | a trial from a seed |
//! | `smaller` | ways to shrink a trial |
//! | `run` | a world from a trial, its own faults; recovery after the last one |
//! | `rules` | the names of the rules |
//! | `follower` | checks switches, T1 to T8, T10 to T14 and T19, step by step against the reference model |
//! | `callers` | checks the callers' view: T9 |
//! | `bundles` | bundles of counted resources: T18 |
//! | `excuses` | which fault excuses which violation |
//! | `bound` | the limit of recovery: T16 |
//! | `monitor` | passes the events of a run to all of them |
//! | `guess` | an attacker's knowledge of packets |
//! | `greedy` | follows the protocol, and requests all the room |
//! | `trace` | the events, in words |
//! | `mutants` | bugs that the campaign must find |

mod bound;
mod bundles;
mod callers;
mod draw;
mod excuses;
mod follower;
mod greedy;
mod guess;
mod monitor;
mod mutants;
mod rules;
mod run;
mod smaller;
mod trace;
mod trial;

pub use run::TasksSubject;
pub use trial::{Cancel, ClientSpec, ExecutorSpec, Fault, FaultKind, Job, Party, SwitchSpec, TaskSpec, Trial};
