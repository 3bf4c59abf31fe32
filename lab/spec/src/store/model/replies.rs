//! READ_REPLY and WRITE_REPLY: whether a reply passes, and whether it closes its key group.

use super::Model;
use super::packets::{Came, Effect, refused};
use super::requests::ask_leader;
use super::set::{Kgroup, Session, Set};
use midflight_dataplane::store::{ReplyCheck, Verdict};
use midflight_wire::store::{FLAG_ANY_REPLICA, FLAG_DIRECT, FLAG_LEADER_ONLY, Operation, Request, Status};
use zerocopy::IntoBytes;

impl Model {
    /// The set that a reply names, if it comes from that set's replica.
    fn set_of_reply(&mut self, came: Came<'_>, reply: &Request) -> Result<&mut Set, Verdict> {
        let set = self.sets.get_mut(&reply.set.get()).ok_or(Verdict::UnknownSet)?;
        let named = set.session.as_ref().and_then(|session| session.replica(reply.slot));
        if named != Some(came.from) {
            return Err(Verdict::ForeignReplica);
        }
        if reply.header.epoch.get() != set.epoch() {
            return Err(Verdict::ForeignEpoch);
        }
        Ok(set)
    }

    pub(super) fn write_reply(&mut self, came: Came<'_>, reply: &Request, status: Status) -> Effect {
        let set = match self.set_of_reply(came, reply) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        let has_closed = close(came.now, set, reply, status);
        let (place, seen) = (set.place, set.for_client(reply));
        self.stats.sets[place].closed += u64::from(has_closed);
        if reply.client.port.get() == 0 {
            return refused(Verdict::Ok);
        }
        came.forward(reply.client, &seen)
    }

    pub(super) fn read_reply(&mut self, came: Came<'_>, reply: &Request, status: Status) -> Effect {
        let now = came.now;
        let set = match self.set_of_reply(came, reply) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        if reply.client.port.get() == 0 {
            return refused(Verdict::NoClient);
        }
        let is_direct = reply.flags & FLAG_DIRECT != 0;
        if let Some(session) = set.session.as_mut().filter(|session| session.sid == reply.sid.get() && !is_direct) {
            let answered = &mut session.answered[usize::from(reply.slot)];
            *answered = answered.wrapping_add(1);
        }
        let kgroup = set.kgroup_of(reply);
        let is_own = |session: &&Session| session.sid == reply.sid.get();
        let active = set.active(now);
        let is_current = set
            .session
            .as_ref()
            .filter(is_own)
            .is_some_and(|session| reply.slot == session.leader || session.kgroup(kgroup).seq == reply.seq.get());
        let is_for_leader_only = reply.flags & FLAG_LEADER_ONLY != 0;
        let is_good = match status {
            Status::Behind => false,
            _ if is_for_leader_only => active.filter(is_own).is_some(),
            _ if reply.flags & FLAG_ANY_REPLICA != 0 => true,
            _ => set.config.reply_check != ReplyCheck::Strict || is_current,
        };
        if is_good {
            return came.forward(reply.client, &set.for_client(reply));
        }
        let (is_active, place, seen) = (active.is_some(), set.place, set.for_client(reply));
        if is_active && !is_for_leader_only {
            let stats = &mut self.stats.sets[place];
            stats.turned_back += 1;
            return self.turn_back(came, reply);
        }
        self.stats.sets[place].outdated += 1;
        let status = if is_active { Status::NotLeader } else { Status::Inactive };
        let told = Request { status: status as u8, key_length: 0.into(), ..seen };
        (Verdict::Forwarded, vec![(reply.client.into(), told.as_bytes().to_vec())])
    }

    /// Sends a READ to the leader after all.
    fn turn_back(&mut self, came: Came<'_>, reply: &Request) -> Effect {
        let end = size_of::<Request>() + usize::from(reply.key_length.get());
        let read = Came { bytes: &came.bytes[..end], ..came };
        let mut request = *reply;
        request.header.operation = Operation::Read as u8;
        match self.sets.get_mut(&reply.set.get()) {
            Some(set) => ask_leader(read, set, &request),
            None => refused(Verdict::UnknownSet),
        }
    }
}

/// The closing rule; whether it applied.
fn close(now: u64, set: &mut Set, reply: &Request, status: Status) -> bool {
    let (sid, seq, index) = (reply.sid.get(), reply.seq.get(), reply.index.get());
    let number = set.kgroup_of(reply);
    let Some(session) = set.session.as_mut().filter(|session| session.sid == sid && now < session.lease_ends_ns) else {
        return false;
    };
    if seq <= session.seq {
        session.answered_seq = session.answered_seq.max(seq);
    }
    let kgroup = session.kgroup(number);
    let closes = !matches!(status, Status::NotLeader | Status::Reordered) && kgroup.seq == seq && index >= kgroup.index;
    if closes {
        session.kgroups.insert(number, Kgroup { stable: true, seq, index, replicas: reply.replicas });
    }
    closes
}
