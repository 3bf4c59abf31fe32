//! Disks and links of nodes: what a crash leaves on a disk, and what a link promises.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_endpoint::{Change, Durable, Endpoint, File, Lane, Link, Linked, MS, Nanos, Persist, SECOND};
use midflight_sim::{
    Action, Actor, Birth, Context, DiskCondition, DiskTimes, Faults, Happening, LinkEvent, NodeId, Place, Sink, Wake,
    World,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const LOG: File = File::Log(1);
const EVERY: Nanos = MS;

/// Writes a byte each millisecond, and sends each peer its number of durable bytes, on both lanes.
struct Toy {
    name: u64,
    peers: Vec<(u64, SocketAddr)>,
    due: Nanos,
    handed: Vec<u8>,
    waiting: Vec<Persist>,
    last_id: u64,
    /// By batch that is not durable yet.
    under_way: BTreeMap<u64, u64>,
    safe: u64,
    /// The last number sent and received on each link.
    told: BTreeMap<Link, u64>,
    heard: BTreeMap<Link, u64>,
    long: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Saw {
    Born(NodeId, usize),
    Safe(NodeId, u64),
    Up(NodeId, Link),
    Broken(NodeId, Link),
    Heard(NodeId, Link, u64),
}

impl Toy {
    fn new(birth: &Birth, peers: Vec<(u64, SocketAddr)>, long: usize) -> Self {
        let handed = birth.files.iter().find(|(file, _)| *file == LOG).map_or(Vec::new(), |(_, bytes)| bytes.clone());
        Self {
            name: 100 + birth.node.index() as u64,
            peers,
            due: birth.now + EVERY,
            safe: handed.len() as u64,
            handed,
            waiting: Vec::new(),
            last_id: 0,
            under_way: BTreeMap::new(),
            told: BTreeMap::new(),
            heard: BTreeMap::new(),
            long,
        }
    }
}

impl Endpoint for Toy {
    type Event = ();
    fn handle(&mut self, _now: Nanos, _from: SocketAddr, _datagram: &[u8]) {}
    fn handle_timeout(&mut self, now: Nanos) {
        self.due = now + EVERY;
        self.last_id += 1;
        self.handed.push(self.handed.len() as u8 | 1);
        self.under_way.insert(self.last_id, self.handed.len() as u64);
        let bytes = vec![*self.handed.last().unwrap()];
        self.waiting.push(Persist { id: self.last_id, changes: vec![Change::Append { file: LOG, bytes }] });
    }
    fn poll_transmit(&mut self, _now: Nanos, _buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        None
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
    fn poll_timeout(&self) -> Option<Nanos> {
        Some(self.due)
    }
}

impl Durable for Toy {
    fn poll_persist(&mut self) -> Option<Persist> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }
    fn persisted(&mut self, _now: Nanos, id: u64) {
        let safe: Vec<_> = self.under_way.extract_if(..=id, |_, _| true).map(|(_, bytes)| bytes).collect();
        self.safe = safe.into_iter().max().unwrap_or(self.safe);
    }
}

impl Linked for Toy {
    fn name(&self) -> u64 {
        self.name
    }
    fn peers(&self) -> Vec<(u64, SocketAddr)> {
        self.peers.clone()
    }
    fn link_up(&mut self, _now: Nanos, link: Link) {
        assert!(self.told.insert(link, 0).is_none(), "each time another generation");
    }
    fn link_broken(&mut self, _now: Nanos, link: Link) {
        assert!(self.told.remove(&link).is_some(), "it was up");
    }
    fn handle_message(&mut self, _now: Nanos, link: Link, message: &[u8]) {
        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
        assert!(self.told.contains_key(&link), "it is up");
        let before = self.heard.insert(link, number).unwrap_or(0);
        assert_eq!(number, before + 1, "in order, each once");
    }
    fn poll_message(&mut self, _now: Nanos, link: Link, buffer: &mut Vec<u8>) -> bool {
        assert!(buffer.is_empty());
        let told = self.told.get_mut(&link).unwrap();
        if *told >= self.safe {
            return false;
        }
        *told += 1;
        buffer.extend(told.to_le_bytes());
        buffer.resize(if link.lane == Lane::Bulk { self.long } else { 8 }, 0);
        true
    }
}

struct ToyActor(Toy);

impl Actor for ToyActor {
    fn start(&mut self, context: &mut Context<'_>) {
        context.record(&Saw::Born(context.node(), self.0.handed.len()));
        context.drive_replica(&mut self.0);
    }
    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        self.0.handle_timeout(context.now());
        context.drive_replica(&mut self.0);
    }
    fn persisted(&mut self, context: &mut Context<'_>, batch: u64) {
        self.0.persisted(context.now(), batch);
        context.record(&Saw::Safe(context.node(), self.0.safe));
        context.drive_replica(&mut self.0);
    }
    fn link(&mut self, context: &mut Context<'_>, link: Link, event: LinkEvent<'_>) {
        let node = context.node();
        match event {
            LinkEvent::Up => {
                self.0.link_up(context.now(), link);
                context.record(&Saw::Up(node, link));
            }
            LinkEvent::Broken => {
                self.0.link_broken(context.now(), link);
                context.record(&Saw::Broken(node, link));
            }
            LinkEvent::Message(message) => {
                self.0.handle_message(context.now(), link, message);
                context.record(&Saw::Heard(node, link, self.0.heard[&link]));
            }
            LinkEvent::Room => {}
        }
        context.drive_replica(&mut self.0);
    }
}

#[derive(Default)]
struct History(Vec<(Nanos, Saw)>);

impl Sink for History {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        self.0.extend(happening.of::<Saw>().map(|saw| (at, saw.clone())));
    }
}

