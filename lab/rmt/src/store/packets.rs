//! The packets and their outcomes.

use super::Store;
use super::fields::{Fields, Kind, REPLICAS};
use crate::{Field, Packet, Sent, To};

/// How much of a packet is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cut {
    /// Nothing.
    Nothing = 0,
    /// The value: it is a READ again.
    BehindKey = 1,
    /// Key and value.
    BehindHeader = 2,
}

macro_rules! deeds {
    ($($(#[$doc:meta])* $did:ident = $number:literal, $name:literal;)*) => {
        /// Outcome of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Did { $($(#[$doc])* $did = $number,)* }

        impl Did {
            const ALL: &'static [Self] = &[$(Self::$did,)*];
            pub(super) const NAMES: &'static [(u32, &'static str)] = &[$(($number, $name),)*];
        }
    };
}

deeds! {
    /// A READ of a stable key group went to a random replica.
    Sent = 1, "SENT";
    /// A READ went to the leader, which alone may answer.
    LeaderOnly = 2, "LEADER_ONLY";
    /// A WRITE went to the leader.
    Written = 3, "WRITTEN";
    /// There is no session.
    Refused = 4, "REFUSED";
    /// A WRITE_REPLY closed its key group.
    Closed = 5, "CLOSED";
    /// A reply went to its client, or was a REFRESH that closed nothing.
    Passed = 6, "PASSED";
    /// A READ_REPLY was turned back into a READ for the leader.
    TurnedBack = 7, "TURNED_BACK";
    /// The client must retry.
    Outdated = 8, "OUTDATED";
}

/// A client's or replica's packet after parser and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// [`Kind::Read`] to [`Kind::WriteReply`].
    pub kind: Kind,
    /// The place of its set.
    pub place: u8,
    /// The set has 2^this key groups.
    pub bits: u8,
    /// `reply_check = "relaxed"`.
    pub is_relaxed: bool,
    /// The policy avoids the leader.
    pub avoids_leader: bool,
    /// The time.
    pub now: u32,
    /// A random number.
    pub lot: u32,
    /// SID.
    pub sid: u64,
    /// SEQ.
    pub seq: u64,
    /// LOG_IDX.
    pub index: u64,
    /// The upper half of the key's hash.
    pub hash: u32,
    /// The port of `client`.
    pub client_port: u16,
    /// WRITE_REPLY: a bit for each replica that has the index.
    pub replicas: u8,
    /// The slot of the replica that a reply comes from.
    pub slot: u8,
    /// As on the wire.
    pub status: u8,
    /// As on the wire.
    pub flags: u8,
}

/// A session that begins, or is extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The place of its set.
    pub place: u8,
    /// Whether it begins: SEQ is 0.
    pub begins: bool,
    /// Whether there was no write for a while.
    pub is_idle: bool,
    /// When its lease ends.
    pub until: u32,
    /// A number that no earlier session of this place had; 0 is never used.
    pub generation: u32,
    /// SID.
    pub sid: u64,
    /// Index s of the session's entry.
    pub start: u64,
    /// The leader's slot.
    pub leader: u8,
    /// A bit for each replica with an address and a weight.
    pub eligible: u8,
    /// The index of each replica.
    pub matched: [u64; REPLICAS],
}

/// A packet that leaves: outcome and header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Outcome of the packet.
    pub did: Did,
    /// Whether it is forwarded. A REFRESH ends here.
    pub is_sent: bool,
    /// Its operation.
    pub op: u8,
    /// The destination replica's slot; none: the client.
    pub to: Option<u8>,
    /// How much is cut off.
    pub cut: Cut,
    /// SID.
    pub sid: u64,
    /// SEQ.
    pub seq: u64,
    /// LOG_IDX.
    pub index: u64,
    /// As on the wire.
    pub replicas: u8,
    /// As on the wire.
    pub status: u8,
    /// As on the wire.
    pub flags: u8,
}

fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

fn low(value: u64) -> u32 {
    value as u32
}

