//! Prints an engine's datagram: every field that can differ, with the transcript's names.

use super::super::words::{bits, mask};
use super::context::Context;
use super::names::{Names, Token};
use midflight_dataplane::Stats;
use midflight_wire::tasks::{
    APPENDED, Assignment, BY_REFERENCE, Known, LEVELS, Packet, Reason, Registered, RunName, SubmitAck, Wait, parse,
};
use midflight_wire::{Header, PACKET_MAX, VERSION};
use std::fmt::Write;
use std::net::SocketAddr;
use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U64;

/// One line, and one more per assignment.
pub(super) fn datagram(to: SocketAddr, bytes: &[u8], context: &Context<'_>) -> Vec<String> {
    let mut lines = vec![format!("-> {} ", context.names.at(to))];
    match parse(bytes) {
        Err(reject) => lines[0] += &format!("MALFORMED ({reject}): {bytes:02x?}"),
        Ok(Packet::Version(version)) if version.version == VERSION => lines[0] += "VERSION",
        Ok(packet) => {
            lines[0] += &said(&packet, to, context);
            lines[0] += foreign(bytes, context.epoch);
            if bytes.len() > PACKET_MAX {
                lines[0] += &format!(", WHICH IS {} BYTES LONG", bytes.len());
            }
            if let Packet::Assign(_, assignments, mut appendix) = packet {
                let line = |a: &Assignment| assignment(a, appendix.next_padded(&a.task), to, context.names);
                lines.extend(assignments.iter().map(line));
            }
        }
    }
    lines
}

/// Without assignments.
fn said(packet: &Packet<'_>, to: SocketAddr, context: &Context<'_>) -> String {
    let names = context.names;
    match packet {
        Packet::SubmitAck(ack) => submit_ack(ack, to, names),
        Packet::Registered(registered, _) => registered_line(registered, to, names),
        Packet::Reset(reset, []) => {
            let known = if reset.header.sequence.get() == 0 { "" } else { ", known" };
            format!("RESET all{known}{}", answers(reset.counter, context))
        }
        Packet::Reset(reset, waits) => {
            format!("RESET {}{}", wait_list(waits, to, names), answers(reset.counter, context))
        }
        Packet::Released(released, slots) => {
            format!("RELEASED {}{}", slot_list(slots, to, names), answers(released.counter, context))
        }
        Packet::Assign(assign, ..) => format!("ASSIGN{}", number(assign.header.sequence.get())),
        Packet::ProbeAck(ack) => {
            let (sequence, count) = (ack.header.sequence, ack.header.count);
            let (known, seen) = (known(ack.known), seen_as(ack.seen.into(), to));
            format!("PROBE_ACK {sequence}: {known}{seen}, open {} of {count}, room {}", bits(ack.open.get()), ack.room)
        }
        Packet::CancelAck(ack, holders) => {
            let (sequence, why) = (ack.header.sequence, because(ack.reason));
            let holders: String = holders
                .iter()
                .map(|holder| format!(", {} is with {}", holder.index, names.at(holder.executor.into())))
                .collect();
            format!("CANCEL_ACK {sequence}: taken out {}{holders}{why}", bits(ack.taken_out.get()))
        }
        Packet::Stop(_, runs) => stop(runs, names),
        Packet::NoOp(no_op, waits) => {
            format!("NO_OP{} {}", number(no_op.header.sequence.get()), wait_list(waits, to, names))
        }
        Packet::Cookie(cookie) => {
            let identity = cookie.identity.get();
            let wrong = if context.is_present(cookie.cookie.get(), identity, to) { "" } else { ", WHICH IS WRONG" };
            format!("COOKIE {}{}{wrong}", cookie.header.sequence, whose(identity, to, names))
        }
        _ => format!("AN ANSWER THAT NO SWITCH GIVES: {packet:?}"),
    }
}

/// Empty for waits that are not prefetches.
fn number(number: u32) -> String {
    if number == 0 { String::new() } else { format!(" {number}:") }
}

pub(super) fn kind(bytes: &[u8]) -> &'static str {
    match parse(bytes) {
        Ok(Packet::Version(_)) => "VERSION",
        Ok(Packet::Cookie(_)) => "COOKIE",
        _ => "MORE THAN THAT",
    }
}

