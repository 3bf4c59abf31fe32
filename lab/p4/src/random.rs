//! Draws random frames of all kinds that can reach a switch.

use crate::around::{CLIENTS, EXECUTORS, NEIGHBOUR, SWITCH, UDP_PORT};
use crate::bmv2::Entered;
use crate::frame::{Host, IP, MF, UDP, seal};
use midflight_wire::packet;
use midflight_wire::tasks::{Keepalive, Preference, Probe, Register, Retrieve, Submit, TaskInfo, Wait};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use zerocopy::IntoBytes;

/// Clients; executors, each with two slots.
const CLIENTS_OF_TEST: u8 = 4;
const EXECUTORS_OF_TEST: u8 = 4;
const FIRST_EXECUTOR: u8 = 100;
const EPOCH: u32 = 0x0E90_C401;

/// Draws frames, and tracks what the participants have sent.
pub(crate) struct Draw {
    rng: Pcg64Mcg,
    entered: Entered,
    /// The counter of each slot's last RETRIEVE.
    counters: Vec<u32>,
    sequence: u32,
}

/// The controller's entries for such a test: queues of `size` entries, serial numbers from `start`.
pub(crate) fn entered(size: u32, slot_cells: u32, start: u32) -> Entered {
    let slots = (0..2 * u32::from(EXECUTORS_OF_TEST)).map(|slot| {
        let Host { ip, port, .. } = Host::numbered(FIRST_EXECUTOR + slot as u8 / 2);
        (slot, 0x6E00_0000 | slot, ip, port)
    });
    Entered { epoch: EPOCH, slots: slots.collect(), size, room: size, start, slot_cells }
}

impl Draw {
    pub(crate) fn new(entered: Entered, rng: Pcg64Mcg) -> Self {
        let counters = vec![entered.start; entered.slots.len()];
        Self { rng, counters, entered, sequence: 0 }
    }

