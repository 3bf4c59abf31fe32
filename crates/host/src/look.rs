//! Looking at a socket again and again for a short while before sleeping. What arrives within that time costs no wake-up,
//! which on a virtual machine takes 5 to 20 µs: most of a round trip.
//!
//! A look burns CPU time that others could use. So it is taken where it is likely to pay, and given up where it hurts:
//!
//! - A thread looks at the beginning of a wait, if the wait before was shorter than a look. One that idles, or gets a packet
//!   now and then, looks once after each burst and then sleeps.
//! - Between two glances it yields its core. If somebody else wants the core, for longer than a packet takes, the yield
//!   lasts a slice of the scheduler, milliseconds in which a sleeper would have been woken. After such a one there is no
//!   look for a hundred times as long.

use crate::clock;
use midflight_endpoint::Nanos;
use std::time::Duration;

/// How long a look takes unless its owner says otherwise.
pub(crate) const LOOK: Duration = Duration::from_micros(100);
/// A yield that took longer than this was somebody else's slice.
const LATE_NS: Nanos = 1_000_000;
/// After a late yield there is no look for this many times as long: at most so small a part of all time is lost.
const PAUSE: Nanos = 100;

/// What time it is, and how to give others the core. Tests have their own.
pub(crate) trait Core {
    fn now(&self) -> Nanos;
    fn give_way(&self);
}

/// The one that this thread runs on.
#[derive(Debug, Default)]
pub(crate) struct ThisCore;

impl Core for ThisCore {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn give_way(&self) {
        std::thread::yield_now();
    }
}

/// Looks that respect others.
#[derive(Debug, Default)]
pub(crate) struct Glances<C = ThisCore> {
    core: C,
    /// No look before that: others want the core.
    paused_until: Nanos,
}

impl<C: Core> Glances<C> {
    /// Whether a look makes sense now.
    pub(crate) fn welcome(&self) -> bool {
        self.core.now() >= self.paused_until
    }

    /// Calls `glance` until it is true, until `end`, or until others want the core; whether it was true.
    pub(crate) fn until(&mut self, end: Nanos, mut glance: impl FnMut() -> bool) -> bool {
        loop {
            if glance() {
                return true;
            }
            let before = self.core.now();
            if before >= end || before < self.paused_until {
                return false;
            }
            self.core.give_way();
            let took = self.core.now() - before;
            if took > LATE_NS {
                self.paused_until = before + took + PAUSE * took;
            }
        }
    }
}

/// Looks at the beginning of waits that are likely to be short.
#[derive(Debug)]
pub(crate) struct Looker<C = ThisCore> {
    glances: Glances<C>,
    longest: Nanos,
    /// The last wait was shorter than a look.
    expects: bool,
    /// When the present wait began, if one has.
    waits_since: Option<Nanos>,
}

impl Looker {
    /// Looks take at most that long; zero for none.
    pub(crate) fn new(longest: Duration) -> Self {
        Self::on(ThisCore, clock::nanos(longest))
    }
}

impl<C: Core> Looker<C> {
    fn on(core: C, longest: Nanos) -> Self {
        Self { glances: Glances { core, paused_until: 0 }, longest, expects: true, waits_since: None }
    }

    /// Receives, if need be after a look, which is interrupted when something is `due`.
    pub(crate) fn receive(&mut self, due: Nanos, mut receive: impl FnMut() -> bool) -> bool {
        let began = *self.waits_since.get_or_insert_with(|| self.glances.core.now());
        let received = match self.look_ends() {
            Some(end) => self.glances.until(end.min(due), receive),
            None => receive(),
        };
        if received {
            self.expects = self.glances.core.now() - began < self.longest;
            self.waits_since = None;
        }
        received
    }

    /// Whether a look was interrupted: what is due done, the next call of `receive` goes on with it.
    pub(crate) fn is_looking(&self) -> bool {
        self.look_ends().is_some_and(|end| self.glances.core.now() < end)
    }

