//! Every rule can fail: the follower gets a core's true steps and one false step, and must name the rule that this step
//! would break.

use super::super::rules::*;
use super::{Follower, Seen};
use crate::check::{Checked, Rule};
use crate::tasks::switch::{Origin, Took};
use midflight_dataplane::{Out, Stats, TICK_SLOTS, Tasks, TasksConfig, Verdict};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::{
    Keepalive, Packet, Probe, Register, Retrieve, SlotName, Submit, TaskInfo, counting, packet, parse,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U64;

const TICK: Nanos = 10 * MS;
const EPOCH: u32 = 7;
const CLIENT: u64 = 5;
const EXECUTOR: u64 = 9;
const CONFIG: TasksConfig = TasksConfig {
    queue: 8,
    slots: 8,
    clients: 8,
    levels: 8,
    places: 8,
    arguments: 64,
    lease_ns: 100 * MS,
    slot_idle_ns: 400 * MS,
    client_idle_ns: 1_000 * MS,
    cookie_ns: 150 * MS,
};

struct Followed {
    now: Nanos,
    core: Tasks,
    follower: Follower,
    out: Out,
    slots: Vec<SlotName>,
    /// Of the last packet of its executor.
    counter: Cell<u64>,
    cookies: HashMap<u64, u64>,
}

impl Followed {
    fn new(queue: u32) -> Self {
        let config = TasksConfig { queue, ..CONFIG };
        let (core, follower) = (core(queue, EPOCH), follower(config));
        let (slots, counter, cookies) = (Vec::new(), Cell::new(0), HashMap::new());
        let mut followed = Self { now: MS, core, follower, out: Out::new(), slots, counter, cookies };
        followed.take(&register(0)).unwrap();
        followed.take(&submit(0, 0, &[(1, 0)])).unwrap();
        followed.take(&register(followed.cookies[&EXECUTOR])).unwrap();
        let Some((_, answer)) = followed.out.iter().next() else { panic!("a REGISTER is answered") };
        let Ok(Packet::Registered(_, slots)) = parse(answer) else { panic!("by REGISTERED") };
        followed.slots = slots.to_vec();
        followed
    }

    fn queued(tasks: &[(u8, u8)]) -> Self {
        let mut followed = Self::new(8);
        followed.take(&followed.submit(1, tasks)).unwrap();
        followed
    }

    fn running() -> Self {
        let mut followed = Self::queued(&[(1, 0)]);
        followed.take(&followed.wait(0, 1, 0)).unwrap();
        followed
    }

    /// Ticks the core, and gives the follower another time.
    fn tick_at(&mut self, time: Nanos) -> Checked<Seen> {
        let visited = self.core.tick(time, &mut self.out);
        self.follower.tick(self.now, visited, &self.out, &self.core.stats())
    }

    /// The core gets `truth`, the follower `datagram`.
    fn lie(&mut self, truth: &[u8], datagram: &[u8]) -> Checked<Seen> {
        self.now += MS;
        let verdict = self.core.packet(self.now, party(), truth, &mut self.out);
        let stats = self.core.stats();
        for (_, answer) in self.out.iter() {
            if let Ok(Packet::Cookie(given)) = parse(answer) {
                self.cookies.insert(given.identity.get(), given.cookie.get());
            }
        }
        let took = Took { from: party(), datagram, several: true, verdict };
        self.follower.packet(self.now, &took, &self.out, &stats)
    }

    fn take(&mut self, datagram: &[u8]) -> Checked<Seen> {
        self.lie(datagram, datagram)
    }

    fn wait(&self, slot: usize, sequence: u32, resources: u8) -> Vec<u8> {
        let fixed = Retrieve { counter: self.count(), resources, ..Retrieve::new(EPOCH, 0) };
        packet(&fixed, &[self.slots[slot].wait(sequence)])
    }

    /// Reports that the first slot runs the task that answered this wait.
    fn keepalive(&self, sequence: u32) -> Vec<u8> {
        let fixed = Keepalive { counter: self.count(), ..Keepalive::new(EPOCH, 0) };
        packet(&fixed, &[self.slots[0].wait(sequence)])
    }

    fn count(&self) -> U64 {
        self.counter.set(self.counter.get() + 1);
        self.counter.get().into()
    }

    /// The identity of the client whose packets these tests send.
    fn submit(&self, sequence: u32, tasks: &[(u8, u8)]) -> Vec<u8> {
        submit(self.cookies[&CLIENT], sequence, tasks)
    }

    fn pass(&mut self, time: Nanos) -> Checked<Seen> {
        let until = self.now + time;
        loop {
            self.now = until.min(self.now + TICK);
            let seen = self.tick_at(self.now)?;
            if self.now == until {
                return Ok(seen);
            }
        }
    }
}

fn follower(config: TasksConfig) -> Follower {
    Follower::new(&Origin { config, epoch: EPOCH, secret: 1 })
}

fn core(queue: u32, epoch: u32) -> Tasks {
    Tasks::new(&TasksConfig { queue, ..CONFIG }, epoch, 1).unwrap()
}

/// Client and executor share it.
fn party() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 7700))
}

