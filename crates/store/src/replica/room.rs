//! Full disks. A full disk keeps a reserve for deletes, reads and elections. Other writes are refused while no majority of the disks has
//! room.

use super::entry::What;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::writes::Arrived;
use super::{Event, Replica};
use midflight_endpoint::{Lane, Nanos};
use midflight_wire::store::Command;
use std::collections::BTreeMap;

/// The reserve has room for the snapshot of a store up to this size.
const SMALL_STORE: usize = 4 << 20;

/// Whether a WRITE may use the reserve: what removes a key makes room, and needs a client id.
pub(super) fn may_use_reserve(arrived: &Arrived<'_>) -> bool {
    match arrived.write.command() {
        Some(Command::Open) => true,
        Some(_) => What::of(arrived.write, arrived.key, arrived.arguments).is_some_and(|what| what.removes()),
        None => false,
    }
}

#[derive(Default)]
pub(super) struct Room {
    is_full: bool,
    told: BTreeMap<u64, bool>,
}

impl Room {
    pub(super) fn begin_leading(&mut self) {
        self.told.clear();
    }
}

impl Replica {
    /// The driver reports whether the disk has room beyond the reserve. Initially it has.
    pub fn set_disk_room(&mut self, now: Nanos, has_room: bool) {
        if self.room.is_full != has_room {
            return;
        }
        self.room.is_full = !has_room;
        self.events.push_back(Event::Room(has_room));
        if !has_room {
            self.drop_own_snapshot();
            self.refuse_incoming();
        }
        self.report_room();
        self.go_on(now);
    }

    pub(super) fn is_full(&self) -> bool {
        self.room.is_full
    }

    /// Whether a snapshot fits a full disk. It then makes room.
    pub(super) fn fits_reserve(&self) -> bool {
        self.state.store.bytes() <= SMALL_STORE && self.log_bytes > SMALL_STORE
    }

    /// Reports to the leader whether there is room. Each report of the load repeats it.
    pub(super) fn report_room(&mut self) {
        if let Some(leader) = self.node.leader().filter(|&leader| leader != self.config.id) {
            let has_room = !self.room.is_full;
            self.links.queue(leader, Lane::Prompt, PeerMessage::Own(OwnMessage::Room { has_room }));
        }
    }

    pub(super) fn take_room(&mut self, peer: u64, has_room: bool) {
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        if self.sessions.is_none() || !is_member {
            self.counters.loads_astray += 1;
        } else {
            self.room.told.insert(peer, has_room);
        }
    }

    /// `None`: the member has not reported.
    pub(super) fn room_of(&self, member: u64) -> Option<bool> {
        if member == self.config.id { Some(!self.room.is_full) } else { self.room.told.get(&member).copied() }
    }

    pub(super) fn majority_has_room(&self) -> bool {
        let members = &self.state.members;
        let room = members.iter().filter(|member| self.room_of(member.id) != Some(false)).count();
        2 * room > members.len()
    }
}
