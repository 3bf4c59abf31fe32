//! Unanswered SUBMITs and CANCELs: sequences, retransmission, window.
//!
//! The oldest unanswered sequence stays so close to the next that the switch's window of 64 (T8) covers it, so a short ring
//! suffices.

use super::table::SubmissionName;
use midflight_endpoint::Nanos;
use midflight_endpoint::RoundTrip;
use midflight_wire::tasks::{Cancel, Submit};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::ops::Range;

/// Longest distance from the oldest unanswered sequence to the next; well inside the switch's window.
pub(super) const SPAN_MAX: usize = 48;
/// Distance of a skip after TOO_OLD. Two skips pass any sequence that the switch may have seen.
const SKIP_AHEAD: u32 = 1 << 30;
const COOKIE: Range<usize> = {
    let at = offset_of!(Submit, cookie);
    assert!(at == offset_of!(Cancel, cookie));
    at..at + size_of::<u64>()
};
const WINDOW_INITIAL: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cancellation {
    pub(super) key: u64,
    pub(super) name: SubmissionName,
}

pub(super) enum Request {
    /// `unwanted`: tasks that timed out since. If the switch accepts them, the client cancels them at once.
    Submit { count: u8, unwanted: Vec<Cancellation> },
    /// Tasks to cancel.
    Cancel(Vec<Cancellation>),
}

pub(super) struct InFlight {
    pub(super) request: Request,
    pub(super) packet: Vec<u8>,
    pub(super) sent_at: Nanos,
    pub(super) sent_once: bool,
    timeout: Nanos,
    due: Nanos,
    resend: bool,
    /// Timeouts of this packet although the current switch answered another after it was sent.
    passed_over: u32,
    held: Held,
    /// Held since it was built, so never sent.
    pub(super) unsent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    No,
    /// Until the driver has saved its content.
    Unsaved,
    /// Until the switch confirms the saved epoch.
    Resumed,
}

pub(super) struct Flights {
    ring: VecDeque<Option<InFlight>>,
    base: u32,
    skip_ahead: bool,
    skip_to: Option<u32>,
    submits: u32,
    window: f64,
    window_max: f64,
    /// Time of the last reduction of the window; at most one per round trip.
    reduced_at: Nanos,
    spare: Vec<Vec<u8>>,
}

impl Flights {
    pub(super) fn new(first: u32, window_max: u32) -> Self {
        let window_max = f64::from(window_max);
        let window = WINDOW_INITIAL.min(window_max);
        Self {
            ring: VecDeque::new(),
            base: first,
            skip_ahead: false,
            skip_to: None,
            submits: 0,
            window,
            window_max,
            reduced_at: 0,
            spare: Vec::new(),
        }
    }

    pub(super) fn next(&self) -> u32 {
        self.base.wrapping_add(self.ring.len() as u32)
    }

    /// The switch has seen far later sequences, forged or from before a wrap-around. The next one must skip past them.
    pub(super) fn skip_ahead(&mut self) {
        self.skip_ahead = true;
    }

    pub(super) fn must_skip_ahead(&self) -> bool {
        self.skip_ahead || self.skip_to.is_some()
    }

    /// Restores an earlier process's packets; entry `i` has sequence `base + i`. New packets start at `next`.
    pub(super) fn resume(&mut self, base: u32, packets: Vec<Option<(Vec<u8>, Request)>>, next: u32) {
        debug_assert!(self.ring.is_empty() && packets.len() <= SPAN_MAX);
        self.base = if packets.is_empty() { next } else { base };
        self.skip_to = (!packets.is_empty()).then_some(next);
        for packet in packets {
            let Some((packet, request)) = packet else {
                self.ring.push_back(None);
                continue;
            };
            self.push(0, 0, packet, request, Held::Resumed);
        }
    }

    pub(super) fn unused(&self) -> u32 {
        self.skip_to.unwrap_or_else(|| self.next())
    }

    pub(super) fn release(&mut self, why: Held, timeout: Nanos) {
        for flight in self.ring.iter_mut().flatten().filter(|flight| flight.held == why) {
            (flight.held, flight.resend, flight.timeout) = (Held::No, true, timeout);
        }
    }

    pub(super) fn held(&self, why: Held) -> Vec<u32> {
        let places = (0_u32..).zip(&self.ring);
        let held = places.filter(|(_, flight)| flight.as_ref().is_some_and(|flight| flight.held == why));
        held.map(|(place, _)| self.base.wrapping_add(place)).collect()
    }

