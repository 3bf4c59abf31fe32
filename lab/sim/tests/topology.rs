//! Paths through switches: every host of a fat-tree reaches every other in as many hops as there are tiers between
//! them; programs of switches on the path see datagrams, keep, change or redirect them.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_endpoint::{MS, Nanos};
use midflight_sim::{
    Action, Actor, Context, Faults, Hardware, HostConfig, LinkConfig, NodeId, Passage, Passing, Place, SwitchConfig,
    Topology, Wake, World,
};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

const LINK: Nanos = 1_000;
const TRUNK: Nanos = 30_000;
const PASS: Nanos = 400;

/// Received datagrams: node, time, source, payload.
type Got = Rc<RefCell<Vec<(NodeId, Nanos, SocketAddr, Vec<u8>)>>>;

/// Records what it receives, and sends what its user requests.
struct Host(Got);

type Send = (SocketAddr, Vec<u8>);

impl Actor for Host {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.0.borrow_mut().push((context.node(), context.now(), from, datagram.to_vec()));
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn std::any::Any>) {
        let (to, bytes) = *command.downcast::<Send>().unwrap();
        context.send(to, &bytes);
    }
}

#[derive(Clone, Copy)]
enum Does {
    Signs(u8),
    Redirects(SocketAddr),
    Keeps(Nanos),
}

struct OnTheWay {
    does: Does,
    kept: Vec<(NodeId, SocketAddr, Vec<u8>)>,
    got: Got,
}

impl Actor for OnTheWay {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.got.borrow_mut().push((context.node(), context.now(), from, datagram.to_vec()));
    }

    fn passing(&mut self, context: &mut Context<'_>, passing: &mut Passing<'_>) -> Passage {
        match self.does {
            Does::Signs(number) => passing.datagram.push(number),
            Does::Redirects(to) => passing.to = to,
            Does::Keeps(time) => {
                self.kept.push((passing.from, passing.to, passing.datagram.clone()));
                context.after(time, 0);
                return Passage::Ends;
            }
        }
        Passage::GoesOn
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        let (from, to, datagram) = self.kept.pop().unwrap();
        context.forward(from, to, &datagram);
    }
}

struct Tree {
    world: World,
    hosts: Vec<NodeId>,
    got: Got,
}

impl Tree {
    fn new(k: u32) -> Self {
        let topology = Topology::fat_tree(k);
        let link = |latency| LinkConfig { latency, bits_per_second: 0 };
        let switch = SwitchConfig { pass: PASS, packets_per_second: 0, queue: 0, recirculation: 0 };
        let hardware = Hardware { topology, link: link(LINK), trunk: link(TRUNK), switch };
        let mut world = World::with_hardware(1, Faults::INSTANT, &hardware);
        let got = Got::default();
        let host = |rack| {
            let place = Place::Host(world.add_host(HostConfig { rack, ..HostConfig::default() }));
            let got = got.clone();
            world.add_actor(place, Box::new(move |_| Box::new(Host(got.clone()))))
        };
        let hosts = (0..topology.rack_switches()).map(host).collect();
        Self { world, hosts, got }
    }

    /// Adds a program that sees a switch's passing datagrams.
    fn on_the_way(&mut self, switch: u32, does: Does) -> NodeId {
        let got = self.got.clone();
        let program = Box::new(move |_: &mut _| {
            Box::new(OnTheWay { does, kept: Vec::new(), got: got.clone() }) as Box<dyn Actor>
        });
        let node = self.world.add_actor(Place::Switch(switch), program);
        self.world.attach(node);
        node
    }

    fn send(&mut self, at: Nanos, from: NodeId, to: NodeId, bytes: &[u8]) {
        let send: Send = (self.world.address(to), bytes.to_vec());
        self.world.at(at, Action::command(from, send));
    }

    /// Runs for a second, and returns what arrived since the last call.
    fn run(&mut self) -> Vec<(NodeId, Nanos, SocketAddr, Vec<u8>)> {
        self.world.run(self.world.now() + 1_000 * MS, |_| false);
        self.got.take()
    }
}

/// The delay of a path with this many switches.
fn through(switches: u64) -> Nanos {
    2 * LINK + (switches - 1) * TRUNK + switches * PASS
}

