//! Records the history of all operations, and checks that only one switch is active.

use super::rules::*;
use super::trace;
use super::trial::Party;
use crate::check::{self, CheckReport, Checked, Places, Recent, Trace, holds};
use crate::store::client::PAIR;
use crate::store::{Load, StoreEvent, SwitchActor};
use crate::{Actor, Happening, NodeId};
use midflight_endpoint::{MS, Nanos};
use midflight_spec::store::history::{Call, History, Outcome, Record};
use midflight_store::client::{
    Answer, Change, Condition, Cursor, Expiry, Operation, OperationKey, Page, StoreError, Update, Updated,
};
use midflight_store::replica::Event;
use midflight_wire::store::{Packet, parse, scan_order};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Walks the core's structures once in this many turns of switches; more would dominate a run's time.
const SOUND_EVERY: u32 = 32;

/// The results of a run so far.
#[derive(Debug)]
pub struct Findings {
    pub(super) history: History,
    report: CheckReport,
    load: Rc<Load>,
    open: HashMap<(NodeId, OperationKey), usize>,
    scans: HashMap<(NodeId, OperationKey), (Nanos, Cursor)>,
    /// Transactions whose condition never holds.
    impossible: HashSet<(NodeId, OperationKey)>,
    passed: Option<(u64, NodeId)>,
    places: Places<Party>,
    recent: Recent,
    /// Of all switches.
    turns: u32,
}