/// Marks an answer with a wrong epoch, or with a key or tag.
fn foreign(bytes: &[u8], epoch: u32) -> &'static str {
    match Header::ref_from_prefix(bytes) {
        Ok((header, _)) if header.epoch.get() == epoch && is_untagged(header) => "",
        _ => ", WRONG HEADER",
    }
}

fn is_untagged(header: &Header) -> bool {
    header.key == 0 && header.tag.get() == 0 && header.reserved.get() == 0
}

/// Marks an answer that does not repeat the counter of the packet.
fn answers(counter: U64, context: &Context<'_>) -> String {
    if context.counter == Some(counter.get()) { String::new() } else { format!(", TO COUNTER {counter}") }
}

fn submit_ack(ack: &SubmitAck, to: SocketAddr, names: &Names) -> String {
    let whose = whose(ack.client.get(), to, names);
    let mut line = format!("SUBMIT_ACK {}{whose}: taken {}", ack.header.sequence, bits(ack.taken.get()));
    if ack.not_taken.get() != 0 {
        line += &format!(", not taken {}{}", bits(ack.not_taken.get()), because(ack.reason));
    }
    let every = u32::MAX >> (32 - u32::from(ack.header.count));
    if ack.taken.get() ^ ack.not_taken.get() != every {
        line += ", WHICH IS NOT ALL";
    }
    format!("{line}, room {}", ack.room)
}

fn registered_line(registered: &Registered, to: SocketAddr, names: &Names) -> String {
    let first = registered.first.get();
    let locals = match u32::from(registered.header.count) {
        0 => "no slots".to_owned(),
        1 => format!("slot {first}"),
        count => format!("slots {first}-{}", first + count - 1),
    };
    let whose = whose(registered.executor.get(), to, names);
    let (sequence, lease, why) = (registered.header.sequence, registered.lease_ms, because(registered.reason));
    let seen = seen_as(registered.seen.into(), to);
    let polls = match registered.poll_us.get() {
        0 => String::new(),
        every => format!(", polls every {every}us"),
    };
    format!("REGISTERED {sequence}{whose}: {locals}{why}, lease {lease}ms{polls}{seen}")
}

fn known(known: u8) -> String {
    match Known::from_number(known) {
        Some(Known::No) => "unknown".to_owned(),
        Some(Known::Yes) => "known".to_owned(),
        Some(Known::NoRecord) => "no record".to_owned(),
        None => format!("KNOWN {known}"),
    }
}

/// The owner; empty for the receiver.
fn whose(identity: u64, to: SocketAddr, names: &Names) -> String {
    match names.by_identity(identity) {
        Some(endpoint) if endpoint.address == to => String::new(),
        Some(endpoint) => format!(" of {}", endpoint.name),
        None => format!(" of identity {identity}"),
    }
}

fn seen_as(seen: SocketAddr, to: SocketAddr) -> String {
    if seen == to { String::new() } else { format!(", seen as {seen}") }
}

fn because(reason: u8) -> String {
    match Reason::from_number(reason) {
        Some(Reason::None) => String::new(),
        Some(Reason::Full) => " (full)".to_owned(),
        Some(Reason::TooOld) => " (too old)".to_owned(),
        Some(Reason::ClientsFull) => " (clients full)".to_owned(),
        Some(Reason::SlotsFull) => " (slots full)".to_owned(),
        Some(Reason::Share) => " (share)".to_owned(),
        None => format!(" (REASON {reason})"),
    }
}

fn wait_list(waits: &[Wait], to: SocketAddr, names: &Names) -> String {
    let call = |wait: &Wait| names.call(to, wait.slot.get(), wait.generation.get());
    let waits: Vec<_> = waits.iter().map(|wait| format!("{} wait {}", call(wait), wait.sequence)).collect();
    waits.join(", ")
}

fn slot_list(slots: &[midflight_wire::tasks::SlotName], to: SocketAddr, names: &Names) -> String {
    let called: Vec<_> = slots.iter().map(|slot| names.call(to, slot.slot.get(), slot.generation.get())).collect();
    called.join(", ")
}

