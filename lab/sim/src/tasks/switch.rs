//! The production switch: the C core, driven as by `midflight switch`.

use crate::{Actor, Context, TICK, Wake};
use midflight_dataplane::{ConfigError, Out, Tasks, TasksConfig, Verdict};
use midflight_endpoint::Nanos;
use midflight_tasks::mutants::planted;
use std::net::SocketAddr;

/// The start parameters of a switch's process.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Its bounds.
    pub config: TasksConfig,
    /// Its epoch.
    pub epoch: u32,
    /// The secret of its cookies.
    pub secret: u128,
}

/// The core and its last turn.
#[derive(Debug)]
pub struct Switch {
    origin: Origin,
    tasks: Tasks,
    out: Out,
    now: Nanos,
    visited: u32,
    took: Option<(SocketAddr, Verdict, bool)>,
}

impl Switch {
    /// Starts a core.
    ///
    /// # Errors
    /// If the configuration is out of bounds.
    pub fn new(origin: Origin) -> Result<Self, ConfigError> {
        let tasks = Tasks::new(&origin.config, origin.epoch, origin.secret)?;
        Ok(Self { origin, tasks, out: Out::new(), now: 0, visited: 0, took: None })
    }

    /// The start parameters of its process.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The core.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Its last turn; `datagram` is the one that it handled then, if any.
    #[must_use]
    pub fn last_turn<'a>(&'a self, datagram: Option<&'a [u8]>) -> Turn<'a> {
        let took = self.took.zip(datagram);
        let took = took.map(|((from, verdict, several), datagram)| Took { from, datagram, several, verdict });
        Turn { now: self.now, visited: self.visited, took, gave: &self.out, tasks: &self.tasks }
    }

    fn send(&self, context: &mut Context<'_>) {
        for (to, datagram) in self.out.iter() {
            context.send(to, datagram);
        }
    }
}

/// A turn of a switch, for an [`crate::Observer`].
#[derive(Debug)]
pub struct Turn<'a> {
    /// By the switch's clock.
    pub now: Nanos,
    /// Slots that a tick visited.
    pub visited: u32,
    /// The datagram that it handled; `None` for a tick.
    pub took: Option<Took<'a>>,
    /// The datagrams that it sends for it.
    pub gave: &'a Out,
    /// The core, afterwards.
    pub tasks: &'a Tasks,
}

/// A datagram that a switch has handled.
#[derive(Clone, Copy, Debug)]
pub struct Took<'a> {
    /// Its sender.
    pub from: SocketAddr,
    /// Its payload.
    pub datagram: &'a [u8],
    /// The prediction of `owes_several`.
    pub several: bool,
    /// The core's verdict.
    pub verdict: Verdict,
}

impl Actor for Switch {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now() + TICK);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let now = context.now();
        let several = context.is_observed() && self.tasks.owes_several(from, datagram);
        let verdict = self.tasks.take(now, from, &mut datagram.to_vec(), &mut self.out);
        (self.now, self.visited, self.took) = (now, 0, Some((from, verdict, several)));
        self.send(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        let now = context.now();
        let by = if planted(45) { now - now % 1_000_000_000 } else { now };
        (self.now, self.visited, self.took) = (now, self.tasks.tick(by, &mut self.out), None);
        self.send(context);
        context.wake_at(context.now() + TICK);
    }
}
