//! T7, T12 and T14 at their bounds: what the switch sends and visits for one datagram or tick, and how many it has room
//! for. Compares engine and model at each step.

use midflight_dataplane::program::Engine;
use midflight_dataplane::{Cookies, Datagram, Out, Purge, Tasks, TasksConfig, TasksProgram, Which};
use midflight_spec::tasks::{Checker, Differential};
use midflight_spec::transcript::{CheckedNative, EngineExt};
use midflight_wire::tasks::{
    Packet, Preference, REGISTER_MAX, Reason, Register, Retrieve, SLOTS_MAX, SUBMIT_MAX, SlotName, Submit, TaskInfo,
    parse,
};
use midflight_wire::{Builder, PACKET_MAX, counting, packet};
use std::net::SocketAddr;

type Core = CheckedNative<TasksProgram>;

const EPOCH: u32 = 5;
const SECRET: u128 = 9;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const A: u8 = 1;
const PLACE: u32 = 1;

struct Switch {
    both: Differential<Core>,
    cookies: Cookies,
    now: u64,
}

impl Switch {
    fn new() -> Self {
        Self::with(TasksConfig { queue: 4096, slots: 4096, clients: 256, ..TasksConfig::default() })
    }

    fn with(config: TasksConfig) -> Self {
        let core = Core::new(&config, EPOCH, SECRET).expect("within its bounds");
        let cookies = Cookies::new(SECRET, config.cookie_ns);
        Self { both: Differential::new(core, &config, EPOCH, SECRET), cookies, now: SECOND }
    }

    fn send(&mut self, from: SocketAddr, datagram: &[u8]) -> Vec<Datagram> {
        self.now += 1;
        self.both.packet(self.now, from, datagram).expect("agreement")
    }

    /// Of the client at host 1.
    fn submit(&mut self, sequence: u32, tasks: usize) -> Vec<Datagram> {
        self.submit_of(1, client(1), sequence, tasks)
    }

    fn submit_of(&mut self, identity: u64, from: SocketAddr, sequence: u32, tasks: usize) -> Vec<Datagram> {
        let datagram = submit(identity, self.cookies.give(self.now, identity, from), sequence, tasks);
        self.send(from, &datagram)
    }

    /// Slots of one executor process: their names.
    fn register(&mut self, executor: u16, sequence: u32, first: u32, count: usize) -> (Vec<SlotName>, Vec<Datagram>) {
        self.register_at(address(executor), executor, sequence, first, count)
    }

    fn register_at(
        &mut self,
        from: SocketAddr,
        executor: u16,
        sequence: u32,
        first: u32,
        count: usize,
    ) -> (Vec<SlotName>, Vec<Datagram>) {
        let fixed = Register { first: first.into(), ..Register::new(0, sequence) };
        self.register_as(from, executor, fixed, count)
    }

    /// Slots with the fields of this REGISTER.
    fn register_as(
        &mut self,
        from: SocketAddr,
        executor: u16,
        fixed: Register,
        count: usize,
    ) -> (Vec<SlotName>, Vec<Datagram>) {
        let identity = u64::from(executor);
        let cookie = self.cookies.give(self.now, identity, from).into();
        let fixed = Register { executor: identity.into(), cookie, ..fixed };
        let sent = self.send(from, &counting(&fixed, count as u8));
        let Ok(Packet::Registered(_, names)) = parse(&sent[0].1) else { panic!("REGISTERED comes first") };
        (names.to_vec(), sent)
    }

    fn retrieve(&mut self, executor: u16, names: &[SlotName]) -> Vec<Datagram> {
        self.retrieve_offering(executor, names, 0)
    }

    fn retrieve_offering(&mut self, executor: u16, names: &[SlotName], resources: u8) -> Vec<Datagram> {
        let waits: Vec<_> = names.iter().map(|name| name.wait(1)).collect();
        let fixed = Retrieve { counter: self.now.into(), resources, ..Retrieve::new(EPOCH, 0) };
        self.send(address(executor), &packet(&fixed, &waits))
    }

    /// One parked slot for each executor process.
    fn park(&mut self, executors: std::ops::Range<u16>) {
        for executor in executors {
            let (names, _) = self.register(executor, 1, 0, 1);
            assert!(self.retrieve(executor, &names).is_empty(), "nothing is queued");
        }
    }

