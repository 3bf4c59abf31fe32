//! Busy polling: reading a socket again and again for a short while before sleeping. A packet that arrives within that time
//! costs no wake-up, which on a virtual machine takes 5 to 20 µs: most of a round trip.
//!
//! Busy polling burns CPU time that others could use. So it is done where it is likely to pay, and given up where it hurts:
//!
//! - A thread polls at the beginning of a wait, if the wait before was shorter than polling may take. A thread that idles, or
//!   gets a packet now and then, polls once after each burst and then sleeps.
//! - Between two reads it yields its core. If another thread wants the core, for longer than a packet takes, the yield lasts a
//!   time slice of the scheduler: milliseconds in which a sleeping thread would have been woken. After such a yield there is
//!   no polling for a hundred times as long.

use crate::clock;
use midflight_endpoint::Nanos;
use std::time::Duration;

/// How long busy polling lasts by default.
pub const BUSY_POLL: Duration = Duration::from_micros(100);
/// A yield that took longer than this was another thread's time slice.
const LATE_NS: Nanos = 1_000_000;
/// After a late yield there is no polling for this many times as long: at most so small a part of all time is lost.
const PAUSE: Nanos = 100;

/// The clock, and how to yield the core to other threads. Tests have their own.
pub(crate) trait Cpu {
    fn now(&self) -> Nanos;
    fn yield_now(&self);
}

/// The core that this thread runs on.
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

/// A loop that tries something again and again, and stops where other threads want the core.
#[derive(Debug, Default)]
pub(crate) struct Spin<C = ThisCpu> {
    cpu: C,
    /// No spinning before that: other threads want the core.
    paused_until: Nanos,
}

impl<C: Cpu> Spin<C> {
    /// Whether other threads leave the core to this one.
    pub(crate) fn is_allowed(&self) -> bool {
        self.cpu.now() >= self.paused_until
    }

    /// Calls `attempt` until it is true, until `end`, or until other threads want the core; whether it was true.
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
    /// The last wait was shorter than polling may take.
    expects: bool,
    /// When the present wait began, if one has.
    waits_since: Option<Nanos>,
}

impl BusyPoll {
    /// Polls for at most that long; zero: never.
    pub(crate) fn new(longest: Duration) -> Self {
        Self::on(ThisCpu, clock::nanos(longest))
    }
}

impl<C: Cpu> BusyPoll<C> {
    fn on(cpu: C, longest: Nanos) -> Self {
        Self { spin: Spin { cpu, paused_until: 0 }, longest, expects: true, waits_since: None }
    }

    /// Receives, if need be by polling, which is interrupted when something is `due`.
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

    /// Whether polling was interrupted by something due. The next call of `receive` goes on with it.
    pub(crate) fn is_polling(&self) -> bool {
        self.polling_ends().is_some_and(|end| self.spin.cpu.now() < end)
    }

    /// When polling ends in the present wait, if this wait has any.
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

    /// A core on which only yielding takes time.
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

    /// On a core where other threads take `yield_takes` at a time.
    fn busy_poll(yield_takes: Nanos) -> (BusyPoll<FakeCpu>, FakeCpu) {
        let cpu = FakeCpu::default();
        cpu.yield_takes.set(yield_takes);
        (BusyPoll::on(cpu.clone(), POLL_NS), cpu)
    }

    /// How often it tries where nothing comes.
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
