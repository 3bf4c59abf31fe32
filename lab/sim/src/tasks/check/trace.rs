//! A cluster's events in words: the nodes, and the fields of each packet.

use crate::check::Trace;
use crate::tasks::TaskEvent;
use crate::tasks::switch::Turn;
use midflight_wire::Header;
use midflight_wire::tasks::{Assignment, Packet, SlotName, TaskName, Wait, parse};
use std::fmt::Write;
use std::net::SocketAddr;

/// The datagrams of a switch's tick. Answers to packets are traced when they arrive.
pub(super) fn ticked(turn: &Turn<'_>) -> Vec<String> {
    let gave = turn.gave.iter().filter(|_| turn.took.is_none());
    gave.map(|(to, datagram)| format!("ticks and sends to {to}: {}", describe(datagram))).collect()
}

pub(super) fn event(trace: &Trace, event: &TaskEvent) -> String {
    match event {
        TaskEvent::Submitted { client, jid, keys } => {
            format!("{} submits job {jid}: keys {keys:?}", trace.name(*client))
        }
        TaskEvent::Started { executor, run, jid, tid, attempt, bundles, .. } => {
            let (name, slot, run) = (trace.name(*executor), run.slot, run.run);
            let with: String =
                bundles.iter().map(|(bit, number)| format!(", with bundle {number} of resource {bit}")).collect();
            format!("{name} starts task {tid} of job {jid}, attempt {attempt}, in slot {slot} run {run}{with}")
        }
        TaskEvent::Ended { executor, run, stopped } => {
            let why = if *stopped { ", stopped" } else { "" };
            format!("{} ends slot {} run {}{why}", trace.name(*executor), run.slot, run.run)
        }
        TaskEvent::Reported { client, key, end } => {
            format!("{} reports the end of {}: {end:?}", trace.name(*client), key.0)
        }
        TaskEvent::CancelAsked { client, keys, stop } => {
            let which = if *stop { "" } else { ", those that run not" };
            format!("{} is to cancel {} tasks{which}", trace.name(*client), keys.len())
        }
        TaskEvent::Waits { executor, run, waits } => {
            let what = if *waits { "waits for others" } else { "goes on" };
            format!("{}: {run:?} {what}", trace.name(*executor))
        }
        TaskEvent::Drained { executor } => format!("{} has drained", trace.name(*executor)),
    }
}

pub(super) fn describe(datagram: &[u8]) -> String {
    let packet = match parse(datagram) {
        Ok(packet) => packet,
        Err(reject) => return format!("{} bytes ({reject})", datagram.len()),
    };
    let mut text = String::new();
    let _ = match packet {
        Packet::Submit(fixed, tasks, _, prefers) => {
            let tids: Vec<u32> = tasks.iter().map(|task| task.tid.get()).collect();
            let prefers = prefers.map_or(String::new(), |it| format!(" prefer {} for {} ms", it.place, it.patience_ms));
            let (client, jid) = (fixed.client, fixed.jid);
            write!(text, "SUBMIT {} client {client:x} job {jid} tids {tids:?}{prefers}", tail(&fixed.header))
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
        Packet::Assign(fixed, given, _) => {
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
        Packet::CancelAck(ack, holders) => {
            let held: String =
                holders.iter().map(|h| format!(" {} at {}", h.index, SocketAddr::from(h.executor))).collect();
            write!(text, "CANCEL_ACK {} taken out {:#x}{held}", tail(&ack.header), ack.taken_out)
        }
        Packet::Stop(fixed, names) => {
            let names: Vec<_> = names.iter().map(|name| format!("{}.{}", name.submission, name.index)).collect();
            write!(text, "STOP {} {}", tail(&fixed.header), names.join(" "))
        }
        Packet::Cookie(fixed) => write!(text, "COOKIE {} of {:x}", tail(&fixed.header), fixed.identity),
        Packet::Version(fixed) => write!(text, "VERSION {}", fixed.version),
        Packet::NoOp(fixed, asked) => write!(text, "NO_OP {} slot:sequence {}", tail(&fixed.header), waits(asked)),
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
