//! A switch with any program, driven as by `midflight switch`.

use crate::{Actor, Context, Wake};
use midflight_dataplane::Out;
use midflight_dataplane::program::Engine;
use midflight_endpoint::{MS, Nanos};
use std::net::SocketAddr;

/// Interval of ticks, as in `midflight switch`.
pub const TICK: Nanos = 10 * MS;

/// An engine on a node.
#[derive(Debug)]
pub struct ProgramSwitch<E> {
    engine: E,
    out: Out,
}

impl<E: Engine> ProgramSwitch<E> {
    /// A fresh engine.
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

/// A failed call is like a datagram lost on the wire.
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
