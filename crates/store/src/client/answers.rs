//! An answer counts only if it comes from a configured switch and names an open request, whose number is secret. A direct reply may come
//! from any address, if its READ asked for one.

use super::outcome::{failure, outcome};
use super::requests::Kind;
use super::{Answer, Client, Event, OperationKey, Reached, StoreError};
use midflight_endpoint::Nanos;
use midflight_endpoint::requests::State;
use midflight_wire::store::{FLAG_DIRECT, FLAG_OFFERS_DIRECT, NO_SLOT, Request as Wire, Status};
use std::net::SocketAddr;

pub(super) struct Reply<'a> {
    pub(super) request: &'a Wire,
    pub(super) status: Status,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: &'a [u8],
}

impl Client {
    pub(super) fn handle_reply(&mut self, now: Nanos, from: SocketAddr, reply: &Reply<'_>) {
        if reply.request.flags & FLAG_DIRECT != 0 {
            return self.handle_direct(now, reply);
        }
        let number = reply.request.request.get();
        let Some(switch) = self.switches.find(from) else {
            self.counters.foreign_address += 1;
            return;
        };
        let Some(request) = self.requests.get(number).filter(|r| r.body.is_write() != reply.key.is_some()) else {
            self.counters.unexpected_answers += 1;
            return;
        };
        if reply.request.slot != NO_SLOT {
            self.switches.keep_offer(switch, reply.request.flags & FLAG_OFFERS_DIRECT != 0);
        }
        let sequence = reply.request.header.sequence.get();
        if sequence >= request.transmissions() || reply.request.set.get() != self.config.set {
            self.counters.bad_answers += 1;
        } else if sequence < request.body.sent_before {
            self.counters.old_answers += 1;
        } else if is_refusal(reply.status) {
            // Only for the last transmission, and only once; otherwise each late refusal would cause a packet.
            let is_last = sequence + 1 == request.transmissions() && request.body.switch == switch;
            let is_present = is_last && request.state() == State::Sent;
            if is_present {
                self.refused(now, number, switch, reply);
            } else {
                self.counters.old_answers += 1;
            }
        } else {
            // If another switch answers the repeat, the first switch has failed, and the direct reply is no evidence.
            let is_lost = request.body.asked_direct == Some(switch) && sequence > 0;
            if self.answered(now, number, switch, reply) && is_lost {
                self.counters.direct_lost += 1;
                self.direct.was_lost(now, number);
            }
        }
    }

    /// A reply that a replica sent directly. It can only answer the first transmission, which asked for it.
    fn handle_direct(&mut self, now: Nanos, reply: &Reply<'_>) {
        let number = reply.request.request.get();
        let Some(request) = self.requests.get(number).filter(|_| reply.key.is_some()) else {
            self.counters.unexpected_answers += 1;
            self.direct.came_late(number);
            return;
        };
        let Some(switch) = request.body.asked_direct else {
            self.counters.foreign_address += 1;
            return;
        };
        let is_first = reply.request.header.sequence.get() == 0;
        let is_good = matches!(reply.status, Status::Done | Status::NotFound | Status::Piece);
        let is_own = is_first && is_good && reply.request.set.get() == self.config.set;
        if is_own && self.answered(now, number, switch, reply) {
            self.counters.direct_answers += 1;
            self.direct.came();
        } else if !is_own {
            self.counters.bad_answers += 1;
        }
    }

    /// Repeats the request, perhaps at another switch.
    fn refused(&mut self, now: Nanos, number: u64, switch: usize, reply: &Reply<'_>) {
        // Repeats do not ask for a direct reply, so they prove nothing about it.
        self.direct.refused(number);
        if let Some(request) = self.requests.get_mut(number) {
            request.body.asked_direct = None;
        }
        if reply.status == Status::Cookie {
            return self.handle_cookie(now, number, switch, reply.request);
        }
        let says = match reply.status {
            Status::Inactive => Reached::Standby,
            Status::UnknownSet => Reached::OtherSets,
            _ => Reached::Serving,
        };
        self.switches.heard(switch, now, says);
        match reply.status {
            Status::Inactive => self.counters.inactive += 1,
            Status::UnknownSet => self.counters.unknown_set += 1,
            Status::NotLeader => self.counters.not_leader += 1,
            Status::Reordered => self.counters.reordered += 1,
            _ => self.counters.busy += 1,
        }
        let Some(request) = self.requests.get_mut(number) else { return };
        request.body.patience = 0;
        match reply.status {
            Status::Inactive | Status::UnknownSet => {
                let sent_at = request.last_sent_at();
                let until = self.switches.refused(switch, sent_at, now, &mut self.rng, &mut self.counters);
                if until > now { self.requests.hold(number, until) } else { self.requests.make_ready(number) }
            }
            Status::Reordered => self.requests.make_ready(number),
            _ => {
                let pauses = self.config.pause_min..=self.config.pause_max;
                self.requests.pause(now, number, pauses, &mut self.rng);
            }
        }
    }

