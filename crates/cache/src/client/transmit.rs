use super::direct::Chosen;
use super::requests::Sending;
use super::{Client, Way};
use midflight_endpoint::Nanos;
use midflight_wire::cache::{Ends, Kind, Netrs, NetrsRequest};
use rand::Rng;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

impl Client {
    pub(super) fn transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some(number) = self.requests.next_ready() {
            let Some(request) = self.requests.get(number) else { continue };
            let sending = if request.body.repeats_last { request.body.last } else { self.next_sending(now, number) };
            let Some(sending) = sending else { continue };
            self.note_sent(now, number, sending);
            self.write(number, sending, buffer);
            return Some(sending.to);
        }
        None
    }

    /// Where to send a read now; `None`: nowhere until it is due again.
    fn next_sending(&mut self, now: Nanos, number: u64) -> Option<Sending> {
        let request = self.requests.get(number)?;
        let (read, backup) = (&request.body.read, request.body.backup()?);
        let direct = match &mut self.way {
            Way::Operator(operator, _) => {
                return Some(Sending { to: *operator, server: backup, retained: 0, number: None });
            }
            Way::Direct(direct) => direct,
        };
        match direct.choose(now, read.group, number, self.secrets.next_u64()) {
            Chosen::Send(server, to, retained) => {
                self.counters.untracked += u64::from(retained.is_none());
                let retained = retained.unwrap_or_default();
                Some(Sending { to, server: to, retained, number: Some(server) })
            }
            Chosen::Wait(until) => {
                self.counters.held += 1;
                // Guards against a selector that names no later time, which would loop forever.
                self.requests.hold(number, until.max(now + 1));
                None
            }
            Chosen::UnknownGroup => {
                self.counters.unknown_group += 1;
                let count = read.backups.len();
                let turns = read.backups.iter().cycle().skip(request.body.sends as usize % count);
                let known = turns.take(count).find_map(|&to| Some((to, direct.server(to)?)));
                let Some((to, server)) = known else {
                    self.counters.unknown_server += 1;
                    self.requests.hold(number, Nanos::MAX);
                    return None;
                };
                Some(Sending { to, server: to, retained: 0, number: Some(server) })
            }
        }
    }

    fn note_sent(&mut self, now: Nanos, number: u64, sending: Sending) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let body = &mut request.body;
        self.counters.sent += 1;
        body.last = Some(sending);
        if std::mem::take(&mut body.repeats_last) {
            self.counters.with_cookie += 1;
        } else {
            self.counters.repeated += u64::from(body.sends > 0);
            body.sends += 1;
            body.heeds_cookie = true;
            body.patience = match body.patience {
                0 => self.round_trip.timeout(),
                before => self.round_trip.back_off(before),
            };
        }
        // After the last transmission, it waits until its deadline.
        let timeout = if body.sends >= self.config.sends_max { Nanos::MAX } else { body.patience };
        self.requests.mark_sent(now, number, timeout);
    }

    fn write(&self, number: u64, sending: Sending, buffer: &mut Vec<u8>) {
        let Some(request) = self.requests.get(number) else { return };
        let (start, cookie) = match (&self.way, sending.number) {
            (Way::Direct(direct), Some(server)) => (Netrs::for_server(Kind::Direct), direct.cookie(server)),
            (Way::Direct(_), None) => (Netrs::for_server(Kind::Direct), 0),
            (Way::Operator(_, cookie), _) => (Netrs::new(Kind::Request), *cookie),
        };
        let start = Netrs { retained: sending.retained.into(), ..start };
        let head = NetrsRequest { start, group: NetrsRequest::group_bytes(request.body.read.group) };
        let mut ends = Ends { server: sending.server.into(), request: number.into(), ..Ends::new_zeroed() };
        ends.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
        buffer.clear();
        buffer.extend_from_slice(head.as_bytes());
        buffer.extend_from_slice(ends.as_bytes());
        buffer.extend_from_slice(&request.body.read.asked);
    }
}
