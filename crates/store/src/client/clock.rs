use super::requests::Kind;
use super::{Client, Event, OperationKey, StoreError};
use midflight_endpoint::Nanos;
use midflight_endpoint::requests::Expiry;

impl Client {
    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        [self.requests.next_due(), self.next_read(), self.next_write(), self.large.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When reads that wait for a session are sent.
    fn next_read(&self) -> Option<Nanos> {
        Some(self.switches.held_until()).filter(|&until| self.reads.can_admit() && until > 0)
    }

    /// The same for writes, and for those that wait until the store has room for a client id.
    fn next_write(&self) -> Option<Nanos> {
        let waits = !self.writes.is_empty() && self.lanes.has_room(true);
        let needs_id = !self.lanes.has_room(false) && self.lanes.any_open();
        let opens = if needs_id { self.may_open_from } else { 0 };
        Some(self.switches.held_until().max(opens)).filter(|&until| waits && until > 0)
    }

    pub(super) fn expire(&mut self, now: Nanos) {
        while let Some((number, expired)) = self.requests.expire(now) {
            match expired {
                Expiry::Deadline => self.time_out(number),
                Expiry::Unanswered => self.unanswered(now, number),
                Expiry::Pause => {}
            }
        }
        while let Some(number) = self.large.expire(now) {
            let reached = self.switches.reached_since(now.saturating_sub(self.config.timeout));
            (self.counters.timed_out, self.counters.failed) = (self.counters.timed_out + 1, self.counters.failed + 1);
            let outcome = Err(StoreError::TimedOut { was_sent: false, reached });
            self.events.push_back(Event::Done { key: OperationKey(number), outcome });
        }
    }

    fn time_out(&mut self, number: u64) {
        let Some(request) = self.requests.get(number) else { return };
        if matches!(request.body.kind, Kind::Open) {
            if let Some(write) = self.opening_ended(number, None) {
                self.put_back(write);
            }
            return;
        }
        let was_sent = request.transmissions() > request.body.sent_before;
        let reached = self.switches.reached_since(request.deadline().saturating_sub(self.config.timeout));
        self.counters.timed_out += 1;
        self.finish(number, Err(StoreError::TimedOut { was_sent, reached }));
        // All operations have the same timeout, so the oldest in the queues end first and free their places.
        self.reads.drop_ended(|read| self.requests.is_open(read));
        while self.writes.front().is_some_and(|&write| !self.requests.is_open(write)) {
            self.writes.pop_front();
        }
    }

    pub(super) fn timeout_of(&self, number: u64) -> Nanos {
        let Some(request) = self.requests.get(number) else { return self.config.rto_initial };
        let trip = if request.body.is_write() { &self.write_trip } else { &self.read_trip };
        request.body.patience.max(trip.timeout())
    }

    fn unanswered(&mut self, now: Nanos, number: u64) {
        self.counters.unanswered += 1;
        let doubled = self.timeout_of(number).saturating_mul(2).min(self.config.repeat_max);
        let Some(request) = self.requests.get_mut(number) else { return };
        request.body.patience = doubled;
        let (switch, sent_at) = (request.body.switch, request.last_sent_at());
        self.switches.unanswered(switch, sent_at, now, &mut self.counters);
    }
}
