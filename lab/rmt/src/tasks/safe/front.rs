//! The tables before and after the safe queue in a switch: epoch and slots, the slots' counters, forwarding, and the answers' way back.
//!
//! Only a RETRIEVE must be checked before it may change anything, which it first does in stage 3. So stages 0 to 2, which the queue hardly
//! fills, have room for the check: `docs/internals/asic.md` shows it in the report.
//!
//! - Stage 0 looks up the epoch, and slot, generation and address as one key. The controller fills both tables.
//! - Stage 1 compares the counter with the slot's, as serial numbers of 32 bits, and stores it if it is later.
//! - Stage 2 lets a RETRIEVE pass, drops it as a copy, or answers it by RESET.
//! - Stage 11 turns an answer round: it goes to the port of its request.
//!
//! A recirculated RETRIEVE is not checked again: `checked` marks it. The parser clears that in packets from other ports than the
//! recirculation port.

use super::fields::{Fields, Kind, any_level, role};
use super::{Config, Safe};
use crate::Pipeline::Ingress;
use crate::Width::{W8, W16, W32};
use crate::{
    Action, Alu, Builder, Cell, Destination, Field, Machine, Match, Output, Packet, Program, Refusal, Register,
};
use crate::{Sent, Target, Test, To, Word, argument, low_bits};

const ANY: Match = Match::ANY;
const YES: Match = Match::is(1);
const NO: Match = Match::is(0);
/// A packet that is not for the queue: the parser's value of `op`.
const OTHER: u32 = 0;
/// switch → executor: the slot is void.
const RESET: u32 = 9;
/// REGISTER, RELEASE, KEEPALIVE, PROBE, CANCEL: the parser's value of `op`.
const CONTROL: u32 = 10;
/// The port of the switch's own CPU, and the port for hosts without a route.
const CPU: u32 = 192;
const UPLINK: u32 = 0;

/// Bytes of the headers of Ethernet (the type), IPv4 and UDP (version to checksums, lengths) and Midflight (magic, version, key, tag) that
/// no table needs; they stay in the packet, or the deparser writes them.
const FIXED: u32 = 2 + 12 + 4 + 14;

/// The sizes of the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Executor slots: a power of two, to 65,536.
    pub slots: u32,
    /// Hosts to which other packets are forwarded.
    pub hosts: u32,
}

impl Size {
    /// As many slots as the engine has by default.
    pub const LARGEST: Self = Self { slots: 64 << 10, hosts: 16 << 10 };
}

/// A registered slot, as in the controller's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Number of the slot.
    pub slot: u32,
    /// Its generation.
    pub generation: u32,
    /// The address and port of its executor.
    pub address: (u32, u16),
}

/// The controller's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entered {
    /// The switch's epoch.
    pub epoch: u32,
    /// The slots.
    pub slots: Vec<Slot>,
}

/// The fields of the front.
#[derive(Clone, Debug)]
pub struct FrontFields {
    /// Marks a RETRIEVE that passed the front.
    pub checked: Field,
    /// The epoch in the packet.
    pub epoch: Field,
    /// The slot.
    pub slot: Field,
    /// Its generation.
    pub generation: Field,
    /// The lower half of the counter.
    pub counter: Field,
    /// The sequence of the wait, repeated in the answer.
    pub wait: Field,
    /// The client's identity, repeated in SUBMIT_ACK.
    pub client: [Field; 2],
    /// The ingress port.
    pub came_from: Field,
    /// The destination's address, port and MAC: the switch's, in a packet to it.
    pub own_ip: Field,
    /// Likewise.
    pub own_port: [Field; 2],
    /// Likewise.
    pub own_mac: (Field, Field),
    /// The sender's MAC.
    pub mac: (Field, Field),
    out_port: Field,
    present: Field,
    known: Field,
    fresh: Field,
}

/// The safe program with its front.
#[derive(Clone, Debug)]
pub struct Guarded {
    safe: Safe,
    fields: FrontFields,
    counters: Register,
    size: Size,
}

impl Guarded {
    /// Builds the program, with these entries of the controller.
    ///
    /// # Errors
    /// If it does not fit the target.
    pub fn build(config: Config, size: Size, entered: &Entered, target: &Target) -> Result<Self, Refusal> {
        Self::built(config, size, entered, target, |_, _| ())
    }

    pub(super) fn built(
        config: Config,
        size: Size,
        entered: &Entered,
        target: &Target,
        change: impl FnOnce(&mut Builder, &Fields),
    ) -> Result<Self, Refusal> {
        if !size.slots.is_power_of_two() || size.slots > Size::LARGEST.slots {
            return Err(Refusal::Parameters { what: "slots are a power of two, at most 65536" });
        }
        let mut front = None;
        let safe = Safe::built(config, target, |b, f| {
            front = Some(declare(b, f, size, entered, target.stages - 1));
            change(b, f);
        })?;
        let (fields, counters) = front.expect("declared above");
        Ok(Self { safe, fields, counters, size })
    }

