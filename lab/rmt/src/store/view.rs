//! The registers' values, as the controller reads them.

use super::Store;
use crate::{Machine, Register, Word};

/// A set's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// When its lease ends.
    pub lease: u32,
    /// SID.
    pub sid: u64,
    /// Index s of the session's entry.
    pub start: u64,
    /// The last SEQ.
    pub seq: u32,
    /// The largest answered SEQ.
    pub answered: u32,
    /// The number that key groups store for it.
    pub generation: u32,
}

/// A key group's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The session in which it was last written.
    pub generation: u32,
    /// SEQ of the last WRITE.
    pub seq: u32,
    /// The lower half of its index.
    pub index: u32,
    /// A bit for each replica that has it.
    pub replicas: u32,
    /// Whether no write is in flight.
    pub is_stable: bool,
}

impl Store {
    /// The session of the set at this place.
    #[must_use]
    pub fn session_of(&self, machine: &Machine, place: u8) -> Session {
        let r = &self.sessions;
        let read = |register: Register| machine.read(register, place.into(), Word::Low);
        let both = |high, low| u64::from(read(high)) << 32 | u64::from(read(low));
        Session {
            lease: read(r.lease),
            sid: both(r.sid[0], r.sid[1]),
            start: both(r.start_high, r.start),
            seq: read(r.seq),
            answered: read(r.answered),
            generation: read(r.generation),
        }
    }

    /// A key group of that set, one of 2^`bits`.
    #[must_use]
    pub fn group_of(&self, machine: &Machine, place: u8, number: u32) -> Group {
        let r = &self.groups;
        let cell = u32::from(place) << self.config.kgroup_bits | number;
        let read = |register: Register| machine.read(register, cell, Word::Low);
        Group {
            generation: read(r.generation),
            seq: read(r.seq),
            index: read(r.index),
            replicas: read(r.replicas),
            is_stable: read(r.stable) == 1,
        }
    }

    /// Sets the SEQ with which a set's sessions begin: for tests of its end.
    pub fn set_seq(&self, machine: &mut Machine, place: u8, seq: u32) {
        machine.write(self.sessions.seq, place.into(), Word::Low, seq);
    }
}
