//! The world itself: what small actors see of time, hosts, links and faults; and that one seed gives the same run on
//! every machine and in every build.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_dataplane::TasksConfig;
use midflight_endpoint::MS;
use midflight_sim::tasks::{History, Submission, nodes};
use midflight_sim::{
    Action, Actor, Context, Factory, Faults, Happening, Hardware, HostConfig, LinkConfig, NodeId, Place, Sink,
    SwitchConfig, Topology, Wake, World,
};
use midflight_tasks::client::{Argument, ClientConfig, Task};
use midflight_tasks::executor::ExecutorConfig;
use rand::RngExt;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

const US: u64 = 1_000;

/// What nodes saw: node, time by its own clock, payload.
type Seen = Rc<RefCell<Vec<(NodeId, u64, Vec<u8>)>>>;

/// Records what it receives, and sends at given times.
struct Party {
    seen: Seen,
    sends: Vec<(u64, SocketAddr, Vec<u8>)>,
    cost: u64,
}

impl Actor for Party {
    fn start(&mut self, context: &mut Context<'_>) {
        for (token, (at, ..)) in self.sends.iter().enumerate() {
            context.after(*at, token as u64);
        }
    }

    fn datagram(&mut self, context: &mut Context<'_>, _from: SocketAddr, datagram: &[u8]) {
        self.seen.borrow_mut().push((context.node(), context.now(), datagram.to_vec()));
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        let Wake::Token(token) = wake else { unreachable!("it asks for nothing else") };
        let (_, to, datagram) = &self.sends[token as usize];
        context.send(*to, datagram);
    }

    fn cost(&self, _from: SocketAddr, _datagram: &[u8]) -> u64 {
        self.cost
    }
}

fn party(seen: &Seen, sends: &[(u64, SocketAddr, &[u8])], cost: u64) -> Factory {
    let seen = seen.clone();
    let sends: Vec<_> = sends.iter().map(|(at, to, datagram)| (*at, *to, datagram.to_vec())).collect();
    Box::new(move |_| Box::new(Party { seen: seen.clone(), sends: sends.clone(), cost }))
}

fn times(seen: &Seen) -> Vec<(NodeId, u64)> {
    seen.borrow().iter().map(|(node, at, _)| (*node, *at)).collect()
}

/// A node that only listens, and one that sends it `count` datagrams, one every `every`.
fn pair(world: &mut World, places: [Place; 2], count: u64, every: u64, cost: u64) -> (Seen, NodeId, NodeId) {
    let seen = Seen::default();
    let ear = world.add_actor(places[0], party(&seen, &[], cost));
    let to = world.address(ear);
    let bytes: Vec<_> = (0..count).map(|number| [number as u8]).collect();
    let sends: Vec<_> = (0..count).map(|number| (number * every, to, &bytes[number as usize][..])).collect();
    let mouth = world.add_actor(places[1], party(&seen, &sends, 0));
    (seen, ear, mouth)
}

#[test]
fn a_datagram_gets_to_whoever_has_the_address_and_tells_where_its_sender_was() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, mouth) = pair(&mut world, [Place::Apart; 2], 9, MS, 0);
    let other = world.add_actor(Place::Apart, party(&seen, &[], 0));
    let (at, away) = (world.address(ear), "10.9.9.9:1".parse().unwrap());
    for (ms, node, to) in [(2, ear, away), (2, other, at), (5, other, world.address(other)), (5, ear, at)] {
        world.at(ms * MS + 500 * US, Action::Move { node, to });
    }
    world.run(20 * MS, |_| false);
    let who: Vec<_> = times(&seen).iter().map(|(node, _)| *node).collect();
    assert_eq!(who, [ear, ear, ear, other, other, other, ear, ear, ear]);
    assert_eq!((world.address(ear), world.node_at(away), world.node_at(world.address(mouth))), (at, None, Some(mouth)));
}

