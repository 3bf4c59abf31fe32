//! The production switch: the C core, as `midflight switch` drives it.

use crate::{Actor, Context, TICK, Wake};
use midflight_dataplane::{Out, Tasks, Verdict};
use midflight_endpoint::Nanos;
use midflight_tasks::mutants::planted;
use std::net::SocketAddr;

/// The core, and what it did last.
#[derive(Debug)]
pub struct Switch {
    tasks: Tasks,
    out: Out,
    now: Nanos,
    looked: u32,
    took: Option<(SocketAddr, Verdict, bool)>,
}

impl Switch {
    /// Around this core.
    #[must_use]
    pub fn new(tasks: Tasks) -> Self {
        Self { tasks, out: Out::new(), now: 0, looked: 0, took: None }
    }

    /// The core.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// What it did last; `datagram` is what it took then, if it took any.
    #[must_use]
    pub fn last_turn<'a>(&'a self, datagram: Option<&'a [u8]>) -> Turn<'a> {
        let took = self.took.zip(datagram);
        let took = took.map(|((from, verdict, several), datagram)| Took { from, datagram, several, verdict });
        Turn { now: self.now, looked: self.looked, took, gave: &self.out, tasks: &self.tasks }
    }

    fn send(&self, context: &mut Context<'_>) {
        for (to, datagram) in self.out.iter() {
            context.send(to, datagram);
        }
    }
}

/// What a switch did, for an [`crate::Observer`].
#[derive(Debug)]
pub struct Turn<'a> {
    /// By the switch's clock.
    pub now: Nanos,
    /// Slots that it looked at as time passed.
    pub looked: u32,
    /// The datagram that it took; `None` where time passed.
    pub took: Option<Took<'a>>,
    /// What it owes for it.
    pub gave: &'a Out,
    /// The core, afterwards.
    pub tasks: &'a Tasks,
}

/// A datagram that a switch took.
#[derive(Clone, Copy, Debug)]
pub struct Took<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Its bytes.
    pub datagram: &'a [u8],
    /// What `owes_several` said beforehand.
    pub several: bool,
    /// What the core said to it.
    pub verdict: Verdict,
}

impl Actor for Switch {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now() + TICK);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let now = context.now();
        let several = context.is_observed() && self.tasks.owes_several(from, datagram);
        let verdict = self.tasks.packet(now, from, datagram, &mut self.out);
        (self.now, self.looked, self.took) = (now, 0, Some((from, verdict, several)));
        self.send(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        let now = context.now();
        let by = if planted(45) { now - now % 1_000_000_000 } else { now };
        (self.now, self.looked, self.took) = (now, self.tasks.tick(by, &mut self.out), None);
        self.send(context);
        context.wake_at(context.now() + TICK);
    }
}