    /// Skips one sequence, or ahead if requested. The ring must be empty.
    pub(super) fn skip(&mut self) {
        debug_assert!(self.ring.is_empty());
        if let Some(next) = self.skip_to.take() {
            self.base = next;
            return;
        }
        let step = if std::mem::take(&mut self.skip_ahead) { SKIP_AHEAD } else { 1 };
        self.base = self.base.wrapping_add(step);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.ring.len() < SPAN_MAX
    }

    pub(super) fn may_submit(&self) -> bool {
        self.has_room() && f64::from(self.submits) < self.window
    }

    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Records that packet `next()` is being sent, unless it is held.
    pub(super) fn push(&mut self, now: Nanos, timeout: Nanos, packet: Vec<u8>, request: Request, held: Held) {
        self.submits += u32::from(matches!(request, Request::Submit { .. }));
        self.ring.push_back(Some(InFlight {
            request,
            packet,
            sent_at: now,
            sent_once: held == Held::No,
            timeout,
            due: now + timeout,
            resend: false,
            passed_over: 0,
            held,
            unsent: held == Held::Unsaved,
        }));
    }

    fn place(&self, sequence: u32) -> usize {
        sequence.wrapping_sub(self.base) as usize
    }

    pub(super) fn get(&self, sequence: u32) -> Option<&InFlight> {
        self.ring.get(self.place(sequence))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, sequence: u32) -> Option<&mut InFlight> {
        let place = self.place(sequence);
        self.ring.get_mut(place)?.as_mut()
    }

    /// The caller returns the packet's buffer with `recycle`.
    pub(super) fn take(&mut self, sequence: u32) -> Option<InFlight> {
        let place = self.place(sequence);
        let flight = self.ring.get_mut(place)?.take()?;
        self.submits -= u32::from(matches!(flight.request, Request::Submit { .. }));
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        Some(flight)
    }

    pub(super) fn recycle(&mut self, packet: Vec<u8>) {
        self.spare.push(packet);
    }

    /// The switch accepted a whole SUBMIT: adds one per window of responses.
    pub(super) fn widen(&mut self) {
        self.window = (self.window + 1.0 / self.window).min(self.window_max);
    }

    /// A packet was lost or met a full queue: halves the window, at most once per round trip.
    pub(super) fn narrow(&mut self, now: Nanos, sent_at: Nanos) {
        if sent_at >= self.reduced_at {
            self.reduced_at = now;
            self.window = (self.window / 2.0).max(1.0);
        }
    }

    /// Marks packets that timed out. `answered`: when the switch last answered anything.
    pub(super) fn expire(&mut self, now: Nanos, answered: Option<Nanos>, round_trip: &mut RoundTrip) {
        let mut lost_at = None;
        for flight in self.ring.iter_mut().flatten() {
            if flight.due <= now && !flight.resend && flight.held == Held::No {
                flight.resend = true;
                flight.passed_over += u32::from(answered > Some(flight.sent_at));
                flight.timeout = round_trip.back_off(flight.timeout);
                lost_at = lost_at.max(Some(flight.sent_at));
            }
        }
        if let Some(sent_at) = lost_at {
            self.narrow(now, sent_at);
        }
    }

    pub(super) fn resend_all(&mut self) {
        let free = self.ring.iter_mut().flatten().filter(|flight| flight.held == Held::No);
        free.for_each(|flight| flight.resend = true);
    }

    /// Repeats all packets to another switch, with a fresh window: losses at the old one say nothing about it.
    pub(super) fn start_over(&mut self, timeout: Nanos) {
        self.window = self.window.max(WINDOW_INITIAL.min(self.window_max));
        self.ring.iter_mut().flatten().for_each(|flight| (flight.timeout, flight.passed_over) = (timeout, 0));
        self.resend_all();
    }

    /// The packet passed over most often, if at least `times`.
    pub(super) fn passed_over(&self, times: u32) -> Option<&[u8]> {
        let flight = self.ring.iter().flatten().max_by_key(|flight| flight.passed_over)?;
        (flight.passed_over >= times).then_some(&flight.packet)
    }

    pub(super) fn to_resend(&self) -> Option<u32> {
        let place = self.ring.iter().position(|flight| flight.as_ref().is_some_and(|f| f.resend))?;
        Some(self.base.wrapping_add(place as u32))
    }

