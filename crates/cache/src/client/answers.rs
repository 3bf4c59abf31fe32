use super::{Answer, Client, Event, Failure, ReadKey, VERSIONS_TOLD, Way};
use crate::select::Status;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::requests::State;
use midflight_wire::cache::{Ends, Kind, NETRS_VERSION, NetrsResponse, Packet, Reject, ServerStatus, parse};
use std::net::SocketAddr;
use zerocopy::FromBytes;

impl Client {
    pub(super) fn answer(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match parse(datagram) {
            Ok(Packet::Version(start)) => self.handle_version(from, start.version),
            Err(Reject::BadVersion(version)) => self.handle_version(from, version),
            Err(_) => self.counters.malformed += 1,
            Ok(Packet::Cookie(_, ends)) => self.handle_cookie(from, ends),
            Ok(Packet::Response(kind, response, status, ends, answered)) if self.is_for_me(kind) => {
                if !self.is_known(from, ends) {
                    self.counters.foreign += 1;
                } else if status.is_empty() && answered.is_empty() {
                    self.handle_refusal(now, ends.request.get());
                } else {
                    self.handle_answer(now, response, status, ends, answered);
                }
            }
            Ok(_) => self.counters.not_for_client += 1,
        }
    }

    fn is_for_me(&self, kind: Kind) -> bool {
        match self.way {
            Way::Operator(..) => kind == Kind::Monitored,
            Way::Direct(_) => kind == Kind::Direct,
        }
    }

    fn is_known(&self, from: SocketAddr, ends: &Ends) -> bool {
        match &self.way {
            Way::Operator(operator, _) => planted(242) || from == *operator,
            Way::Direct(direct) => direct.server(from).is_some() && from == SocketAddr::from(ends.server),
        }
    }

    fn handle_answer(&mut self, now: Nanos, response: &NetrsResponse, status: &[u8], ends: &Ends, answered: &[u8]) {
        let (number, server) = (ends.request.get(), SocketAddr::from(ends.server));
        if let Way::Direct(direct) = &mut self.way
            && let Some(server) = direct.server(server)
        {
            let retained = response.start.retained.get();
            let is_its = direct.answered(now, server, retained, number, read_status(status));
            self.counters.unmatched += u64::from(!is_its);
        }
        let Some(request) = self.requests.get(number).filter(|request| request.transmissions() > 0) else {
            self.counters.unexpected += 1;
            if planted(243) {
                let answer = Answer { server, bytes: answered.to_vec(), sends: 0 };
                self.events.push_back(Event::Done { key: ReadKey(number), outcome: Ok(answer) });
            }
            return;
        };
        // After a repeat, the round trip is ambiguous (Karn).
        if request.body.sends == 1 && request.state() == State::Sent {
            self.round_trip.sample(now.saturating_sub(request.last_sent_at()));
        }
        let sends = request.body.sends;
        self.end(number, Ok(Answer { server, bytes: answered.to_vec(), sends }));
    }

    /// The server had no room. Repeats the read later, with another backup.
    fn handle_refusal(&mut self, now: Nanos, number: u64) {
        let Some(request) = self.requests.get(number).filter(|request| request.state() == State::Sent) else {
            self.counters.unexpected += 1;
            return;
        };
        self.counters.refused += 1;
        if request.body.sends >= self.config.sends_max {
            return self.end(number, Err(Failure::Refused));
        }
        let pauses = self.config.pause_min..=self.config.pause_max;
        self.requests.pause(now, number, pauses, &mut self.random);
    }

    /// The operator or a server requires a cookie. Repeats the read at once, but only once per transmission.
    fn handle_cookie(&mut self, from: SocketAddr, ends: &Ends) {
        let number = ends.request.get();
        let Some(request) = self.requests.get_mut(number).filter(|request| request.state() == State::Sent) else {
            self.counters.cookies_ignored += 1;
            return;
        };
        let body = &mut request.body;
        if body.last.is_none_or(|last| last.to != from) {
            self.counters.foreign += 1;
            return;
        }
        if !body.heeds_cookie {
            self.counters.cookies_ignored += 1;
            return;
        }
        (body.heeds_cookie, body.repeats_last) = (false, true);
        let said = u64::from_be_bytes(ends.client.ip[..8].try_into().unwrap_or_default());
        match (&mut self.way, body.last.and_then(|last| last.number)) {
            (Way::Operator(_, cookie), _) if planted(241) && *cookie != 0 => {}
            (Way::Operator(_, cookie), _) => *cookie = said,
            (Way::Direct(direct), Some(server)) => direct.set_cookie(server, said),
            (Way::Direct(_), None) => {}
        }
        self.requests.make_ready(number);
    }

    /// Only from expected addresses; others could fill the memory for versions.
    fn handle_version(&mut self, from: SocketAddr, version: u8) {
        self.counters.other_version += 1;
        let is_asked = match &self.way {
            Way::Operator(operator, _) => from == *operator,
            Way::Direct(direct) => direct.server(from).is_some(),
        };
        if version == NETRS_VERSION || !is_asked || self.told_versions.len() >= VERSIONS_TOLD {
            return;
        }
        if self.told_versions.insert((from, version)) {
            self.events.push_back(Event::OtherVersion { at: from, version });
        }
    }
}

fn read_status(status: &[u8]) -> Option<Status> {
    let status = ServerStatus::ref_from_bytes(status).ok()?;
    Some(Status { queue: status.queue.get(), service_us: status.service_us.get(), sequence: status.sequence.get() })
}