    fn park_offering_a(&mut self, executors: std::ops::Range<u16>) {
        for executor in executors {
            let (names, _) = self.register(executor, 1, 0, 1);
            assert!(self.retrieve_offering(executor, &names, A).is_empty(), "nothing is queued for it");
        }
    }

    /// A slot at place 1 that offers nothing: tasks that need resource A may prefer the place, and wait in vain.
    fn make_place(&mut self, executor: u16) {
        let fixed = Register { places: [PLACE.into(), 0.into()], ..Register::new(0, 1) };
        self.register_as(address(executor), executor, fixed, 1);
    }

    /// Tasks that need resource A and prefer place 1.
    fn submit_preferring(&mut self, identity: u64, sequence: u32, tasks: usize, patience_ms: u32) -> Vec<Datagram> {
        let from = client(1);
        let cookie = self.cookies.give(self.now, identity, from).into();
        let fixed = Submit { client: identity.into(), cookie, ..Submit::new(0, sequence) };
        let mut datagram = Vec::new();
        let mut builder = Builder::new(&mut datagram, &fixed);
        (0..tasks).for_each(|_| builder.push(&TaskInfo { resources: A, ..TaskInfo::PLAIN }));
        builder.prefer(&Preference { place: PLACE.into(), patience_ms: patience_ms.into() });
        self.send(from, &datagram)
    }

    /// One executor process whose slots all have a task.
    fn occupy(&mut self, executor: u16, slots: usize) {
        let mut submission = 0;
        for first in (0..slots).step_by(SLOTS_MAX) {
            let count = (slots - first).min(SLOTS_MAX);
            let (names, _) = self.register(executor, 1, first as u32, count);
            submission += 1;
            self.submit(submission, count);
            assert_eq!(self.retrieve(executor, &names).len(), 1, "their assignments fit one packet");
        }
    }
}

fn submit(identity: u64, cookie: u64, sequence: u32, tasks: usize) -> Vec<u8> {
    let fixed = Submit { client: identity.into(), cookie: cookie.into(), ..Submit::new(0, sequence) };
    let tasks: Vec<_> = (0..tasks as u32).map(|tid| TaskInfo { tid: tid.into(), ..TaskInfo::PLAIN }).collect();
    packet(&fixed, &tasks)
}

fn client(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7000))
}

fn address(executor: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], executor))
}

fn assert_fits(sent: &[Datagram]) {
    assert!(sent.iter().all(|(_, bytes)| bytes.len() <= PACKET_MAX));
}

#[test]
fn t12_a_submit_wakes_at_most_one_executor_per_task() {
    let mut switch = Switch::new();
    switch.park(1..41);
    let sent = switch.submit(1, SUBMIT_MAX);
    assert_eq!(sent.len(), 1 + SUBMIT_MAX);
    assert_fits(&sent);
}

#[test]
fn t12_a_renewed_registration_wakes_at_most_one_executor_per_slot() {
    let mut switch = Switch::new();
    switch.occupy(1, REGISTER_MAX);
    switch.park(2..2 + 40);
    let (_, sent) = switch.register(1, 2, 0, REGISTER_MAX);
    assert_eq!(sent.len(), 1 + REGISTER_MAX);
    assert_fits(&sent);
}

/// A tick that reaches its datagram limit stops, and the next one continues: nothing is lost (T1, T6).
#[test]
fn t12_a_tick_stops_when_it_owes_enough() {
    let mut switch = Switch::new();
    switch.occupy(1, 80);
    switch.now += SECOND;
    switch.park(2..2 + 80);
    let mut woken = 0;
    for right in [36, 36, 8, 0] {
        let sent = switch.both.tick(switch.now).expect("agreement");
        assert_eq!(sent.len(), right);
        assert_fits(&sent);
        woken += sent.len();
    }
    assert_eq!(woken, 80);
    assert_eq!(switch.both.stats().tasks.expired, 80);
}

/// T10: tasks whose patience runs out and that go to parked slots do not use up a tick's datagrams.
#[test]
fn t10_a_lease_expires_while_patience_runs_out_without_end() {
    let mut switch = Switch::new();
    switch.occupy(1, 1);
    switch.make_place(2);
    let mut executors = 3..;
    for sequence in 1..=4 {
        switch.now += SECOND / 4;
        let first = executors.start;
        executors = first + 40..;
        switch.park_offering_a(first..first + 40);
        switch.submit_preferring(2, 2 * sequence, SUBMIT_MAX, 1);
        switch.submit_preferring(2, 2 * sequence + 1, 8, 1);
        switch.now += 2 * MILLISECOND;
        let before = switch.both.stats().tasks.out_of_patience;
        switch.both.tick(switch.now).expect("agreement");
        assert_eq!(switch.both.stats().tasks.out_of_patience - before, 18, "half of what a tick may send");
    }
    assert_eq!(switch.both.stats().tasks.expired, 1);
}

