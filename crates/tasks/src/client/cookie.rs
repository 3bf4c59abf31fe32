//! Cookies: a switch requires one before it creates a record of this client, or accepts a new address of it (T13).

use super::Client;
use super::switches::Resend;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::Cookie;
use std::net::SocketAddr;

impl Client {
    /// A COOKIE shows that the switch is alive, but not that it accepts packets. So it does not end the silence, and the client
    /// leaves a switch that sends nothing else.
    ///
    /// Repeats only the refused packet: a switch that keeps no record requires no cookie in a SUBMIT, and would accept a repeated
    /// one twice.
    pub(super) fn handle_cookie(&mut self, now: Nanos, from: SocketAddr, packet: &Cookie) {
        let (sequence, cookie) = (packet.header.sequence.get(), packet.cookie.get());
        if packet.identity.get() != self.config.identity {
            self.counters.foreign_identity += 1;
        } else if self.switches.found(from, sequence, now) {
            self.keep_cookie(cookie);
            self.ask_another(now);
        } else if !self.switches.is_present(from) {
            self.counters.foreign_address += 1;
        } else if self.probe.is_asked_by(sequence) {
            if self.keep_cookie(cookie) && self.switches.may_resend(Resend::Question, now, self.round_trip.timeout()) {
                self.probe.ready |= self.probe.awaits_answer();
            }
        } else if let Some(carried) = self.flights.cookie_of(sequence) {
            self.keep_cookie(cookie);
            // All other packets were sent with the same cookie.
            if carried != cookie && self.switches.may_resend(Resend::InFlight, now, self.round_trip.timeout()) {
                self.flights.resend_all();
                self.probe.ready |= self.probe.awaits_answer();
            }
        } else {
            self.counters.unexpected_answers += 1;
        }
    }

    fn keep_cookie(&mut self, cookie: u64) -> bool {
        self.counters.cookies += 1;
        self.switches.keep_cookie(cookie)
    }
}