/// The bit of a slot; none for a slot that does not exist.
fn bit(slot: u8) -> u32 {
    if usize::from(slot) < REPLICAS { 1 << slot } else { 0 }
}

/// The register value for a replica's index: larger than each index of the session up to there, which have the upper half of `start`.
fn matched(index: u64, start: u64) -> u32 {
    let beyond = u64::from(high(start)) << 32;
    if index < start { 0 } else { u32::try_from(index - beyond).map_or(u32::MAX, |index| index.saturating_add(1)) }
}

impl Store {
    /// A client's or replica's packet.
    #[must_use]
    pub fn passing(&self, p: &Passing) -> Packet {
        let f = &self.fields;
        let numbers = [(f.place, p.place), (f.bits, p.bits), (f.replicas, p.replicas), (f.status, p.status)];
        let numbers = numbers.map(|(field, value)| (field, u32::from(value)));
        let words = [(f.op, p.kind as u32), (f.now, p.now), (f.lot, p.lot), (f.hash, p.hash)];
        let more = [
            (f.relaxed, p.is_relaxed.into()),
            (f.avoid, p.avoids_leader.into()),
            (f.client_port, p.client_port.into()),
            (f.from, bit(p.slot)),
            (f.flags, p.flags.into()),
        ];
        let packet = with(self.machine.packet(), numbers.into_iter().chain(words).chain(more));
        with(packet, halves(f, p.sid, p.index).into_iter().chain([(f.seq_high, high(p.seq)), (f.seq, low(p.seq))]))
    }

    /// The controller's packet that begins or extends a session.
    #[must_use]
    pub fn session(&self, s: &NewSession) -> Packet {
        let f = &self.fields;
        let words = [
            (f.op, Kind::Session as u32),
            (f.place, s.place.into()),
            (f.begins, s.begins.into()),
            (f.idle, s.is_idle.into()),
            (f.now, s.until),
            (f.generation, s.generation),
            (f.from, bit(s.leader)),
            (f.replicas, s.eligible.into()),
        ];
        let caught = f.matched.into_iter().zip(s.matched).map(|(field, index)| (field, matched(index, s.start)));
        let packet = with(self.machine.packet(), words.into_iter().chain(caught));
        with(packet, halves(f, s.sid, s.start))
    }

    /// The controller's packet that ends a session's lease at this past time.
    #[must_use]
    pub fn end(&self, place: u8, past: u32) -> Packet {
        let f = &self.fields;
        with(self.machine.packet(), [(f.op, Kind::End as u32), (f.place, place.into()), (f.now, past)])
    }

    /// The outcome of a client's or replica's packet; `None` for the controller's.
    #[must_use]
    pub fn answer(&self, sent: &Sent) -> Option<Answer> {
        let f = &self.fields;
        let get = |field: Field| sent.packet.get(field);
        let byte = |field: Field| get(field) as u8;
        let both = |[high, low]: [Field; 2]| u64::from(get(high)) << 32 | u64::from(get(low));
        let cut = match byte(f.cut) {
            1 => Cut::BehindKey,
            2 => Cut::BehindHeader,
            _ => Cut::Nothing,
        };
        Some(Answer {
            did: Did::ALL.iter().copied().find(|&did| did as u8 == byte(f.did))?,
            is_sent: !matches!(sent.to, To::Dropped(_)),
            op: byte(f.op),
            to: get(f.to).checked_ilog2().map(|slot| slot as u8),
            cut,
            sid: both(f.sid),
            seq: both([f.seq_high, f.seq]),
            index: both([f.index_high, f.index]),
            replicas: byte(f.replicas),
            status: byte(f.status),
            flags: byte(f.flags),
        })
    }
}

fn with(packet: Packet, fields: impl IntoIterator<Item = (Field, u32)>) -> Packet {
    fields.into_iter().fold(packet, |packet, (field, value)| packet.with(field, value))
}

fn halves(f: &Fields, sid: u64, index: u64) -> [(Field, u32); 4] {
    [(f.sid[0], high(sid)), (f.sid[1], low(sid)), (f.index_high, high(index)), (f.index, low(index))]
}
