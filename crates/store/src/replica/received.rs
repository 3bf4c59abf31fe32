//! Received datagrams: requests that a switch forwards, and answers of switches.

use super::entry::SessionName;
use super::reads::{Here, Path, Until};
use super::replies::{Asked, Replies, asked};
use super::room::may_use_reserve;
use super::session::Heard;
use super::writes::Arrived;
use super::{Event, Replica, epoch_of, packets};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{FLAG_LEADER_ONLY, NO_SLOT, Operation, Packet, Request, State, Status, key_hash, parse};
use std::net::SocketAddr;

impl Replica {
    pub(super) fn take_datagram(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match parse(datagram) {
            Ok(Packet::Read(..) | Packet::Write(..)) if !self.is_switch(from) => self.counters.foreign += 1,
            Ok(Packet::Read(request, key)) if self.is_for_us(request) => self.take_read(now, from, request, key),
            Ok(Packet::Write(request, write, key, arguments)) if self.is_for_us(request) => {
                self.take_write(now, &Arrived { from, request, write, key, arguments });
            }
            Ok(Packet::State(state)) => self.take_state(now, from, state),
            Ok(Packet::WriteReply(answer, status, _)) if self.is_switch(from) => self.take_answer(answer, status),
            Ok(Packet::Read(..) | Packet::Write(..)) => self.counters.foreign += 1,
            _ => self.counters.malformed += 1,
        }
    }

    /// An answer to HELLO, HEARTBEAT or END_SESSION.
    fn take_state(&mut self, now: Nanos, from: SocketAddr, state: &State) {
        let heard = match &mut self.sessions {
            Some(sessions) => sessions.answered(now, from, state, self.node.term()),
            None => self.presence.answered(now, from, state),
        };
        match heard {
            Heard::Taken => {}
            Heard::Stray => self.counters.stray_answers += 1,
            Heard::Unlike => {
                self.counters.unlike_switches += 1;
                self.tell_unlike(from);
            }
            Heard::Overtaken => {
                self.counters.overtaken_switches += 1;
                self.events.push_back(Event::Overtaken(from));
            }
        }
    }

    /// To this leader's own WRITEs. Only their effect in the log counts.
    fn take_answer(&mut self, answer: &Request, status: Status) {
        let is_own = status != Status::Cookie || self.expiry.take_cookie(answer);
        self.counters.stray_answers += u64::from(!is_own);
    }

    /// Other senders get no answer: a forged address could fill the send buffer with packets to hosts that do not exist.
    fn is_switch(&self, from: SocketAddr) -> bool {
        self.config.switches.contains(&from) || self.state.sessions.iter().any(|session| session.switch == from)
    }

    fn tell_unlike(&mut self, switch: SocketAddr) {
        if self.unlike.insert(switch) {
            self.events.push_back(Event::Unlike(switch));
        }
    }

    fn is_for_us(&self, request: &Request) -> bool {
        request.set.get() == self.config.set && (planted(151) || self.slot() != NO_SLOT && request.slot == self.slot())
    }

    fn take_read(&mut self, now: Nanos, from: SocketAddr, request: &Request, key: &[u8]) {
        if let Some(status) = unfit(request, key) {
            return self.refuse_read(from, request, key, status);
        }
        match self.sender(from, request) {
            Sender::Session => {
                self.gauge.read(self.reads.waiting());
                self.take_read_of_session(now, from, request, key);
            }
            Sender::Switch => {
                let leader_only = request.flags & FLAG_LEADER_ONLY != 0;
                let status = if leader_only { Status::NotLeader } else { Status::Behind };
                self.refuse_read(from, request, key, status);
            }
            Sender::Foreign => self.counters.foreign += 1,
        }
    }