    /// The switch requires a cookie. Repeats the request at once, but only once per retransmission timeout. The switch still counts as
    /// silent, because it may not accept our packets.
    fn handle_cookie(&mut self, now: Nanos, number: u64, switch: usize, said: &Wire) {
        self.counters.cookies += 1;
        let mut cookie = [0; 8];
        cookie.copy_from_slice(&said.client.ip[..8]);
        let cookie = u64::from_be_bytes(cookie);
        self.switches.keep_cookie(switch, cookie);
        let timeout = self.timeout_of(number);
        let Some(request) = self.requests.get_mut(number) else { return };
        if request.body.cookie != cookie && now >= request.body.heeds_cookies_from {
            request.body.heeds_cookies_from = now + timeout;
            self.requests.make_ready(number);
        }
    }

    fn answered(&mut self, now: Nanos, number: u64, switch: usize, reply: &Reply<'_>) -> bool {
        let Some(request) = self.requests.get(number) else { return false };
        let is_write = request.body.is_write();
        let measured_from = request.sent_at(reply.request.header.sequence.get());
        let was_taken = match &request.body.kind {
            Kind::Open => self.opening_answered(now, number, reply),
            Kind::Operation(_) if is_write && reply.status == Status::UnknownClient => {
                self.id_unknown(now, number);
                true
            }
            Kind::Operation(operation) => {
                let has_key = reply.key.is_none_or(|key| key == operation.key());
                let outcome = outcome(operation, reply.status, reply.value).filter(|_| has_key);
                outcome.map(|outcome| self.finish(number, outcome)).is_some()
            }
        };
        if !was_taken {
            self.counters.bad_answers += 1;
            return false;
        }
        if let Some(sent_at) = measured_from {
            let trip = if is_write { &mut self.write_trip } else { &mut self.read_trip };
            trip.sample(now.saturating_sub(sent_at));
        }
        self.switches.heard(switch, now, Reached::Serving);
        if let Some(switch) = self.switches.served(switch) {
            self.events.push_back(Event::SwitchChanged { switch });
        }
        true
    }

    fn opening_answered(&mut self, now: Nanos, number: u64, reply: &Reply<'_>) -> bool {
        match (reply.status, <[u8; 8]>::try_from(reply.value)) {
            (Status::Done, Ok(id)) => {
                self.counters.ids_opened += 1;
                self.opening_ended(number, Some(u64::from_be_bytes(id)));
            }
            (Status::ClientsFull, _) => {
                self.counters.clients_full += 1;
                self.may_open_from = now + self.config.pause_max;
                match self.opening_ended(number, None) {
                    Some(write) if self.lanes.any_open() => self.put_back(write),
                    Some(write) => self.finish(write, Err(StoreError::ClientsFull)),
                    None => {}
                }
            }
            (status, _) => {
                let Some(failure) = failure(status) else { return false };
                if let Some(write) = self.opening_ended(number, None) {
                    self.finish(write, Err(failure));
                }
            }
        }
        true
    }

    /// An opening has ended. With an id, sends the lane's write. Without one, returns the write, which keeps the lane.
    pub(super) fn opening_ended(&mut self, number: u64, id: Option<u64>) -> Option<u64> {
        let lane = self.requests.remove(number)?.body.lane?;
        let write = self.lanes.opened(lane, id)?;
        if id.is_none() {
            return Some(write);
        }
        self.send_in_lane(write, lane);
        None
    }

    /// The write's client id has expired. If the write was sent once, and so recently that running would have kept the id, it did not run
    /// and can use another id. Otherwise its outcome is unknown.
    fn id_unknown(&mut self, now: Nanos, number: u64) {
        self.counters.ids_unknown += 1;
        let Some(request) = self.requests.get_mut(number) else { return };
        let Some(lane) = request.body.lane else { return };
        self.lanes.expired(lane);
        let sent_once = request.transmissions() == request.body.sent_before + 1;
        if sent_once && now - request.last_sent_at() < self.config.id_kept {
            request.body.sent_before = request.transmissions();
            self.requests.hold(number, Nanos::MAX);
            self.open_id(lane, now);
        } else {
            self.finish(number, Err(StoreError::UnknownClient));
        }
    }

    pub(super) fn finish(&mut self, number: u64, outcome: Result<Answer, StoreError>) {
        let Some(request) = self.requests.remove(number) else { return };
        if let Some(lane) = request.body.lane {
            if outcome == Err(StoreError::Stale) {
                self.lanes.expired(lane);
            }
            self.lanes.release(lane);
        } else if !request.body.is_write() && request.state() != State::Waiting {
            self.reads.release();
        }
        let deadline = request.deadline();
        let ended = match request.body.kind {
            Kind::Operation(operation) => self.large.ended(number, operation, outcome, deadline),
            Kind::Open => Some((number, outcome)),
        };
        let Some((number, outcome)) = ended else { return };
        match outcome {
            Ok(_) => self.counters.answered += 1,
            Err(_) => self.counters.failed += 1,
        }
        self.events.push_back(Event::Done { key: OperationKey(number), outcome });
    }
}

fn is_refusal(status: Status) -> bool {
    use Status::{Busy, Cookie, Inactive, NotLeader, Reordered, UnknownSet};
    matches!(status, Cookie | Inactive | UnknownSet | NotLeader | Reordered | Busy)
}