fn register(cookie: u64) -> Vec<u8> {
    counting(&Register { executor: EXECUTOR.into(), cookie: cookie.into(), ..Register::new(0, 1) }, 2)
}

fn submit(cookie: u64, sequence: u32, tasks: &[(u8, u8)]) -> Vec<u8> {
    let task = |&(priority, resources): &(u8, u8)| TaskInfo { priority, resources, ..TaskInfo::PLAIN };
    let (client, cookie, token) = (CLIENT.into(), cookie.into(), (u64::from(sequence) + 100).into());
    let fixed = Submit { client, cookie, token, ..Submit::new(0, sequence) };
    packet(&fixed, &tasks.iter().map(task).collect::<Vec<_>>())
}

fn probe() -> Vec<u8> {
    counting(&Probe { client: CLIENT.into(), ..Probe::new(0, 3) }, 0)
}

#[track_caller]
fn broken(checked: Checked<Seen>) -> Rule {
    checked.expect_err("the follower accepts it").rule
}

#[test]
fn the_truth_breaks_no_rule() {
    let mut followed = Followed::queued(&[(2, 0), (1, 0)]);
    followed.take(&followed.submit(1, &[(2, 0), (1, 0)])).unwrap();
    for sequence in 1..=3 {
        followed.take(&followed.wait(0, sequence, 0)).unwrap();
    }
    followed.take(&probe()).unwrap();
    followed.tick_at(followed.now).unwrap();
    assert_eq!(followed.follower.open(), 0);
}

#[test]
fn t1_a_core_that_forgets() {
    let mut followed = Followed::queued(&[(1, 0)]);
    followed.core = core(8, EPOCH);
    assert_eq!(broken(followed.tick_at(followed.now)), T1);
}

#[test]
fn t2_a_slot_that_is_given_what_another_has() {
    let mut followed = Followed::queued(&[(1, 0)]);
    let [one, again, other] = [0, 0, 1].map(|slot| followed.wait(slot, 1, 0));
    followed.take(&one).unwrap();
    assert_eq!(broken(followed.lie(&again, &other)), T2);
}

#[test]
fn t3_what_came_last_goes_first() {
    let mut followed = Followed::new(8);
    let mut other = Followed::new(8);
    let [one, two] = [1, 2].map(|sequence| followed.submit(sequence, &[(1, 0)]));
    [&one, &two].iter().for_each(|submit| drop(followed.take(submit).unwrap()));
    [&two, &one].iter().for_each(|submit| drop(other.take(submit).unwrap()));
    followed.core = other.core;
    assert_eq!(broken(followed.take(&followed.wait(0, 1, 0))), T3);
}

#[test]
fn t4_a_task_of_a_lower_level_goes_first() {
    let mut followed = Followed::queued(&[(1, 0)]);
    followed.core = Followed::queued(&[(2, 0)]).core;
    assert_eq!(broken(followed.take(&followed.wait(0, 1, 0))), T4);
}

#[test]
fn t5_a_slot_that_lacks_what_its_task_asks_for() {
    let mut followed = Followed::queued(&[(1, 1)]);
    assert_eq!(broken(followed.lie(&followed.wait(0, 1, 1), &followed.wait(0, 1, 0))), T5);
}

#[test]
fn t6_a_slot_that_is_parked_before_a_task_that_it_may_run() {
    let mut followed = Followed::queued(&[(1, 1)]);
    assert_eq!(broken(followed.lie(&followed.wait(0, 1, 0), &followed.wait(0, 1, 1))), T6);
}

#[test]
fn t7_a_queue_that_is_not_full_and_says_so() {
    let mut followed = Followed::new(8);
    followed.core = core(1, EPOCH);
    assert_eq!(broken(followed.take(&followed.submit(1, &[(1, 0), (1, 0)]))), T7);
}

#[test]
fn t8_a_repeated_submit_that_is_answered_otherwise() {
    let mut followed = Followed::new(1);
    followed.take(&followed.submit(1, &[(1, 0), (1, 0)])).unwrap();
    followed.core = core(2, EPOCH);
    assert_eq!(broken(followed.take(&followed.submit(1, &[(1, 0), (1, 0)]))), T8);
}

#[test]
fn t9_an_epoch_that_changes_though_the_switch_lives() {
    let mut followed = Followed::new(8);
    followed.core = core(8, EPOCH + 1);
    assert_eq!(broken(followed.take(&probe())), T9);
}

#[test]
fn t10_a_lease_that_ends_too_soon() {
    let mut followed = Followed::running();
    followed.pass(90 * MS).unwrap();
    followed.take(&followed.wait(1, 1, 0)).unwrap();
    assert_eq!(broken(followed.tick_at(followed.now + 20 * MS)), T10);
    assert_eq!(followed.out.len(), 1, "the slot that waits gets the task");
}

