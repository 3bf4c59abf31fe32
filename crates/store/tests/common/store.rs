//! A single store behind a switch that is always active. Linearizable, because it is sequential.

#![allow(dead_code, reason = "each test uses some of it")]

use super::packets::Asked;
use midflight_wire::store::{Command, Status, key_hash};
use std::collections::{BTreeMap, HashMap};

/// The last write of a client id.
struct Session {
    number: u64,
    reply: (Status, Vec<u8>),
    used_at: u64,
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) data: BTreeMap<Vec<u8>, Vec<u8>>,
    sessions: HashMap<u64, Session>,
    last_id: u64,
    /// 0: no bound.
    pub(crate) clients_max: usize,
    /// For each applied write, what an INCR added, or 0.
    pub(crate) applied: Vec<i64>,
    pub(crate) now: u64,
}

impl Store {
    pub(crate) fn handle(&mut self, asked: &Asked) -> Vec<u8> {
        if !asked.is_opening() && asked.request.hash.get() != key_hash(&asked.key) {
            return asked.answer(Status::BadHash, b"");
        }
        let (status, value) = match asked.command() {
            None => self.read(asked),
            Some(Command::Open) => self.open(),
            Some(command) => self.write(asked, command),
        };
        asked.answer(status, &value)
    }

    /// Expires ids that were idle this long.
    pub(crate) fn expire(&mut self, idle: u64) {
        let now = self.now;
        self.sessions.retain(|_, session| now < session.used_at + idle);
    }

    fn read(&self, asked: &Asked) -> (Status, Vec<u8>) {
        match self.data.get(&asked.key) {
            None => (Status::NotFound, Vec::new()),
            Some(_) if asked.only_exists() => (Status::Done, Vec::new()),
            Some(value) => (Status::Done, value.clone()),
        }
    }

    fn open(&mut self) -> (Status, Vec<u8>) {
        if self.clients_max > 0 && self.sessions.len() >= self.clients_max {
            return (Status::ClientsFull, Vec::new());
        }
        self.last_id += 1;
        let reply = (Status::Done, Vec::new());
        self.sessions.insert(self.last_id, Session { number: 0, reply, used_at: self.now });
        (Status::Done, self.last_id.to_be_bytes().to_vec())
    }

    /// Applies a write once (R3).
    fn write(&mut self, asked: &Asked, command: Command) -> (Status, Vec<u8>) {
        let (client, number) = asked.name();
        let Some(session) = self.sessions.get(&client) else { return (Status::UnknownClient, Vec::new()) };
        if number < session.number {
            return (Status::Stale, Vec::new());
        }
        if number == session.number {
            return session.reply.clone();
        }
        let reply = self.apply(asked, command);
        let used_at = self.now;
        self.sessions.insert(client, Session { number, reply: reply.clone(), used_at });
        reply
    }

    fn apply(&mut self, asked: &Asked, command: Command) -> (Status, Vec<u8>) {
        let (key, arguments) = (asked.key.clone(), &asked.arguments[..]);
        let present = self.data.get(&key).cloned();
        let added = if command == Command::Incr { number(arguments) } else { 0 };
        self.applied.push(added);
        match (command, present) {
            (Command::Put, _) => {
                self.data.insert(key, arguments.to_vec());
                (Status::Done, Vec::new())
            }
            (Command::Incr, present) => self.add(key, present, added),
            (_, None) => (Status::NotFound, Vec::new()),
            (Command::Delete, Some(_)) => {
                self.data.remove(&key);
                (Status::Done, Vec::new())
            }
            (_, Some(present)) => {
                let expected = asked.write.map_or(0, |write| write.expected_length.get() as usize);
                let (expected, new) = arguments.split_at(expected);
                if present != expected {
                    return (Status::Conflict, present);
                }
                self.data.insert(key, new.to_vec());
                (Status::Done, Vec::new())
            }
        }
    }

    fn add(&mut self, key: Vec<u8>, present: Option<Vec<u8>>, by: i64) -> (Status, Vec<u8>) {
        let old = present.map_or(Some(0), |bytes| std::str::from_utf8(&bytes).ok()?.parse::<i64>().ok());
        let Some(sum) = old.and_then(|old| old.checked_add(by)) else { return (Status::NotANumber, Vec::new()) };
        self.data.insert(key, sum.to_string().into_bytes());
        (Status::Done, sum.to_be_bytes().to_vec())
    }
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("INCR has 8 bytes"))
}