#[test]
fn what_is_larger_than_the_way_takes_is_lost_and_counted() {
    let mut world = World::new(1, Faults::NONE);
    let seen = Seen::default();
    let ear = world.add_actor(Place::Apart, party(&seen, &[], 0));
    let to = world.address(ear);
    let (fits, larger) = ([0; 1_232], [0; 1_233]);
    let sends = [0, 2, 4].map(|ms| [(ms * MS, to, &fits[..]), (ms * MS, to, &larger[..])]).concat();
    world.add_actor(Place::Apart, party(&seen, &sends, 0));
    world.at(MS, Action::DatagramMax { node: ear, bytes: 1_232 });
    world.at(3 * MS, Action::DatagramMax { node: ear, bytes: usize::MAX });
    world.run(20 * MS, |_| false);
    let sizes: Vec<_> = seen.borrow().iter().map(|(_, _, bytes)| bytes.len()).collect();
    assert_eq!(sizes, [1_232, 1_233, 1_232, 1_232, 1_233]);
    assert_eq!(world.network_counters().too_long, 1);
}

#[test]
fn a_partition_stops_what_is_sent_one_way_until_it_heals() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, mouth) = pair(&mut world, [Place::Apart; 2], 10, MS, 0);
    let sends = [(5_500 * US, world.address(mouth), &b"back"[..])];
    world.add_actor(Place::Apart, party(&seen, &sends, 0));
    world.at(2_500 * US, Action::Partition { from: vec![mouth], to: vec![ear], both: false });
    world.at(7_500 * US, Action::Heal);
    world.run(100 * MS, |_| false);
    let heard: Vec<_> = seen.borrow().iter().filter(|seen| seen.0 == ear).map(|seen| seen.2[0]).collect();
    assert_eq!(heard, [0, 1, 2, 8, 9]);
    assert!(seen.borrow().iter().any(|(node, _, datagram)| *node == mouth && datagram == b"back"), "only one way");
    assert_eq!(world.network_counters().partitioned, 5);
}

#[test]
fn datagrams_wait_for_a_paused_node_and_are_lost_to_one_that_is_down() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, mouth) = pair(&mut world, [Place::Apart; 2], 10, MS, 0);
    world.at(500 * US, Action::Pause(ear));
    world.at(3_500 * US, Action::Resume(ear));
    world.at(4_500 * US, Action::Crash(ear));
    world.at(6_500 * US, Action::Restart(ear));
    world.at(6_600 * US, Action::Pause(mouth));
    world.at(8_250 * US, Action::Resume(mouth));
    world.run(100 * MS, |_| false);
    let heard: Vec<_> = seen.borrow().iter().map(|(_, at, datagram)| (datagram[0], at / US)).collect();
    let expected = [(0, 20), (1, 3_500), (2, 3_500), (3, 3_500), (4, 4_020), (7, 8_270), (8, 8_270), (9, 9_020)];
    assert_eq!(heard, expected);
    assert_eq!(world.network_counters().unreachable, 2, "5 and 6");
}

#[test]
fn what_waits_for_a_paused_node_when_it_dies_is_lost() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, _) = pair(&mut world, [Place::Apart; 2], 3, MS, 0);
    world.at(500 * US, Action::Pause(ear));
    world.at(1_500 * US, Action::Restart(ear));
    world.run(100 * MS, |_| false);
    let heard: Vec<_> = seen.borrow().iter().map(|seen| seen.2[0]).collect();
    assert_eq!((heard, world.network_counters().unreachable), (vec![0, 2], 1), "and the new life is not paused");
}

#[test]
fn the_buffer_of_a_paused_node_is_bounded() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, _) = pair(&mut world, [Place::Apart; 2], 5_000, US, 0);
    world.at(0, Action::Pause(ear));
    world.at(50 * MS, Action::Resume(ear));
    world.run(100 * MS, |_| false);
    assert_eq!((seen.borrow().len(), world.network_counters().receive_buffer_full), (4_096, 5_000 - 4_096));
}

/// Sends when it is woken at a time; the payload is its own clock's time.
struct Alarm(u64, SocketAddr);

impl Actor for Alarm {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(self.0 * 2);
        context.wake_at(self.0); // replaces it
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        assert_eq!(wake, Wake::Time);
        context.send(self.1, &context.now().to_be_bytes());
    }
}