#[test]
fn every_host_reaches_every_other_in_as_many_hops_as_there_are_tiers_between_them() {
    let mut tree = Tree::new(4);
    let hosts = tree.hosts.clone();
    for (n, &from) in hosts.iter().enumerate() {
        for (m, &to) in hosts.iter().enumerate().filter(|(m, _)| *m != n) {
            let (start, switches) = (tree.world.now(), if n / 2 == m / 2 { 3 } else { 5 });
            assert_eq!(tree.world.route(from, to).len() as u64, switches);
            tree.send(start, from, to, b"a");
            let [(node, at, _, _)] = tree.run()[..] else { panic!("from {n} to {m}") };
            assert_eq!((node, at), (to, start + through(switches)));
        }
    }
}

#[test]
fn programs_on_the_way_see_what_passes_in_the_order_of_the_route() {
    let mut tree = Tree::new(4);
    let (from, to) = (tree.hosts[0], tree.hosts[7]);
    (0..Topology::fat_tree(4).switches()).for_each(|switch| {
        tree.on_the_way(switch, Does::Signs(switch as u8));
    });
    let start = tree.world.now();
    tree.send(start, from, to, b"");
    let [(node, at, source, ref signed)] = tree.run()[..] else { panic!("one arrives") };
    let route: Vec<_> = tree.world.route(from, to).iter().map(|&switch| switch as u8).collect();
    assert_eq!((node, at, source, signed), (to, start + through(5), tree.world.address(from), &route));
    let now = tree.world.now();
    tree.send(now, to, from, b"");
    let [ref back] = tree.run()[..] else { panic!("one comes back") };
    assert_eq!(back.3, route.iter().rev().copied().collect::<Vec<_>>());
}

#[test]
fn a_program_on_the_way_sends_a_datagram_elsewhere_and_its_source_stays() {
    let mut tree = Tree::new(4);
    let (client, named, chosen) = (tree.hosts[0], tree.hosts[2], tree.hosts[6]);
    let core = tree.world.route(client, named)[2];
    let to = tree.world.address(chosen);
    tree.on_the_way(core, Does::Redirects(to));
    tree.send(0, client, named, b"get");
    let [(node, at, source, _)] = tree.run()[..] else { panic!("one arrives") };
    assert_eq!((node, at, source), (chosen, through(5), tree.world.address(client)), "without a detour");
}

#[test]
fn a_program_keeps_a_datagram_and_sends_it_on_later() {
    let mut tree = Tree::new(4);
    let (from, to) = (tree.hosts[0], tree.hosts[1]);
    let middle = tree.world.route(from, to)[1];
    tree.on_the_way(middle, Does::Keeps(7_500));
    tree.send(0, from, to, b"get");
    let [(node, at, source, _)] = tree.run()[..] else { panic!("one arrives") };
    assert_eq!((node, at, source), (to, through(3) + 7_500, tree.world.address(from)));
}

#[test]
fn a_program_of_a_core_switch_has_an_address_of_its_own() {
    let mut tree = Tree::new(4);
    let core = Topology::fat_tree(4).switches() - 1;
    let program = tree.on_the_way(core, Does::Signs(0));
    let host = tree.hosts[3];
    tree.send(0, host, program, b"plan");
    let [(node, at, _, ref bytes)] = tree.run()[..] else { panic!("one arrives") };
    assert_eq!((node, at, &bytes[..]), (program, LINK + 2 * TRUNK + 3 * PASS, &b"plan"[..]));
}

#[test]
fn what_passes_a_program_that_is_down_is_not_touched_and_waits_for_one_that_is_paused() {
    let mut tree = Tree::new(4);
    let (from, to) = (tree.hosts[0], tree.hosts[1]);
    let middle = tree.world.route(from, to)[1];
    let program = tree.on_the_way(middle, Does::Signs(9));
    tree.world.at(0, Action::Crash(program));
    tree.send(MS, from, to, b"a");
    tree.world.at(2 * MS, Action::Restart(program));
    tree.world.at(3 * MS, Action::Pause(program));
    tree.send(4 * MS, from, to, b"b");
    tree.world.at(9 * MS, Action::Resume(program));
    let got: Vec<_> = tree.run().into_iter().map(|(_, at, _, bytes)| (at / MS, bytes)).collect();
    assert_eq!(got, [(1, b"a".to_vec()), (9, b"b\x09".to_vec())]);
}