/// Nodes 0 to `count`, whose names for each other are 100, 101 and so on.
fn toys(seed: u64, count: u8, long: usize) -> (World, Vec<NodeId>) {
    toys_with(Faults::NONE, seed, count, long)
}

fn toys_with(faults: Faults, seed: u64, count: u8, long: usize) -> (World, Vec<NodeId>) {
    let mut world = World::new(seed, faults);
    world.set_sink(Box::new(History::default()));
    let nodes = (0..count).map(|own| {
        let peers = move || {
            let others = (0..count).filter(move |&other| other != own);
            others.map(|other| (100 + u64::from(other), SocketAddr::from(([10, 0, 0, other], 7700)))).collect()
        };
        world.add_actor(Place::Apart, Box::new(move |birth| Box::new(ToyActor(Toy::new(birth, peers(), long)))))
    });
    let nodes = nodes.collect();
    (world, nodes)
}

fn saw(world: &World) -> &[(Nanos, Saw)] {
    &world.sink::<History>().unwrap().0
}

fn run_to(world: &mut World, at: Nanos) {
    world.run(at, |_| false);
}

#[test]
fn what_is_safe_survives_a_power_cut_and_the_rest_in_part() {
    let mut kept_more = 0;
    for seed in 0..40 {
        let (mut world, nodes) = toys(seed, 2, 8);
        world.set_disk(nodes[0], DiskTimes { write: (1, 1), sync: (5 * MS, 9 * MS) });
        world.at(50 * MS, Action::PowerCut(nodes.clone()));
        world.at(60 * MS, Action::Restart(nodes[0]));
        run_to(&mut world, 70 * MS);
        let of_first = |saw: &Saw| match saw {
            Saw::Safe(node, bytes) if *node == nodes[0] => Some(*bytes as usize),
            _ => None,
        };
        let before = saw(&world).iter().filter(|(at, _)| *at < 50 * MS);
        let safe = before.filter_map(|(_, saw)| of_first(saw)).max().unwrap();
        let mut born = saw(&world).iter().filter_map(|(_, saw)| match saw {
            Saw::Born(node, bytes) if *node == nodes[0] => Some(*bytes),
            _ => None,
        });
        let kept = born.next_back().unwrap();
        assert!((safe..50).contains(&kept), "{safe} bytes were safe, {kept} are there");
        kept_more += usize::from(kept > safe);
    }
    assert!((1..40).contains(&kept_more), "{kept_more} of 40 kept more than was safe");
}

