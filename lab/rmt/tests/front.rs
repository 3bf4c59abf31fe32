//! The front of the safe queue: which RETRIEVEs it stops, how it handles other packets, and the resources of the whole.

mod common;
#[path = "common/ways.rs"]
mod ways;

use common::page_shows;
use midflight_rmt::tasks::check::instances::{named, planted};
use midflight_rmt::tasks::check::{Instance, Network};
use midflight_rmt::tasks::safe::front::{Entered, Size, Slot};
use midflight_rmt::tasks::safe::{Answer, Config, Guarded, Kind, Task};
use midflight_rmt::{Machine, Outputs, Packet, Target, To, Watch};
use ways::{page_shows_way, searched};

const EPOCH: u32 = 9;
const OURS: Slot = Slot { slot: 1, generation: 70, address: (0x0A00_0001, 4001) };
const OTHERS: Slot = Slot { slot: 2, generation: 71, address: (0x0A00_0002, 4002) };
const CLIENT: (u32, u16) = (0x0A00_0003, 4003);

struct Switch {
    guarded: Guarded,
    machine: Machine,
}

impl Switch {
    /// Two slots, whose counters begin at `start`; and two tasks, of resources 0.
    fn starting_at(start: u32) -> Self {
        let entered = Entered { epoch: EPOCH, slots: vec![OURS, OTHERS] };
        let (config, size) = (Config { levels: 2, size: 4, words: 1 }, Size { slots: 4, hosts: 4 });
        let guarded = Guarded::build(config, size, &entered, &Target::TOFINO_1).expect("it fits");
        let mut switch = Self { machine: guarded.machine_from(start), guarded };
        for tid in [1, 2] {
            let task = Task { tid, level: 1, resources: 0, attempt: 0, argument_length: 0, words: [0; 5] };
            let packet = switch.guarded.safe().submit(CLIENT, (7, 8), 1, &[task]);
            let outputs = switch.pass(packet);
            assert!(
                matches!(switch.answer(&outputs), Some(Answer::Ack { taken: 1, client, .. }) if client == CLIENT.0)
            );
        }
        switch
    }

    fn pass(&mut self, packet: Packet) -> Outputs {
        self.machine.pass(packet)
    }

    /// All passes of a packet. Between passes it loses what the report does not count.
    fn runs(&mut self, packet: Packet) -> Packet {
        let sent = self.pass(packet).packet;
        let mut packet = sent.packet;
        if sent.to == To::Recirculated {
            self.guarded.program().forget(&mut packet);
            return self.runs(packet);
        }
        assert_eq!(sent.to, To::Requester);
        packet
    }

    fn answer(&self, outputs: &Outputs) -> Option<Answer> {
        self.guarded.safe().answer(&self.guarded.received(&outputs.packet))
    }

    fn polls(&self, epoch: u32, slot: &Slot, counter: u32) -> Packet {
        self.guarded.retrieve(epoch, slot, 0xFF, counter, 30)
    }

    fn gets(&mut self, slot: &Slot, counter: u32) -> Option<u32> {
        let packet = self.polls(EPOCH, slot, counter);
        let outputs = self.pass(packet);
        match self.answer(&outputs) {
            Some(Answer::Assign { executor, task, .. }) if executor == slot.address.0 => Some(task.tid),
            Some(Answer::Dropped("replayed")) => None,
            other => panic!("{other:?}"),
        }
    }

    fn queued(&self) -> Vec<u32> {
        self.guarded.safe().queue(&self.machine, 0)
    }
}

/// T2: a copy and an overtaken packet change nothing. Each slot has a separate counter, a serial number.
#[test]
fn t2_a_copy_of_a_retrieve_gets_no_task() {
    for start in [0, u32::MAX - 1] {
        let mut switch = Switch::starting_at(start);
        let counter = |n: u32| start.wrapping_add(n);
        assert_eq!(switch.gets(&OURS, counter(2)), Some(1));
        assert_eq!([2, 1].map(|n| switch.gets(&OURS, counter(n))), [None; 2]);
        assert_eq!(switch.queued(), [2]);
        assert_eq!(switch.gets(&OTHERS, counter(1)), Some(2));
    }
}