    /// Repeats a packet unchanged, except for this cookie.
    pub(super) fn resent(&mut self, sequence: u32, now: Nanos, cookie: u64) -> &[u8] {
        let Some(flight) = self.get_mut(sequence) else { return &[] };
        flight.resend = false;
        flight.sent_once = std::mem::take(&mut flight.unsent);
        flight.sent_at = now;
        flight.due = now + flight.timeout;
        flight.packet[COOKIE].copy_from_slice(&cookie.to_be_bytes());
        &flight.packet
    }

    pub(super) fn cookie_of(&self, sequence: u32) -> Option<u64> {
        let bytes = self.get(sequence)?.packet.get(COOKIE)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }

    pub(super) fn cancels(&self) -> Vec<u32> {
        self.sequences(|request| matches!(request, Request::Cancel(_)))
    }

    pub(super) fn submits(&self) -> Vec<u32> {
        self.sequences(|request| matches!(request, Request::Submit { .. }))
    }

    fn sequences(&self, is_meant: impl Fn(&Request) -> bool) -> Vec<u32> {
        let places = (0_u32..).zip(&self.ring);
        let meant = places.filter(|(_, flight)| flight.as_ref().is_some_and(|flight| is_meant(&flight.request)));
        meant.map(|(place, _)| self.base.wrapping_add(place)).collect()
    }

    pub(super) fn has_cancel(&self) -> bool {
        self.ring.iter().flatten().any(|flight| matches!(flight.request, Request::Cancel(_)))
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.ring.iter().flatten().filter(|f| !f.resend && f.held == Held::No).map(|f| f.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    fn submit(flights: &mut Flights, now: Nanos) -> u32 {
        let sequence = flights.next();
        flights.push(
            now,
            10 * MS,
            vec![1; COOKIE.end + 1],
            Request::Submit { count: 1, unwanted: Vec::new() },
            Held::No,
        );
        sequence
    }

    #[test]
    fn t8_oldest_unanswered_sequence_is_within_48_of_the_next_across_the_wrap() {
        let mut flights = Flights::new(u32::MAX - 10, 32);
        let oldest = submit(&mut flights, 0);
        while flights.has_room() {
            let sequence = submit(&mut flights, 0);
            if sequence.wrapping_sub(oldest) > 2 {
                assert!(flights.take(sequence).is_some());
                assert!(flights.take(sequence).is_none(), "answered once");
            }
        }
        assert_eq!(flights.next().wrapping_sub(oldest), 48);
        assert!(flights.take(oldest).is_some());
        assert!(flights.has_room());
        assert_eq!(flights.next().wrapping_sub(oldest), 48, "sequences are not used twice");
        assert!(flights.get(oldest).is_none());
        assert!(flights.get(oldest.wrapping_add(1)).is_some());
        assert!(flights.get(flights.next()).is_none());
    }

    #[test]
    fn window_grows_by_one_a_round_and_halves_once_a_flight() {
        let mut flights = Flights::new(0, 32);
        assert!(flights.may_submit());
        for _ in 0..8 {
            submit(&mut flights, 5);
        }
        assert!(!flights.may_submit());
        (0..8).for_each(|_| flights.widen());
        assert!(flights.window > 8.9 && flights.window < 9.1);
        flights.narrow(20, 5);
        flights.narrow(21, 6);
        assert!(flights.window > 4.4 && flights.window < 4.6);
        (0..10_000).for_each(|_| flights.widen());
        assert!(flights.window <= 32.0);
    }

    #[test]
    fn unanswered_packets_are_sent_again_with_doubling_timeouts() {
        let mut flights = Flights::new(3, 32);
        let mut round_trip = RoundTrip::new(100 * MS, 5 * MS..=1_000 * MS);
        submit(&mut flights, 0);
        let mut now = 0;
        for timeout in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            assert_eq!(flights.next_due(), Some(now + timeout * MS));
            now += timeout * MS;
            flights.expire(now - 1, None, &mut round_trip);
            assert_eq!(flights.to_resend(), None);
            flights.expire(now, None, &mut round_trip);
            assert_eq!(flights.to_resend(), Some(3));
            assert_eq!(flights.next_due(), None);
            let bytes = flights.resent(3, now, 0x0203);
            assert_eq!((&bytes[..32], &bytes[32..], bytes.len()), (&[1; 32][..], &[0, 0, 0, 0, 0, 0, 2, 3, 1][..], 41));
        }
    }
}
