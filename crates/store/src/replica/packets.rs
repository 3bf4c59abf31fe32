//! Packets that a replica sends.

use super::entry::SessionName;
use super::switches::Answer;
use midflight_wire::counting;
use midflight_wire::store::{EndSession, Heartbeat, Hello, Operation, Replica, Request, Status};
use zerocopy::IntoBytes;

/// Asks a switch for its incarnation and time. The repeated last answer proves that this replica received it.
pub(super) fn hello(sequence: u32, set: u16, slot: u8, last: Option<Answer>) -> Vec<u8> {
    let mut hello = Hello::new(0, sequence);
    (hello.set, hello.slot) = (set.into(), slot);
    if let Some(last) = last {
        (hello.incarnation, hello.echo) = (last.incarnation.into(), last.echo.into());
    }
    counting(&hello, 0)
}

pub(super) fn end_session(sequence: u32, set: u16, slot: u8, name: &SessionName) -> Vec<u8> {
    let mut end = EndSession::new(0, sequence);
    (end.incarnation, end.sid) = (name.incarnation.into(), name.sid.into());
    (end.set, end.slot) = (set.into(), slot);
    counting(&end, 0)
}

pub(super) struct HeartbeatHead<'a> {
    pub(super) name: &'a SessionName,
    pub(super) start: u64,
    pub(super) echo: u64,
    pub(super) set: u16,
    pub(super) leader: u8,
    pub(super) kgroup_bits: u8,
    pub(super) is_idle: bool,
    pub(super) any_replica: bool,
}

pub(super) fn heartbeat(sequence: u32, head: &HeartbeatHead<'_>, replicas: &[Replica]) -> Vec<u8> {
    let mut heartbeat = Heartbeat::new(0, sequence);
    (heartbeat.incarnation, heartbeat.sid) = (head.name.incarnation.into(), head.name.sid.into());
    (heartbeat.start, heartbeat.echo) = (head.start.into(), head.echo.into());
    (heartbeat.set, heartbeat.leader) = (head.set.into(), head.leader);
    (heartbeat.kgroup_bits, heartbeat.is_idle) = (head.kgroup_bits, head.is_idle.into());
    heartbeat.any_replica = head.any_replica.into();
    midflight_wire::packet(&heartbeat, replicas)
}

pub(super) fn reply(request: &Request, operation: Operation, slot: u8, status: Status, rest: [&[u8]; 2]) -> Vec<u8> {
    let mut reply = *request;
    reply.header.operation = operation.into();
    (reply.slot, reply.status) = (slot, status.into());
    if operation == Operation::WriteReply {
        reply.key_length = 0.into();
    }
    [reply.as_bytes(), rest[0], rest[1]].concat()
}