    /// The queue inside.
    #[must_use]
    pub fn safe(&self) -> &Safe {
        &self.safe
    }

    /// The whole program.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.safe.program()
    }

    /// The fields of the front.
    #[must_use]
    pub fn fields(&self) -> &FrontFields {
        &self.fields
    }

    /// A machine with empty queues, whose serial numbers and slot counters begin at `start`.
    #[must_use]
    pub fn machine_from(&self, start: u32) -> Machine {
        let mut machine = self.safe.machine_from(start);
        (0..self.size.slots).for_each(|slot| machine.write(self.counters, slot, Word::Low, start));
        machine
    }

    /// A RETRIEVE of a slot in this epoch, with this counter and sequence of its wait.
    #[must_use]
    pub fn retrieve(&self, epoch: u32, from: &Slot, resources: u8, counter: u32, wait: u32) -> Packet {
        let (f, of) = (&self.fields, self.safe.fields());
        let packet = self.safe.retrieve(from.address.0, resources, 1);
        let mut packet = packet.with(f.epoch, epoch).with(f.slot, from.slot).with(f.generation, from.generation);
        of.port.into_iter().zip(from.address.1.to_be_bytes()).for_each(|(field, byte)| packet.set(field, byte.into()));
        packet.with(f.counter, counter).with(f.wait, wait)
    }

    /// A packet that left a pass, in the form for [`Safe::answer`]: an answer has its receiver in the place of its sender.
    #[must_use]
    pub fn received(&self, sent: &Sent) -> Sent {
        let (f, of, mut sent) = (&self.fields, self.safe.fields(), sent.clone());
        if sent.to == To::Requester {
            let receiver = sent.packet.get(f.own_ip);
            sent.packet.set(of.address, receiver);
        }
        sent
    }

    /// Whether it is a RESET.
    #[must_use]
    pub fn is_reset(&self, sent: &Sent) -> bool {
        sent.to == To::Requester && sent.packet.get(self.safe.fields().op) == RESET
    }
}

fn declare(b: &mut Builder, f: &Fields, size: Size, entered: &Entered, last: usize) -> (FrontFields, Register) {
    let front = FrontFields {
        checked: b.header("checked", W8),
        epoch: b.header("epoch", W32),
        slot: b.header("slot", W32),
        generation: b.header("generation", W32),
        counter: b.header("counter", W32),
        wait: b.header("wait", W32),
        client: ["client_high", "client_low"].map(|name| b.header(name, W32)),
        came_from: b.header("came_from", W16),
        own_ip: b.header("own_ip", W32),
        own_port: ["own_port_high", "own_port_low"].map(|name| b.header(name, W8)),
        own_mac: (b.header("own_mac_high", W16), b.header("own_mac_low", W32)),
        mac: (b.header("mac_high", W16), b.header("mac_low", W32)),
        out_port: b.metadata("out_port", W16),
        present: b.metadata("present", W8),
        known: b.metadata("known", W8),
        fresh: b.metadata("fresh", W8),
    };
    b.name_values(f.op, &[(RESET, "RESET"), (CONTROL, "CONTROL"), (OTHER, "other")]);
    look_up(b, f, &front, size, entered);
    let counters = compare(b, f, &front, size);
    forward(b, f, &front, size);
    judge(b, f, &front);
    turn(b, f, &front, last);
    carried(b, f, &front);
    (front, counters)
}

/// Stage 0: whether the epoch is current and the slot is the sender's.
fn look_up(b: &mut Builder, f: &Fields, front: &FrontFields, size: Size, entered: &Entered) {
    let present = Action::new("present").set(front.present, 1);
    let table = b.table(Ingress, 0, "epoch").exact(front.epoch);
    table.entry([Match::is(entered.epoch)], &present, &[]);
    table.note("the controller's one entry: the switch's epoch");
    let known = Action::new("known").set(front.known, 1);
    let table = b.table(Ingress, 0, "slot").when(f.op.is(Kind::Retrieve as u32)).when(front.checked.is(0));
    table.exact(front.slot).exact(front.generation).exact(f.address).exact(f.port[0]).exact(f.port[1]);
    for Slot { slot, generation, address: (ip, port) } in &entered.slots {
        let [high, low] = port.to_be_bytes();
        let key = [*slot, *generation, *ip, high.into(), low.into()].map(Match::is);
        table.entry(key, &known, &[]);
    }
    if entered.slots.is_empty() {
        // Matches no packet: the table's action must be known.
        table.entry([Match::is(u32::MAX), ANY, ANY, ANY, ANY].map(|_| Match::is(u32::MAX)), &known, &[]);
    }
    table.room(size.slots as usize).note("the controller's entries: slot and generation at the sender's address");
}