#[test]
fn a_clock_that_runs_fast_wakes_its_node_early() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, mouth) = pair(&mut world, [Place::Apart; 2], 1, 0, 0);
    let to = world.address(ear);
    let alarm = world.add_actor(Place::Apart, Box::new(move |_| Box::new(Alarm(1_000 * MS, to))));
    // From 2 ms on it is 100 ms ahead and gains 5 %: it shows 102 ms, and the other 898 pass in 855.
    for node in [alarm, mouth] {
        world.at(2 * MS, Action::Drift { node, ppm: 50_000, offset: 100 * MS });
    }
    world.at(10 * MS, Action::Restart(mouth)); // which then sends at once: a delay of 0 is 0 by any clock
    world.run(3_000 * MS, |_| false);
    let expected = 2 * MS + (898 * MS).div_ceil(21) * 20;
    let seen = seen.borrow();
    let [_, (_, second, _), (_, alarmed, showed)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(*second, 10 * MS + 20 * US);
    assert!(alarmed.abs_diff(expected + 20 * US) < 30, "{alarmed}, expected {expected}");
    let showed = u64::from_be_bytes(showed[..].try_into().unwrap());
    assert!((1_000 * MS..1_000 * MS + 2).contains(&showed), "{showed}: once, and not at the first time asked for");
}

#[test]
fn a_scheduler_of_one_thread_decides_about_one_datagram_after_the_other() {
    let mut world = World::new(1, Faults::NONE);
    let (seen, ear, _) = pair(&mut world, [Place::Apart; 2], 4, 500, 2 * US);
    world.run(MS, |_| false);
    let expected = [22_000, 24_000, 26_000, 28_000].map(|at| (ear, at));
    assert_eq!(times(&seen), expected);
}

/// A star with links of 500 ns at 10 Gbit/s, a pass of 400 ns, and hosts of one lane: 1 µs to send, 3 µs to receive.
fn star(racks: u32, host: HostConfig) -> (World, [Place; 2]) {
    let link = LinkConfig { latency: 500, bits_per_second: 10_000_000_000 };
    let switch = SwitchConfig { pass: 400, packets_per_second: 0, queue: 16, recirculation: 0 };
    let mut world = World::with_hardware(
        1,
        Faults::INSTANT,
        &Hardware { topology: Topology::racks(racks), link, trunk: link, switch },
    );
    let places = [0, racks - 1].map(|rack| Place::Host(world.add_host(HostConfig { rack, ..host })));
    (world, places)
}

const HOST: HostConfig = HostConfig {
    rack: 0,
    lanes: 1,
    send: 1_000,
    send_ps_per_byte: 0,
    receive: 3_000,
    receive_jitter: 0,
    receive_buffer: 4,
    faults: Faults::INSTANT,
};
const LENGTH: u64 = 54;

#[test]
fn a_way_through_a_star_takes_what_its_parts_take_and_queues_where_it_is_narrow() {
    let (mut world, places) = star(1, HOST);
    let (seen, ear, _) = pair(&mut world, places, 4, 0, 0);
    world.run(MS, |_| false);
    let first = 1_000 + 2 * (500 + LENGTH) + 400 + 3_000;
    // The sender emits one a microsecond; the receiver takes three for each.
    let expected = [0, 1, 2, 3].map(|number| (ear, first + 3_000 * number));
    assert_eq!(times(&seen), expected);
}

#[test]
fn a_way_through_two_tiers_takes_two_trunks_and_two_passes_more() {
    let (mut world, places) = star(2, HOST);
    let (seen, ear, _) = pair(&mut world, places, 1, 0, 0);
    world.run(MS, |_| false);
    assert_eq!(times(&seen), [(ear, 1_000 + 4 * (500 + LENGTH) + 3 * 400 + 3_000)]);
}

#[test]
fn a_program_of_the_switch_is_half_the_way() {
    let (mut world, [host, _]) = star(1, HOST);
    let (seen, ear, _) = pair(&mut world, [Place::Switch(0), host], 1, 0, 0);
    world.run(MS, |_| false);
    assert_eq!(times(&seen), [(ear, 1_000 + 500 + LENGTH + 400)]);
}

