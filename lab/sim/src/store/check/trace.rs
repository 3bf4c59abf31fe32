//! A store's events in words: the nodes, and the fields of each packet.

use crate::NodeId;
use crate::check::Trace;
use crate::store::StoreEvent;
use midflight_wire::store::{Packet, Request, Status, parse};
use std::fmt::Write;

pub(super) fn event(trace: &Trace, node: NodeId, event: &StoreEvent) -> Option<String> {
    let name = trace.name(node);
    match event {
        StoreEvent::Begun { key, operation } => Some(format!("{name} begins {}: {operation:?}", key.0)),
        StoreEvent::Ended { key, outcome } => Some(format!("{name} has the end of {}: {outcome:?}", key.0)),
        StoreEvent::Replica(event) => Some(format!("{name}: {event:?}")),
        StoreEvent::Unusable(why) => Some(format!("{name} cannot start: {why}")),
        StoreEvent::Obeyed => Some(format!("{name} is obeyed")),
        StoreEvent::Passed { .. } => None,
        StoreEvent::Verdict(verdict) => Some(format!("{name}: {verdict:?}")),
    }
}

fn sid(sid: u64) -> String {
    format!("{}.{}", sid >> 32, sid as u32)
}

pub(super) fn describe(datagram: &[u8]) -> String {
    let key = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    match parse(datagram) {
        Err(reject) => format!("{} bytes, {reject}", datagram.len()),
        Ok(Packet::Read(request, name)) => {
            let only = if request.flags & 1 != 0 { ", leader-only" } else { "" };
            format!("READ {} {}{only}", key(name), stamps(request))
        }
        Ok(Packet::ReadReply(request, status, name, value)) => {
            format!("READ_REPLY {} {}: {status:?} {}", key(name), stamps(request), key(value))
        }
        Ok(Packet::Write(request, write, name, _)) => {
            let command = write.command().map_or("?".into(), |command| format!("{command:?}"));
            format!("WRITE {command} {} {} client {} number {}", key(name), stamps(request), write.client, write.number)
        }
        Ok(Packet::WriteReply(request, status, value)) => {
            let value = if status == Status::Done && value.len() == 8 { String::new() } else { key(value) };
            format!("WRITE_REPLY {} replicas {:#b}: {status:?} {value}", stamps(request), request.replicas)
        }
        Ok(Packet::Hello(hello)) => format!("HELLO of place {}", hello.slot),
        Ok(Packet::Heartbeat(beat, rows)) => {
            let mut text = format!(
                "HEARTBEAT session {} start {} echo {} idle {}; matched",
                sid(beat.sid.get()),
                beat.start,
                beat.echo,
                beat.is_idle
            );
            for row in rows {
                let _ = write!(text, " {}*{}", row.matched, row.weight);
            }
            text
        }
        Ok(Packet::EndSession(end)) => format!("END_SESSION {}", sid(end.sid.get())),
        Ok(Packet::State(state)) => format!(
            "STATE incarnation {:x} session {} ended {} lease {} now {}",
            state.incarnation,
            sid(state.sid.get()),
            sid(state.ended.get()),
            state.lease,
            state.now
        ),
        Ok(Packet::Version(version)) => format!("VERSION {}", version.version),
    }
}

fn stamps(request: &Request) -> String {
    let Request { request: number, seq, index, hash, slot, .. } = request;
    format!("#{number:x} session {} SEQ {seq} index {index} hash {hash:x} place {slot}", sid(request.sid.get()))
}
