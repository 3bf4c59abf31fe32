//! Encodes Raft entries, snapshots and messages for the log and for links: mirrors of raft-rs's protobuf structures, in `postcard`, whose
//! memory use is bounded by the input's length.

use bytes::Bytes;
use midflight_endpoint::MESSAGE_MAX;
use raft::prelude::{ConfState, Entry, EntryType, Message, MessageType, Snapshot};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// Most entries in a message. An entry takes more memory than bytes on a link, so the bound on bytes is not enough.
pub const ENTRIES_MAX: usize = 1 << 18;
/// Bound on the members of each kind in a configuration.
const MEMBERS_MAX: usize = 1024;

/// Why a message cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Longer than [`MESSAGE_MAX`].
    #[error(
        "a message of {0} bytes is longer than {MESSAGE_MAX}, the most that a link carries: propose smaller values"
    )]
    TooLong(usize),
    /// More than [`ENTRIES_MAX`] entries.
    #[error("a message with {0} entries has more than {ENTRIES_MAX}: lower Raft's bound on the bytes of a message")]
    TooManyEntries(usize),
    /// Not a message, or followed by other bytes.
    #[error("the bytes are no message: use one release of Midflight on all replicas")]
    Malformed,
}

/// Encodes a message into `buffer`, which is cleared first. Omits fields that raft-rs no longer uses.
///
/// # Errors
/// If the message exceeds a bound.
pub fn encode_message(message: &Message, buffer: &mut Vec<u8>) -> Result<(), BadMessage> {
    if message.entries.len() > ENTRIES_MAX {
        return Err(BadMessage::TooManyEntries(message.entries.len()));
    }
    buffer.clear();
    write(&MessageMirror::of(message), buffer);
    if buffer.len() > MESSAGE_MAX { Err(BadMessage::TooLong(buffer.len())) } else { Ok(()) }
}

/// Decodes a message.
///
/// # Errors
/// If the bytes are not a message, or exceed a bound.
pub fn decode_message(bytes: &[u8]) -> Result<Message, BadMessage> {
    if bytes.len() > MESSAGE_MAX {
        return Err(BadMessage::TooLong(bytes.len()));
    }
    let mirror: MessageMirror<'_> = read(bytes).ok_or(BadMessage::Malformed)?;
    Ok(mirror.into_message())
}

pub(super) fn write(value: &impl Serialize, buffer: &mut Vec<u8>) {
    let written = postcard::to_extend(value, std::mem::take(buffer));
    *buffer = written.expect("postcard writes integers, bytes and lists of them into a vector without fail");
}

/// Decodes a value that must take all of `bytes`.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// Bytes that serde reads and writes as one string, not one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blob<'a>(pub(super) &'a [u8]);

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Blob<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(deserializer).map(Self)
    }
}

impl Blob<'_> {
    fn copy(self) -> Bytes {
        Bytes::copy_from_slice(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Normal,
    ConfChange,
    ConfChangeV2,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryMirror<'a> {
    kind: Kind,
    term: u64,
    index: u64,
    #[serde(borrow)]
    data: Blob<'a>,
    #[serde(borrow)]
    context: Blob<'a>,
}

impl<'a> EntryMirror<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        let kind = match entry.entry_type {
            EntryType::EntryNormal => Kind::Normal,
            EntryType::EntryConfChange => Kind::ConfChange,
            EntryType::EntryConfChangeV2 => Kind::ConfChangeV2,
        };
        Self { kind, term: entry.term, index: entry.index, data: Blob(&entry.data), context: Blob(&entry.context) }
    }

    pub(super) fn into_entry(self) -> Entry {
        let entry_type = match self.kind {
            Kind::Normal => EntryType::EntryNormal,
            Kind::ConfChange => EntryType::EntryConfChange,
            Kind::ConfChangeV2 => EntryType::EntryConfChangeV2,
        };
        let Self { term, index, data, context, .. } = self;
        Entry { entry_type, term, index, data: data.copy(), context: context.copy(), ..Entry::default() }
    }
}

type Members = Bounded<u64, MEMBERS_MAX>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConfMirror {
    voters: Members,
    learners: Members,
    voters_outgoing: Members,
    learners_next: Members,
    auto_leave: bool,
}

