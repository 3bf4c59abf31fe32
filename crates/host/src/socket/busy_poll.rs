//! Busy polling: reads a socket repeatedly for a short time before sleeping. A packet in this time costs no wake-up (5 to 20 µs on a
//! virtual machine, most of a round trip).
//!
//! Polling takes CPU time from others, so it is limited:
//!
//! - A wait polls only if the previous wait was shorter than the polling time. An idle thread polls once after each burst.
//! - Between two reads the thread yields its core. If another thread takes it, the yield lasts a scheduler time slice, milliseconds longer
//!   than a wake-up. Then polling stops for 100 times as long.

use crate::clock;
use midflight_endpoint::Nanos;
use std::time::Duration;

/// Default duration of busy polling.
pub const BUSY_POLL: Duration = Duration::from_micros(100);
/// A longer yield was another thread's time slice.
const LATE_NS: Nanos = 1_000_000;
/// Pause in multiples of a late yield: costs at most 1 % of all time.
const PAUSE: Nanos = 100;

pub(crate) trait Cpu {
    fn now(&self) -> Nanos;
    fn yield_now(&self);
}

#[derive(Debug, Default)]
pub(crate) struct ThisCpu;

impl Cpu for ThisCpu {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }
}

/// A loop that stops where other threads want the core.
#[derive(Debug, Default)]
pub(crate) struct Spin<C = ThisCpu> {
    cpu: C,
    paused_until: Nanos,
}

impl<C: Cpu> Spin<C> {
    pub(crate) fn is_allowed(&self) -> bool {
        self.cpu.now() >= self.paused_until
    }

    /// Calls `attempt` until it succeeds, until `end`, or until other threads want the core. Returns whether it succeeded.
    pub(crate) fn until(&mut self, end: Nanos, mut attempt: impl FnMut() -> bool) -> bool {
        loop {
            if attempt() {
                return true;
            }
            let before = self.cpu.now();
            if before >= end || before < self.paused_until {
                return false;
            }
            self.cpu.yield_now();
            let took = self.cpu.now() - before;
            if took > LATE_NS {
                self.paused_until = before + took + PAUSE * took;
            }
        }
    }
}

/// Polls at the beginning of waits that are likely to be short.
#[derive(Debug)]
pub(crate) struct BusyPoll<C = ThisCpu> {
    spin: Spin<C>,
    longest: Nanos,
    /// Whether the last wait was shorter than the polling time.
    expects: bool,
    waits_since: Option<Nanos>,
}

impl BusyPoll {
    pub(crate) fn new(longest: Duration) -> Self {
        Self::on(ThisCpu, clock::nanos(longest))
    }
}

impl<C: Cpu> BusyPoll<C> {
    fn on(cpu: C, longest: Nanos) -> Self {
        Self { spin: Spin { cpu, paused_until: 0 }, longest, expects: true, waits_since: None }
    }

    /// Receives, polling if worthwhile; stops at `due`.
    pub(crate) fn receive(&mut self, due: Nanos, mut receive: impl FnMut() -> bool) -> bool {
        let began = *self.waits_since.get_or_insert_with(|| self.spin.cpu.now());
        let received = match self.polling_ends() {
            Some(end) => self.spin.until(end.min(due), receive),
            None => receive(),
        };
        if received {
            self.expects = self.spin.cpu.now() - began < self.longest;
            self.waits_since = None;
        }
        received
    }

    pub(crate) fn is_polling(&self) -> bool {
        self.polling_ends().is_some_and(|end| self.spin.cpu.now() < end)
    }

    /// `None`: this wait does not poll.
    fn polling_ends(&self) -> Option<Nanos> {
        let began = self.waits_since.filter(|_| self.expects && self.spin.is_allowed())?;
        Some(began.saturating_add(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    const POLL_NS: Nanos = 100_000;

    #[derive(Clone, Default)]
    struct FakeCpu {
        now: Rc<Cell<Nanos>>,
        yield_takes: Rc<Cell<Nanos>>,
    }

    impl Cpu for FakeCpu {
        fn now(&self) -> Nanos {
            self.now.get()
        }

        fn yield_now(&self) {
            self.pass(self.yield_takes.get());
        }
    }

    impl FakeCpu {
        fn pass(&self, time: Nanos) {
            self.now.set(self.now.get() + time);
        }
    }

    fn busy_poll(yield_takes: Nanos) -> (BusyPoll<FakeCpu>, FakeCpu) {
        let cpu = FakeCpu::default();
        cpu.yield_takes.set(yield_takes);
        (BusyPoll::on(cpu.clone(), POLL_NS), cpu)
    }

    fn attempts_in_vain(poll: &mut BusyPoll<FakeCpu>) -> usize {
        let mut attempts = 0;
        let came = poll.receive(Nanos::MAX, || {
            attempts += 1;
            false
        });
        assert!(!came);
        attempts
    }

    fn arrives(poll: &mut BusyPoll<FakeCpu>) {
        assert!(poll.receive(Nanos::MAX, || true));
    }

    #[test]
    fn polling_ends_with_what_it_waits_for() {
        let (mut poll, cpu) = busy_poll(1_000);
        let mut attempts = 0;
        assert!(poll.receive(Nanos::MAX, || {
            attempts += 1;
            attempts == 5
        }));
        assert_eq!(cpu.now(), 4_000);
        assert_eq!(attempts_in_vain(&mut poll), 101, "the wait was short, so the next begins with polling");
    }

    #[test]
    fn polling_goes_on_when_what_was_due_is_done() {
        let (mut poll, cpu) = busy_poll(1_000);
        assert!(!poll.receive(10_000, || false));
        assert!(cpu.now() == 10_000 && poll.is_polling());
        assert!(!poll.receive(POLL_NS + 50_000, || false));
        assert!(cpu.now() == POLL_NS && !poll.is_polling());
    }

    #[test]
    fn a_wait_polls_once_and_after_a_long_wait_not_at_all() {
        let (mut poll, cpu) = busy_poll(1_000);
        assert_eq!(attempts_in_vain(&mut poll), 101);
        for _ in 0..3 {
            cpu.pass(POLL_NS);
            assert_eq!(attempts_in_vain(&mut poll), 1, "the same wait, in which something else was due");
        }
        arrives(&mut poll);
        assert_eq!(attempts_in_vain(&mut poll), 1, "packets come in long intervals");
        cpu.pass(POLL_NS / 2);
        arrives(&mut poll);
        assert_eq!(attempts_in_vain(&mut poll), 101, "packets come in short intervals");
    }

    #[test]
    fn who_gives_a_slice_away_does_not_poll_for_a_hundred_slices() {
        let slice = 3_000_000;
        let (mut poll, cpu) = busy_poll(slice);
        assert_eq!(attempts_in_vain(&mut poll), 2);
        assert_eq!(cpu.now(), slice);
        cpu.yield_takes.set(1_000);
        arrives(&mut poll);
        for _ in 0..1_000 {
            assert_eq!(attempts_in_vain(&mut poll), 1);
            cpu.pass(slice / 10 - 1);
            poll.expects = true;
            arrives(&mut poll);
        }
        cpu.pass(1_000);
        poll.expects = true;
        assert_eq!(attempts_in_vain(&mut poll), 101);
    }

    #[test]
    fn without_a_length_there_is_no_polling() {
        let mut poll = BusyPoll::on(FakeCpu::default(), 0);
        assert_eq!(attempts_in_vain(&mut poll), 1);
    }
}