#[test]
fn what_a_host_gets_is_late_for_its_program_by_an_exponential_time() {
    const EVERY: u64 = 200 * US;
    let (mut world, [from, to]) = star(1, HostConfig { lanes: 64, ..HOST });
    let late = Place::Host(world.add_host(HostConfig { lanes: 64, receive_jitter: 4_000, ..HOST }));
    let (seen, _, _) = pair(&mut world, [late, from], 2_000, EVERY, 0);
    let (sharp, _, _) = pair(&mut world, [to, late], 2_000, EVERY, 0);
    world.run(500 * MS, |_| false);
    let way = 1_000 + 2 * (500 + LENGTH) + 400 + 3_000;
    let lateness = |seen: &Seen| {
        let sent = |number: usize| number as u64 * EVERY;
        times(seen).iter().enumerate().map(|(number, (_, at))| at - sent(number) - way).collect::<Vec<_>>()
    };
    assert!(lateness(&sharp).iter().all(|&late| late == 0), "what it sends is not");
    let mut late = lateness(&seen);
    late.sort_unstable();
    let mean = late.iter().sum::<u64>() / late.len() as u64;
    // Of an exponential distribution: the mean, and the median at ln 2 of it.
    assert!((3_700..4_300).contains(&mean), "{mean}");
    assert!((2_500..3_050).contains(&late[1_000]), "{}", late[1_000]);
}

#[test]
fn what_a_full_receive_buffer_drops_is_counted_by_name() {
    let (mut world, places) = star(1, HostConfig { send: 100, ..HOST });
    let (seen, ..) = pair(&mut world, places, 40, 0, 0);
    world.run(MS, |_| false);
    let dropped = world.network_counters().receive_buffer_full;
    assert_eq!(seen.borrow().len() as u64 + dropped, 40);
    // 40 arrive in 4 µs: one in service, four waiting, and one more finds room when the second is begun.
    assert_eq!(dropped, 40 - 6);
}

#[test]
fn what_a_switch_cannot_pass_is_counted_by_name() {
    let link = LinkConfig { latency: 0, bits_per_second: 0 };
    let switch = SwitchConfig { pass: 0, packets_per_second: 1_000_000, queue: 3, recirculation: 0 };
    let mut world =
        World::with_hardware(1, Faults::INSTANT, &Hardware { topology: Topology::Star, link, trunk: link, switch });
    let host = Place::Host(world.add_host(HostConfig::default()));
    let (seen, ear, _) = pair(&mut world, [Place::Switch(0), host], 10, 0, 0);
    world.run(MS, |_| false);
    assert_eq!(times(&seen), [0, 1_000, 2_000, 3_000].map(|at| (ear, at)));
    assert_eq!(world.network_counters().switch_queue_full, 6);
}

#[test]
fn a_link_that_becomes_bad_is_bad_until_it_is_mended() {
    let mut world = World::with_hardware(3, Faults::INSTANT, &Hardware::default());
    let places = [0, 0].map(|_| Place::Host(world.add_host(HostConfig::default())));
    let (seen, ear, _) = pair(&mut world, places, 10, MS, 0);
    let faults = Faults { loss: 1.0, ..Faults::INSTANT };
    world.at(2_500 * US, Action::Link { node: ear, faults });
    world.at(6_500 * US, Action::Link { node: ear, faults: Faults::INSTANT });
    world.run(100 * MS, |_| false);
    let heard: Vec<_> = seen.borrow().iter().map(|seen| seen.2[0]).collect();
    assert_eq!((heard, world.network_counters().lost), (vec![0, 1, 2, 7, 8, 9], 4));
}

#[test]
fn the_faults_of_a_host_befall_what_it_sends_and_gets_and_nobody_else() {
    let mut world = World::with_hardware(3, Faults::INSTANT, &Hardware::default());
    let bad = HostConfig { faults: Faults { loss: 0.5, ..Faults::INSTANT }, ..HostConfig::default() };
    let bad = Place::Host(world.add_host(bad));
    let good = Place::Host(world.add_host(HostConfig::default()));
    let (from_bad, ..) = pair(&mut world, [good, bad], 200, US, 0);
    let (to_bad, ..) = pair(&mut world, [bad, good], 200, US, 0);
    let (between_good, ..) = pair(&mut world, [good, good], 200, US, 0);
    world.run(MS, |_| false);
    let count = |seen: &Seen| seen.borrow().len();
    assert_eq!(count(&between_good), 200);
    for seen in [from_bad, to_bad] {
        assert!((70..130).contains(&count(&seen)), "{} of 200", count(&seen));
    }
}

struct Drawing(u32);

#[derive(Default)]
struct Drawn(Vec<u64>);

impl Sink for Drawn {
    fn happened(&mut self, _at: u64, happening: &Happening<'_>) {
        self.0.extend(happening.of::<u64>());
    }
}