    pub(crate) fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.rng
    }

    pub(crate) fn frame(&mut self) -> (u16, Vec<u8>) {
        match self.rng.random_range(0..100) {
            0..36 => (CLIENTS, self.submit()),
            36..80 => (EXECUTORS, self.retrieve()),
            80..84 => (EXECUTORS, self.void()),
            84..92 => self.corrupted(),
            92..94 => (EXECUTORS, self.for_the_controller()),
            94..97 => self.hostile(),
            _ => (CLIENTS, self.foreign()),
        }
    }

    /// Randomises service, identification and hops, as senders and routers do.
    fn sent(&mut self, mut frame: Vec<u8>) -> Vec<u8> {
        frame[IP + 1] = self.rng.random();
        frame[IP + 4] = self.rng.random();
        frame[IP + 8] = self.rng.random_range(1..=255);
        seal(&mut frame);
        frame
    }

    fn client(&mut self) -> Host {
        Host::numbered(self.rng.random_range(1..=CLIENTS_OF_TEST))
    }

    fn task(&mut self) -> TaskInfo {
        let rng = &mut self.rng;
        // Mostly existing levels and lawful arguments; mostly tasks that any executor may run.
        let priority = if rng.random_bool(0.95) { rng.random_range(1..=4) } else { rng.random() };
        let argument_length = if rng.random_bool(0.95) { rng.random_range(0..=16) } else { rng.random() };
        let resources = if rng.random_bool(0.6) { 0 } else { 1 << rng.random_range(0..3) };
        let (tid, function): (u32, u32) = rng.random();
        let (attempt, argument) = (rng.random(), rng.random());
        TaskInfo { tid: tid.into(), function: function.into(), priority, resources, argument_length, attempt, argument }
    }

    fn submit(&mut self) -> Vec<u8> {
        let client = self.client();
        self.sequence = self.sequence.wrapping_add(1);
        let count =
            if self.rng.random_bool(0.05) { self.rng.random_range(1..=32) } else { self.rng.random_range(1..=4) };
        let tasks: Vec<TaskInfo> = (0..count).map(|_| self.task()).collect();
        let [identity, cookie, token]: [u64; 3] = self.rng.random();
        let submit = Submit {
            client: identity.into(),
            cookie: cookie.into(),
            token: token.into(),
            ..Submit::new(0, self.sequence)
        };
        let mut datagram = packet(&submit, &tasks);
        if self.rng.random_bool(0.2) {
            let (place, patience): (u32, u32) = self.rng.random();
            datagram.extend(Preference { place: place.into(), patience_ms: patience.into() }.as_bytes());
        }
        self.sent(client.to_switch(&datagram))
    }

    fn poll(&mut self, epoch: u32, (slot, generation): (u32, u32), from: Host, counter: u32) -> Vec<u8> {
        let high: u32 = self.rng.random();
        let wait = Wait { slot: slot.into(), generation: generation.into(), sequence: self.rng.random::<u32>().into() };
        let retrieve = Retrieve {
            counter: (u64::from(high) << 32 | u64::from(counter)).into(),
            resources: self.rng.random_range(0..8),
            ..Retrieve::new(epoch, 0)
        };
        self.sent(from.to_switch(&packet(&retrieve, &[wait])))
    }

    /// Of a registered slot; sometimes with a counter that is not later than its last.
    fn retrieve(&mut self) -> Vec<u8> {
        let at = self.rng.random_range(0..self.entered.slots.len());
        let (slot, generation, ..) = self.entered.slots[at];
        let from = Host::numbered(FIRST_EXECUTOR + slot as u8 / 2);
        let last = self.counters[at];
        let counter = match self.rng.random_range(0..20) {
            0 => last,
            1 => last.wrapping_sub(self.rng.random_range(1..100)),
            _ => last.wrapping_add(self.rng.random_range(1..3)),
        };
        if counter.wrapping_sub(last).cast_signed() > 0 {
            self.counters[at] = counter;
        }
        self.poll(EPOCH, (slot, generation), from, counter)
    }

    /// Of a wrong epoch, generation or address, or of an unregistered slot.
    fn void(&mut self) -> Vec<u8> {
        let at = self.rng.random_range(0..self.entered.slots.len());
        let (slot, generation, ..) = self.entered.slots[at];
        let (own, counter) = (Host::numbered(FIRST_EXECUTOR + slot as u8 / 2), self.counters[at].wrapping_add(1));
        match self.rng.random_range(0..4) {
            0 => self.poll(EPOCH + 1, (slot, generation), own, counter),
            1 => self.poll(EPOCH, (slot, generation + 1), own, counter),
            2 => self.poll(EPOCH, (slot + 8, generation), own, counter),
            _ => self.poll(EPOCH, (slot, generation), Host { port: own.port ^ 0x100, ..own }, counter),
        }
    }

    fn for_the_controller(&mut self) -> Vec<u8> {
        let from = Host::numbered(FIRST_EXECUTOR);
        match self.rng.random_range(0..4) {
            0 => from.to_switch(Register { executor: 5.into(), ..Register::new(0, 1) }.as_bytes()),
            1 => from.to_switch(Keepalive::new(EPOCH, 0).as_bytes()),
            2 => from.to_switch(Probe { client: 6.into(), ..Probe::new(0, 1) }.as_bytes()),
            _ => {
                let mut frame = self.submit();
                frame[MF + 2] = 2;
                frame
            }
        }
    }

    /// A packet of the queue with a wrong byte, a wrong length, or bytes after it.
    fn corrupted(&mut self) -> (u16, Vec<u8>) {
        let (by, mut frame) =
            if self.rng.random_bool(0.5) { (CLIENTS, self.submit()) } else { (EXECUTORS, self.retrieve()) };
        match self.rng.random_range(0..6) {
            // A bit flipped by a cable.
            5 => frame[IP + self.rng.random_range(1..20)] ^= 1 << self.rng.random_range(0..8),
            // Operations that only the switch itself sends, by its recirculation port.
            4 => frame[MF + 3] = self.rng.random_range(200..208),
            // Its header, but not the version's byte: another version is the controller's.
            0 => {
                let at = [0, 1, 3, 4, 5][self.rng.random_range(0..5)];
                frame[MF + at] = self.rng.random();
            }
            1 => frame.truncate(self.rng.random_range(UDP..frame.len())),
            2 => {
                let at = [IP + 3, UDP + 5][self.rng.random_range(0..2)];
                frame[at] = frame[at].wrapping_add(self.rng.random_range(1..20));
                seal(&mut frame);
            }
            _ => frame.extend((0..self.rng.random_range(1..20)).map(|byte: u8| byte)),
        }
        (by, frame)
    }

    /// A packet of the queue from an attacker or a broken router: with options, fragmented, tagged, truncated, followed by many bytes, with
    /// other lengths, hops, checksums and addresses.
    fn hostile(&mut self) -> (u16, Vec<u8>) {
        let (by, mut frame) =
            if self.rng.random_bool(0.5) { (CLIENTS, self.submit()) } else { (EXECUTORS, self.retrieve()) };
        match self.rng.random_range(0..11) {
            // An option of four bytes, which only its header's length shows.
            0 => {
                frame[IP] = 0x46;
                frame[IP + 3] = frame[IP + 3].wrapping_add(4);
                seal(&mut frame);
                frame.splice(UDP..UDP, [1, 1, 1, 0]);
            }
            // The first fragment, a later one, and a whole datagram.
            1 => {
                let [flags, offset] = [[0x20, 0], [0, 3], [0x40, 0], [0x80, 0]][self.rng.random_range(0..4)];
                [frame[IP + 6], frame[IP + 7]] = [flags, offset];
                seal(&mut frame);
            }
            2 => frame.truncate(self.rng.random_range(IP..UDP)),
            // As long as a frame may be.
            3 => frame.resize(1514, 0xA5),
            // Shorter than its content: an empty datagram, one without a header, ...
            4 => {
                let (at, bytes) = ([IP + 2, UDP + 4][self.rng.random_range(0..2)], self.rng.random_range(0..64u16));
                frame[at..at + 2].copy_from_slice(&bytes.to_be_bytes());
                seal(&mut frame);
            }
            // UDP's checksum may be missing, or wrong: the programs do not check it.
            5 => frame[UDP + 6..UDP + 8].copy_from_slice(&self.rng.random::<u16>().to_be_bytes()),
            // An expired hop limit: the packet has arrived anyway.
            6 => {
                frame[IP + 8] = self.rng.random_range(0..2);
                seal(&mut frame);
            }
            // With the switch's address, broadcast, zero or loopback as its source.
            7 => {
                let from = [SWITCH.1, u32::MAX, 0, 0x7F00_0001][self.rng.random_range(0..4)];
                frame[IP + 12..IP + 16].copy_from_slice(&from.to_be_bytes());
                seal(&mut frame);
            }
            // To the machine's other ports, and not by UDP.
            8 => {
                let (at, value) = [(UDP + 3, 1), (IP + 9, 6), (IP + 9, 1)][self.rng.random_range(0..3)];
                frame[at] = value;
                seal(&mut frame);
            }
            // To a group of machines, or to the sender itself.
            9 => match self.rng.random_bool(0.5) {
                true => frame[0] |= 1,
                false => frame.copy_within(6..12, 0),
            },
            _ => _ = frame.splice(12..12, [0x81, 0, 0, 7]),
        }
        (by, frame)
    }

    /// To another machine; without a route, with a route, with expired hops; or without IP.
    fn foreign(&mut self) -> Vec<u8> {
        let from = self.client();
        let port = if self.rng.random_bool(0.5) { UDP_PORT } else { 53 };
        let ip = [NEIGHBOUR.1 | 7, 0x0B00_0001][self.rng.random_range(0..2)];
        let mut frame = from.to((SWITCH.0, ip, port), &[0x4D; 120]);
        match self.rng.random_range(0..5) {
            0 => {
                frame[IP + 8] = 1;
                seal(&mut frame);
            }
            1 => frame[12..14].copy_from_slice(&[0x86, 0xDD]),
            2 => frame[IP] = 0x46, // as if it had options
            _ => {}
        }
        frame
    }
}