/// Stage 1: whether the counter is later than the slot's last one.
fn compare(b: &mut Builder, f: &Fields, front: &FrontFields, size: Size) -> Register {
    let register = b.register(Ingress, 1, "last_counter", Cell::W32, size.slots);
    let cell = register.at(low_bits(front.slot, size.slots.trailing_zeros()));
    let later = cell.test(Test::Before, front.counter).then(Alu::set(front.counter));
    let later = Action::new("later").access(later.give(Output::Predicate, front.fresh));
    let table = b.table(Ingress, 1, "counter").when(front.present.is(1)).when(front.known.is(1)).exact(f.op);
    table.entry([Match::is(Kind::Retrieve as u32)], &later, &[]);
    table.note("`if last_counter before counter then := counter`");
    register
}

/// Stage 1: forwards other packets.
fn forward(b: &mut Builder, f: &Fields, front: &FrontFields, size: Size) {
    let host = Action::new("host").forward(Destination::Port(argument(0)));
    let uplink = Action::new("uplink").forward(Destination::Port(UPLINK.into()));
    let table = b.table(Ingress, 1, "forward").when(f.op.is(OTHER)).exact(front.own_ip);
    table.entry([Match::is(u32::MAX)], &host, &[UPLINK]).run(&uplink);
    table.room(size.hosts as usize).note("all other packets: the port of their destination");
    let cpu = Action::new("to the controller").forward(Destination::Port(CPU.into()));
    b.table(Ingress, 1, "control").when(f.op.is(CONTROL)).run(&cpu).note("REGISTER, RELEASE, KEEPALIVE, PROBE, CANCEL");
}

/// Stage 2: whether a RETRIEVE passes.
fn judge(b: &mut Builder, f: &Fields, front: &FrontFields) {
    let i = &f.inside;
    let on = Action::new("go on").set(front.checked, 1);
    let copy = Action::new("copy").set(i.role, 0).drop("replayed");
    let reset = Action::new("reset").set(i.role, 0).set(f.op, RESET).forward(Destination::Requester);
    let table = b.table(Ingress, 2, "front").when(front.checked.is(0));
    table.ternary(i.role).ternary(front.present).ternary(front.known).ternary(front.fresh);
    table.entry([any_level(role::RETRIEVE), YES, YES, YES], &on, &[]);
    table.entry([any_level(role::RETRIEVE), YES, YES, NO], &copy, &[]);
    table.entry([any_level(role::RETRIEVE), ANY, ANY, ANY], &reset, &[]);
    table.note(
        "a RETRIEVE of a foreign epoch or a slot that is void is answered; one whose counter is not later is dropped",
    );
}

/// The last stage, after all reads of the addresses: returns an answer to its request's sender.
fn turn(b: &mut Builder, f: &Fields, front: &FrontFields, last: usize) {
    let swap = |action: Action, a: Field, b: Field| action.set(a, b).set(b, a);
    let mut turn = Action::new("turn round").set(front.out_port, front.came_from);
    turn = swap(turn, f.address, front.own_ip);
    turn = swap(swap(turn, f.port[0], front.own_port[0]), f.port[1], front.own_port[1]);
    turn = swap(swap(turn, front.mac.0, front.own_mac.0), front.mac.1, front.own_mac.1);
    let table = b.table(Ingress, last, "answer").exact(f.op);
    for answer in [Kind::Assign as u32, Kind::NoOp as u32, Kind::SubmitAck as u32, RESET] {
        table.entry([Match::is(answer)], &turn, &[]);
    }
    table.note("an answer: sender and receiver change places, and it leaves by the port at which its question came");
}

/// What the parser of the recirculation port must find.
fn carried(b: &mut Builder, f: &Fields, front: &FrontFields) {
    let addresses = [&[f.address, front.own_ip, front.came_from][..], &f.port, &front.own_port].concat();
    let macs = [front.mac.0, front.mac.1, front.own_mac.0, front.own_mac.1];
    let all = [&[f.op][..], &addresses, &macs].concat();
    let slot = [front.slot, front.generation, front.wait, f.exec_rsrc, f.level];
    let task = [&[f.uid, f.jid, f.tid, f.trsrc, f.attempt, f.argument_length][..], &f.tdesc].concat();
    let rest = [f.sequence, f.tasks, f.bit, f.taken, f.refused, f.why, f.index, f.credit, f.credit_of, f.tprio];
    let is = |kind: Kind| (f.op, kind as u32);
    b.carries("REST", is(Kind::Rest), &[&all[..], &rest, &task, &front.client].concat(), FIXED, true);
    let search = [&[f.index, f.client_ip, f.swap_idx, front.checked][..], &f.client_port, &task, &slot].concat();
    b.carries("SWAP", is(Kind::Swap), &[&all[..], &search].concat(), FIXED, false);
    b.carries("RETRIEVE", is(Kind::Retrieve), &[&all[..], &slot, &[front.checked]].concat(), FIXED, false);
}
