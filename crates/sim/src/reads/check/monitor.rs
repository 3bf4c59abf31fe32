//! Observes a run: writes the history of all operations, and sees whether two switches are active.

use super::rules::*;
use super::trace;
use crate::check::{Broken, Checked, Trace, holds};
use crate::reads::ReadsEvent;
use crate::{Happening, NodeId, Observer};
use midflight_endpoint::Nanos;
use midflight_reads::client::{Answer, Failure, Operation, OperationKey};
use midflight_reads::replica::Event;
use midflight_spec::reads::history::{Call, History, Outcome, Record};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The nodes of the trial's parties.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) switches: Vec<NodeId>,
    pub(super) replicas: Vec<NodeId>,
    pub(super) clients: Vec<NodeId>,
}

/// The results of a run so far.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) history: History,
    pub(super) broken: Option<(Nanos, Broken)>,
    pub(super) trace: Option<Trace>,
    /// The record of each operation that has not ended.
    open: HashMap<(NodeId, OperationKey), usize>,
    /// The session of the last request that passed a switch, and which switch that was.
    passed: Option<(u64, NodeId)>,
    places: Places,
}

impl Findings {
    pub(super) fn new(places: Places, traced: bool) -> Self {
        Self {
            history: History::default(),
            broken: None,
            trace: traced.then(|| trace::of(&places)),
            open: HashMap::new(),
            passed: None,
            places,
        }
    }

    /// Operations that have not ended, of processes that live.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// All data may be removed from now on, or not.
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

    fn event(&mut self, at: Nanos, node: NodeId, event: &ReadsEvent) -> Checked {
        match event {
            ReadsEvent::Begun { key, operation } => self.begun(at, node, *key, operation),
            ReadsEvent::Ended { key, outcome } => self.ended(at, node, *key, outcome),
            ReadsEvent::Passed { sid } => return self.passes(node, *sid),
            ReadsEvent::Replica(Event::Failed(why)) => holds!(R2, false, "a replica ends: {why}"),
            ReadsEvent::Unusable(why) => holds!(R2, false, "a replica cannot start: {why}"),
            ReadsEvent::Replica(_) | ReadsEvent::Verdict(_) => {}
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

    fn ended(&mut self, at: Nanos, node: NodeId, key: OperationKey, outcome: &Result<Answer, Failure>) {
        let Some(place) = self.open.remove(&(node, key)) else { return };
        let record = &mut self.history.operations[place];
        record.result = result(outcome);
        record.end_ns = record.result.is_some().then_some(at);
    }

    /// R4: once a request has passed in a session, none passes in an earlier one.
    fn passes(&mut self, node: NodeId, sid: u64) -> Checked {
        if let Some((last, switch)) = self.passed {
            let number = |node| self.places.switches.iter().position(|other| *other == node).unwrap_or(usize::MAX);
            holds!(
                R4,
                sid >= last,
                "switch {} passes a request in session {}.{} after switch {} has in session {}.{}",
                number(node),
                sid >> 32,
                sid as u32,
                number(switch),
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
        Operation::Incr { by, .. } => Call::Incr(*by),
    }
}

/// What a client saw; `None` where it does not know what became of its write.
fn result(outcome: &Result<Answer, Failure>) -> Option<Outcome> {
    Some(match outcome {
        Ok(Answer::Value(value)) => Outcome::Value(text(value)),
        Ok(Answer::NotFound) => Outcome::NotFound,
        Ok(Answer::Done) => Outcome::Done,
        Ok(Answer::Existed(existed)) => Outcome::Existed(*existed),
        Ok(Answer::Conflict { present }) => Outcome::Conflict(text(present)),
        Ok(Answer::Number(number)) => Outcome::Number(*number),
        Err(Failure::NotANumber) => Outcome::NotANumber,
        Err(failure) if failure.is_unknown() => return None,
        Err(_) => Outcome::Failed,
    })
}

/// A [`Findings`] shared by a world's observer and the code that runs the world.
pub(super) struct Monitor(pub(super) Rc<RefCell<Findings>>);

impl Observer for Monitor {
    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let findings = &mut *self.0.borrow_mut();
        if let Some(trace) = &mut findings.trace {
            trace::arrived(trace, at, from, to, datagram);
        }
    }

    fn handled(&mut self, _at: Nanos, _node: NodeId, _actor: &dyn crate::Actor, _datagram: Option<&[u8]>) {
        if let Some(trace) = &mut self.0.borrow_mut().trace {
            trace.turn_over();
        }
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let findings = &mut *self.0.borrow_mut();
        if let Happening::Crashed { node } = *happening {
            findings.open.retain(|(client, _), _| *client != node);
        }
        if let Some(trace) = &mut findings.trace {
            trace::happened(trace, at, happening);
        }
        if let Some((node, event)) = happening.of::<(NodeId, ReadsEvent)>() {
            findings.check(at, |findings| findings.event(at, *node, event));
        }
    }
}