/// T19: a task waits for its place no longer than its patience plus the ticks for those due before it, however many
/// less patient tasks there are.
#[test]
fn t19_less_patient_tasks_do_not_keep_others_waiting() {
    let mut switch = Switch::new();
    switch.make_place(1);
    switch.submit_preferring(9, 1, 1, 64);
    let mut sequence = 0;
    for tick in 1..=9 {
        for _ in 0..33 {
            sequence += 1;
            switch.submit_preferring(2, sequence, SUBMIT_MAX, 1);
        }
        switch.now = SECOND + tick * 10 * MILLISECOND;
        let before = switch.both.stats().tasks.out_of_patience;
        switch.both.tick(switch.now).expect("agreement");
        assert_eq!(switch.both.stats().tasks.out_of_patience - before, 1_024, "as many as one tick moves");
        switch.both.purge(Which::Client(2)).expect("agreement");
    }
    assert_eq!(switch.both.stats().for_place, 0, "client 9 is not patient any more");
}

#[test]
fn t12_a_tick_looks_at_1024_slots() {
    let mut switch = Switch::new();
    for batch in 0..64 {
        switch.register(1, 1, batch * REGISTER_MAX as u32, REGISTER_MAX);
    }
    switch.now += 10 * SECOND;
    for left in [1024, 0] {
        switch.both.tick(switch.now).expect("agreement");
        assert_eq!(switch.both.stats().slots, left);
    }
}

/// T12, T14: a tick visits 64 clients, in the order of their indices.
#[test]
fn t12_a_tick_looks_at_64_clients() {
    let mut switch = Switch::new();
    for identity in 1..=150 {
        switch.submit_of(identity, client(1), 1, 1);
        switch.both.purge(Which::Client(identity)).expect("agreement");
    }
    switch.now += 60 * SECOND;
    // Client 65 lives, and two new ones are not silent.
    switch.submit_of(65, client(1), 2, 1);
    for left in [86, 23, 1, 1] {
        switch.both.tick(switch.now).expect("agreement");
        assert_eq!(switch.both.stats().clients, left);
    }
}

/// T12, T14: a tick visits 256 records of a silent client's tasks. Without the model, which visits all.
#[test]
fn t12_a_tick_looks_at_256_tasks() {
    let mut core = full_core(600);
    for dropped in [256, 512, 600, 600] {
        core.ask_tick(61 * SECOND);
        core.check().expect("sound");
        assert_eq!(core.stats().tasks.dropped, dropped);
    }
    assert_eq!(core.stats().clients, 0);
}

fn full_core(tasks: usize) -> Core {
    let config = TasksConfig { queue: 4096, ..TasksConfig::default() };
    let mut core = Core::new(&config, EPOCH, SECRET).expect("within its bounds");
    fill(tasks, |datagram| drop(core.ask(1, client(1), datagram)));
    core
}

fn fill(tasks: usize, mut send: impl FnMut(&[u8])) {
    let cookie = Cookies::new(SECRET, TasksConfig::default().cookie_ns).give(1, 1, client(1));
    for (sequence, first) in (1..).zip((0..tasks).step_by(SUBMIT_MAX)) {
        send(&submit(1, cookie, sequence, (tasks - first).min(SUBMIT_MAX)));
    }
}

#[test]
fn t12_a_call_of_purge_looks_at_1024_tasks() {
    let config = TasksConfig { queue: 4096, ..TasksConfig::default() };
    let mut tasks = Tasks::new(&config, EPOCH, SECRET).expect("within its bounds");
    fill(2_500, |datagram| {
        tasks.take(1, client(1), &mut datagram.to_vec(), &mut Out::new());
    });
    let mut purge = Purge::new(Which::Client(1));
    for (is_done, purged) in [(false, 1_024), (false, 2_048), (true, 2_500)] {
        assert_eq!((tasks.order(&mut purge), purge.purged()), (is_done, purged));
        assert_eq!(tasks.stats().tasks.purged, u64::from(purged));
    }
}

