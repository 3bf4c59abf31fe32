//! A switch with any program, as `midflight switch` drives it.

use crate::{Actor, Context, Wake};
use midflight_dataplane::Out;
use midflight_dataplane::program::Engine;
use midflight_endpoint::{MS, Nanos};
use std::net::SocketAddr;

/// How often an engine is ticked, as `midflight switch` does.
pub const TICK: Nanos = 10 * MS;

/// An engine on a node.
#[derive(Debug)]
pub struct ProgramSwitch<E> {
    engine: E,
    out: Out,
}

impl<E: Engine> ProgramSwitch<E> {
    /// An engine that has just started.
    #[must_use]
    pub fn new(engine: E) -> Self {
        Self { engine, out: Out::new() }
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &E {
        &self.engine
    }
}

/// A call that fails is like a datagram lost on the wire.
impl<E: Engine + 'static> Actor for ProgramSwitch<E> {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now() + TICK);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        if self.engine.packet(context.now(), from, &mut datagram, &mut self.out).is_ok() {
            self.out.all(&datagram).for_each(|(to, bytes)| context.send(to, bytes));
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        if self.engine.tick(context.now(), &mut self.out).is_ok() {
            self.out.iter().for_each(|(to, bytes)| context.send(to, bytes));
        }
        context.wake_at(context.now() + TICK);
    }
}