fn assignment(a: &Assignment, appended: &[u8], to: SocketAddr, names: &Names) -> String {
    let slot = names.call(to, a.slot.get(), a.generation.get());
    let address = SocketAddr::from(a.address);
    let owner = names.by_token(a.token.get(), a.submission.get());
    let who = owner.map_or_else(|| names.at(address), |(client, _)| client.name.clone());
    let mut line = format!("     {slot} wait {}: task {} ({who} {}.{}", a.sequence, a.task.tid, a.submission, a.index);
    if owner.is_some_and(|(client, _)| client.address != address) {
        let _ = write!(line, " at {address}");
    }
    match owner {
        Some((_, Token::Whole)) => {}
        Some((_, Token::LowerHalf)) => line += ", half of the token",
        None => {
            let _ = write!(line, ", token {}", a.token);
        }
    }
    if a.uid.get() == u32::MAX {
        let _ = write!(line, ", no uid, jid {}", a.jid);
    } else if owner.is_none_or(|(client, _)| client.identity != u64::from(a.uid.get())) || a.jid.get() != 1 {
        let _ = write!(line, ", uid {}, jid {}", a.uid, a.jid);
    }
    let _ = write!(line, "), attempt {}", a.task.attempt);
    if a.task.priority != 1 {
        let _ = write!(line, ", level {}", a.task.priority);
    }
    if a.task.resources != 0 {
        let _ = write!(line, ", needs {}", mask(a.task.resources));
    }
    if a.task.function.get() != 0 {
        let _ = write!(line, ", function {}", a.task.function);
    }
    match a.task.argument_length {
        0 => {}
        BY_REFERENCE => line += ", argument by reference",
        APPENDED => {
            let is_right = appended == super::command::appended(&a.task) && a.task.argument[2..] == [0; 14];
            let wrong = if is_right { "" } else { ", WHICH IS WRONG" };
            let _ = write!(line, ", {} bytes appended{wrong}", a.task.appended_length());
        }
        bytes => {
            let _ = write!(line, ", argument of {bytes} bytes");
        }
    }
    let _ = write!(line, ", waited {}us", a.waited_us);
    line
}

fn stop(runs: &[RunName], names: &Names) -> String {
    let of = |run: &RunName| match names.by_stop_proof(run) {
        Some(client) => format!("{} {}.{}", client.name, run.submission, run.index),
        None => format!("{}.{}, NOT PROVEN", run.submission, run.index),
    };
    format!("STOP {}", runs.iter().map(of).collect::<Vec<_>>().join(", "))
}

pub(super) fn stats(stats: &Stats) -> Vec<String> {
    let named = |pairs: &[(&str, u64)]| {
        let words: Vec<_> = pairs.iter().filter(|(_, n)| *n != 0).map(|(name, n)| format!("{name} {n}")).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    };
    let counters = named(&[
        ("submitted", stats.tasks.submitted),
        ("assigned", stats.tasks.assigned),
        ("completed", stats.tasks.completed),
        ("expired", stats.tasks.expired),
        ("returned", stats.tasks.returned),
        ("cancelled", stats.tasks.cancelled),
        ("dropped", stats.tasks.dropped),
        ("purged", stats.tasks.purged),
        ("stops", stats.tasks.stops),
        ("at place", stats.tasks.at_place),
        ("out of patience", stats.tasks.out_of_patience),
        ("gaps", stats.gaps),
    ]);
    let mut gauges: Vec<(String, u64)> = (1..=LEVELS)
        .map(|level| (format!("queued at level {level}:"), stats.queued[usize::from(level) - 1].into()))
        .collect();
    let now = [("parked", stats.parked), ("busy", stats.busy), ("slots", stats.slots), ("clients", stats.clients)];
    for (name, value) in now.into_iter().chain([
        ("waiting for a place", stats.for_place),
        ("places", stats.places),
        ("argument blocks", stats.argument_blocks),
    ]) {
        gauges.push((name.to_owned(), value.into()));
    }
    let gauges: Vec<_> = gauges.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let waits: Vec<_> = (0..stats.wait_us.len())
        .filter(|&bucket| stats.wait_us[bucket] != 0)
        .map(|bucket| format!("{} below {}us", stats.wait_us[bucket], 1u64 << bucket))
        .collect();
    let waits = if waits.is_empty() { "none".to_owned() } else { waits.join(", ") };
    vec![
        format!("counted: {counters}"),
        format!("now: {}", named(&gauges)),
        format!("first waits: {waits}; {}us in all", stats.wait_sum_us),
    ]
}
