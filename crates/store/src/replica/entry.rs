//! Records of Raft's log.

use super::clients::Source;
use crate::transaction::Step;
use crate::update::{Change, Condition, Part, Update};
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{Command, KEY_MAX, Write, key_hash};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A log entry. Every replica applies it with the same result. (Member changes are Raft's own entries; their context is the new list of
/// members.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record<'a> {
    /// A session begins; SEQs of earlier ones are void.
    Session(SessionName),
    /// The session with this SID is certainly over.
    Fenced(u64),
    /// Opens a client; its id is the index of this entry.
    Open {
        /// The store's time.
        time: u64,
        source: Source,
    },
    /// Removes all data.
    Flush,
    /// A client's write, with its SEQ in the session of the last session entry.
    Write(u64, #[serde(borrow)] ClientWrite<'a>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientWrite<'a> {
    pub(super) client: u64,
    /// The number of the write (R3).
    pub(super) number: u64,
    pub(super) time: u64,
    #[serde(borrow)]
    pub(super) what: What<'a>,
}

/// A session and its switch. One incarnation of a switch has each SID at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionName {
    pub(super) sid: u64,
    pub(super) switch: SocketAddr,
    /// Incarnation of the set at the switch.
    pub(super) incarnation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the commands")]
pub(super) enum What<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    Cas {
        key: &'a [u8],
        expected: &'a [u8],
        value: &'a [u8],
    },
    Incr {
        key: &'a [u8],
        by: i64,
    },
    Create {
        key: &'a [u8],
        value: &'a [u8],
    },
    Update {
        key: &'a [u8],
        #[serde(borrow)]
        update: Update<&'a [u8]>,
    },
    Stage {
        key: &'a [u8],
        #[serde(borrow)]
        part: Part<'a>,
    },
    Transact {
        key: &'a [u8],
        /// As in the WRITE.
        steps: &'a [u8],
    },
}

impl ClientWrite<'_> {
    /// Of the leader, which has no client id: it removes a key that is due.
    pub(super) fn is_expiry(&self) -> bool {
        self.client == 0 && self.what.removes_due()
    }
}

impl<'a> What<'a> {
    pub(super) fn key(&self) -> &'a [u8] {
        let (Self::Put { key, .. }
        | Self::Delete { key }
        | Self::Cas { key, .. }
        | Self::Incr { key, .. }
        | Self::Create { key, .. }
        | Self::Update { key, .. }
        | Self::Stage { key, .. }
        | Self::Transact { key, .. }) = self;
        key
    }

    /// Whether all it can do is to remove the key.
    pub(super) fn removes(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::Update { update: Update { change: Change::Remove, .. }, .. })
    }

    /// Whether all it can do is to remove the key if it is due.
    pub(super) fn removes_due(&self) -> bool {
        matches!(self, Self::Update { update: Update { condition: Condition::Due, .. }, .. }) && self.removes()
            || planted(197)
    }

    pub(super) fn of(write: &Write, key: &'a [u8], arguments: &'a [u8]) -> Option<Self> {
        let expected = write.expected_length.get() as usize;
        let command = write.command()?;
        if key.is_empty() || !matches!(command, Command::Cas | Command::Update) && expected != 0 {
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
            Command::Create => Some(Self::Create { key, value: arguments }),
            Command::Update => Some(Self::Update { key, update: Update::decode(arguments, expected)? }),
            Command::Stage => Some(Self::Stage { key, part: Part::decode(arguments)? }),
            Command::Transact => {
                let has_length = |key: &[u8]| (1..=KEY_MAX).contains(&key.len());
                let is_of_key = |step: &Step<&[u8]>| has_length(step.key) && key_hash(step.key) == key_hash(key);
                let steps = Step::decode_all(arguments)?;
                (!steps.is_empty() && steps.iter().all(is_of_key)).then_some(Self::Transact { key, steps: arguments })
            }
            Command::Open => None,
        }
    }
}

impl<'a> Record<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a record is plain data, and memory grows as needed")
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}
