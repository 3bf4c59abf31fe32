//! Cookies: what a switch wants to see before it makes a record of us, or moves our address (T13).

use super::Client;
use super::switches::Again;
use midflight_endpoint::Nanos;
use midflight_wire::Cookie;
use std::net::SocketAddr;

impl Client {
    /// The switch refused something for want of its cookie. That it answers says that it lives, but not that it takes what
    /// we send: it is not *heard*, and left if this is all that it ever says.
    ///
    /// Only what was refused is sent again: a switch that keeps no record asks PROBE for a cookie, takes SUBMIT without,
    /// and would take it twice.
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
            if self.keep_cookie(cookie) && self.switches.may_resend(Again::Question, now, self.round_trip.timeout()) {
                self.probe.ready |= self.probe.awaits_answer();
            }
        } else if let Some(carried) = self.flights.cookie_of(sequence) {
            self.keep_cookie(cookie);
            // All others were sent with the same one.
            if carried != cookie && self.switches.may_resend(Again::Flights, now, self.round_trip.timeout()) {
                self.flights.resend_all();
                self.probe.ready |= self.probe.awaits_answer();
            }
        } else {
            self.counters.unexpected_answers += 1;
        }
    }

    /// Whether it is another than before.
    fn keep_cookie(&mut self, cookie: u64) -> bool {
        self.counters.cookies += 1;
        self.switches.keep_cookie(cookie)
    }
}