#[test]
fn t10_a_wait_that_is_repeated_does_not_renew_the_lease() {
    let mut followed = Followed::running();
    followed.pass(90 * MS).unwrap();
    followed.take(&followed.wait(0, 1, 0)).unwrap();
    assert_eq!(followed.pass(TICK).unwrap().expired, [party()]);
}

#[test]
fn t11_a_malformed_packet_that_is_answered() {
    let mut followed = Followed::new(8);
    assert_eq!(broken(followed.lie(&probe(), &probe()[..10])), T11);
}

#[test]
fn t12_a_tick_that_looks_at_too_many_slots() {
    let mut followed = Followed::new(8);
    let stats = followed.core.stats();
    followed.out.clear();
    let seen = followed.follower.tick(followed.now, TICK_SLOTS + 1, &followed.out, &stats);
    assert_eq!(broken(seen), T12);
}

#[test]
fn t13_a_packet_without_its_cookie_that_is_taken() {
    let mut followed = Followed::new(8);
    let (with, without) = (followed.submit(1, &[(1, 0)]), submit(0, 1, &[(1, 0)]));
    assert_eq!(broken(followed.lie(&with, &without)), T13);
    let mut followed = Followed::new(8);
    followed.pass(2 * CONFIG.cookie_ns).unwrap();
    let late = register(followed.cookies[&EXECUTOR]);
    followed.core.packet(followed.now, party(), &register(0), &mut followed.out);
    let Some((_, answer)) = followed.out.iter().next() else { panic!("it is answered") };
    let Ok(Packet::Cookie(given)) = parse(answer) else { panic!("by COOKIE") };
    assert_eq!(broken(followed.lie(&register(given.cookie.get()), &late)), T13);
}

#[test]
fn t13_a_packet_that_came_before_and_is_taken_again() {
    let mut followed = Followed::queued(&[(1, 0)]);
    let wait = followed.wait(0, 1, 0);
    followed.take(&wait).unwrap();
    followed.take(&wait).unwrap();
    assert_eq!(followed.core.stats().reasons[Verdict::Replayed as usize], 1);
    assert_eq!(broken(followed.lie(&followed.wait(0, 1, 0), &wait)), T2);
}

#[test]
fn t14_a_slot_that_is_registered_where_there_is_no_room() {
    let mut followed = Followed::new(8);
    followed.core = Tasks::new(&TasksConfig { slots: 16, ..CONFIG }, EPOCH, 1).unwrap();
    let mut register = register(followed.cookies[&EXECUTOR]);
    register[4] = 9;
    followed.core.packet(followed.now, party(), &register, &mut followed.out);
    let mut followed = Followed { follower: follower(CONFIG), ..followed };
    assert_eq!(broken(followed.take(&register)), T14);
}

#[test]
fn t14_a_client_that_falls_silent_loses_what_it_has_queued_and_is_forgotten() {
    let mut followed = Followed::queued(&[(1, 0), (1, 0)]);
    followed.pass(CONFIG.client_idle_ns + 2 * TICK).unwrap();
    let stats = followed.core.stats();
    assert_eq!((stats.tasks.dropped, stats.clients, followed.follower.open()), (2, 0, 0));
}

#[test]
fn counts_and_waits_that_do_not_add_up() {
    type Lie = fn(&mut Stats);
    let lies: [(&str, Lie); 5] = [
        ("a reason", |stats| stats.reasons[1] += 1),
        ("a packet", |stats| stats.packets[1] += 1),
        ("a slot", |stats| stats.slots += 1),
        ("a wait", |stats| stats.wait_us[0] += 1),
        ("a sum of waits", |stats| stats.wait_sum_us += 1_000),
    ];
    for (name, lie) in lies {
        let mut followed = Followed::new(8);
        let mut stats = followed.core.stats();
        lie(&mut stats);
        followed.out.clear();
        let seen = followed.follower.tick(followed.now, 2, &followed.out, &stats);
        assert_eq!(seen.expect_err(name).rule, BOOKS, "{name}");
    }
}

#[test]
fn a_slot_that_is_heard_keeps_its_task() {
    let mut followed = Followed::running();
    for _ in 0..5 {
        followed.take(&followed.keepalive(1)).unwrap();
        assert!(followed.pass(60 * MS).unwrap().expired.is_empty());
    }
    assert_eq!(followed.pass(40 * MS).unwrap().expired, [party()]);
}

#[test]
fn t16_a_switch_that_stood_still_waits_for_a_lease() {
    let mut followed = Followed::running();
    followed.pass(TICK).unwrap();
    followed.now += 5 * CONFIG.lease_ns;
    followed.pass(TICK).unwrap();
    assert!(followed.pass(CONFIG.lease_ns - TICK).unwrap().expired.is_empty());
    assert_eq!(followed.pass(TICK).unwrap().expired, [party()]);
    assert_eq!(followed.core.stats().gaps, 1);
}
