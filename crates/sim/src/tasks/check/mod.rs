//! The fault campaign: clusters drawn from seeds, disturbed in every way, under the eyes of a checker that sees all.
//!
//! | where | what |
//! |---|---|
//! | `trial` | what is tried, as data: it can be kept, replayed and made smaller |
//! | `draw` | a trial from a seed |
//! | `run` | a world from a trial; after the last fault all must heal |
//! | `rules` | what may be broken |
//! | `ledger` | what a switch must do: T1 to T8, T10 to T14 |
//! | `callers` | what callers must see: T9 |
//! | `excuses` | which fault excuses what |
//! | `bound` | how soon after the faults all must have ended: T16 |
//! | `monitor` | shows a run to all of them |
//! | `watch` | the ledger, for tests of other worlds |
//! | `vandal` | sends what nobody should |
//! | `stranger` | keeps to the protocol, and wants all there is |
//! | `trace` | a run for people |
//! | `campaign` | many seeds |
//! | `shrink` | the same failure, smaller |
//! | [`mutants`] | bugs that it must find |

mod bound;
mod callers;
mod campaign;
mod draw;
mod excuses;
mod ledger;
mod monitor;
pub mod mutants;

mod rules;
mod run;
mod shrink;
mod stranger;
mod trace;
mod trial;
mod vandal;
mod watch;

pub use campaign::{Campaign, Totals};
pub use rules::{Broken, Rule};
pub use run::{Outcome, Violation, run, run_traced};
pub use shrink::shrink;
pub use trial::{
    BadTrial, Cancel, ClientSpec, ExecutorSpec, Fault, Job, Net, Party, SwitchSpec, TaskSpec, Trial, What,
};
pub use watch::Watch;
