//! Observes a run, and passes its events to the checks of the rules. The first broken rule is kept.

use super::attacker::Recent;
use super::callers::Callers;
use super::excuses::Excuses;
use super::follower::{Follower, Name, Seen};
use super::rules::*;
use super::trace;
use crate::check::{Broken, Checked, Trace, holds};
use crate::tasks::TaskEvent;
use crate::tasks::switch::{self, Origin, Turn};
use crate::{Actor, Happening, NodeId, Observer};
use midflight_dataplane::program::Engine;
use midflight_endpoint::Nanos;
use midflight_wire::{PACKET_MAX, parse};
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

/// The core's structures are walked once in this many turns of a switch; more often would take most of a run's time.
const SOUND_EVERY: u32 = 32;

/// The nodes of the trial's parties.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) switches: Vec<NodeId>,
    pub(super) executors: Vec<NodeId>,
    pub(super) clients: Vec<NodeId>,
}

/// The process that a switch's node runs.
#[derive(Debug, Default)]
struct Switch {
    follower: Option<Follower>,
    turns: u32,
    /// Under which names each task is, or was, with this process.
    names: HashMap<(u32, u32), Vec<Name>>,
}

/// The results of a run so far.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) callers: Callers,
    pub(super) broken: Option<(Nanos, Broken)>,
    pub(super) trace: Option<Trace>,
    /// Leases that ran out, and tasks that were given back.
    pub(super) requeued: u64,
    switches: Vec<Switch>,
    places: Places,
    excuses: Excuses,
    epochs: BTreeSet<u32>,
    recent: Recent,
}

impl Findings {
    pub(super) fn new(places: Places, excuses: Excuses, traced: bool, recent: Recent) -> Self {
        Self {
            callers: Callers::default(),
            broken: None,
            trace: traced.then(|| trace::of(&places)),
            requeued: 0,
            switches: places.switches.iter().map(|_| Switch::default()).collect(),
            places,
            excuses,
            epochs: BTreeSet::new(),
            recent,
        }
    }

    /// Tasks that switches which are up hold.
    pub(super) fn open(&self) -> usize {
        self.switches.iter().filter_map(|switch| switch.follower.as_ref()).map(Follower::open).sum()
    }

    fn check(&mut self, at: Nanos, what: impl FnOnce(&mut Self) -> Checked) {
        if self.broken.is_none()
            && let Err(broken) = what(self)
        {
            if let Some(trace) = &mut self.trace {
                trace.broken(at, &broken);
            }
            self.broken = Some((at, broken));
        }
    }

    fn turn(&mut self, at: Nanos, number: usize, origin: &Origin, turn: &Turn<'_>) -> Checked {
        let switch = &mut self.switches[number];
        if switch.follower.is_none() {
            let epoch = origin.epoch;
            holds!(T9, self.epochs.insert(epoch), "a switch begins with epoch {epoch}, which another had before");
        }
        let follower = switch.follower.get_or_insert_with(|| Follower::new(origin));
        let seen = follower.turn(turn)?;
        switch.turns += 1;
        if switch.turns.is_multiple_of(SOUND_EVERY) {
            sound(turn)?;
        }
        self.seen(at, number, seen)
    }

    /// Checks a switch's turn against the faults and the callers' view.
    fn seen(&mut self, at: Nanos, number: usize, seen: Seen) -> Checked {
        for (jid, tid, name) in seen.accepted {
            let switch = &mut self.switches[number];
            let follower = switch.follower.as_ref();
            let names = switch.names.entry((jid, tid)).or_default();
            let open = names.iter().find(|name| follower.is_some_and(|follower| follower.is_open(**name)));
            let excused = open.is_none() || self.excuses.forgets || self.callers.has_timeout(jid, tid);
            holds!(T2, excused, "task {tid} of job {jid} is queued as {name:?} while it is open as {open:?}");
            names.push(name);
        }
        for (jid, tid, attempt) in seen.assigned {
            self.callers.assigned(jid, tid, attempt)?;
        }
        for (silent, what) in [(&seen.expired, "the lease runs out of"), (&seen.unparked, "silence takes out")] {
            for holder in silent {
                let executor = self.executor_at(*holder);
                let excused = executor.is_none_or(|executor| self.excuses.lease(at, number, executor));
                holds!(T10, excused, "{what} a slot at {holder}, whom nothing befell");
            }
        }
        self.requeued += seen.expired.len() as u64 + seen.returned;
        Ok(())
    }

    /// A dead switch loses its state, and a dead client its tasks.
    fn crashed(&mut self, at: Nanos, node: NodeId) {
        if let Some(number) = self.switch_number(node) {
            let switch = &mut self.switches[number];
            (switch.follower, switch.names) = (None, HashMap::new());
        }
        self.callers.crashed(at, node);
    }

    fn executor_at(&self, address: SocketAddr) -> Option<usize> {
        let owner = NodeId::owner(address);
        self.places.executors.iter().position(|node| Some(*node) == owner)
    }

    fn switch_number(&self, node: NodeId) -> Option<usize> {
        self.places.switches.iter().position(|switch| *switch == node)
    }
}

/// The core's own check.
fn sound(turn: &Turn<'_>) -> Checked {
    turn.tasks.check().map_err(|what| Broken { rule: SOUND, what })
}

/// A [`Findings`] shared by a world's observer and the code that runs the world.
pub(super) struct Monitor(pub(super) Rc<RefCell<Findings>>);

impl Observer for Monitor {
    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let Some(switch) = (actor as &dyn Any).downcast_ref::<switch::Switch>() else { return };
        let turn = switch.last_turn(datagram);
        let findings = &mut *self.0.borrow_mut();
        let Some(number) = findings.switch_number(node) else { return };
        findings.check(at, |findings| findings.turn(at, number, switch.origin(), &turn));
        if let Some(trace) = &mut findings.trace {
            trace::turn(trace, at, node, &turn);
        }
    }

    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let findings = &mut *self.0.borrow_mut();
        findings.recent.note(from, to, datagram);
        findings.check(at, |_| {
            let bytes = datagram.len();
            holds!(T15, bytes <= PACKET_MAX || parse(datagram).is_err(), "{bytes} bytes do not fit every path");
            Ok(())
        });
        if let Some(trace) = &mut findings.trace {
            trace::arrived(trace, at, from, to, datagram);
        }
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let findings = &mut *self.0.borrow_mut();
        if let Happening::Crashed { node } = *happening {
            findings.crashed(at, node);
        }
        if let Some(trace) = &mut findings.trace {
            trace::happened(trace, at, happening);
        }
        if let Some(event) = happening.of::<TaskEvent>() {
            findings.check(at, |findings| findings.callers.happened(at, event));
        }
    }
}
