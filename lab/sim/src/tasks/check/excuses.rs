//! Which faults excuse which violations. This is known before the run, as faults are data.
//!
//! | violation | excused by |
//! |---|---|
//! | a lease expires though its executor lives (T10) | during a fault and two and a half leases after it: the executor's or the switch's pause, crash or clock jump, a partition with one of them, a burst, another switch at the switch's address; for two and a half leases: the executor's move; always: a network that loses datagrams; and, if the trial has a fault that is not harmless, another switch that the executor may have turned to |
//! | a task is queued a second time at one switch while it is open there (T2) | a switch that died: the next one does not know a duplicate from before that death; more than one switch, in the list or at one address; the task's own time-out |
//! | attempts, resubmissions, given-up completions, failovers (the totals of a trial without faults) | any fault, or a network that loses datagrams |
//! | order, exclusion, idempotence, bounds at a switch (T1 to T8, T11, T12) | nothing |
//! | a run that continues though its task is cancelled (T17) | any fault; a network that loses datagrams excuses two seconds |
//! | a run that is stopped though its task was not cancelled (T17) | any fault: its client may have been silent for `client_idle` |
//! | any violation, by an attacker's garbage, forged, replayed and guessed packets (T13), or floods (T14) | nothing: a trial with such faults alone counts as one without faults |
//! | any violation, by a path with an MTU of 1,280 or more (T15) | nothing: such a trial counts as one without faults |
//! | a lease that expires, by a client that dies or moves | nothing |
//! | a task does not end once, with its own result (T9) | only the death of the caller |

use super::trial::{FaultKind, Party, Trial};
use crate::check::{Common, Trial as _};
use midflight_endpoint::{MS, Nanos};

#[derive(Debug)]
struct Disturbance {
    party: Option<Party>,
    from: Nanos,
    until: Nanos,
}

#[derive(Debug)]
pub(super) struct Excuses {
    disturbances: Vec<Disturbance>,
    /// The trial has only harmless faults, and its network loses nothing.
    pub(super) calm: bool,
    /// The trial has only harmless faults, but its network loses datagrams.
    pub(super) only_loses: bool,
    /// Datagrams may be lost at any time, or go to another switch.
    strays: bool,
    /// A duplicate may reach a switch that does not know its original.
    pub(super) forgets: bool,
}

impl Excuses {
    pub(super) fn of(trial: &Trial) -> Self {
        let taken_over = trial.taken_over();
        let lease = trial.switches.iter().map(|switch| switch.lease_ms).max().unwrap_or(0) * MS;
        let mut disturbances = Vec::new();
        for fault in &trial.faults {
            let (from, end) = trial.times(fault);
            let mut disturb = |party, from, until: Nanos| {
                disturbances.push(Disturbance { party, from, until: until + lease * 5 / 2 });
            };
            match &fault.what {
                FaultKind::Common(Common::Crash(party) | Common::Pause(party) | Common::Drift { party, .. }) => {
                    disturb(Some(*party), from, end);
                }
                FaultKind::Common(Common::Partition { from: ones, to, .. }) => {
                    ones.iter().chain(to).for_each(|party| disturb(Some(*party), from, end));
                }
                FaultKind::Common(Common::Burst(_)) => disturb(None, from, end),
                // It renews its leases until its end, which looks like a death to the switch.
                FaultKind::Drain(executor) => disturb(Some(Party::Executor(*executor)), end, end),
                FaultKind::Takeover(switch) => {
                    let other = taken_over.iter().position(|taken| taken == switch).unwrap_or(0);
                    disturb(Some(Party::Switch(*switch)), from, end);
                    disturb(Some(Party::Switch(trial.switches.len() + other)), from, end);
                }
                FaultKind::Move { party, returns } => {
                    disturb(Some(*party), from, from);
                    if *returns {
                        disturb(Some(*party), end, end);
                    }
                }
                FaultKind::Death(_) => {}
                harmless => debug_assert!(harmless.is_harmless()),
            }
        }
        let loses = trial.network.loss > 0.0;
        let kills = |what: &FaultKind| {
            matches!(what, FaultKind::Common(Common::Crash(Party::Switch(_))) | FaultKind::Takeover(_))
        };
        let forgets = trial.switches.len() > 1 || trial.faults.iter().any(|fault| kills(&fault.what));
        let harmless = trial.faults.iter().all(|fault| fault.what.is_harmless());
        let calm = !loses && harmless;
        let strays = loses || (trial.switches.len() > 1 && !harmless);
        Self { disturbances, calm, only_loses: loses && harmless, strays, forgets }
    }

    pub(super) fn lease(&self, now: Nanos, switch: usize, executor: usize) -> bool {
        let concerns = |party: Option<Party>| {
            party.is_none_or(|party| party == Party::Switch(switch) || party == Party::Executor(executor))
        };
        let lasts = |d: &Disturbance| d.from <= now && now <= d.until && concerns(d.party);
        self.strays || self.disturbances.iter().any(lasts)
    }
}
