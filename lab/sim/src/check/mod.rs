//! Fault campaigns: clusters drawn from seeds, disturbed in every way, under the eyes of a checker that sees all. What is the
//! same for every program; what a program adds is a [`Subject`].
//!
//! | where | what |
//! |---|---|
//! | `subject` | what a program gives: draw, build, its own faults, heal; one run of it |
//! | `trial` | what is tried, as data: it can be kept, replayed and made smaller |
//! | `party` | the nodes of a trial |
//! | `fault` | the faults that befall every program |
//! | `stage` | a world with a trial's parties and checker; the faults that last |
//! | `attacker` | sends malformed, forged and copied datagrams |
//! | `findings` | what a checker sees, and the first rule that was broken |
//! | `rule` | a rule that is broken, and how |
//! | `campaign` | many seeds |
//! | `shrink` | the same failure, smaller |
//! | `mutants` | bugs that a campaign must find |
//! | `network` | how bad a trial's network is |
//! | `disturbed` | nodes that several faults have stopped at once |
//! | `trace` | a run for people |

mod attacker;
mod campaign;
mod disturbed;
mod fault;
mod findings;
mod mutants;
mod network;
mod party;
mod rule;
mod shrink;
mod stage;
mod subject;
mod trace;
mod trial;

pub use attacker::{Craft, Recent, add_attacker};
pub use campaign::{Campaign, Totals};
pub use disturbed::{Disturbed, act};
pub use fault::{Common, Fault, What};
pub use findings::{Findings, Judgement};
pub use mutants::{Caught, Mutant, are_planted};
pub use network::Net;
pub use party::{Party, Places, keep, keep_place};
pub(crate) use rule::holds;
pub use rule::{Broken, Checked, Rule};
pub use shrink::{Fails, Pass, attempt, drop_faults, drop_from, forget, shrink, shrink_while};
pub use stage::{PartyOf, Stage};
pub use subject::{Outcome, Subject, Violation, WhatOf, run, run_traced};
pub use trace::Trace;
pub(crate) use trial::kept_in_fields;
pub use trial::{BadTrial, Trial};