impl Findings {
    pub(super) fn new(load: Rc<Load>, places: Places<Party>, traced: bool, recent: Recent) -> Self {
        Self {
            history: History::default(),
            report: CheckReport::new(traced.then(|| Trace::new(places.names()))),
            load,
            open: HashMap::new(),
            scans: HashMap::new(),
            impossible: HashSet::new(),
            passed: None,
            places,
            recent,
            turns: 0,
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.len() + self.scans.len() + self.impossible.len()
    }

    /// A FLUSHDB may take effect at any time from now on, or never.
    pub(super) fn flushed(&mut self, at: Nanos) {
        for key in self.load.keys.iter().map(String::as_str).chain([PAIR[0]]) {
            self.history.operations.push(Record {
                process: u64::MAX,
                call: Call::Delete,
                key: key.into(),
                result: None,
                start_ns: at,
                end_ns: None,
            });
        }
    }

    fn event(&mut self, at: Nanos, node: NodeId, event: &StoreEvent) -> Checked {
        match event {
            StoreEvent::Begun { key, operation } => self.begun(at, node, *key, operation),
            StoreEvent::Ended { key, outcome } => return self.ended(at, node, *key, outcome),
            StoreEvent::Passed { sid } => return self.passes(node, *sid),
            // After an operator's mistake.
            StoreEvent::Replica(Event::NotFounded(_)) => {}
            StoreEvent::Replica(Event::Failed(why)) => holds!(R2, false, "a replica ends: {why}"),
            StoreEvent::Unusable(why) => holds!(R2, false, "a replica cannot start: {why}"),
            StoreEvent::Obeyed => holds!(R7, false, "a write takes place that had to be refused"),
            StoreEvent::Replica(_) | StoreEvent::Verdict(_) => {}
        }
        Ok(())
    }

    fn begun(&mut self, at: Nanos, node: NodeId, key: OperationKey, operation: &Operation) {
        if let Operation::Scan { from } = operation {
            self.scans.insert((node, key), (at, *from));
            return;
        }
        if matches!(operation, Operation::Transact { steps } if steps.iter().any(|step| step.required)) {
            self.impossible.insert((node, key));
            return;
        }
        self.open.insert((node, key), self.history.operations.len());
        let record = Record {
            process: node.index() as u64,
            call: call(operation),
            key: text(operation.key()),
            result: None,
            start_ns: at,
            end_ns: None,
        };
        if let Some((value, ms)) = expiring(operation) {
            // Clocks of replicas drift by less than a tenth.
            let start_ns = at + ms * MS * 9 / 10;
            let expires = Record { process: u64::MAX, call: Call::Expire(text(value)), start_ns, ..record.clone() };
            self.history.operations.push(record);
            self.history.operations.push(expires);
        } else {
            self.history.operations.push(record);
        }
    }

    fn ended(&mut self, at: Nanos, node: NodeId, key: OperationKey, outcome: &Result<Answer, StoreError>) -> Checked {
        if self.impossible.remove(&(node, key)) {
            let was_refused = matches!(outcome, Err(_) | Ok(Answer::Transacted(None)));
            holds!(R1, was_refused, "a transaction takes place against its condition: {outcome:?}");
            return Ok(());
        }
        if let Some((begun, from)) = self.scans.remove(&(node, key)) {
            if let Ok(Answer::Page(page)) = outcome {
                self.scanned(begun, at, node, from, page);
            }
            return Ok(());
        }
        if let Ok(Answer::Transacted(steps)) = outcome {
            let numbers = steps.iter().flatten().map(|step| step.as_ref().ok().map(|updated| updated.number));
            let numbers: HashSet<_> = numbers.collect();
            holds!(R1, numbers.len() == 1, "a transaction adds to two equal numbers: {outcome:?}");
        }
        let Some(place) = self.open.remove(&(node, key)) else { return Ok(()) };
        let record = &mut self.history.operations[place];
        record.result = result(outcome);
        record.end_ns = record.result.is_some().then_some(at);
        Ok(())
    }

    /// A page shows for each key of its part of the order whether it exists.
    fn scanned(&mut self, begun: Nanos, at: Nanos, node: NodeId, from: Cursor, page: &Page) {
        let end = page.next.map_or(u64::MAX, |next| next.order());
        for key in self.load.keys.iter().filter(|key| (from.order()..end).contains(&scan_order(key.as_bytes()))) {
            let is_there = page.keys.iter().any(|found| found == key.as_bytes());
            self.history.operations.push(Record {
                process: node.index() as u64,
                call: Call::Exists,
                key: key.clone(),
                result: Some(Outcome::Existed(is_there)),
                start_ns: begun,
                end_ns: Some(at),
            });
        }
    }

    /// R7: no client learns the epoch, with which it could answer as a replica.
    fn keeps_secrets(&self, to: NodeId, datagram: &[u8]) -> Checked {
        let is_client = matches!(self.places.party(to), Some(Party::Client(_)));
        if let (true, Ok(Packet::ReadReply(reply, ..) | Packet::WriteReply(reply, ..))) = (is_client, parse(datagram)) {
            holds!(R7, reply.header.epoch.get() == 0, "{:?} learns the epoch of its set", self.places.party(to));
        }
        Ok(())
    }

    /// R4: once a request has passed in a session, none passes in an earlier one.
    fn passes(&mut self, node: NodeId, sid: u64) -> Checked {
        if let Some((last, switch)) = self.passed {
            holds!(
                R4,
                sid >= last,
                "{:?} passes a request in session {}.{} after {:?} has in session {}.{}",
                self.places.party(node),
                sid >> 32,
                sid as u32,
                self.places.party(switch),
                last >> 32,
                last as u32
            );
        }
        self.passed = Some((sid, node));
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn call(operation: &Operation) -> Call {
    match operation {
        Operation::Get { .. } => Call::Get,
        Operation::Exists { .. } => Call::Exists,
        Operation::Put { value, .. } => Call::Put(text(value)),
        Operation::Delete { .. } => Call::Delete,
        Operation::Cas { expected, new, .. } => Call::Cas(text(expected), text(new)),
        Operation::Create { value, .. } => Call::Create(text(value)),
        Operation::Incr { by, .. } => Call::Incr(*by),
        Operation::Scan { .. } => unreachable!("its keys are recorded one by one"),
        Operation::Transact { steps } => match steps[0].update.change {
            Change::Add(by) => Call::Incr(by),
            ref other => unreachable!("no client draws {other:?}"),
        },
        Operation::Piece { .. } | Operation::Stage { .. } => unreachable!("no worker begins it"),
        Operation::Update { update: Update { condition, change, .. }, .. } => match (condition, change) {
            (Condition::Equals(expected), Change::Set(value)) => Call::Cas(text(expected), text(value)),
            (Condition::Absent, Change::Set(value)) => Call::Create(text(value)),
            (Condition::Always, Change::Set(value)) => Call::Put(text(value)),
            other => unreachable!("no client draws {other:?}"),
        },
    }
}

/// The value that it lets expire, and after how many milliseconds at the earliest.
fn expiring(operation: &Operation) -> Option<(&[u8], u64)> {
    match operation {
        Operation::Update { update: Update { change: Change::Set(value), expiry, .. }, .. } => match expiry {
            Expiry::After(ms) => Some((value, *ms)),
            // Of the value before.
            Expiry::Keep => Some((value, 0)),
            Expiry::Never => None,
        },
        Operation::Cas { new, .. } => Some((new, 0)),
        _ => None,
    }
}

/// What a client saw; `None` if it does not know the outcome of its write.
fn result(outcome: &Result<Answer, StoreError>) -> Option<Outcome> {
    Some(match outcome {
        Ok(Answer::Value(value)) => Outcome::Value(text(value)),
        Ok(Answer::NotFound) => Outcome::NotFound,
        Ok(Answer::Done) => Outcome::Done,
        Ok(Answer::Existed(existed)) => Outcome::Existed(*existed),
        Ok(Answer::Conflict { present }) => Outcome::Conflict(text(present)),
        Ok(Answer::Number(number)) => Outcome::Number(*number),
        Ok(Answer::Updated(Updated { done: true, .. })) => Outcome::Done,
        Ok(Answer::Updated(Updated { value: Some(present), .. })) => Outcome::Conflict(text(present)),
        Ok(Answer::Updated(_)) => Outcome::NotFound,
        Ok(Answer::Page(_)) => unreachable!("its keys are recorded one by one"),
        Ok(Answer::Transacted(steps)) => match steps.as_ref().and_then(|steps| steps.first()) {
            Some(Ok(updated)) => Outcome::Number(updated.number),
            _ => Outcome::Failed,
        },
        Ok(Answer::Piece(_)) => unreachable!("a worker gets the whole value"),
        Err(StoreError::NotANumber) => Outcome::NotANumber,
        Err(failure) if failure.is_unknown() => return None,
        Err(_) => Outcome::Failed,
    })
}

impl check::Findings for Findings {
    fn report(&mut self) -> &mut CheckReport {
        &mut self.report
    }

    fn describe(datagram: &[u8]) -> String {
        trace::describe(datagram)
    }

    fn describe_event(trace: &Trace, what: &dyn Any) -> Option<String> {
        let (node, event) = what.downcast_ref::<(NodeId, StoreEvent)>()?;
        trace::event(trace, *node, event)
    }

    fn arrived(&mut self, from: NodeId, to: NodeId, datagram: &[u8]) -> Checked {
        self.recent.note(from, to, datagram);
        self.keeps_secrets(to, datagram)
    }

    fn handled(&mut self, _at: Nanos, node: NodeId, actor: &dyn Actor, _datagram: Option<&[u8]>) -> Checked {
        let Some(switch) = (actor as &dyn Any).downcast_ref::<SwitchActor>() else { return Ok(()) };
        self.turns += 1;
        if self.turns.is_multiple_of(SOUND_EVERY) {
            let sound = switch.check();
            holds!(SOUND, sound.is_ok(), "{:?}: {sound:?}", self.places.party(node));
        }
        Ok(())
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) -> Checked {
        if let Happening::Crashed { node } = *happening {
            self.open.retain(|(client, _), _| *client != node);
            self.scans.retain(|(client, _), _| *client != node);
        }
        happening.of().map_or(Ok(()), |(node, event)| self.event(at, *node, event))
    }
}