/// A wrong epoch, slot, generation, address or port each leads to RESET. Nothing else changes: the slot's next RETRIEVE is answered.
#[test]
fn a_retrieve_of_a_foreign_epoch_or_a_void_slot_is_answered_by_reset() {
    let mut switch = Switch::starting_at(0);
    let (ip, port) = OURS.address;
    let void = [
        (EPOCH + 1, OURS),
        (EPOCH, Slot { slot: 3, ..OURS }),
        (EPOCH, Slot { generation: 71, ..OURS }),
        (EPOCH, Slot { address: (ip + 1, port), ..OURS }),
        (EPOCH, Slot { address: (ip, port + 1), ..OURS }),
        (EPOCH, Slot { address: (ip, port ^ 0x100), ..OURS }),
    ];
    for (epoch, slot) in void {
        let packet = switch.polls(epoch, &slot, 5);
        let outputs = switch.pass(packet);
        assert!(switch.guarded.is_reset(&outputs.packet), "{slot:?}");
        let sent = switch.guarded.received(&outputs.packet).packet;
        assert_eq!(sent.get(switch.guarded.safe().fields().address), slot.address.0, "to the sender");
    }
    assert_eq!(switch.gets(&OURS, 1), Some(1), "the counter of a void packet was not stored");
}

#[test]
fn an_answer_goes_back() {
    let mut switch = Switch::starting_at(0);
    let (f, of) = (switch.guarded.fields().clone(), switch.guarded.safe().fields().clone());
    let packet = switch.polls(EPOCH, &OURS, 1);
    let packet = packet.with(f.came_from, 17).with(f.own_ip, 0x0A00_00FE).with(f.own_port[1], 5).with(f.mac.1, 3);
    let sent = switch.pass(packet.with(f.own_mac.1, 4)).packet;
    let got = |field| sent.packet.get(field);
    assert_eq!((sent.to, got(of.op)), (To::Requester, Kind::Assign as u32));
    assert_eq!([of.address, f.own_ip].map(got), [0x0A00_00FE, OURS.address.0]);
    assert_eq!([of.port[0], of.port[1], f.own_port[0], f.own_port[1]].map(got), [0, 5, 4001 >> 8, 4001 & 0xFF]);
    assert_eq!([f.mac.1, f.own_mac.1, f.wait, f.slot].map(got), [4, 3, 30, OURS.slot]);
}

/// A recirculating packet that has lost all that the report does not count still brings its answer to the right place.
#[test]
fn what_goes_round_keeps_what_its_answer_repeats() {
    let mut switch = Switch::starting_at(0);
    let (f, of) = (switch.guarded.fields().clone(), switch.guarded.safe().fields().clone());
    let marked = [f.came_from, f.own_ip, f.own_port[1], f.mac.0, f.mac.1, f.own_mac.0, f.own_mac.1];
    let repeated =
        |packet: &Packet, fields: &[midflight_rmt::Field]| fields.iter().map(|&f| packet.get(f)).collect::<Vec<_>>();

    let task = |tid| Task { tid, level: 2, resources: 4, attempt: 0, argument_length: 0, words: [0; 5] };
    let mut submit = switch.guarded.safe().submit(OURS.address, (7, 8), 6, &[task(3), task(4)]);
    (17..).zip(marked).for_each(|(value, field)| submit.set(field, value));
    let submit = submit.with(f.client[0], 40).with(f.client[1], 41);
    let ack = switch.runs(submit);
    assert_eq!((ack.get(of.op), ack.get(of.taken), ack.get(of.sequence)), (Kind::SubmitAck as u32, 3, 6));
    assert_eq!(repeated(&ack, &f.client), [40, 41]);
    let way = [f.came_from, f.own_ip, of.address].map(|field| ack.get(field));
    assert_eq!(way, [17, OURS.address.0, 18], "the port, and the addresses turned round");

    // Two tasks that it may run, then a search in vain at level 2.
    let poll = |switch: &Switch, counter| {
        let mut packet = switch.guarded.retrieve(EPOCH, &OURS, 3, counter, 30);
        (17..).zip(marked).for_each(|(value, field)| packet.set(field, value));
        packet
    };
    for (counter, answer) in [(1, Kind::Assign), (2, Kind::Assign), (3, Kind::NoOp)] {
        let packet = poll(&switch, counter);
        let sent = switch.runs(packet);
        assert_eq!(sent.get(of.op), answer as u32);
        assert_eq!(repeated(&sent, &[f.slot, f.generation, f.wait]), [OURS.slot, OURS.generation, 30]);
        let ports = [f.own_port[0], f.own_port[1]].map(|field| sent.get(field));
        assert_eq!(
            [sent.get(f.came_from), sent.get(f.own_ip), ports[0] << 8 | ports[1]],
            [17, OURS.address.0, OURS.address.1.into()]
        );
        assert_eq!([f.own_mac.0, f.own_mac.1, f.mac.0, f.mac.1].map(|field| sent.get(field)), [20, 21, 22, 23]);
    }
}

