//! Records the history of all operations, and checks that only one switch is active.

use super::rules::*;
use super::trace;
use super::trial::Party;
use crate::check::{self, CheckReport, Checked, Places, Recent, Trace, holds};
use crate::store::{StoreEvent, SwitchActor};
use crate::{Actor, Happening, NodeId};
use midflight_endpoint::Nanos;
use midflight_spec::store::history::{Call, History, Outcome, Record};
use midflight_store::client::{Answer, Operation, OperationKey, StoreError};
use midflight_store::replica::Event;
use midflight_wire::store::{Packet, parse};
use std::any::Any;
use std::collections::HashMap;

/// Walks the core's structures once in this many turns of switches; more would dominate a run's time.
const SOUND_EVERY: u32 = 32;

/// The results of a run so far.
#[derive(Debug)]
pub struct Findings {
    pub(super) history: History,
    report: CheckReport,
    open: HashMap<(NodeId, OperationKey), usize>,
    passed: Option<(u64, NodeId)>,
    places: Places<Party>,
    recent: Recent,
    /// Of all switches.
    turns: u32,
}

impl Findings {
    pub(super) fn new(places: Places<Party>, traced: bool, recent: Recent) -> Self {
        Self {
            history: History::default(),
            report: CheckReport::new(traced.then(|| Trace::new(places.names()))),
            open: HashMap::new(),
            passed: None,
            places,
            recent,
            turns: 0,
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// A FLUSHDB may take effect at any time from now on, or never.
    pub(super) fn flushed(&mut self, at: Nanos, keys: &[String]) {
        for key in keys {
            self.history.operations.push(Record {
                process: u64::MAX,
                call: Call::Delete,
                key: key.clone(),
                result: None,
                start_ns: at,
                end_ns: None,
            });
        }
    }

    fn event(&mut self, at: Nanos, node: NodeId, event: &StoreEvent) -> Checked {
        match event {
            StoreEvent::Begun { key, operation } => self.begun(at, node, *key, operation),
            StoreEvent::Ended { key, outcome } => self.ended(at, node, *key, outcome),
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
        self.open.insert((node, key), self.history.operations.len());
        self.history.operations.push(Record {
            process: node.index() as u64,
            call: call(operation),
            key: text(operation.key()),
            result: None,
            start_ns: at,
            end_ns: None,
        });
    }

    fn ended(&mut self, at: Nanos, node: NodeId, key: OperationKey, outcome: &Result<Answer, StoreError>) {
        let Some(place) = self.open.remove(&(node, key)) else { return };
        let record = &mut self.history.operations[place];
        record.result = result(outcome);
        record.end_ns = record.result.is_some().then_some(at);
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
        }
        happening.of().map_or(Ok(()), |(node, event)| self.event(at, *node, event))
    }
}
