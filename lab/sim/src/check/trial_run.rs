//! A world with a trial's parties, its checker, and the current faults.

use super::fault::{Common, FaultKind};
use super::findings::{Findings, Monitor};
use super::{Checked, Disturbed, Places, Trial, Violation, act};
use crate::{Action, NodeId, World};
use midflight_endpoint::{MS, Nanos};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;

/// The party of a trial.
pub type PartyOf<T> = <<T as Trial>::FaultKind as FaultKind>::Party;

/// A running trial.
pub struct TrialRun<T: Trial, F> {
    /// The trial.
    pub trial: Rc<T>,
    /// Its world.
    pub world: World,
    /// The parties' nodes.
    pub places: Places<PartyOf<T>>,
    /// Nodes stopped by faults.
    pub disturbed: Disturbed,
    findings: Rc<RefCell<F>>,
    lasting: Vec<usize>,
    befell: u64,
}

impl<T: Trial, F: Findings> TrialRun<T, F> {
    /// Shows all further events of `world` to `findings`.
    pub fn new(trial: &T, mut world: World, places: Places<PartyOf<T>>, findings: F) -> Self {
        let findings = Rc::new(RefCell::new(findings));
        world.set_observer(Box::new(Monitor(Rc::clone(&findings))));
        let (trial, disturbed) = (Rc::new(trial.clone()), Disturbed::default());
        Self { trial, world, places, disturbed, findings, lasting: Vec::new(), befell: 0 }
    }

    /// The findings so far. Release them before the world continues.
    pub fn findings(&self) -> RefMut<'_, F> {
        self.findings.borrow_mut()
    }

    /// Runs until this time.
    ///
    /// # Errors
    /// The first broken rule, at once.
    pub fn run_until(&mut self, at: Nanos) -> Checked {
        self.run_while(at, |_| true)
    }

    /// Runs until this time while `goes_on`.
    ///
    /// # Errors
    /// The first broken rule, at once.
    pub fn run_while(&mut self, at: Nanos, goes_on: impl Fn(&F) -> bool) -> Checked {
        let findings = Rc::clone(&self.findings);
        self.world.run(at, |_| {
            let findings = &mut *findings.borrow_mut();
            findings.report().violation.is_some() || !goes_on(findings)
        });
        self.violation().map_or(Ok(()), |violation| Err(violation.broken))
    }

    /// The first violation that the checker saw.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.findings().report().violation.clone()
    }

    /// Number of faults so far.
    #[must_use]
    pub const fn befell(&self) -> u64 {
        self.befell
    }

    /// The lines of a traced run.
    #[must_use]
    pub fn into_lines(self) -> Vec<String> {
        let trace = self.findings().report().trace.take();
        trace.map(super::Trace::into_lines).unwrap_or_default()
    }

    /// The node of a party.
    pub fn node(&self, party: PartyOf<T>) -> NodeId {
        self.places.node(party)
    }

    /// Executes an action before any other event.
    pub fn act(&mut self, action: Action) {
        act(&mut self.world, action);
    }

    /// Kills a process.
    pub fn crash(&mut self, node: NodeId) {
        self.disturbed.crash(&mut self.world, node);
    }

    /// Ends a fault that killed it.
    pub fn restart(&mut self, node: NodeId) {
        self.disturbed.restart(&mut self.world, node);
    }

    /// Current faults by start: their places in the trial, and their kinds.
    pub fn lasting(&self) -> impl DoubleEndedIterator<Item = (usize, &T::FaultKind)> {
        self.lasting.iter().map(|number| (*number, &self.trial.faults()[*number].what))
    }

    pub(super) fn begin(&mut self, number: usize) {
        self.befell += 1;
        self.lasting.push(number);
    }

    /// Ends a fault; `false` if it was not current.
    pub(super) fn end(&mut self, number: usize) -> bool {
        let before = self.lasting.len();
        self.lasting.retain(|lasting| *lasting != number);
        self.lasting.len() < before
    }

    pub(super) fn common_begins(&mut self, what: &Common<PartyOf<T>>) {
        match what {
            Common::Crash(party) => self.crash(self.node(*party)),
            Common::Pause(party) => self.disturbed.pause(&mut self.world, self.places.node(*party)),
            Common::Drift { party, ppm, ahead_ms } => {
                self.act(Action::Drift { node: self.node(*party), ppm: *ppm, offset: ahead_ms * MS });
            }
            Common::Partition { .. } => self.partition(),
            Common::Burst(_) => self.set_network(),
            // The attacker knows its times.
            Common::Garbage(_) | Common::Forged(_) | Common::Replayed(_) | Common::Guessed(_) => {}
        }
    }

    pub(super) fn common_ends(&mut self, what: &Common<PartyOf<T>>) {
        match what {
            Common::Crash(party) => self.restart(self.node(*party)),
            Common::Pause(party) => self.disturbed.resume(&mut self.world, self.places.node(*party)),
            Common::Drift { party, .. } => self.act(Action::Drift { node: self.node(*party), ppm: 0, offset: 0 }),
            Common::Partition { .. } => self.partition(),
            Common::Burst(_) => self.set_network(),
            Common::Garbage(_) | Common::Forged(_) | Common::Replayed(_) | Common::Guessed(_) => {}
        }
    }

    fn partition(&mut self) {
        self.act(Action::Heal);
        let nodes = |parties: &[PartyOf<T>]| parties.iter().map(|party| self.node(*party)).collect();
        let partition = |what: &T::FaultKind| match what.common()? {
            Common::Partition { from, to, both } => {
                Some(Action::Partition { from: nodes(from), to: nodes(to), both: *both })
            }
            _ => None,
        };
        let partitions: Vec<Action> = self.lasting().filter_map(|(_, what)| partition(what)).collect();
        partitions.into_iter().for_each(|action| self.act(action));
    }

    fn set_network(&mut self) {
        let burst = |what: &T::FaultKind| match what.common()? {
            Common::Burst(net) => Some(*net),
            _ => None,
        };
        let net = self.lasting().rev().find_map(|(_, what)| burst(what)).unwrap_or_else(|| self.trial.network());
        self.act(Action::Faults(net.faults()));
    }
}
