//! A switch with one replica set: the soft engine in user space, or the asic engine.

use super::StoreEvent;
use super::late::{Late, Lateness, TOKENS};
use crate::switch::TICK;
use crate::{Actor, Context, Wake};
use midflight_asic::store::{AsicStore, UNIT_BITS};
use midflight_dataplane::Out;
use midflight_dataplane::program::Engine;
use midflight_dataplane::store::{NewSet, SetOrder, Stats, Store, StoreConfig, StoreProgram};
use midflight_wire::store::{Operation, Request};
use std::any::Any;
use std::net::SocketAddr;
use zerocopy::FromBytes;

const IN_PROCESS_CALLS_SUCCEED: &str = "calls of an engine in this process cannot fail";

/// The engine on a node.
pub struct SwitchActor {
    engine: Box<dyn Engine<Program = StoreProgram>>,
    out: Out,
    lateness: Lateness,
}

impl std::fmt::Debug for SwitchActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchActor").finish_non_exhaustive()
    }
}

impl SwitchActor {
    /// A fresh switch with this set, by the asic engine or the soft one. `secret` makes its cookies.
    ///
    /// # Panics
    /// If the configuration or the set is out of bounds.
    #[must_use]
    pub fn new(config: &StoreConfig, set: &NewSet, secret: u128, is_asic: bool) -> Self {
        let bounded = "a trial's bounds are those of a switch";
        let mut engine: Box<dyn Engine<Program = StoreProgram>> = if is_asic {
            Box::new(AsicStore::new(config, secret, UNIT_BITS).expect(bounded))
        } else {
            Box::new(Store::new(config, 1, secret).expect(bounded))
        };
        let mut order = SetOrder::add(set);
        while !engine.order(&mut order).expect(IN_PROCESS_CALLS_SUCCEED) {}
        Self { engine, out: Out::new(), lateness: Lateness::default() }
    }

    /// The engine's counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Checks the consistency of its structures.
    ///
    /// # Errors
    /// Says which are inconsistent.
    pub fn check(&self) -> Result<(), String> {
        self.engine.check()
    }

    fn passed(&self, datagram: &[u8]) -> Option<u64> {
        self.out.forward()?;
        let (request, _) = Request::ref_from_prefix(datagram).ok()?;
        let is_request = [Operation::Read, Operation::Write].map(u8::from).contains(&request.header.operation);
        is_request.then(|| request.sid.get())
    }
}

impl Actor for SwitchActor {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now() + TICK);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        let verdict =
            self.engine.packet(context.now(), from, &mut datagram, &mut self.out).expect(IN_PROCESS_CALLS_SUCCEED);
        if let Some(sid) = self.passed(&datagram) {
            super::record(context, StoreEvent::Passed { sid });
        }
        super::record(context, StoreEvent::Verdict(verdict));
        let Self { out, lateness, .. } = self;
        out.all(&datagram).for_each(|(to, bytes)| lateness.send(context, to, bytes));
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Token(token) if token >= TOKENS => self.lateness.due(context, token),
            _ => {
                self.engine.tick(context.now(), &mut self.out).expect(IN_PROCESS_CALLS_SUCCEED);
                context.wake_at(context.now() + TICK);
            }
        }
    }

    fn command(&mut self, _context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(late) = command.downcast::<Option<Late>>() {
            self.lateness.present = *late;
        }
    }
}
