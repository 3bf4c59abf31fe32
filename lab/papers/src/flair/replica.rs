//! A replica on a machine of the testbed: each request and each replicated entry takes one of its threads for a time.

use super::costs::Costs;
use midflight_endpoint::{Link, Nanos};
use midflight_sim::store::ReplicaActor;
use midflight_sim::{Actor, Context, LinkEvent, Wake};
use midflight_store::replica::Replica;
use midflight_wire::store::{Operation, Request, Write};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use zerocopy::FromBytes;

/// Factor on a replica's costs, in thousandths. 0 while the keys are written.
pub(super) type Pace = Rc<Cell<u64>>;

pub(super) struct Machine {
    actor: ReplicaActor,
    costs: Costs,
    pace: Pace,
    threads: usize,
    /// Each client id's last write.
    writes: RefCell<HashMap<u64, u64>>,
}

impl Machine {
    pub(super) fn new(actor: ReplicaActor, costs: Costs, pace: Pace, threads: usize) -> Self {
        Self { actor, costs, pace, threads, writes: RefCell::default() }
    }

    pub(super) fn replica(&self) -> Option<&Replica> {
        self.actor.replica()
    }

    fn of_write(&self, write: &Write) -> Nanos {
        let (mut writes, number) = (self.writes.borrow_mut(), write.number.get());
        let last = writes.entry(write.client.get()).or_default();
        let is_copy = number <= *last;
        *last = number.max(*last);
        self.costs.copy_ns.filter(|_| is_copy).unwrap_or(self.costs.write_ns)
    }

    fn at_pace(&self, cost: Nanos) -> Nanos {
        cost * self.pace.get() / 1_000
    }
}

impl Actor for Machine {
    fn start(&mut self, context: &mut Context<'_>) {
        self.actor.start(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        // What others than the threads hold waits, and is the load that the replica reports.
        self.actor.begin_turn(u64::from(context.undecided()).saturating_sub(self.threads as u64));
        self.actor.datagram(context, from, datagram);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        self.actor.wake(context, wake);
    }

    fn persisted(&mut self, context: &mut Context<'_>, batch: u64) {
        self.actor.persisted(context, batch);
    }

    fn link(&mut self, context: &mut Context<'_>, link: Link, event: LinkEvent<'_>) {
        self.actor.link(context, link, event);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        self.actor.command(context, command);
    }

    fn cost(&self, _from: SocketAddr, datagram: &[u8]) -> Nanos {
        let Ok((request, rest)) = Request::ref_from_prefix(datagram) else { return 0 };
        let is = |operation: Operation| request.header.operation == u8::from(operation);
        let cost = match Write::ref_from_prefix(rest) {
            _ if is(Operation::Read) => self.costs.read_ns,
            Ok((write, _)) if is(Operation::Write) => self.of_write(write),
            _ => 0,
        };
        self.at_pace(cost)
    }

    fn message_cost(&self, message: &[u8]) -> Nanos {
        self.at_pace(self.costs.of_message(message.len()))
    }
}
