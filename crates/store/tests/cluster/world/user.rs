//! The user: one request after the other, with the cookie of the switch.

use super::{NETWORK, SET, What, World, switch, user};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::{
    ChangeCode, Command, ExpiryCode, FLAG_DIRECT, FLAG_UNSERVED, Operation, Request, Status, Update, Write, key_hash,
};
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

/// An answer to the user.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) from: SocketAddr,
    pub(crate) reply: Request,
    pub(crate) value: Vec<u8>,
}

impl World {
    fn send(&mut self, at: u8, bytes: &[u8]) {
        self.requests += 1;
        let (mut request, rest) = split(bytes);
        request.request = self.requests.into();
        request.client.ip[..8].copy_from_slice(&self.cookie);
        let bytes = [request.as_bytes(), rest].concat();
        self.schedule(NETWORK, What::Datagram { from: user(), to: switch(at), bytes });
    }

    /// Sends a request to a switch, and waits for its answer.
    pub(crate) fn ask(&mut self, at: u8, bytes: &[u8]) -> Option<(Status, Vec<u8>)> {
        let Answer { reply, value, .. } = self.ask_for_answer(at, bytes)?;
        Some((Status::from_number(reply.status).unwrap(), value))
    }

    fn ask_for_answer(&mut self, at: u8, bytes: &[u8]) -> Option<Answer> {
        for _ in 0..3 {
            self.answers.clear();
            self.send(at, bytes);
            self.run(5 * MS);
            let answer = self.answers.iter().find(|answer| answer.reply.request.get() == self.requests)?.clone();
            if answer.reply.status != Status::Cookie as u8 {
                return Some(answer);
            }
            self.cookie.copy_from_slice(&answer.reply.client.ip[..8]);
        }
        None
    }

    /// Reads a key with a request for a direct reply.
    pub(crate) fn get_directly(&mut self, at: u8, key: &str) -> Option<Answer> {
        self.ask_for_answer(at, &direct_read(key))
    }

    /// Reads `times` times, every 0.2 ms; returns all answers.
    pub(crate) fn get_directly_often(&mut self, at: u8, key: &str, times: u32) -> Vec<Answer> {
        self.answers.clear();
        for _ in 0..times {
            self.send(at, &direct_read(key));
            self.run(MS / 5);
        }
        self.run(5 * MS);
        std::mem::take(&mut self.answers)
    }

    /// Reads a key for a while without waiting for answers. (First send any request to the switch, which gives a cookie.)
    pub(crate) fn read_often(&mut self, at: u8, key: &str, every: Nanos, time: Nanos) {
        for _ in 0..time / every {
            self.send(at, &[request(Operation::Read, key).as_bytes(), key.as_bytes()].concat());
            self.run(every);
        }
        self.answers.clear();
    }

    pub(crate) fn get(&mut self, at: u8, key: &str) -> Option<(Status, Vec<u8>)> {
        let request = request(Operation::Read, key);
        self.ask(at, &[request.as_bytes(), key.as_bytes()].concat())
    }

    /// Reads a key as a client that no switch serves.
    pub(crate) fn get_unserved(&mut self, at: u8, key: &str) -> Option<(Status, Vec<u8>)> {
        let request = Request { flags: FLAG_UNSERVED, ..request(Operation::Read, key) };
        self.ask(at, &[request.as_bytes(), key.as_bytes()].concat())
    }

    /// Repeats a write until it is acknowledged; returns the time it took.
    pub(crate) fn wait_for_write(&mut self, at: u8, client: u64, number: u64) -> Nanos {
        let begun = self.now;
        while !matches!(self.write(at, client, number, Command::Put, "c", b"x"), Some((Status::Done, _))) {
            assert!(self.now < begun + 5_000 * MS, "nobody serves: {:?}", self.events);
        }
        self.now - begun
    }

    pub(crate) fn write(
        &mut self,
        at: u8,
        client: u64,
        number: u64,
        command: Command,
        key: &str,
        value: &[u8],
    ) -> Option<(Status, Vec<u8>)> {
        self.ask(at, &write_request(client, number, command, key, value))
    }

    /// Sends a write without waiting for its answer.
    pub(crate) fn begin_write(&mut self, at: u8, client: u64, number: u64, command: Command, key: &str, value: &[u8]) {
        self.send(at, &write_request(client, number, command, key, value));
    }

    /// Sets a value that expires after some milliseconds.
    pub(crate) fn put_for(&mut self, at: u8, client: u64, number: u64, key: &str, value: &[u8], ms: u64) {
        let mut update = Update::new_zeroed();
        update.after = ms.into();
        (update.change, update.expiry) = (ChangeCode::Set.into(), ExpiryCode::After.into());
        let answer = self.write(at, client, number, Command::Update, key, &[update.as_bytes(), value].concat());
        assert!(matches!(answer, Some((Status::Done, _))), "{answer:?}");
    }

    pub(crate) fn open(&mut self, at: u8) -> u64 {
        let (status, value) = self.write(at, 0, 1, Command::Open, "", b"").expect("an answer");
        assert_eq!(status, Status::Done);
        u64::from_be_bytes(value.try_into().unwrap())
    }
}

fn request(operation: Operation, key: &str) -> Request {
    let mut request = Request::new(operation);
    (request.hash, request.set) = (key_hash(key.as_bytes()).into(), SET.into());
    request.key_length = (key.len() as u16).into();
    request
}

fn direct_read(key: &str) -> Vec<u8> {
    let request = Request { flags: FLAG_DIRECT, ..request(Operation::Read, key) };
    [request.as_bytes(), key.as_bytes()].concat()
}

fn write_request(client: u64, number: u64, command: Command, key: &str, value: &[u8]) -> Vec<u8> {
    let mut write = Write::new_zeroed();
    (write.client, write.number, write.command) = (client.into(), number.into(), command as u8);
    [request(Operation::Write, key).as_bytes(), write.as_bytes(), key.as_bytes(), value].concat()
}

fn split(bytes: &[u8]) -> (Request, &[u8]) {
    let (request, rest) = zerocopy::FromBytes::ref_from_prefix(bytes).unwrap();
    (*request, rest)
}