impl ConfMirror {
    pub(super) fn of(state: &ConfState) -> Self {
        Self {
            voters: Bounded(state.voters.clone()),
            learners: Bounded(state.learners.clone()),
            voters_outgoing: Bounded(state.voters_outgoing.clone()),
            learners_next: Bounded(state.learners_next.clone()),
            auto_leave: state.auto_leave,
        }
    }

    pub(super) fn into_state(self) -> ConfState {
        let mut state = ConfState::default();
        (state.voters, state.learners) = (self.voters.0, self.learners.0);
        (state.voters_outgoing, state.learners_next) = (self.voters_outgoing.0, self.learners_next.0);
        state.auto_leave = self.auto_leave;
        state
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SnapshotMirror<'a> {
    index: u64,
    term: u64,
    members: ConfMirror,
    #[serde(borrow)]
    data: Blob<'a>,
}

impl<'a> SnapshotMirror<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let metadata = snapshot.get_metadata();
        let members = ConfMirror::of(metadata.get_conf_state());
        Self { index: metadata.index, term: metadata.term, members, data: Blob(&snapshot.data) }
    }

    fn into_snapshot(self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (self.index, self.term);
        metadata.set_conf_state(self.members.into_state());
        snapshot.data = self.data.copy();
        snapshot
    }
}

/// Indexed by raft-rs's own numbers.
const MESSAGE_TYPES: [MessageType; 19] = [
    MessageType::MsgHup,
    MessageType::MsgBeat,
    MessageType::MsgPropose,
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgUnreachable,
    MessageType::MsgSnapStatus,
    MessageType::MsgCheckQuorum,
    MessageType::MsgTransferLeader,
    MessageType::MsgTimeoutNow,
    MessageType::MsgReadIndex,
    MessageType::MsgReadIndexResp,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
];

/// A message type, encoded as its index in [`MESSAGE_TYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
struct TypeMirror(MessageType);

impl From<TypeMirror> for u8 {
    fn from(mirror: TypeMirror) -> Self {
        mirror.0 as Self
    }
}

impl TryFrom<u8> for TypeMirror {
    type Error = BadMessage;

    fn try_from(number: u8) -> Result<Self, BadMessage> {
        MESSAGE_TYPES.get(usize::from(number)).copied().map(Self).ok_or(BadMessage::Malformed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MessageMirror<'a> {
    kind: TypeMirror,
    to: u64,
    from: u64,
    term: u64,
    log_term: u64,
    index: u64,
    commit: u64,
    commit_term: u64,
    request_snapshot: u64,
    reject: bool,
    reject_hint: u64,
    priority: i64,
    #[serde(borrow)]
    context: Blob<'a>,
    #[serde(borrow)]
    snapshot: Option<SnapshotMirror<'a>>,
    #[serde(borrow)]
    entries: Bounded<EntryMirror<'a>, ENTRIES_MAX>,
}

impl<'a> MessageMirror<'a> {
    fn of(message: &'a Message) -> Self {
        Self {
            kind: TypeMirror(message.msg_type),
            to: message.to,
            from: message.from,
            term: message.term,
            log_term: message.log_term,
            index: message.index,
            commit: message.commit,
            commit_term: message.commit_term,
            request_snapshot: message.request_snapshot,
            reject: message.reject,
            reject_hint: message.reject_hint,
            priority: message.priority,
            context: Blob(&message.context),
            snapshot: message.has_snapshot().then(|| SnapshotMirror::of(message.get_snapshot())),
            entries: Bounded(message.entries.iter().map(EntryMirror::of).collect()),
        }
    }

    fn into_message(self) -> Message {
        let mut message = Message {
            msg_type: self.kind.0,
            to: self.to,
            from: self.from,
            term: self.term,
            log_term: self.log_term,
            index: self.index,
            commit: self.commit,
            commit_term: self.commit_term,
            request_snapshot: self.request_snapshot,
            reject: self.reject,
            reject_hint: self.reject_hint,
            priority: self.priority,
            context: self.context.copy(),
            entries: self.entries.0.into_iter().map(EntryMirror::into_entry).collect(),
            ..Message::default()
        };
        if let Some(snapshot) = self.snapshot {
            message.set_snapshot(snapshot.into_snapshot());
        }
        message
    }
}

/// A list with at most this many elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
struct Bounded<T, const MOST: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Bounded<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BoundedVisitor(PhantomData))
    }
}

