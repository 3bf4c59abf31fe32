//! Reads a datagram. Nothing is trusted: every length and count is checked before anything behind it is looked at.

use super::layout::*;
use super::{Command, KEY_MAX, Operation, REPLICAS_MAX, Status};
use crate::parse::{Start, counting, start, with_records};
use crate::{Header, PACKET_MAX, Reject, Version};
use zerocopy::FromBytes;

/// A well-formed packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after the operations")]
pub enum Packet<'a> {
    /// With its key.
    Read(&'a Request, &'a [u8]),
    /// With what came of it, its key and the value. An answer of the switch has no key.
    ReadReply(&'a Request, Status, &'a [u8], &'a [u8]),
    /// With its command, key and arguments.
    Write(&'a Request, &'a Write, &'a [u8], &'a [u8]),
    /// With what came of it, and the value.
    WriteReply(&'a Request, Status, &'a [u8]),
    Hello(&'a Hello),
    Heartbeat(&'a Heartbeat, &'a [Replica]),
    EndSession(&'a EndSession),
    State(&'a State),
    /// The sender speaks another version than this one.
    Version(&'a Version),
}

/// Reads a datagram.
///
/// # Errors
/// A [`Reject`] where it is malformed in any way. A command that does not exist is not: its sender must get an answer.
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, Reject> {
    let header = match start(datagram)? {
        Start::Version(version) => return Ok(Packet::Version(version)),
        Start::Packet(header) => header,
    };
    if datagram.len() > PACKET_MAX {
        return Err(Reject::Trailing);
    }
    match Operation::from_number(header.operation).ok_or(Reject::UnknownOperation)? {
        Operation::Read => read(datagram, header),
        Operation::ReadReply => read_reply(datagram, header),
        Operation::Write => write(datagram, header),
        Operation::WriteReply => write_reply(datagram, header),
        Operation::Hello => counting(datagram, header, 0..=0, Packet::Hello),
        Operation::Heartbeat => with_records(datagram, header, 1..=REPLICAS_MAX, Packet::Heartbeat),
        Operation::EndSession => counting(datagram, header, 0..=0, Packet::EndSession),
        Operation::State => counting(datagram, header, 0..=0, Packet::State),
    }
}

/// The fixed part, and what follows it.
fn request<'a>(datagram: &'a [u8], header: &Header) -> Result<(&'a Request, &'a [u8]), Reject> {
    if header.count != 0 {
        return Err(Reject::BadCount);
    }
    Request::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)
}

/// The key at the start of `rest`, and what follows it.
fn key<'a>(request: &Request, rest: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Reject> {
    let length = usize::from(request.key_length.get());
    if length > KEY_MAX {
        return Err(Reject::BadKey);
    }
    rest.split_at_checked(length).ok_or(Reject::Truncated)
}

fn status(request: &Request) -> Result<Status, Reject> {
    Status::from_number(request.status).ok_or(Reject::BadStatus)
}

fn read<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (request, rest) = request(datagram, header)?;
    let (key, rest) = key(request, rest)?;
    if rest.is_empty() { Ok(Packet::Read(request, key)) } else { Err(Reject::Trailing) }
}

fn read_reply<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (request, rest) = request(datagram, header)?;
    let (key, value) = key(request, rest)?;
    Ok(Packet::ReadReply(request, status(request)?, key, value))
}

fn write<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (request, rest) = request(datagram, header)?;
    let (write, rest) = Write::ref_from_prefix(rest).map_err(|_| Reject::Truncated)?;
    let (key, arguments) = key(request, rest)?;
    Ok(Packet::Write(request, write, key, arguments))
}

fn write_reply<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (request, value) = request(datagram, header)?;
    if request.key_length.get() != 0 {
        return Err(Reject::BadKey);
    }
    Ok(Packet::WriteReply(request, status(request)?, value))
}

impl Write {
    /// What it does; `None` for a command that does not exist.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        Command::from_number(self.command)
    }
}
