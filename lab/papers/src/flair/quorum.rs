//! Models of two baselines that are no mode of Midflight: the normal case of Viewstamped Replication and of Fast Paxos.
//!
//! They have the advantages that the papers gave them (nothing fails, no disk), and more: operations commit in any order, and messages
//! between replicas cost nothing, except entries. Their one thread takes as long for an operation as one of the others' twenty, which is
//! what makes them slow. Without keys and key groups, their load is uniform.

use super::cell::{Cell, CellResult, Shares, System};
use super::costs::Costs;
use super::measured::Measured;
use super::run::with_way;
use super::users::{Record, VALUE_BYTES};
use crate::cell::testbed::host;
use midflight_endpoint::{MS, Nanos};
use midflight_sim::{Actor, Birth, Context, Faults, Place, Wake, World};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::HashMap;
use std::net::SocketAddr;

pub(super) fn run(cell: &Cell) -> CellResult {
    let mut world = World::with_hardware(cell.seed, Faults::INSTANT, &with_way(cell.way_ns));
    let replicas: Vec<SocketAddr> = (0..u32::from(cell.replicas)).map(World::home).collect();
    let system = cell.system;
    let costs = cell.costs;
    let costs = if system == System::FastPaxos { Costs { write_ns: costs.write_alone_ns, ..costs } } else { costs };
    for place in 0..replicas.len() {
        let mut others = replicas.clone();
        others.remove(place);
        let host = world.add_host(host());
        let replica = move |_: &mut Birth| -> Box<dyn Actor> {
            Box::new(Replica { system, others: others.clone(), costs, open: HashMap::new(), opened: 0 })
        };
        let node = world.add_actor(Place::Host(host), Box::new(replica));
        world.set_threads(node, cell.threads());
    }
    let machines = cell.busy_machines();
    for place in 0..machines {
        let (replicas, reads, seed) = (replicas.clone(), cell.reads, cell.seed);
        let clients = cell.clients * (place + 1) / machines - cell.clients * place / machines;
        let host = world.add_host(host());
        let users = move |_: &mut Birth| -> Box<dyn Actor> {
            let random = Pcg64::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(place));
            Box::new(Users::new(system, &replicas, reads, clients, random))
        };
        world.add_actor(Place::Host(host), Box::new(users));
    }
    let mut measured = Measured::default();
    measured.begin(0, cell);
    world.set_sink(Box::new(measured));
    world.run(cell.duration_ms * MS, |_| false);
    let (shares, events) = (Shares { by_leader: 1.0, ..Shares::default() }, world.events());
    world.sink::<Measured>().map_or_else(CellResult::default, |measured| measured.result(cell, shares, events))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Request,
    Prepare,
    PrepareOk,
    Reply,
}

/// A message; `number` is the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    kind: Kind,
    is_read: bool,
    number: u64,
}

impl Message {
    const HEADER: usize = 40;

    fn encoded(self) -> Vec<u8> {
        let carries_value = match self.kind {
            Kind::Request | Kind::Prepare => !self.is_read,
            Kind::Reply => self.is_read,
            Kind::PrepareOk => false,
        };
        let mut bytes = vec![0; Self::HEADER + if carries_value { VALUE_BYTES } else { 0 }];
        bytes[0] = self.kind as u8;
        bytes[1] = u8::from(self.is_read);
        bytes[2..10].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<Self> {
        let kinds = [Kind::Request, Kind::Prepare, Kind::PrepareOk, Kind::Reply];
        let number = u64::from_le_bytes(bytes.get(2..10)?.try_into().ok()?);
        Some(Self { kind: *kinds.get(usize::from(bytes[0]))?, is_read: bytes[1] == 1, number })
    }
}

/// The first one leads.
struct Replica {
    system: System,
    others: Vec<SocketAddr>,
    costs: Costs,
    /// Operations of the leader: the client, its request, and how many followers must still confirm.
    open: HashMap<u64, (SocketAddr, Message, usize)>,
    opened: u64,
}

impl Replica {
    fn prepare(&mut self, context: &mut Context<'_>, client: SocketAddr, request: Message) {
        self.opened += 1;
        self.open.insert(self.opened, (client, request, self.others.len().div_ceil(2)));
        let prepare = Message { kind: Kind::Prepare, number: self.opened, ..request }.encoded();
        self.others.iter().for_each(|&follower| context.send(follower, &prepare));
    }

    fn confirmed(&mut self, context: &mut Context<'_>, number: u64) {
        let Some((client, request, missing)) = self.open.get_mut(&number) else { return };
        *missing -= 1;
        if *missing == 0 {
            context.send(*client, &Message { kind: Kind::Reply, ..*request }.encoded());
            self.open.remove(&number);
        }
    }
}

impl Actor for Replica {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let Some(message) = Message::decoded(datagram) else { return };
        match message.kind {
            Kind::Request if self.system == System::FastPaxos => {
                context.send(from, &Message { kind: Kind::Reply, ..message }.encoded());
            }
            Kind::Request => self.prepare(context, from, message),
            Kind::Prepare => context.send(from, &Message { kind: Kind::PrepareOk, ..message }.encoded()),
            Kind::PrepareOk => self.confirmed(context, message.number),
            Kind::Reply => {}
        }
    }