struct BoundedVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for BoundedVisitor<T, MOST> {
    type Value = Bounded<T, MOST>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = from.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            list.push(item);
        }
        Ok(Bounded(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_bytes()(bytes in proptest::collection::vec(any::<u8>(), 0..40)) -> Bytes {
            Bytes::from(bytes)
        }
    }

    prop_compose! {
        fn any_entry()(
            kind in 0..3, (term, index) in any::<(u64, u64)>(), data in any_bytes(), context in any_bytes()
        ) -> Entry {
            let mut entry = Entry { term, index, data, context, ..Entry::default() };
            entry.entry_type =
                [EntryType::EntryNormal, EntryType::EntryConfChange, EntryType::EntryConfChangeV2][kind as usize];
            entry
        }
    }

    prop_compose! {
        fn any_snapshot()(
            (index, term, auto_leave) in any::<(u64, u64, bool)>(), data in any_bytes(), sets in any::<[Vec<u64>; 4]>()
        ) -> Snapshot {
            let [voters, learners, voters_outgoing, learners_next] = sets;
            let state = ConfState { voters, learners, voters_outgoing, learners_next, auto_leave, ..ConfState::default() };
            let mut snapshot = Snapshot { data, ..Snapshot::default() };
            (snapshot.mut_metadata().index, snapshot.mut_metadata().term) = (index, term);
            snapshot.mut_metadata().set_conf_state(state);
            snapshot
        }
    }

    prop_compose! {
        fn any_message()(
            kind in 0..MESSAGE_TYPES.len(), numbers in any::<[u64; 9]>(), (reject, priority) in any::<(bool, i64)>(),
            context in any_bytes(), snapshot in proptest::option::of(any_snapshot()),
            entries in proptest::collection::vec(any_entry(), 0..5)
        ) -> Message {
            let [to, from, term, log_term, index, commit, commit_term, request_snapshot, reject_hint] = numbers;
            let mut message = Message {
                msg_type: MESSAGE_TYPES[kind], to, from, term, log_term, index, commit, commit_term, request_snapshot,
                reject, reject_hint, priority, context, entries: entries.into(), ..Message::default()
            };
            if let Some(snapshot) = snapshot {
                message.set_snapshot(snapshot);
            }
            message
        }
    }

    proptest! {
        #[test]
        fn a_message_comes_out_as_it_went_in(message in any_message()) {
            let mut bytes = vec![7];
            encode_message(&message, &mut bytes).unwrap();
            prop_assert_eq!(decode_message(&bytes).unwrap(), message);
            bytes.push(0);
            prop_assert_eq!(decode_message(&bytes), Err(BadMessage::Malformed));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_message(&bytes);
        }

        #[test]
        fn a_message_with_a_changed_byte_is_read_without_harm(
            message in any_message(), at in any::<prop::sample::Index>(), byte in any::<u8>()
        ) {
            let mut bytes = Vec::new();
            encode_message(&message, &mut bytes).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode_message(&bytes);
        }
    }

    #[test]
    fn types_have_their_numbers() {
        for (number, kind) in MESSAGE_TYPES.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn a_message_beyond_a_bound_is_refused() {
        let entries = vec![Entry::default(); ENTRIES_MAX + 1];
        let mut message = Message { entries: entries.into(), ..Message::default() };
        let mut bytes = Vec::new();
        let many = Err(BadMessage::TooManyEntries(ENTRIES_MAX + 1));
        assert_eq!(encode_message(&message, &mut bytes), many);
        write(&MessageMirror::of(&message), &mut bytes);
        assert_eq!(
            decode_message(&bytes),
            Err(BadMessage::Malformed),
            "its number of entries is checked by the reader too"
        );
        message.entries = vec![Entry { data: vec![0; MESSAGE_MAX].into(), ..Entry::default() }].into();
        assert!(matches!(encode_message(&message, &mut bytes), Err(BadMessage::TooLong(_))));
        assert!(matches!(decode_message(&bytes), Err(BadMessage::TooLong(_))));
    }

    #[test]
    fn a_number_of_entries_without_entries_takes_no_memory() {
        let mut bytes = Vec::new();
        encode_message(&Message::default(), &mut bytes).unwrap();
        *bytes.last_mut().unwrap() = 0xff;
        bytes.extend([0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(decode_message(&bytes), Err(BadMessage::Malformed));
    }
}