impl Actor for Drawing {
    fn start(&mut self, context: &mut Context<'_>) {
        let value = (0..self.0).map(|_| context.random().random::<u64>()).last().unwrap();
        context.record(&value);
    }
}

#[test]
fn a_draw_more_in_one_node_changes_nothing_elsewhere() {
    let drawn = |first: u32| {
        let mut world = World::new(9, Faults::NONE);
        world.set_sink(Box::<Drawn>::default());
        world.add_actor(Place::Apart, Box::new(move |_| Box::new(Drawing(first))));
        world.add_actor(Place::Apart, Box::new(|_| Box::new(Drawing(1))));
        world.sink::<Drawn>().unwrap().0.clone()
    };
    let (once, twice) = (drawn(1), drawn(2));
    assert_ne!(once[0], twice[0]);
    assert_eq!(once[1], twice[1]);
}

/// A cluster of two racks under all faults.
fn disturbed(seed: u64) -> World {
    let link = LinkConfig { latency: 700, bits_per_second: 25_000_000_000 };
    let switch = SwitchConfig { pass: 400, packets_per_second: 10_000_000, queue: 64, recirculation: 400 };
    let faults = Faults { delay_min: 0, delay_max: 5_000, ..Faults::lossy(0.01) };
    let mut world =
        World::with_hardware(seed, faults, &Hardware { topology: Topology::racks(2), link, trunk: link, switch });
    let host = |rack| HostConfig { rack, lanes: 2, send: 1_100, receive: 1_900, ..HostConfig::default() };
    let config = TasksConfig { queue: 4_096, slots: 256, clients: 8, ..TasksConfig::default() };
    let switch = nodes::add_switch_at(&mut world, Place::Switch(0), config).unwrap();
    let at = vec![world.address(switch)];
    let executors: Vec<_> = (0..6)
        .map(|number| {
            let place = Place::Host(world.add_host(host(number % 2)));
            nodes::add_executor_at(&mut world, place, ExecutorConfig::new(0, 0, at.clone(), 8, 0), 55_000, 0).unwrap()
        })
        .collect();
    for client in 0..2 {
        let place = Place::Host(world.add_host(host(client)));
        let argument = |number: u32| (300_000 + u64::from(number * 7_919 % 1_500) * 1_000).to_be_bytes();
        let task = move |number| Task::new(1, Argument::inline(&argument(number)).unwrap());
        let job = move |jid| Submission {
            at: MS + u64::from(jid) * 3 * MS,
            jid,
            tasks: (jid * 50..(jid + 1) * 50).map(task).collect(),
        };
        nodes::add_client_at(&mut world, place, ClientConfig::new(0, 0, at.clone()), Box::new((0..10).map(job)))
            .unwrap();
    }
    world.at(5 * MS, Action::Drift { node: executors[0], ppm: 300, offset: 2 * MS });
    world.at(8 * MS, Action::Pause(executors[1]));
    world.at(13 * MS, Action::Crash(switch));
    world.at(14 * MS, Action::Restart(switch));
    world.at(18 * MS, Action::Partition { from: vec![switch], to: executors[2..4].to_vec(), both: false });
    world.at(21 * MS, Action::Heal);
    world.at(25 * MS, Action::Resume(executors[1]));
    world.set_sink(Box::<History>::default());
    let reported = |world: &World| world.sink::<History>().unwrap().reported();
    assert!(world.run(60_000 * MS, |world| reported(world) == 1_000), "{} of 1000 ended", reported(&world));
    world
}

/// `UPDATE_GOLDEN=1 cargo test -p midflight-sim --test world` rewrites the file, after a change of the protocol or of
/// the world. Debug and release builds use the same file.
#[test]
fn the_same_seed_is_the_same_run_here_and_everywhere() {
    let line = |seed| {
        let world = disturbed(seed);
        let (hash, at, counters) = (world.trace_hash(), world.now(), world.network_counters());
        format!("seed {seed}: {} events, {at} ns, trace {hash:016x}, {counters:?}\n", world.events())
    };
    let got: String = (1..=3).map(line).collect();
    assert_eq!(got, (1..=3).map(line).collect::<String>(), "twice in one process");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/world.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &got).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(got, expected, "if the change is wanted: UPDATE_GOLDEN=1, and read the difference");
}
