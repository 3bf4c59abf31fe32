//! T12 and T7 at their bounds: what the switch sends for one datagram or tick, and what it looks at. Engine and model
//! are compared at each step.

use midflight_dataplane::model::Duel;
use midflight_dataplane::transcript::Core;
use midflight_dataplane::{Datagram, TasksConfig};
use midflight_wire::{
    Builder, Header, Operation, PACKET_MAX, Packet, REGISTER_MAX, Register, Retrieve, SUBMIT_MAX, SlotName, Submit,
    TaskInfo, Wait, parse,
};
use std::net::SocketAddr;

const EPOCH: u32 = 5;
const SECOND: u64 = 1_000_000_000;

struct Switch {
    duel: Duel<Core>,
    now: u64,
}

impl Switch {
    fn new() -> Self {
        let config = TasksConfig { queue: 4096, slots: 4096, clients: 4, ..TasksConfig::default() };
        let core = Core::new(&config, EPOCH, 9).expect("within its bounds");
        Self { duel: Duel::new(core, &config, EPOCH), now: SECOND }
    }

    fn send(&mut self, from: SocketAddr, datagram: &[u8]) -> Vec<Datagram> {
        self.now += 1;
        self.duel.packet(self.now, from, datagram).expect("agreement")
    }

    fn submit(&mut self, sequence: u32, tasks: usize) -> Vec<Datagram> {
        let header = Header::new(Operation::Submit, 0, sequence);
        let fixed = Submit { header, client: 1.into(), uid: 1.into(), jid: 1.into() };
        let mut datagram = Vec::new();
        let mut builder = Builder::new(&mut datagram, &fixed);
        for tid in 0..tasks as u32 {
            builder.push(&TaskInfo {
                tid: tid.into(),
                function: 0.into(),
                priority: 1,
                resources: 0,
                argument_length: 0,
                attempt: 0,
                argument: [0; 16],
            });
        }
        self.send(SocketAddr::from(([10, 0, 0, 1], 7000)), &datagram)
    }

    /// Slots of one executor process: their names.
    fn register(&mut self, executor: u16, sequence: u32, first: u32, count: usize) -> (Vec<SlotName>, Vec<Datagram>) {
        let mut header = Header::new(Operation::Register, 0, sequence);
        header.count = count as u8;
        let executor_id = u64::from(executor).into();
        let fixed = Register { header, executor: executor_id, first: first.into(), resources: 0, reserved: [0; 3] };
        let mut datagram = Vec::new();
        Builder::new(&mut datagram, &fixed).set_count(count as u8);
        let sent = self.send(address(executor), &datagram);
        let Ok(Packet::Registered(_, names)) = parse(&sent[0].1) else { panic!("REGISTERED comes first") };
        (names.to_vec(), sent)
    }

    fn retrieve(&mut self, executor: u16, names: &[SlotName]) -> Vec<Datagram> {
        let header = Header::new(Operation::Retrieve, EPOCH, 0);
        let mut datagram = Vec::new();
        let mut builder = Builder::new(&mut datagram, &Retrieve { header, resources: 0, reserved: [0; 3] });
        for name in names {
            builder.push(&Wait { slot: name.slot, generation: name.generation, sequence: 1.into() });
        }
        self.send(address(executor), &datagram)
    }

    /// As many executor processes with one parked slot each.
    fn park(&mut self, executors: std::ops::Range<u16>) {
        for executor in executors {
            let (names, _) = self.register(executor, 1, 0, 1);
            assert!(self.retrieve(executor, &names).is_empty(), "nothing is queued");
        }
    }

    /// One executor process whose slots all hold a task.
    fn occupy(&mut self, executor: u16, slots: usize) {
        let mut submission = 0;
        for first in (0..slots).step_by(16) {
            let count = (slots - first).min(16);
            let (names, _) = self.register(executor, 1, first as u32, count);
            submission += 1;
            self.submit(submission, count);
            assert_eq!(self.retrieve(executor, &names).len(), 1, "16 assignments fit one packet");
        }
    }
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

/// A tick that owes more than one call may send stops, and the next one goes on: nothing is lost (T1, T6).
#[test]
fn t12_a_tick_stops_when_it_owes_enough() {
    let mut switch = Switch::new();
    switch.occupy(1, 80);
    switch.now += SECOND;
    switch.park(2..2 + 80);
    let mut woken = 0;
    for right in [36, 36, 8, 0] {
        let sent = switch.duel.tick(switch.now).expect("agreement");
        assert_eq!(sent.len(), right);
        assert_fits(&sent);
        woken += sent.len();
    }
    assert_eq!(woken, 80);
    assert_eq!(switch.duel.stats().expired, 80);
}

#[test]
fn t12_a_tick_looks_at_1024_slots() {
    let mut switch = Switch::new();
    for batch in 0..64 {
        switch.register(1, 1, batch * REGISTER_MAX as u32, REGISTER_MAX);
    }
    switch.now += 10 * SECOND;
    for left in [1024, 0] {
        switch.duel.tick(switch.now).expect("agreement");
        assert_eq!(switch.duel.stats().slots, left);
    }
}

/// T7: each task that is not taken is named, whatever the room.
#[test]
fn t7_full_queue_reports_every_task() {
    for room in 0..=SUBMIT_MAX {
        let config = TasksConfig { queue: 1 + room as u32, ..TasksConfig::default() };
        let core = Core::new(&config, EPOCH, 9).expect("within its bounds");
        let mut switch = Switch { duel: Duel::new(core, &config, EPOCH), now: SECOND };
        switch.submit(1, 1);
        let sent = switch.submit(2, SUBMIT_MAX);
        let Ok(Packet::SubmitAck(ack)) = parse(&sent[0].1) else { panic!("SUBMIT_ACK comes first") };
        assert_eq!(ack.taken.get().count_ones() as usize, room);
        assert_eq!(ack.taken.get() ^ ack.not_taken.get(), u32::MAX);
        assert_eq!(ack.taken.get().trailing_ones() as usize, room, "tasks are taken in order");
        assert_eq!(switch.duel.stats().submitted, 1 + room as u64);
    }
}
