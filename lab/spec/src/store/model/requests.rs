//! READ and WRITE: where the switch sends them.

use super::packets::{Came, Effect, answer, refused};
use super::set::{Kgroup, Session, Set};
use super::{IDENTITY, Model};
use midflight_dataplane::store::{ReplyCheck, SetStats, Verdict};
use midflight_wire::store::{
    FLAG_ANY_REPLICA, FLAG_DIRECT, FLAG_LEADER_ONLY, FLAG_UNSERVED, FLAGS_KEPT, NO_SLOT, Operation, Request, Status,
};
use zerocopy::IntoBytes;

impl Model {
    pub(super) fn request(&mut self, came: Came<'_>, request: &Request) -> Effect {
        let Came { from, now, .. } = came;
        let answered = |answer: Request| vec![(from, answer.as_bytes().to_vec())];
        let Some(set) = self.sets.get_mut(&request.set.get()) else {
            return (Verdict::UnknownSet, answered(answer(request, Status::UnknownSet)));
        };
        let said = request.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
        if !self.cookies.takes(now, IDENTITY, from, said) {
            let mut asks = answer(request, Status::Cookie);
            let cookie = self.cookies.give(now, IDENTITY, from);
            asks.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
            return (Verdict::NoCookie, answered(asks));
        }
        if set.active(now).is_none() {
            let is_unserved = request.flags & FLAG_UNSERVED != 0;
            set.unserved = set.unserved.wrapping_add(is_unserved.into());
            self.stats.sets[set.place].unserved += u64::from(is_unserved);
            return (Verdict::Inactive, answered(answer(request, Status::Inactive)));
        }
        self.is_genuine = true;
        let request = Request { client: from.into(), ..*request };
        let stats = &mut self.stats.sets[set.place];
        if request.header.operation == Operation::Write as u8 {
            write(came, set, &request, stats)
        } else {
            read(came, set, &request, stats)
        }
    }
}

fn stamped(set: &Set, session: &Session, request: &Request, slot: u8, flags: u8) -> Request {
    let kgroup = session.kgroup(set.kgroup_of(request));
    let mut request = Request {
        sid: session.sid.into(),
        seq: kgroup.seq.into(),
        index: kgroup.index.into(),
        replicas: 0,
        slot,
        status: 0,
        flags: request.flags & FLAGS_KEPT | flags,
        ..*request
    };
    request.header.epoch = set.epoch().into();
    request
}

fn send_to(came: Came<'_>, set: &Set, request: &Request, slot: u8, flags: u8) -> Effect {
    let Some(session) = &set.session else { return refused(Verdict::Inactive) };
    let Some(to) = session.replica(slot) else { return refused(Verdict::Inactive) };
    came.forward(to, &stamped(set, session, request, slot, flags))
}

pub(super) fn write(came: Came<'_>, set: &mut Set, request: &Request, stats: &mut SetStats) -> Effect {
    let number = set.kgroup_of(request);
    let Some(session) = &mut set.session else { return refused(Verdict::Inactive) };
    session.seq += 1;
    let kgroup = Kgroup { stable: false, seq: session.seq, ..session.kgroup(number) };
    session.kgroups.insert(number, kgroup);
    stats.writes += 1;
    let leader = session.leader;
    send_to(came, set, request, leader, 0)
}

pub(super) fn read(came: Came<'_>, set: &mut Set, request: &Request, stats: &mut SetStats) -> Effect {
    let number = set.kgroup_of(request);
    let Some(session) = &set.session else { return refused(Verdict::Inactive) };
    let (kgroup, leader, is_any) = (session.kgroup(number), session.leader, session.is_any);
    let chosen = if kgroup.stable || is_any { set.choose(kgroup) } else { None };
    let Some(slot) = chosen else {
        stats.leader_only += 1;
        return ask_leader(came, set, request);
    };
    if slot == leader {
        stats.to_leader += 1;
    } else {
        stats.to_followers += 1;
    }
    let direct = if is_direct(set, request, slot) { FLAG_DIRECT } else { 0 };
    if direct == 0 {
        count_sent(set, slot);
    } else {
        stats.direct += 1;
    }
    send_to(came, set, request, slot, direct | if is_any { FLAG_ANY_REPLICA } else { 0 })
}

/// Whether the replica may reply to the client directly. After a HEARTBEAT, the first READs that could be direct probe
/// their replica instead.
fn is_direct(set: &mut Set, request: &Request, slot: u8) -> bool {
    let may_be = set.config.reply_check == ReplyCheck::Direct && request.flags & FLAG_DIRECT != 0;
    let Some(session) = set.session.as_mut().filter(|_| may_be) else { return false };
    let left = &mut session.probes[usize::from(slot)];
    let is_probe = *left > 0;
    *left = left.saturating_sub(1);
    !is_probe
}

fn count_sent(set: &mut Set, slot: u8) {
    if let Some(session) = &mut set.session {
        let sent = &mut session.sent[usize::from(slot)];
        *sent = sent.wrapping_add(1);
    }
}

pub(super) fn ask_leader(came: Came<'_>, set: &mut Set, request: &Request) -> Effect {
    let leader = set.session.as_ref().map_or(NO_SLOT, |session| session.leader);
    count_sent(set, leader);
    send_to(came, set, request, leader, FLAG_LEADER_ONLY)
}