    fn wake(&mut self, _context: &mut Context<'_>, _wake: Wake) {}

    fn cost(&self, _from: SocketAddr, datagram: &[u8]) -> Nanos {
        match Message::decoded(datagram) {
            Some(Message { kind: Kind::Request, is_read: true, .. }) => self.costs.read_ns,
            Some(Message { kind: Kind::Request, .. }) => self.costs.write_ns,
            Some(Message { kind: Kind::Prepare, is_read: false, .. }) => self.costs.entry_ns,
            _ => 0,
        }
    }
}

struct Open {
    number: u64,
    began: Nanos,
    is_read: bool,
    /// Replies.
    missing: usize,
}

/// The clients of a machine, in a closed loop.
struct Users {
    /// To whom a request goes.
    to: Vec<SocketAddr>,
    /// Replies that end an operation.
    replies: usize,
    reads: f64,
    random: Pcg64,
    /// Of each client.
    open: Vec<Open>,
}

impl Users {
    fn new(system: System, replicas: &[SocketAddr], reads: f64, clients: u32, random: Pcg64) -> Self {
        let (to, replies) = if system == System::FastPaxos {
            (replicas.to_vec(), (3 * replicas.len()).div_ceil(4))
        } else {
            (replicas[..1].to_vec(), 1)
        };
        let open = (0..clients).map(|_| Open { number: 0, began: 0, is_read: true, missing: 0 }).collect();
        Self { to, replies, reads, random, open }
    }

    fn submit(&mut self, context: &mut Context<'_>, client: usize) {
        let is_read = self.random.random_bool(self.reads);
        // Numbers of a client are those that leave its place as the rest.
        let number = self.open[client].number + self.open.len() as u64;
        self.open[client] = Open { number, began: context.now(), is_read, missing: self.replies };
        let request = Message { kind: Kind::Request, is_read, number }.encoded();
        self.to.iter().for_each(|&replica| context.send(replica, &request));
    }
}

impl Actor for Users {
    fn start(&mut self, context: &mut Context<'_>) {
        for client in 0..self.open.len() {
            self.open[client].number = client as u64;
            self.submit(context, client);
        }
    }

    fn datagram(&mut self, context: &mut Context<'_>, _from: SocketAddr, datagram: &[u8]) {
        let Some(message) = Message::decoded(datagram) else { return };
        let client = (message.number % self.open.len() as u64) as usize;
        let open = &mut self.open[client];
        if open.number != message.number || open.missing == 0 {
            return;
        }
        open.missing -= 1;
        if open.missing == 0 {
            let took = context.now() - open.began;
            context.record(&Record::Ended { is_read: open.is_read, took, failed: false });
            self.submit(context, client);
        }
    }

    fn wake(&mut self, _context: &mut Context<'_>, _wake: Wake) {}
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;
    use crate::cell::testbed::hardware;

    fn idle(system: System) -> CellResult {
        let cell = Cell { system, clients: 1, reads: 1.0, warmup_ms: 1, duration_ms: 21, ..Cell::default() };
        run(&cell).unwrap()
    }

    fn way() -> Nanos {
        host().send + 2 * hardware().link.latency + hardware().switch.pass + host().receive + host().receive_jitter / 2
    }

    #[test]
    fn a_read_takes_two_round_trips_by_vr_and_one_by_fast_paxos() {
        for (system, ways) in [(System::ViewstampedReplication, 4), (System::FastPaxos, 2)] {
            let expected = (ways * way() + Costs::default().read_ns) as f64;
            let mean = idle(system).reads.mean_ms * 1e6;
            assert!((mean / expected - 1.0).abs() < 0.15, "{system:?}: {mean} {expected}");
        }
    }

    #[test]
    fn one_thread_bounds_both() {
        for system in [System::ViewstampedReplication, System::FastPaxos] {
            let cell = Cell { system, reads: 1.0, warmup_ms: 20, duration_ms: 120, ..Cell::default() };
            let per_second = run(&cell).unwrap().per_second;
            let bound = 1e9 / cell.costs.read_ns as f64;
            assert!((per_second / bound - 1.0).abs() < 0.03, "{system:?}: {per_second} {bound}");
        }
    }

    #[test]
    fn a_message_that_is_cut_is_none() {
        let message = Message { kind: Kind::Prepare, is_read: true, number: 7 };
        assert_eq!(Message::decoded(&message.encoded()), Some(message));
        assert_eq!(Message::decoded(&message.encoded()[..9]), None);
        assert_eq!(Message::decoded(&[4; 10]), None);
    }
}