    /// When the look of the present wait ends, if it has one.
    fn look_ends(&self) -> Option<Nanos> {
        let began = self.waits_since.filter(|_| self.expects && self.glances.welcome())?;
        Some(began.saturating_add(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    const LOOK_NS: Nanos = 100_000;

    /// A core on which only giving way takes time.
    #[derive(Clone, Default)]
    struct FakeCore {
        now: Rc<Cell<Nanos>>,
        yield_takes: Rc<Cell<Nanos>>,
    }

    impl Core for FakeCore {
        fn now(&self) -> Nanos {
            self.now.get()
        }

        fn give_way(&self) {
            self.pass(self.yield_takes.get());
        }
    }

    impl FakeCore {
        fn pass(&self, time: Nanos) {
            self.now.set(self.now.get() + time);
        }
    }

    /// A looker on a core where others take `yield_takes` at a time.
    fn looker(yield_takes: Nanos) -> (Looker<FakeCore>, FakeCore) {
        let core = FakeCore::default();
        core.yield_takes.set(yield_takes);
        (Looker::on(core.clone(), LOOK_NS), core)
    }

    /// How often it looks where nothing comes.
    fn glances_in_vain(looker: &mut Looker<FakeCore>) -> usize {
        let mut glances = 0;
        let came = looker.receive(Nanos::MAX, || {
            glances += 1;
            false
        });
        assert!(!came);
        glances
    }

    fn arrives(looker: &mut Looker<FakeCore>) {
        assert!(looker.receive(Nanos::MAX, || true));
    }

    #[test]
    fn a_look_ends_with_what_it_looks_for() {
        let (mut looker, core) = looker(1_000);
        let mut glances = 0;
        assert!(looker.receive(Nanos::MAX, || {
            glances += 1;
            glances == 5
        }));
        assert_eq!(core.now(), 4_000);
        assert_eq!(glances_in_vain(&mut looker), 101, "the wait was short, so the next begins with a look");
    }

    #[test]
    fn a_look_goes_on_when_what_was_due_is_done() {
        let (mut looker, core) = looker(1_000);
        assert!(!looker.receive(10_000, || false));
        assert!(core.now() == 10_000 && looker.is_looking());
        assert!(!looker.receive(LOOK_NS + 50_000, || false));
        assert!(core.now() == LOOK_NS && !looker.is_looking());
    }

    #[test]
    fn a_wait_has_one_look_and_after_a_long_wait_there_is_none() {
        let (mut looker, core) = looker(1_000);
        assert_eq!(glances_in_vain(&mut looker), 101);
        for _ in 0..3 {
            core.pass(LOOK_NS);
            assert_eq!(glances_in_vain(&mut looker), 1, "the same wait, in which something else was due");
        }
        arrives(&mut looker);
        assert_eq!(glances_in_vain(&mut looker), 1, "packets come in long intervals");
        core.pass(LOOK_NS / 2);
        arrives(&mut looker);
        assert_eq!(glances_in_vain(&mut looker), 101, "packets come in short intervals");
    }

    #[test]
    fn who_gives_a_slice_away_does_not_look_for_a_hundred_slices() {
        let slice = 3_000_000;
        let (mut looker, core) = looker(slice);
        assert_eq!(glances_in_vain(&mut looker), 2);
        assert_eq!(core.now(), slice);
        core.yield_takes.set(1_000);
        arrives(&mut looker);
        for _ in 0..1_000 {
            assert_eq!(glances_in_vain(&mut looker), 1);
            core.pass(slice / 10 - 1);
            looker.expects = true;
            arrives(&mut looker);
        }
        core.pass(1_000);
        looker.expects = true;
        assert_eq!(glances_in_vain(&mut looker), 101);
    }

    #[test]
    fn without_a_length_there_is_no_look() {
        let mut looker = Looker::on(FakeCore::default(), 0);
        assert_eq!(glances_in_vain(&mut looker), 1);
    }
}