#[test]
fn other_packets_are_forwarded() {
    let mut switch = Switch::starting_at(0);
    let (before, op) = (switch.machine.clone(), switch.guarded.safe().fields().op);
    let empty = switch.machine.packet();
    let to = [0, 10].map(|is| switch.pass(empty.clone().with(op, is)).packet.to);
    assert_eq!(to, [To::Port(0), To::Port(192)], "the uplink, and the controller");
    assert_eq!(switch.pass(empty.with(op, 77)).packet.to, To::Dropped("malformed"));
    assert!(switch.machine == before);
}

#[test]
fn t1_t2_t3_t4_t5_t7_hold_for_each_arrival_though_packets_are_lost_late_and_copied() {
    let seen = searched("network-small").seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.refused > 0);
    let seen = searched("network-search").seen;
    assert!(seen.assigned > 0 && seen.no_ops > 0 && seen.held > 0);
}

/// Most defects of the front show only with faults of the network.
#[test]
fn defects_of_the_front_that_only_faults_show() {
    let hidden = ["copy-goes-on", "counter-not-stored", "counter-only-differs"];
    for planted in planted().into_iter().filter(|planted| hidden.contains(&planted.name)) {
        let network = planted.instance.network.map(|network| Network { faults: 0, ..network });
        let instance = Instance { network, ..planted.instance.clone() };
        let verdict = midflight_rmt::tasks::check::instances::Named { instance, finds: None, ..planted };
        let verdict = verdict.search(1, &Watch::default()).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(verdict.exhaustive && verdict.violations.is_empty(), "{verdict:?}");
    }
}

/// Not kept: the contract's T2 for a duplicate SUBMIT; the order, if a RETRIEVE is repeated while the first one searches.
#[test]
fn copies_and_repeats_do_what_the_page_says() {
    for name in ["copied-submit", "repeated-search"] {
        assert!(named(name).is_some());
        page_shows_way("printed/asic.md", name);
    }
}

/// The whole fits the switch, with as many slots as the engine has.
#[test]
fn the_page_shows_the_front_and_what_the_whole_takes() {
    let of = |config| Guarded::build(config, Size::LARGEST, &Entered::default(), &Target::TOFINO_1).expect("it fits");
    assert_eq!(of(Config::LARGEST).program().report().depth, [12, 0]);
    let wide = of(Config::WIDEST);
    let (stages, report) = (wide.program().stages(), wide.program().report().to_string());
    let front = ["epoch", "slot", "counter", "forward", "control", "front", "answer"];
    let is_front = |line: &&str| front.iter().any(|name| line.split(" | ").nth(1) == Some(name));
    let rows: Vec<&str> = stages.lines().take(2).chain(stages.lines().filter(is_front)).collect();
    page_shows("printed/asic.md", "front: stages", &(rows.join("\n") + "\n"));
    let parts: Vec<&str> = report.split("\n\n").collect();
    let shown = |part: &&&str| !part.starts_with("| register ") && !part.starts_with("| packet ");
    let shown: Vec<&str> = parts.iter().filter(shown).map(|part| part.trim_end()).collect();
    page_shows("printed/asic.md", "front: report", &(shown.join("\n\n") + "\n"));
}
