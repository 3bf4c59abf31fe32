//! Full disks. A replica whose disk is full has some space in reserve: deletes, reads and elections go on by it. Other writes are
//! refused while no majority of the disks has room.

use super::letters::{Letter, Other};
use super::{Event, Replica};
use midflight_endpoint::{Lane, Nanos};
use midflight_wire::reads::Command;
use std::collections::BTreeMap;

/// A store that takes no more bytes has a snapshot for which the reserve is enough.
const SMALL_STORE: usize = 4 << 20;

/// Whether a WRITE may use the reserve: what removes something makes room, and needs a client id.
pub(super) fn may_use_reserve(command: Option<Command>) -> bool {
    matches!(command, Some(Command::Delete | Command::Open))
}

#[derive(Default)]
pub(super) struct Room {
    /// This replica's disk is full.
    is_full: bool,
    /// The leader's: whether members' disks have room, as far as they have said.
    told: BTreeMap<u64, bool>,
}

impl Room {
    pub(super) fn begin_leading(&mut self) {
        self.told.clear();
    }
}

impl Replica {
    /// Whether this replica's disk has room for more than its reserve is for. It has, until its driver says that it has not.
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

    /// Whether its disk is full.
    pub(super) fn is_full(&self) -> bool {
        self.room.is_full
    }

    /// Whether a full disk has room for a snapshot, which then makes more.
    pub(super) fn fits_reserve(&self) -> bool {
        self.state.store.bytes() <= SMALL_STORE && self.log_bytes > SMALL_STORE
    }

    /// Tells the leader whether there is room. What is lost is told again, with the next report of the load.
    pub(super) fn report_room(&mut self) {
        if let Some(leader) = self.node.leader().filter(|&leader| leader != self.config.id) {
            let has_room = !self.room.is_full;
            self.links.queue(leader, Lane::Prompt, Letter::Other(Other::Room { has_room }));
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

    /// `None`: the member has not said whether its disk has room.
    pub(super) fn room_of(&self, member: u64) -> Option<bool> {
        if member == self.config.id { Some(!self.room.is_full) } else { self.room.told.get(&member).copied() }
    }

    /// Whether what a leader appends finds room on a majority of the disks.
    pub(super) fn majority_has_room(&self) -> bool {
        let members = &self.state.members;
        let room = members.iter().filter(|member| self.room_of(member.id) != Some(false)).count();
        2 * room > members.len()
    }
}
