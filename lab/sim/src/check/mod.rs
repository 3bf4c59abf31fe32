//! Fault campaigns: random clusters under random faults, watched by a checker that sees everything. This module is
//! common to all programs; a program adds a [`Subject`].
//!
//! | where | what |
//! |---|---|
//! | `subject` | what a program provides: draw, build, its own faults, recovery; one run |
//! | `trial` | a trial as data: it can be stored, replayed and shrunk |
//! | `party` | the nodes of a trial |
//! | `fault` | faults that apply to every program |
//! | `trial_run` | a world with a trial's parties and checker; current faults |
//! | `attacker` | malformed, forged and replayed datagrams |
//! | `findings` | a checker's view, and the first violation |
//! | `rule` | a broken rule |
//! | `campaign` | many seeds |
//! | `shrink` | makes a failing trial smaller |
//! | `mutants` | bugs that a campaign must find |
//! | `network` | a trial's network |
//! | `disturbed` | nodes stopped by overlapping faults |
//! | `trace` | a run as text |

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
mod subject;
mod trace;
mod trial;
mod trial_run;

pub use attacker::{Craft, Recent, add_attacker};
pub use campaign::{Campaign, Totals};
pub use disturbed::{Disturbed, act};
pub use fault::{Common, Fault, FaultKind};
pub use findings::{CheckReport, Findings};
pub use mutants::{Caught, Mutant, are_planted};
pub use network::Net;
pub use party::{Party, Places, keep, keep_place};
pub(crate) use rule::holds;
pub use rule::{Broken, Checked, Rule};
pub use shrink::{Fails, Pass, attempt, drop_faults, drop_from, forget, shrink, shrink_while};
pub use subject::{FaultKindOf, Outcome, Subject, Violation, run, run_traced};
pub use trace::Trace;
pub(crate) use trial::kept_in_fields;
pub use trial::{BadTrial, Trial};
pub use trial_run::{PartyOf, TrialRun};
