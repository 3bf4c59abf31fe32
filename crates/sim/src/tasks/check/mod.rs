//! The fault campaign's subject: a tasks cluster, what befalls it, and the rules T1 to T16.
//!
//! | where | what |
//! |---|---|
//! | `trial` | what is tried, as data |
//! | `draw` | a trial from a seed |
//! | `smaller` | what makes a trial smaller |
//! | `run` | a world from a trial; after the last fault all must heal |
//! | `rules` | what may be broken |
//! | `follower` | what a switch must do, T1 to T8 and T10 to T14: follows the reference model step by step |
//! | `callers` | what callers must see: T9 |
//! | `excuses` | which fault excuses what |
//! | `bound` | how soon after the faults all must have ended: T16 |
//! | `monitor` | shows a run to all of them |
//! | `rules_observer` | the follower, for tests of other worlds |
//! | `attacker` | sends what nobody should |
//! | `greedy` | keeps to the protocol, and wants all there is |
//! | `trace` | what happens, in words |
//! | `mutants` | bugs that the campaign must find |

mod attacker;
mod bound;
mod callers;
mod draw;
mod excuses;
mod follower;
mod greedy;
mod monitor;
mod mutants;
mod rules;
mod rules_observer;
mod run;
mod smaller;
mod trace;
mod trial;

pub use rules_observer::RulesObserver;
pub use run::TasksSubject;
pub use trial::{Cancel, ClientSpec, ExecutorSpec, Fault, Job, Party, SwitchSpec, TaskSpec, Trial, What};
