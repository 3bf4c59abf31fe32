//! Whether replies to READs pass the switch.

use midflight_wire::store::{FLAG_LEADER_ONLY, Packet, Status, parse};
use std::collections::BTreeMap;

/// Replies to READs at a switch with the strict check, except refusals and the leader's own.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// SEQ of each READ that was sent for a stable key group.
    read_seq: BTreeMap<u64, u64>,
    /// The leader's slot; its own replies are not counted.
    pub(crate) leader: u8,
    /// Forwarded to the client.
    pub(crate) passed: u64,
    /// Forwarded replies that show a later write than their READ expected.
    pub(crate) passed_later: u64,
    /// Turned into READs to the leader.
    pub(crate) turned_back: u64,
}

impl Replies {
    pub(super) fn note(&mut self, came: &[u8], went: &[u8]) {
        match (parse(came), parse(went)) {
            (Ok(Packet::Read(..)), Ok(Packet::Read(read, _)))
                if read.flags & FLAG_LEADER_ONLY == 0 && read.slot != self.leader =>
            {
                self.read_seq.insert(read.request.get(), read.seq.get());
            }
            (Ok(Packet::ReadReply(reply, ..)), Ok(went)) if reply.status != Status::Behind as u8 => {
                let Some(seq) = self.read_seq.remove(&reply.request.get()) else { return };
                let has_passed = matches!(went, Packet::ReadReply(..));
                self.passed += u64::from(has_passed);
                self.passed_later += u64::from(has_passed && reply.seq.get() > seq);
                self.turned_back += u64::from(!has_passed);
            }
            _ => {}
        }
    }
}
