//! Requests as a switch or replica parses them, and their answers.

#![allow(dead_code, reason = "each test uses some of it")]

use midflight_wire::store::{
    Command, FLAG_DIRECT, FLAG_EXISTS, FLAG_OFFERS_DIRECT, Operation, Packet, Request, Status, Write, parse,
};
use std::mem::offset_of;
use zerocopy::IntoBytes;

/// A READ or WRITE.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// Only in a WRITE.
    pub(crate) write: Option<Write>,
    pub(crate) key: Vec<u8>,
    pub(crate) arguments: Vec<u8>,
}

impl Asked {
    pub(crate) fn read(datagram: &[u8]) -> Self {
        match parse(datagram).expect("clients send well-formed packets") {
            Packet::Read(request, key) => {
                Self { request: *request, write: None, key: key.to_vec(), arguments: Vec::new() }
            }
            Packet::Write(request, write, key, arguments) => {
                Self { request: *request, write: Some(*write), key: key.to_vec(), arguments: arguments.to_vec() }
            }
            other => panic!("not a request: {other:?}"),
        }
    }

    pub(crate) fn command(&self) -> Option<Command> {
        self.write.and_then(|write| write.command())
    }

    pub(crate) fn is_opening(&self) -> bool {
        self.command() == Some(Command::Open)
    }

    pub(crate) fn only_exists(&self) -> bool {
        self.request.flags & FLAG_EXISTS != 0
    }

    /// Client id and number of a WRITE.
    pub(crate) fn name(&self) -> (u64, u64) {
        self.write.map_or((0, 0), |write| (write.client.get(), write.number.get()))
    }

    pub(crate) fn sequence(&self) -> u32 {
        self.request.header.sequence.get()
    }

    pub(crate) fn cookie(&self) -> u64 {
        u64::from_be_bytes(self.request.client.ip[..8].try_into().unwrap())
    }

    fn reply(&self, status: Status) -> Request {
        let operation = if self.write.is_some() { Operation::WriteReply } else { Operation::ReadReply };
        let mut reply = self.request;
        reply.header.operation = operation.into();
        reply.status = status.into();
        reply.key_length = 0.into();
        reply.flags &= !FLAG_DIRECT;
        reply
    }

    /// A replica's answer, as the switch forwards it.
    pub(crate) fn answer(&self, status: Status, value: &[u8]) -> Vec<u8> {
        let mut reply = Request { slot: 1, ..self.reply(status) };
        if self.write.is_some() {
            return [reply.as_bytes(), value].concat();
        }
        reply.key_length = (self.key.len() as u16).into();
        [reply.as_bytes(), &self.key, value].concat()
    }

    /// A replica's answer that bypasses the switch.
    pub(crate) fn direct(&self, status: Status, value: &[u8]) -> Vec<u8> {
        let mut reply = self.answer(status, value);
        reply[offset_of!(Request, flags)] |= FLAG_DIRECT;
        reply
    }

    /// The same, if the switch offers direct replies.
    pub(crate) fn answer_with_offer(&self, status: Status, value: &[u8]) -> Vec<u8> {
        let mut reply = self.answer(status, value);
        reply[offset_of!(Request, flags)] |= FLAG_OFFERS_DIRECT;
        reply
    }

    pub(crate) fn asks_direct(&self) -> bool {
        self.request.flags & FLAG_DIRECT != 0
    }

    /// A refusal by the switch itself; no replica saw the request.
    pub(crate) fn refuse(&self, status: Status) -> Vec<u8> {
        self.reply(status).as_bytes().to_vec()
    }

    pub(crate) fn want_cookie(&self, cookie: u64) -> Vec<u8> {
        let mut reply = self.reply(Status::Cookie);
        reply.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
        reply.as_bytes().to_vec()
    }
}
