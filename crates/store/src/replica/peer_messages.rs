//! Encoding of peer messages: Raft's messages, snapshot transfers, settings, and reports. `from_peers` handles them.

use super::balance::Load;
use super::config::{Agreed, Habits};
use super::founding::Origin;
use crate::log::{BadMessage, decode_message, encode_message};
use midflight_endpoint::Nanos;
use raft::prelude::Message;
use serde::{Deserialize, Serialize};

/// Identifies an attempt to send a snapshot. Later attempts are greater, under any leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Transfer {
    /// Term of the leader; unique to it.
    pub(super) term: u64,
    /// Counts the leader's attempts.
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) enum PeerMessage {
    Raft(Message),
    /// Another than Raft's.
    Own(OwnMessage),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OwnMessage {
    /// First message on a link: settings that both must share.
    Greeting(Agreed, Habits),
    /// A part of a snapshot; `number` counts from 0 without gaps.
    Part { transfer: Transfer, number: u64, content: Content },
    /// Number of data parts that are durable.
    Received { transfer: Transfer, parts: u64 },
    /// The receiver has given the transfer up.
    Refused { transfer: Transfer },
    /// A follower's load, for its leader.
    Load(Load),
    /// A follower requests a lease, at this time of its clock.
    AskLease { term: u64, at: Nanos },
    /// The grant; the leader shows entries up to `shown`.
    Lease { term: u64, echo: Nanos, shown: u64 },
    /// A follower asks its leader which index its waiting reads need.
    AskIndex { number: u64 },
    /// The leader's answer.
    Index { number: u64, index: u64 },
    /// Whether a switch answered the follower's last HELLO.
    Reach { is_heard: bool },
    /// Whether the follower's disk has room.
    Room { has_room: bool },
    /// Second message on a link: whose data the sender has.
    Origin(Origin),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// The first: Raft's message, without the data.
    Message(Vec<u8>),
    Data(Vec<u8>),
    End,
}

const RAFT: u8 = 0;
const OTHER: u8 = 1;

impl PeerMessage {
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), BadMessage> {
        match self {
            Self::Raft(message) => {
                encode_message(message, buffer)?;
                buffer.push(RAFT);
            }
            Self::Own(other) => other.encode(buffer),
        }
        Ok(())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        match bytes.split_last() {
            Some((&RAFT, message)) => decode_message(message).map(Self::Raft),
            Some((&OTHER, other)) => match postcard::take_from_bytes(other) {
                Ok((other, [])) => Ok(Self::Own(other)),
                _ => Err(BadMessage::Malformed),
            },
            _ => Err(BadMessage::Malformed),
        }
    }
}

impl OwnMessage {
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        let written = postcard::to_extend(self, std::mem::take(buffer));
        *buffer = written.expect("a peer message is plain data, and memory grows as needed");
        buffer.push(OTHER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_peer_message_decodes_to_what_was_encoded() {
        let transfer = Transfer { term: 3, number: 4 };
        let mut buffer = Vec::new();
        for content in [Content::Message(vec![1]), Content::Data(vec![2; 300]), Content::End] {
            let part = OwnMessage::Part { transfer, number: 9, content };
            part.encode(&mut buffer);
            assert!(matches!(PeerMessage::decode(&buffer), Ok(PeerMessage::Own(other)) if other == part));
            buffer.insert(0, 9);
            assert!(PeerMessage::decode(&buffer).is_err());
        }
        for other in [
            OwnMessage::Load(Load { reads: 5, queued_before: u64::MAX }),
            OwnMessage::AskLease { term: 3, at: 1 << 40 },
            OwnMessage::Lease { term: 3, echo: 1 << 40, shown: 7 },
            OwnMessage::AskIndex { number: u64::MAX },
            OwnMessage::Index { number: 0, index: 9 },
            OwnMessage::Reach { is_heard: true },
            OwnMessage::Room { has_room: false },
            OwnMessage::Origin(Origin::Nothing),
            OwnMessage::Origin(Origin::Accepts([(1, u64::MAX), (2, 5)].into())),
        ] {
            other.encode(&mut buffer);
            assert!(matches!(PeerMessage::decode(&buffer), Ok(PeerMessage::Own(read)) if read == other));
        }
        PeerMessage::Raft(Message::default()).encode(&mut buffer).unwrap();
        assert!(
            matches!(PeerMessage::decode(&buffer), Ok(PeerMessage::Raft(message)) if message == Message::default())
        );
        assert_eq!(PeerMessage::decode(&[]).unwrap_err(), BadMessage::Malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = PeerMessage::decode(&bytes);
        }
    }
}
