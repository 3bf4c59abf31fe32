//! What the entries of the log say.

use super::clients::Source;
use midflight_wire::reads::{Command, Write};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// An entry of the log. Each replica applies it, with the same result. (Changes of the members are Raft's own entries, whose
/// context is the list of all members afterwards.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record<'a> {
    /// A session begins: SEQs of earlier ones count no more.
    Session(SessionName),
    /// The session with this SID is certainly over.
    Fenced(u64),
    /// A client gets an id: the index of this entry.
    Open {
        /// The store's time.
        time: u64,
        /// Where the client is.
        source: Source,
    },
    /// A client's write, as logs of former versions have it. None is written any more.
    #[serde(borrow)]
    Write(ClientWrite<'a>),
    /// All data goes.
    Flush,
    /// A client's write, with its SEQ in the session whose entry stands before it. (A former version of this program does not know
    /// this kind, and says so.)
    SeqWrite(u64, #[serde(borrow)] ClientWrite<'a>),
}

/// A client's write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientWrite<'a> {
    /// The client's id.
    pub(super) client: u64,
    /// The number of the write (R3).
    pub(super) number: u64,
    /// The store's time.
    pub(super) time: u64,
    /// What it does.
    #[serde(borrow)]
    pub(super) what: What<'a>,
}

/// A session, and where it is. One incarnation of a switch has each SID at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionName {
    /// Term and number.
    pub(super) sid: u64,
    /// The switch.
    pub(super) switch: SocketAddr,
    /// Of the set at the switch.
    pub(super) incarnation: u64,
}

/// A change of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the commands")]
pub(super) enum What<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Delete { key: &'a [u8] },
    Cas { key: &'a [u8], expected: &'a [u8], value: &'a [u8] },
    Incr { key: &'a [u8], by: i64 },
}

impl<'a> What<'a> {
    /// The key that it changes.
    pub(super) fn key(&self) -> &'a [u8] {
        let (Self::Put { key, .. } | Self::Delete { key } | Self::Cas { key, .. } | Self::Incr { key, .. }) = self;
        key
    }

    /// What a WRITE asks for; `None` where the command does not exist, or does not take these arguments.
    pub(super) fn of(write: &Write, key: &'a [u8], arguments: &'a [u8]) -> Option<Self> {
        let expected = write.expected_length.get() as usize;
        let command = write.command()?;
        if key.is_empty() || command != Command::Cas && expected != 0 {
            return None;
        }
        match command {
            Command::Put => Some(Self::Put { key, value: arguments }),
            Command::Delete => arguments.is_empty().then_some(Self::Delete { key }),
            Command::Cas => {
                let (expected, value) = arguments.split_at_checked(expected)?;
                Some(Self::Cas { key, expected, value })
            }
            Command::Incr => Some(Self::Incr { key, by: i64::from_be_bytes(arguments.try_into().ok()?) }),
            Command::Open => None,
        }
    }
}

impl<'a> Record<'a> {
    /// As bytes of an entry.
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a record is plain data, and memory grows as needed")
    }

    /// What an entry says; `None` for bytes that are no record.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r2_a_write_of_a_former_version_is_read() {
        let what = What::Put { key: b"a", value: b"b" };
        let write = ClientWrite { client: 1, number: 2, time: 3, what };
        // Its kind, the three numbers, PUT, then key and value with their lengths.
        let bytes = [3, 1, 2, 3, 0, 1, b'a', 1, b'b'];
        assert_eq!(Record::decode(&bytes), Some(Record::Write(write.clone())));
        assert_eq!(Record::decode(&Record::SeqWrite(300, write.clone()).encode()), Some(Record::SeqWrite(300, write)));
    }
}
