//! Events in words.

use crate::NodeId;
use crate::cache::{CacheEvent, ControlEvent};
use crate::check::Trace;
use midflight_wire::cache::{Ends, Packet, ServerStatus, parse};
use std::net::SocketAddr;
use zerocopy::FromBytes;

pub(super) fn describe(datagram: &[u8]) -> String {
    match parse(datagram) {
        Err(reject) => format!("{} bytes: {reject}", datagram.len()),
        Ok(Packet::Request(request, ends, _)) => {
            format!("REQUEST {} rsnode {} group {}", said(ends), request.start.rsnode, request.group())
        }
        Ok(Packet::ForServer(kind, request, ends, _)) => format!(
            "f({}) {} rsnode {} RV {:x} group {}",
            format!("{kind:?}").to_uppercase(),
            said(ends),
            request.start.rsnode,
            request.start.retained,
            request.group()
        ),
        Ok(Packet::Response(kind, response, status, ends, answered)) => {
            let status = match ServerStatus::ref_from_bytes(status) {
                Ok(status) => format!("queue {} #{} {} us", status.queue, status.sequence, status.service_us),
                Err(_) if status.is_empty() && answered.is_empty() => "refused".to_owned(),
                Err(_) => format!("{} bytes of status", status.len()),
            };
            let (kind, start) = (format!("{kind:?}").to_uppercase(), response.start);
            format!("{kind} {} rsnode {} RV {:x}: {status}", said(ends), start.rsnode, start.retained)
        }
        Ok(Packet::Cookie(_, ends)) => format!("COOKIE #{:x}", ends.request),
        Ok(Packet::Version(start)) => format!("VERSION {}", start.version),
    }
}

fn said(ends: &Ends) -> String {
    let (client, server) = (SocketAddr::from(ends.client), SocketAddr::from(ends.server));
    let client = if client.port() == 0 { "with a cookie".to_owned() } else { format!("of {}", client.ip()) };
    format!("#{:x} {client} server {}", ends.request, server.ip())
}

/// An actor's record; `None` if the datagrams show it.
pub(super) fn event(trace: &Trace, node: NodeId, event: &CacheEvent) -> Option<String> {
    let name = trace.name(node);
    Some(match event {
        CacheEvent::Begun { key, group, token } => {
            format!("{name} begins #{:x}: group {group}, token {token:x}", key.0)
        }
        CacheEvent::Ended { key, outcome: Ok(answer) } => {
            format!("{name} has an answer of {} to #{:x}, sent {} times", answer.server.ip(), key.0, answer.sends)
        }
        CacheEvent::Ended { key, outcome: Err(failure) } => format!("{name} gives #{:x} up: {failure}", key.0),
        CacheEvent::Served { group, token } => format!("{name} serves token {token:x} of group {group}"),
        CacheEvent::Verdict { verdict, .. } => format!("{name}: {verdict:?}"),
        CacheEvent::Control(ControlEvent::Driver { event, .. }) => format!("{name}: {event:?}"),
        CacheEvent::Control(ControlEvent::Answered { is_wrong: true, .. }) => format!("{name} gets a wrong plan"),
        CacheEvent::Control(ControlEvent::Took { .. }) => format!("{name} takes a plan"),
        CacheEvent::Control(_) | CacheEvent::Asked { .. } | CacheEvent::Selected(_) => return None,
    })
}
