use super::direct::Chosen;
use super::requests::{Sending, State};
use super::{Client, Way};
use midflight_endpoint::Nanos;
use midflight_wire::replicas::{Ends, Kind, Netrs, NetrsRequest};
use rand::Rng;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

impl Client {
    pub(super) fn transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some(number) = self.requests.next_ready() {
            let is_for_cookie = self.requests.get(number).is_some_and(|request| request.state == State::ReadyAgain);
            let last = self.requests.get(number).and_then(|request| request.last);
            let sending = if is_for_cookie { last } else { self.next_sending(now, number) };
            let Some(sending) = sending else { continue };
            self.note_sent(now, number, sending, is_for_cookie);
            self.write(number, sending, buffer);
            return Some(sending.to);
        }
        None
    }

    /// Where to send a read now; `None`: nowhere until it is due again.
    fn next_sending(&mut self, now: Nanos, number: u64) -> Option<Sending> {
        let request = self.requests.get_mut(number)?;
        let backup = request.backup()?;
        let direct = match &mut self.way {
            Way::Operator(operator, _) => {
                return Some(Sending { to: *operator, server: backup, retained: 0, number: None });
            }
            Way::Direct(direct) => direct,
        };
        match direct.choose(now, request.read.group, number, self.secrets.next_u64()) {
            Chosen::Send(server, to, retained) => {
                self.counters.untracked += u64::from(retained.is_none());
                let retained = retained.unwrap_or_default();
                Some(Sending { to, server: to, retained, number: Some(server) })
            }
            Chosen::Wait(until) => {
                self.counters.held += 1;
                request.state = State::Pausing;
                // Guards against a selector that names no later time, which would loop forever.
                self.requests.schedule(number, until.max(now + 1));
                None
            }
            Chosen::UnknownGroup => {
                self.counters.unknown_group += 1;
                let turns =
                    request.read.backups.iter().cycle().skip(request.sent as usize % request.read.backups.len());
                let known = turns.take(request.read.backups.len()).find_map(|&to| Some((to, direct.server(to)?)));
                let Some((to, server)) = known else {
                    self.counters.unknown_server += 1;
                    request.state = State::Pausing;
                    let deadline = request.deadline;
                    self.requests.schedule(number, deadline);
                    return None;
                };
                Some(Sending { to, server: to, retained: 0, number: Some(server) })
            }
        }
    }

    fn note_sent(&mut self, now: Nanos, number: u64, sending: Sending, is_for_cookie: bool) {
        let Some(request) = self.requests.get_mut(number) else { return };
        self.counters.sent += 1;
        request.state = State::Sent;
        request.last = Some(sending);
        request.last_sent_at = now;
        if is_for_cookie {
            self.counters.with_cookie += 1;
        } else {
            self.counters.repeated += u64::from(request.sent > 0);
            request.sent += 1;
            request.heeds_cookie = true;
            request.patience = match request.patience {
                0 => self.round_trip.timeout(),
                before => self.round_trip.back_off(before),
            };
        }
        let is_last = request.sent >= self.config.sends_max;
        let due = if is_last { request.deadline } else { now.saturating_add(request.patience) };
        self.requests.schedule(number, due);
    }

    fn write(&self, number: u64, sending: Sending, buffer: &mut Vec<u8>) {
        let Some(request) = self.requests.get(number) else { return };
        let (start, cookie) = match (&self.way, sending.number) {
            (Way::Direct(direct), Some(server)) => (Netrs::for_server(Kind::Direct), direct.cookie(server)),
            (Way::Direct(_), None) => (Netrs::for_server(Kind::Direct), 0),
            (Way::Operator(_, cookie), _) => (Netrs::new(Kind::Request), *cookie),
        };
        let start = Netrs { retained: sending.retained.into(), ..start };
        let head = NetrsRequest { start, group: NetrsRequest::group_bytes(request.read.group) };
        let mut ends = Ends { server: sending.server.into(), request: number.into(), ..Ends::new_zeroed() };
        ends.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
        buffer.clear();
        buffer.extend_from_slice(head.as_bytes());
        buffer.extend_from_slice(ends.as_bytes());
        buffer.extend_from_slice(&request.read.asked);
    }
}
