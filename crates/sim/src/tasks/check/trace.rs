//! A run for people: time, who, and what each packet says.

use super::monitor::Places;
use super::rules::Broken;
use crate::tasks::TaskEvent;
use crate::tasks::switch::Turn;
use crate::{Happening, NodeId};
use midflight_endpoint::Nanos;
use midflight_wire::{Assignment, Header, Packet, SlotName, TaskName, Wait, parse};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

/// The last so many lines are kept.
const LINES: usize = 20_000;

/// What happened, line by line.
#[derive(Debug)]
pub(super) struct Trace {
    names: HashMap<NodeId, String>,
    lines: VecDeque<String>,
    /// Lines are added until a rule is broken.
    ended: bool,
}

impl Trace {
    pub(super) fn new(places: &Places) -> Self {
        let mut names = HashMap::new();
        let kinds = [("switch", &places.switches), ("executor", &places.executors), ("client", &places.clients)];
        for (kind, nodes) in kinds {
            names.extend(nodes.iter().enumerate().map(|(n, node)| (*node, format!("{kind} {n}"))));
        }
        Self { names, lines: VecDeque::new(), ended: false }
    }

    /// All lines that were kept, in order.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }

    fn name(&self, node: NodeId) -> &str {
        self.names.get(&node).map_or("stranger", String::as_str)
    }

    fn line(&mut self, at: Nanos, text: &str) {
        if self.ended {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>12.3} ms  {text}", at as f64 / 1e6));
    }

    pub(super) fn broken(&mut self, at: Nanos, broken: &Broken) {
        self.line(at, &format!("BROKEN {broken}"));
    }

    pub(super) fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let text = format!("{} > {}: {}", self.name(from), self.name(to), describe(datagram));
        self.line(at, &text);
    }

    /// What a switch's tick sends; what it answers to a packet is seen when it arrives.
    pub(super) fn gave(&mut self, at: Nanos, switch: NodeId, turn: &Turn<'_>) {
        self.ended |= self.lines.back().is_some_and(|line| line.contains("BROKEN"));
        for (to, datagram) in turn.gave.iter().filter(|_| turn.took.is_none()) {
            let text = format!("{} ticks and sends to {to}: {}", self.name(switch), describe(datagram));
            self.line(at, &text);
        }
    }

    pub(super) fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let text = match happening {
            Happening::Crashed { node } => format!("{} dies", self.name(*node)),
            Happening::Restarted { node } => format!("{} starts", self.name(*node)),
            Happening::Paused { node } => format!("{} stands still", self.name(*node)),
            Happening::Resumed { node } => format!("{} goes on", self.name(*node)),
            Happening::Moved { node, to } => format!("{} is at {to} now", self.name(*node)),
            Happening::Partitioned => "a partition begins".to_owned(),
            Happening::Healed => "partitions end".to_owned(),
            Happening::Program(_) => match happening.of() {
                Some(event) => self.task_event(event),
                None => return,
            },
        };
        self.line(at, &text);
    }

    fn task_event(&self, event: &TaskEvent) -> String {
        match event {
            TaskEvent::Submitted { client, jid, keys } => {
                format!("{} submits job {jid}: keys {keys:?}", self.name(*client))
            }
            TaskEvent::Started { executor, run, jid, tid, attempt, .. } => {
                let (name, slot, run) = (self.name(*executor), run.slot, run.run);
                format!("{name} starts task {tid} of job {jid}, attempt {attempt}, in slot {slot} run {run}")
            }
            TaskEvent::Ended { executor, run } => {
                format!("{} ends slot {} run {}", self.name(*executor), run.slot, run.run)
            }
            TaskEvent::Reported { client, key, end } => {
                format!("{} reports the end of {}: {end:?}", self.name(*client), key.0)
            }
            TaskEvent::CancelAsked { client, keys } => {
                format!("{} is to cancel {} tasks", self.name(*client), keys.len())
            }
            TaskEvent::Drained { executor } => format!("{} has drained", self.name(*executor)),
        }
    }
}