#[test]
fn links_carry_messages_in_order_and_come_back_with_another_generation() {
    for seed in 0..20 {
        let (mut world, nodes) = toys(seed, 3, 5_000);
        let cut = Action::Partition { from: vec![nodes[0]], to: vec![nodes[1], nodes[2]], both: seed % 2 == 0 };
        world.at(100 * MS, cut);
        world.at(700 * MS, Action::Heal);
        world.at(SECOND, Action::Crash(nodes[1]));
        world.at(SECOND + 100 * MS, Action::Restart(nodes[1]));
        run_to(&mut world, 2 * SECOND);
        for (own, &node) in nodes.iter().enumerate() {
            for other in (0..3).filter(|&other| other != own) {
                let last = saw(&world).iter().rev().find_map(|(at, saw)| match saw {
                    Saw::Heard(at_node, link, number) if *at_node == node && link.peer == 100 + other as u64 => {
                        Some((*at, link.generation, *number))
                    }
                    _ => None,
                });
                let (at, generation, number) = last.unwrap();
                assert!(at > 2 * SECOND - 20 * MS && generation >= 2 && number > 100, "{own} of {other}: {last:?}");
            }
        }
        let is_quiet = |(at, what): &(Nanos, Saw)| !matches!(what, Saw::Heard(node, link, _) if *node == nodes[0] && *at > 150 * MS && *at < 700 * MS && link.generation > 1);
        assert!(saw(&world).iter().all(is_quiet), "no link is made across a partition");
        assert!(
            saw(&world)
                .iter()
                .any(|(at, what)| matches!(what, Saw::Broken(node, _) if *node == nodes[0] && *at < 700 * MS))
        );
    }
}

#[test]
fn a_link_that_breaks_before_it_is_up_comes_back() {
    let slow = Faults { delay_min: 100 * MS, delay_max: 300 * MS, ..Faults::NONE };
    for seed in 0..40 {
        let (mut world, nodes) = toys_with(slow, seed, 2, 8);
        let cut = Action::Partition { from: vec![nodes[0]], to: vec![nodes[1]], both: true };
        world.at(50 * MS, cut);
        world.at(450 * MS, Action::Heal);
        run_to(&mut world, 3 * SECOND);
        for node in nodes {
            let heard = &world.actor::<ToyActor>(node).unwrap().0.heard;
            assert!(heard.keys().any(|link| link.generation >= 2), "seed {seed}: {heard:?}");
        }
    }
}

#[test]
fn a_slow_peer_costs_no_memory_and_the_prompt_lane_does_not_wait() {
    let (mut world, nodes) = toys(7, 2, 300_000);
    world.at(50 * MS, Action::Pause(nodes[1]));
    world.at(500 * MS, Action::Resume(nodes[1]));
    run_to(&mut world, 499 * MS);
    let toy = world.actor::<ToyActor>(nodes[0]).unwrap();
    let bulk = toy.0.told.iter().find(|(link, _)| link.lane == Lane::Bulk).unwrap();
    assert!(*bulk.1 < 60, "a paused peer has room for few long messages: {bulk:?}");
    run_to(&mut world, 2 * SECOND);
    let heard = &world.actor::<ToyActor>(nodes[1]).unwrap().0.heard;
    assert!(heard.values().all(|number| *number > 1_800), "{heard:?}");
    let at = |lane| {
        saw(&world).iter().find(|(_, saw)| matches!(saw, Saw::Heard(_, link, 20) if link.lane == lane)).unwrap().0
    };
    assert!(at(Lane::Prompt) < at(Lane::Bulk));
}

#[test]
fn a_disk_that_fails_ends_the_process_and_one_that_is_wiped_is_empty() {
    let (mut world, nodes) = toys(3, 2, 8);
    world.at(50 * MS, Action::Disk { node: nodes[0], condition: DiskCondition::Failing });
    world.at(60 * MS, Action::Disk { node: nodes[0], condition: DiskCondition::Slow(10) });
    world.at(70 * MS, Action::Restart(nodes[0]));
    run_to(&mut world, 60 * MS);
    assert!(world.actor::<ToyActor>(nodes[0]).is_none(), "it has ended");
    let kept = world.files(nodes[0])[0].1.len();
    run_to(&mut world, 200 * MS);
    assert!(world.actor::<ToyActor>(nodes[0]).unwrap().0.safe > kept as u64);
    world.at(200 * MS, Action::Wipe(nodes[0]));
    run_to(&mut world, 201 * MS);
    assert!(world.actor::<ToyActor>(nodes[0]).is_none() && world.files(nodes[0]).is_empty());
}

#[test]
fn a_run_follows_from_its_seed() {
    let run = |seed| {
        let (mut world, nodes) = toys(seed, 3, 3_000);
        world.at(100 * MS, Action::PowerCut(nodes.clone()));
        nodes.iter().for_each(|&node| world.at(150 * MS, Action::Restart(node)));
        run_to(&mut world, SECOND);
        (world.trace_hash(), saw(&world).to_vec())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0);
}