    fn take_read_of_session(&mut self, now: Nanos, from: SocketAddr, request: &Request, key: &[u8]) {
        let session = self.note_read(now, request);
        let (mode, node, leases) = (self.config.mode, &self.node, self.leases.as_ref());
        let here = Here { now, mode, node, applied: self.applied, leases, session };
        match here.decide(request) {
            Path::Refused(status) => self.refuse_read(from, request, key, status),
            Path::Consistent(index) => {
                self.counters.reads_as_leader += u64::from(session.is_some());
                let index_known = if planted(152) { self.node.last_index() } else { index };
                self.node.advance_commit(index_known);
                if self.applied >= index || planted(153) {
                    self.replies_to(request).serve(0, from, request, key);
                } else {
                    self.wait(now, from, request, key, Until::Applied(index));
                }
            }
            Path::Confirmed(index) => {
                self.counters.reads_as_leader += 1;
                self.wait(now, from, request, key, Until::Confirmed(now, index));
            }
            Path::Asked => self.wait(now, from, request, key, Until::Answered(self.read_index.next)),
        }
    }

    fn note_read(&mut self, now: Nanos, request: &Request) -> Option<u64> {
        let present = self.sessions.as_mut()?.present.as_mut()?;
        let sid = present.name.sid;
        if present.begun.is_none() || sid != request.sid.get() {
            return None;
        }
        if request.flags & FLAG_LEADER_ONLY != 0 {
            present.writes.note_read(now, request);
        }
        Some(sid)
    }

    fn refuse_read(&mut self, from: SocketAddr, request: &Request, key: &[u8], status: Status) {
        self.replies_to(request).refuse(from, request, key, status);
    }

    fn replies_to(&mut self, request: &Request) -> Replies<'_> {
        let (_, mut replies) = self.replies();
        if planted(151) {
            replies.slot = request.slot;
        }
        replies
    }

    /// A replica may commit by a READ's index and session. So the READ must come from the session's switch, proved by its address and by
    /// the secret half of the incarnation.
    fn sender(&self, from: SocketAddr, request: &Request) -> Sender {
        let named = self.state.sessions.iter().find(|session| session.sid == request.sid.get());
        let is_its = |session: &SessionName| {
            session.switch == from && request.header.epoch.get() == epoch_of(session.incarnation)
        };
        match named {
            Some(session) if is_its(session) => Sender::Session,
            None if planted(151) => Sender::Session,
            None if self.config.switches.contains(&from) => Sender::Switch,
            _ => Sender::Foreign,
        }
    }

    fn wait(&mut self, now: Nanos, from: SocketAddr, request: &Request, key: &[u8], until: Until) {
        if self.reads.waiting() < self.config.waiting {
            self.reads.push(now, from, request, key, until);
        } else {
            self.counters.overflowed += 1;
            self.refuse_read(from, request, key, Status::Busy);
        }
    }

    fn take_write(&mut self, now: Nanos, arrived: &Arrived<'_>) {
        self.counters.writes += 1;
        let (bounds, time) = (self.bounds(), self.store_time(now));
        let request = arrived.request;
        let present = self.sessions.as_mut().and_then(|sessions| sessions.present.as_mut()).filter(|present| {
            let name = &present.name;
            let is_its_switch = arrived.from == name.switch && request.header.epoch.get() == epoch_of(name.incarnation);
            is_its_switch && (request.sid.get() == name.sid || planted(129))
        });
        let refused = match present {
            None => {
                self.counters.writes_of_other_sessions += 1;
                Some(Status::NotLeader)
            }
            Some(present) => present.writes.take(now, arrived, &mut self.node, &self.state, bounds, time),
        };
        self.counters.writes_without_room += u64::from(!bounds.has_room && !may_use_reserve(arrived));
        if let Some(status) = refused {
            self.counters.writes_reordered += u64::from(status == Status::Reordered);
            let reply = packets::reply(request, Operation::WriteReply, self.slot(), status, [&[], &[]]);
            self.out.push_back((arrived.from, reply));
        }
    }
}

/// What is wrong with a READ.
fn unfit(request: &Request, key: &[u8]) -> Option<Status> {
    let hash = match asked(request, key) {
        Some(Asked::Page(cursor)) => cursor.hash(),
        Some(Asked::Value { key, .. }) => key_hash(key),
        None => return Some(Status::BadRequest),
    };
    (hash != request.hash.get()).then_some(Status::BadHash)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Session,
    /// Another switch of the set: the session's entry is not applied here yet, or the session is over.
    Switch,
    Foreign,
}