/// A packet and its fields on one line.
pub(super) fn describe(datagram: &[u8]) -> String {
    let packet = match parse(datagram) {
        Ok(packet) => packet,
        Err(reject) => return format!("{} bytes ({reject})", datagram.len()),
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match packet {
        Packet::Submit(fixed, tasks) => {
            let tids: Vec<u32> = tasks.iter().map(|task| task.tid.get()).collect();
            write!(text, "SUBMIT {} client {:x} job {} tids {tids:?}", tail(&fixed.header), fixed.client, fixed.jid)
        }
        Packet::SubmitAck(ack) => {
            let (taken, not) = (ack.taken, ack.not_taken);
            write!(text, "SUBMIT_ACK {} taken {taken:#x} not {not:#x} reason {}", tail(&ack.header), ack.reason)
        }
        Packet::Register(fixed) => {
            let (first, mask) = (fixed.first, fixed.resources);
            let count = fixed.header.count;
            write!(
                text,
                "REGISTER {} {count} from {first} mask {mask:#04x} of {:x}",
                tail(&fixed.header),
                fixed.executor
            )
        }
        Packet::Registered(fixed, names) => {
            let (first, lease) = (fixed.first, fixed.lease_ms);
            write!(text, "REGISTERED {} from {first} lease {lease} ms: {}", tail(&fixed.header), slots(names))
        }
        Packet::Reset(fixed, names) => {
            write!(text, "RESET {} of {} {}", tail(&fixed.header), fixed.counter, waits(names))
        }
        Packet::Retrieve(fixed, waits) => {
            let (mask, waits) = (fixed.resources, self::waits(waits));
            write!(text, "RETRIEVE {} no {} mask {mask:#04x} slot:sequence {waits}", tail(&fixed.header), fixed.counter)
        }
        Packet::Assign(fixed, given) => {
            let given: Vec<_> = given.iter().map(assignment).collect();
            write!(text, "ASSIGN {} {}", tail(&fixed.header), given.join(", "))
        }
        Packet::Keepalive(fixed, names) => {
            write!(text, "KEEPALIVE {} no {} {}", tail(&fixed.header), fixed.counter, waits(names))
        }
        Packet::Release(fixed, leaves) => {
            let leaves: Vec<_> = leaves.iter().map(|l| format!("{}:{} done {}", l.slot, l.sequence, l.done)).collect();
            write!(text, "RELEASE {} {}", tail(&fixed.header), leaves.join(", "))
        }
        Packet::Released(fixed, names) => write!(text, "RELEASED {} {}", tail(&fixed.header), slots(names)),
        Packet::Complete(fixed, completions) => {
            let ends = completions.map(|(c, _)| format!("{}.{} attempt {}", c.submission, c.index, c.attempt));
            write!(text, "COMPLETE {} {}", tail(&fixed.header), ends.collect::<Vec<_>>().join(", "))
        }
        Packet::CompleteAck(fixed, completed) => {
            let names: Vec<_> = completed.iter().map(|c| format!("{}.{}", c.submission, c.index)).collect();
            write!(text, "COMPLETE_ACK {} {}", tail(&fixed.header), names.join(" "))
        }
        Packet::Probe(fixed, names) => write!(text, "PROBE {} {}", tail(&fixed.header), tasks(names)),
        Packet::ProbeAck(ack) => {
            write!(text, "PROBE_ACK {} open {:#x} known {}", tail(&ack.header), ack.open, ack.known)
        }
        Packet::Cancel(fixed, names) => write!(text, "CANCEL {} {}", tail(&fixed.header), tasks(names)),
        Packet::CancelAck(ack) => write!(text, "CANCEL_ACK {} taken out {:#x}", tail(&ack.header), ack.taken_out),
        Packet::Cookie(fixed) => write!(text, "COOKIE {} of {:x}", tail(&fixed.header), fixed.identity),
        Packet::Version(fixed) => write!(text, "VERSION {}", fixed.version),
        Packet::NoOp(fixed, told) => write!(text, "NO_OP {} slot:sequence {}", tail(&fixed.header), waits(told)),
    };
    text
}

fn tail(header: &Header) -> String {
    format!("#{} epoch {}", header.sequence, header.epoch)
}

fn waits(waits: &[Wait]) -> String {
    waits.iter().map(|wait| format!("{}:{}", wait.slot, wait.sequence)).collect::<Vec<_>>().join(" ")
}

fn slots(names: &[SlotName]) -> String {
    names.iter().map(|name| name.slot.to_string()).collect::<Vec<_>>().join(" ")
}

fn tasks(names: &[TaskName]) -> String {
    names.iter().map(|name| format!("{}.{}", name.submission, name.index)).collect::<Vec<_>>().join(" ")
}

fn assignment(a: &Assignment) -> String {
    format!(
        "{}.{} (job {} tid {} attempt {}) to slot {}:{}",
        a.submission, a.index, a.jid, a.task.tid, a.task.attempt, a.slot, a.sequence
    )
}
