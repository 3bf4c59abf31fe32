use super::requests::State;
use super::{Client, Failure};
use midflight_endpoint::Nanos;
use rand::RngExt;

impl Client {
    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        [self.requests.next_due(), self.next_read(), self.next_write()].into_iter().flatten().min()
    }

    /// When reads that wait for a session are sent.
    fn next_read(&self) -> Option<Nanos> {
        let waits = !self.reads.is_empty() && self.reads_open < self.config.reads_max;
        Some(self.switches.held_until()).filter(|&until| waits && until > 0)
    }

    /// The same for writes, and for those that wait until the store has room for a client id.
    fn next_write(&self) -> Option<Nanos> {
        let waits = !self.writes.is_empty() && self.lanes.has_room(true);
        let needs_id = !self.lanes.has_room(false) && self.lanes.any_open();
        let opens = if needs_id { self.may_open_from } else { 0 };
        Some(self.switches.held_until().max(opens)).filter(|&until| waits && until > 0)
    }

    pub(super) fn expire(&mut self, now: Nanos) {
        while let Some(number) = self.requests.pop_due(now) {
            let Some(request) = self.requests.get(number) else { continue };
            if request.deadline <= now {
                self.time_out(number);
                continue;
            }
            if request.state == State::Sent {
                self.counters.unanswered += 1;
                let (switch, sent_at) = (request.switch, request.last_sent_at);
                self.switches.unanswered(switch, sent_at, now, &mut self.counters);
                self.be_patient(number);
            }
            self.requests.make_ready(number);
        }
    }

    fn time_out(&mut self, number: u64) {
        let Some(request) = self.requests.get(number) else { return };
        if request.is_opening() {
            if let Some(write) = self.opening_ended(number, None) {
                self.put_back(write);
            }
            return;
        }
        let was_sent = request.sent > request.sent_before;
        let reached = self.switches.reached_since(request.deadline.saturating_sub(self.config.timeout));
        self.counters.timed_out += 1;
        self.finish(number, Err(Failure::TimedOut { was_sent, reached }));
        // All operations have the same timeout, so the oldest in the queues end first and free their places.
        for queue in [&mut self.reads, &mut self.writes] {
            while queue.front().is_some_and(|&number| self.requests.get(number).is_none()) {
                queue.pop_front();
            }
        }
    }

    pub(super) fn timeout_of(&self, number: u64) -> Nanos {
        let Some(request) = self.requests.get(number) else { return self.config.rto_initial };
        let trip = if request.is_write() { &self.write_trip } else { &self.read_trip };
        request.patience.max(trip.timeout())
    }

    fn be_patient(&mut self, number: u64) {
        let doubled = self.timeout_of(number).saturating_mul(2).min(self.config.repeat_max);
        if let Some(request) = self.requests.get_mut(number) {
            request.patience = doubled;
        }
    }

    /// Next wait of a refused request: grows each time, with jitter.
    pub(super) fn pause(&mut self, number: u64) -> Nanos {
        let (min, max) = (self.config.pause_min, self.config.pause_max);
        let Some(request) = self.requests.get_mut(number) else { return min };
        request.pause = request.pause.saturating_mul(2).clamp(min, max);
        self.rng.random_range(request.pause.div_ceil(2)..=request.pause)
    }
}
