//! Prints what a switch sends and counts.

use super::super::vocabulary::Moment;
use super::super::words::mask;
use super::names::Names;
use midflight_dataplane::Cookies;
use midflight_dataplane::store::{SetStats, Stats, StoreConfig};
use midflight_wire::store::{
    FLAG_ANY_REPLICA, FLAG_DIRECT, FLAG_EXISTS, FLAG_LEADER_ONLY, FLAG_OFFERS_DIRECT, NO_SLOT, Packet, Request, State,
    Status, parse,
};
use std::net::SocketAddr;
use std::time::Duration;

pub(super) fn kind(sent: &[u8]) -> &'static str {
    match parse(sent) {
        Ok(Packet::Read(..)) => "READ",
        Ok(Packet::ReadReply(..)) => "READ_REPLY",
        Ok(Packet::Write(..)) => "WRITE",
        Ok(Packet::WriteReply(..)) => "WRITE_REPLY",
        Ok(Packet::Hello(_)) => "HELLO",
        Ok(Packet::Heartbeat(..)) => "HEARTBEAT",
        Ok(Packet::EndSession(_)) => "END_SESSION",
        Ok(Packet::State(_)) => "STATE",
        Ok(Packet::Version(_)) => "VERSION",
        Err(_) => "NOTHING THAT CAN BE READ",
    }
}

pub(super) fn datagram(to: SocketAddr, sent: &[u8], names: &Names, moment: &Moment<'_, StoreConfig>) -> String {
    let head = format!("-> {} {}", names.at(to), kind(sent));
    let clauses = match parse(sent) {
        Ok(Packet::Read(request, key)) => {
            let mut clauses = request_clauses(request, names);
            clauses.insert(0, text("key", key));
            clauses
        }
        Ok(Packet::Write(request, _, key, value)) => {
            let mut clauses = request_clauses(request, names);
            clauses.splice(0..0, [text("key", key), text("value", value)]);
            clauses
        }
        Ok(Packet::ReadReply(reply, status, _, value) | Packet::WriteReply(reply, status, value)) => {
            reply_clauses(to, reply, status, value, moment)
        }
        Ok(Packet::State(state)) => state_clauses(state),
        _ => return head,
    };
    let number = match parse(sent) {
        Ok(Packet::State(_)) => String::new(),
        _ => request_number(sent),
    };
    format!("{head}{number}: {}", clauses.join(", "))
}

fn request_number(sent: &[u8]) -> String {
    match parse(sent) {
        Ok(
            Packet::Read(request, _)
            | Packet::Write(request, ..)
            | Packet::ReadReply(request, ..)
            | Packet::WriteReply(request, ..),
        ) => format!(" {}", request.request),
        _ => String::new(),
    }
}

fn text(name: &str, bytes: &[u8]) -> String {
    format!("{name} {}", bytes.escape_ascii())
}

fn session(sid: u64) -> String {
    match sid {
        0 => "none".to_owned(),
        _ => format!("{}.{}", sid >> 32, sid & u64::from(u32::MAX)),
    }
}

/// Omits what is always the same.
fn request_clauses(request: &Request, names: &Names) -> Vec<String> {
    let (incarnation, _) = names.state(request.set.get());
    let right_epoch = (incarnation as u32).max(1);
    let mut clauses = vec![
        format!("of {}", names.at(request.client.into())),
        format!("session {}", session(request.sid.get())),
        format!("seq {}", request.seq),
        format!("index {}", request.index),
    ];
    clauses.extend((request.flags & FLAG_LEADER_ONLY != 0).then(|| "leader only".to_owned()));
    clauses.extend((request.flags & FLAG_ANY_REPLICA != 0).then(|| "any replica".to_owned()));
    clauses.extend((request.flags & FLAG_EXISTS != 0).then(|| "exists".to_owned()));
    clauses.extend((request.flags & FLAG_DIRECT != 0).then(|| "direct".to_owned()));
    clauses.extend((request.header.epoch.get() != right_epoch).then(|| format!("EPOCH {}", request.header.epoch)));
    let slot = names.replicas().nth(request.slot.into());
    clauses.extend(slot.is_none().then(|| format!("SLOT {}", request.slot)));
    clauses.extend((request.status != 0).then(|| format!("STATUS {}", request.status)));
    clauses.extend((request.replicas != 0).then(|| format!("HAS {}", mask(request.replicas))));
    clauses
}

/// A client must not learn the fields for replicas.
fn reply_clauses(
    to: SocketAddr,
    reply: &Request,
    status: Status,
    value: &[u8],
    moment: &Moment<'_, StoreConfig>,
) -> Vec<String> {
    let mut clauses = vec![status_name(status)];
    let by = if reply.slot == NO_SLOT { "of the switch".to_owned() } else { format!("of slot {}", reply.slot) };
    clauses.push(by);
    clauses.extend((!value.is_empty()).then(|| text("value", value)));
    let secrets = [reply.sid.get(), reply.seq.get(), reply.index.get(), reply.header.epoch.get().into()];
    clauses.extend((secrets != [0; 4]).then(|| format!("SECRETS {secrets:?}")));
    clauses.extend((reply.flags & FLAG_OFFERS_DIRECT != 0).then(|| "offers direct".to_owned()));
    let others = reply.flags & !(FLAG_EXISTS | FLAG_OFFERS_DIRECT);
    clauses.extend((others != 0).then(|| format!("FLAGS {others}")));
    let cookie = reply.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
    let right = match status {
        Status::Cookie => Cookies::new(moment.secret, moment.config.cookie_ns).give(moment.now_ns, 0, to),
        _ => 0,
    };
    clauses.extend((cookie != right).then(|| format!("COOKIE {cookie:x}")));
    clauses
}

/// `NotLeader` is `not_leader`.
pub(super) fn status_name(status: Status) -> String {
    let mut name = String::new();
    for c in format!("{status:?}").chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

fn state_clauses(state: &State) -> Vec<String> {
    let counts = |counts: &[zerocopy::byteorder::network_endian::U32]| {
        let used = counts.iter().rposition(|count| count.get() != 0).map_or(0, |last| last + 1);
        counts[..used].iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let mut clauses = vec![
        format!("incarnation {}", state.incarnation),
        format!("session {}", session(state.sid.get())),
        format!("lease {:?}", Duration::from_nanos(state.lease.get())),
        format!("seq {}", state.seq),
    ];
    clauses.extend((state.unserved != 0).then(|| format!("unserved {}", state.unserved)));
    clauses.extend((state.ended.get() != 0).then(|| format!("ended {}", session(state.ended.get()))));
    for (name, numbers) in [("sent", counts(&state.sent)), ("answered", counts(&state.answered))] {
        clauses.extend((!numbers.is_empty()).then(|| format!("{name} {numbers}")));
    }
    clauses
}

pub(super) fn stats(stats: &Stats) -> Vec<String> {
    stats.present().map(|set| format!("set {}: {}", set.set, counts(set))).collect()
}

fn counts(set: &SetStats) -> String {
    let all = [
        ("to followers", set.to_followers),
        ("to leader", set.to_leader),
        ("leader only", set.leader_only),
        ("direct", set.direct),
        ("turned back", set.turned_back),
        ("outdated", set.outdated),
        ("writes", set.writes),
        ("closed", set.closed),
        ("unstable", set.unstable.into()),
        ("sessions", set.sessions),
        ("unserved", set.unserved),
    ];
    let some: Vec<String> =
        all.iter().filter(|(_, count)| *count != 0).map(|(name, count)| format!("{name} {count}")).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}
