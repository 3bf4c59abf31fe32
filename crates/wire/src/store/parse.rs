//! Parses datagrams. Checks every length and count before it reads what follows.

use super::layout::*;
use super::{Command, KEY_MAX, Operation, REPLICAS_MAX, Status};
use crate::parse::{Start, counting, start, with_records};
use crate::{Header, PACKET_MAX, Reject, Version};
use zerocopy::FromBytes;

/// A well-formed packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after the operations")]
pub enum Packet<'a> {
    /// The request and its key.
    Read(&'a Request, &'a [u8]),
    /// The reply, its status, key and value. The switch's own replies have no key.
    ReadReply(&'a Request, Status, &'a [u8], &'a [u8]),
    /// The request, the command, its key and arguments.
    Write(&'a Request, &'a Write, &'a [u8], &'a [u8]),
    /// The reply, its status and value.
    WriteReply(&'a Request, Status, &'a [u8]),
    Hello(&'a Hello),
    Heartbeat(&'a Heartbeat, &'a [Replica]),
    EndSession(&'a EndSession),
    State(&'a State),
    /// The sender uses another version.
    Version(&'a Version),
}

/// Parses a datagram.
///
/// # Errors
/// A [`Reject`] if the datagram is malformed. An undefined command is not malformed, because its sender must get a reply.
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

fn request<'a>(datagram: &'a [u8], header: &Header) -> Result<(&'a Request, &'a [u8]), Reject> {
    if header.count != 0 {
        return Err(Reject::BadCount);
    }
    Request::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)
}

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
    /// `None` for an undefined command.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        Command::from_number(self.command)
    }
}