/// What an empty source gets of an unused table (T14): eight ninths.
fn share(size: usize) -> usize {
    (8 * size).div_ceil(9)
}

/// T7: the answer names each refused task, and whether the table is full or the share is used up.
#[test]
fn t7_full_queue_reports_every_task() {
    for size in 1..=SUBMIT_MAX + 1 {
        let mut switch = Switch::with(TasksConfig { queue: size as u32, ..TasksConfig::default() });
        switch.submit(1, 1);
        let sent = switch.submit(2, SUBMIT_MAX);
        let Ok(Packet::SubmitAck(ack)) = parse(&sent[0].1) else { panic!("SUBMIT_ACK comes first") };
        let taken = share(size) - 1;
        assert_eq!(ack.taken.get().count_ones() as usize, taken);
        assert_eq!(ack.taken.get() ^ ack.not_taken.get(), u32::MAX);
        assert_eq!(ack.taken.get().trailing_ones() as usize, taken, "tasks are taken in order");
        let why = if size <= 8 { Reason::Full } else { Reason::Share };
        assert_eq!(ack.reason, why as u8);
        assert_eq!(switch.both.stats().tasks.submitted, share(size) as u64);
    }
}

/// T14: one source gets at most 8/9 of each table, and all of one of up to 8; another source gets some of the rest.
#[test]
fn t14_a_second_source_always_finds_room() {
    for size in 1..=40 {
        let bound = size as u32;
        let mut switch =
            Switch::with(TasksConfig { queue: bound, slots: bound, clients: bound, ..TasksConfig::default() });
        for port in 1..=50 {
            let from = |host| SocketAddr::from(([10, 0, 0, host], port));
            switch.submit_of(port.into(), from(1), 1, 1);
            switch.register_at(from(1), port, 1, 0, 1);
        }
        let left = size - share(size);
        let stats = switch.both.stats();
        let used = |n: u32| size - n as usize;
        assert_eq!([used(stats.clients), used(stats.slots), used(stats.queued[0])], [left; 3]);
        switch.submit_of(99, client(2), 1, 1);
        switch.register_at(client(2), 99, 1, 0, 1);
        let stats = switch.both.stats();
        assert_eq!([used(stats.clients), used(stats.slots), used(stats.queued[0])], [left.saturating_sub(1); 3]);
        assert_eq!(left > 0, size > 8);
    }
}

/// T14: a source that moves keeps its records, and a dead one frees its share. A host has all loopback addresses, of
/// both versions.
#[test]
fn t14_addresses_of_a_loopback_have_one_share() {
    let mut switch = Switch::with(TasksConfig { clients: 18, ..TasksConfig::default() });
    let here = |i: u64| match i {
        0 => "[::1]:7000".parse().expect("an address"),
        _ => SocketAddr::from(([127, 0, i as u8, 1], 7000)),
    };
    for i in 0..40 {
        switch.submit_of(100 + i, here(i), 1, 1);
    }
    assert_eq!(switch.both.stats().clients as usize, share(18));
    switch.submit_of(1, client(1), 1, 1);
    assert_eq!(switch.both.stats().clients as usize, share(18) + 1);
}

#[test]
fn t14_a_share_moves_with_who_holds_it() {
    let mut switch = Switch::with(TasksConfig { queue: 18, ..TasksConfig::default() });
    switch.submit(1, SUBMIT_MAX);
    assert_eq!(switch.both.stats().queued[0], 16);
    let mut ask = |identity, host, sequence| {
        switch.submit_of(identity, client(host), sequence, SUBMIT_MAX);
        switch.both.stats().queued[0]
    };
    assert_eq!(ask(2, 1, 1), 16, "another client of the same source");
    assert_eq!(ask(1, 3, 2), 16, "it has moved, and holds there what it held");
    assert_eq!(ask(2, 1, 2), 18, "its old source holds nothing any more");
}

#[test]
fn t13_an_executor_cannot_aim_its_slots_at_one_bucket() {
    let mut switch = Switch::new();
    // One per bucket; a look-up follows 64 links.
    let far_apart = |k: u32| k * 4096;
    let first = switch.register(1, 1, far_apart(0), 1);
    for k in 1..200 {
        switch.register(1, 1, far_apart(k), 1);
    }
    assert_eq!(switch.register(1, 1, far_apart(0), 1), first, "a repeat gets the same slot");
}
