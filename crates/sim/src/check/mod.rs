//! Fault campaigns: clusters drawn from seeds, disturbed in every way, under the eyes of a checker that sees all. What is the
//! same for every program; what a program adds is a [`Subject`].
//!
//! | where | what |
//! |---|---|
//! | `subject` | what a program gives: draw, build, judge, heal; one run of it |
//! | `trial` | what is tried, as data: it can be kept, replayed and made smaller |
//! | `rule` | a rule that is broken, and how |
//! | `campaign` | many seeds |
//! | `shrink` | the same failure, smaller |
//! | `mutants` | bugs that a campaign must find |
//! | `network` | how bad a trial's network is |
//! | `disturbed` | nodes that several faults have stopped at once |
//! | `trace` | a run for people |

mod campaign;
mod disturbed;
mod mutants;
mod network;
mod rule;
mod shrink;
mod subject;
mod trace;
mod trial;

pub use campaign::{Campaign, Totals};
pub use disturbed::{Disturbed, act};
pub use mutants::{Caught, Mutant, are_planted};
pub use network::Net;
pub(crate) use rule::holds;
pub use rule::{Broken, Checked, Rule};
pub use shrink::{Fails, Pass, attempt, drop_from, shrink, shrink_while};
pub use subject::{Outcome, Subject, Violation, run, run_traced};
pub use trace::Trace;
pub use trial::{BadTrial, Trial};
