//! Passes the events of a run to the checks of the rules.

use super::bundles::Holders;
use super::callers::Callers;
use super::excuses::Excuses;
use super::follower::{Follower, Name, Seen};
use super::rules::*;
use super::trace;
use super::trial::Party;
use crate::check::{self, Broken, CheckReport, Checked, Places, Recent, Trace, holds};
use crate::tasks::TaskEvent;
use crate::tasks::switch::{self, Origin, Turn};
use crate::{Actor, Happening, NodeId};
use midflight_dataplane::program::Engine;
use midflight_endpoint::Nanos;
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::parse;
use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

/// Walks the core's structures once in this many turns of a switch; more would dominate a run's time.
const SOUND_EVERY: u32 = 32;

#[derive(Debug, Default)]
struct Switch {
    follower: Option<Follower>,
    turns: u32,
    names: HashMap<(u32, u32), Vec<Name>>,
}

/// The results of a run so far.
#[derive(Debug)]
pub struct Findings {
    pub(super) callers: Callers,
    pub(super) holders: Holders,
    report: CheckReport,
    pub(super) requeued: u64,
    switches: Vec<Switch>,
    places: Places<Party>,
    excuses: Excuses,
    epochs: BTreeSet<u32>,
    recent: Recent,
}

impl Findings {
    pub(super) fn new(places: Places<Party>, excuses: Excuses, traced: bool, recent: Recent) -> Self {
        Self {
            callers: Callers::default(),
            holders: Holders::default(),
            report: CheckReport::new(traced.then(|| Trace::new(places.names()))),
            requeued: 0,
            switches: places.of(Party::Switch).map(|_| Switch::default()).collect(),
            places,
            excuses,
            epochs: BTreeSet::new(),
            recent,
        }
    }

    pub(super) fn open(&self) -> usize {
        self.switches.iter().filter_map(|switch| switch.follower.as_ref()).map(Follower::open).sum()
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
        // A returned task may be assigned again at once, with the same attempt.
        for (jid, tid, attempt) in seen.given_back {
            self.callers.given_back(jid, tid, attempt)?;
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
        self.holders.crashed(node);
    }

    fn executor_at(&self, address: SocketAddr) -> Option<usize> {
        match self.places.party(NodeId::owner(address)?)? {
            Party::Executor(number) => Some(number),
            _ => None,
        }
    }

    fn switch_number(&self, node: NodeId) -> Option<usize> {
        match self.places.party(node)? {
            Party::Switch(number) => Some(number),
            _ => None,
        }
    }
}

fn sound(turn: &Turn<'_>) -> Checked {
    turn.tasks.check().map_err(|what| Broken { rule: SOUND, what })
}

fn last_turn<'a>(actor: &'a dyn Actor, datagram: Option<&'a [u8]>) -> Option<(&'a Origin, Turn<'a>)> {
    let switch = (actor as &dyn Any).downcast_ref::<switch::Switch>()?;
    Some((switch.origin(), switch.last_turn(datagram)))
}

impl check::Findings for Findings {
    fn report(&mut self) -> &mut CheckReport {
        &mut self.report
    }

    fn describe(datagram: &[u8]) -> String {
        trace::describe(datagram)
    }

    fn describe_event(trace: &Trace, what: &dyn Any) -> Option<String> {
        what.downcast_ref().map(|what| trace::event(trace, what))
    }

    fn arrived(&mut self, from: NodeId, to: NodeId, datagram: &[u8]) -> Checked {
        self.recent.note(from, to, datagram);
        let bytes = datagram.len();
        holds!(T15, bytes <= PACKET_MAX || parse(datagram).is_err(), "{bytes} bytes do not fit every path");
        Ok(())
    }

    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) -> Checked {
        let Some((origin, turn)) = last_turn(actor, datagram) else { return Ok(()) };
        let Some(number) = self.switch_number(node) else { return Ok(()) };
        self.turn(at, number, origin, &turn)
    }

    fn said(&self, actor: &dyn Actor, datagram: Option<&[u8]>) -> Vec<String> {
        last_turn(actor, datagram).map(|(_, turn)| trace::ticked(&turn)).unwrap_or_default()
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) -> Checked {
        if let Happening::Crashed { node } = *happening {
            self.crashed(at, node);
        }
        let Some(event) = happening.of::<TaskEvent>() else { return Ok(()) };
        self.callers.happened(at, event)?;
        self.holders.happened(event)
    }
}
