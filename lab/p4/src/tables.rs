//! The controller's entries: the tables and first registers of both programs, by their names in `p4/`.

use crate::frame::RECIRCULATION;
use crate::thrift::{Key, Thrift};
use crate::{P4Error, Program};

/// The mirror session of copies, as in `p4/target/v1model.p4`.
const COPY_MIRROR_SESSION: i32 = 1;
const OWN: &str = "Pipe.own.own";
const EPOCH: &str = "Pipe.look.look_up.epoch";
const SLOT: &str = "Pipe.look.look_up.slot";
const ROUTE: &str = "Pipe.forward.route";
/// Safe program: the number of tasks of each level.
const COUNTS: [&str; 4] = [
    "Pipe.queue.count_1_2.queued_1_2_low",
    "Pipe.queue.count_1_2.queued_1_2_high",
    "Pipe.queue.count_3_4.queued_3_4_low",
    "Pipe.queue.count_3_4.queued_3_4_high",
];
/// Published program: the end and start of each level.
const TAILS: &str = "Pipe.queue.pointers.add_ptr";
const HEADS: &str = "Pipe.queue.pointers.retrieve_ptr";
const LAST_COUNTER: &str = "Pipe.queue.latest.last_counter";

/// Entries that every controller makes at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) own: u32,
    pub(crate) epoch: u32,
    /// Room for tasks of each level.
    pub(crate) room: u32,
    /// First serial number.
    pub(crate) serial: u32,
}

/// A next hop: egress port, destination and source MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Via {
    pub(crate) port: u16,
    pub(crate) to: [u8; 6],
    pub(crate) from: [u8; 6],
}

#[derive(Debug)]
pub(crate) struct Tables {
    program: Program,
    thrift: Thrift,
    /// Entries added to `slot` and `route`, minus removed ones.
    slots: u32,
    routes: u32,
}

fn word(word: u32) -> Vec<u8> {
    word.to_be_bytes().to_vec()
}

fn half(word: u16) -> Vec<u8> {
    word.to_be_bytes().to_vec()
}

impl Tables {
    pub(crate) fn new(program: Program, thrift: Thrift) -> Self {
        Self { program, thrift, slots: 0, routes: 0 }
    }

    /// Makes the entries that are independent of slots and hosts.
    pub(crate) fn begin(&mut self, start: &Start) -> Result<(), P4Error> {
        let &Start { own, epoch, room, serial } = start;
        self.thrift.add(OWN, &[Key::Exact(word(own))], "Pipe.own.is_own", &[])?;
        self.thrift.add(EPOCH, &[Key::Exact(word(epoch))], "Pipe.look.look_up.is_present", &[])?;
        // Answers are turned round after the entries, which the published program has in egress.
        let (turn, turn_round) = match self.program {
            Program::Safe => ("Pipe.queue.answer.turn", "Pipe.queue.answer.turn_round"),
            Program::Published => ("Leave.behind.answer.turn", "Leave.behind.answer.turn_round"),
        };
        self.thrift.set_default(turn, turn_round, &[word(epoch)])?;
        self.thrift.mirror(COPY_MIRROR_SESSION, RECIRCULATION)?;
        let registers: &[_] = match self.program {
            Program::Safe => &[
                ("Pipe.queue.enter.add_ptr", Begin::Pointer),
                ("Pipe.queue.head.retrieve_ptr_low", Begin::Pointer),
                ("Pipe.queue.accept_task.accepted", Begin::Serial),
                ("Pipe.queue.credit.credit", Begin::Credit),
                ("Pipe.look.kind.credit_seen", Begin::Credit),
            ],
            Program::Published => &[(TAILS, Begin::Serial), (HEADS, Begin::Serial)],
        };
        for level in 0..4 {
            for (name, begin) in registers {
                self.thrift.write(name, level, begin.value(level, serial, room))?;
            }
        }
        Ok(())
    }

    /// Registers a slot: its RETRIEVEs come from this address, with later counters than this. Returns the entry's handle.
    pub(crate) fn add_slot(&mut self, slot: [u32; 2], (ip, port): (u32, u16), counter: u32) -> Result<u32, P4Error> {
        let [number, generation] = slot;
        self.set_counter(number, counter)?;
        let [high, low] = port.to_be_bytes().map(|byte| vec![byte]);
        let key = [word(number), word(generation), word(ip), high, low].map(Key::Exact);
        let handle = self.thrift.add(SLOT, &key, "Pipe.look.look_up.is_known", &[])?;
        self.slots += 1;
        Ok(handle)
    }

    /// Sets the counter that a slot's next RETRIEVE must exceed.
    pub(crate) fn set_counter(&mut self, slot: u32, counter: u32) -> Result<(), P4Error> {
        self.thrift.write(LAST_COUNTER, slot, counter)
    }

    pub(crate) fn remove_slot(&mut self, handle: u32) -> Result<(), P4Error> {
        self.thrift.remove(SLOT, handle)?;
        self.slots -= 1;
        Ok(())
    }

    /// Forwards packets to a network. Returns the entry's handle.
    pub(crate) fn add_route(&mut self, (net, bits): (u32, i32), via: Via) -> Result<u32, P4Error> {
        let data = [half(via.port), via.to.to_vec(), via.from.to_vec()];
        let handle = self.thrift.add(ROUTE, &[Key::Prefix(word(net), bits)], "Pipe.forward.via", &data)?;
        self.routes += 1;
        Ok(handle)
    }

    pub(crate) fn remove_route(&mut self, handle: u32) -> Result<(), P4Error> {
        self.thrift.remove(ROUTE, handle)?;
        self.routes -= 1;
        Ok(())
    }

    #[cfg(feature = "compare")]
    pub(crate) fn add_mac(&mut self, to: [u8; 6], port: u16) -> Result<(), P4Error> {
        self.thrift
            .add("Pipe.forward.mac", &[Key::Exact(to.to_vec())], "Pipe.forward.bridge_to", &[half(port)])
            .map(drop)
    }

    #[cfg(feature = "compare")]
    pub(crate) fn register(&mut self, name: &str) -> Result<Vec<u32>, P4Error> {
        self.thrift.read(name)
    }

    /// Sets how many packets may wait for a port.
    pub(crate) fn set_queues(&mut self, packets: i32) -> Result<(), P4Error> {
        self.thrift.set_queues(packets)
    }

    /// Checks that the switch runs this compiled program with empty tables.
    pub(crate) fn check_begin(&mut self, compiled: &[u8]) -> Result<(), P4Error> {
        if self.thrift.program()? != compiled {
            return Err(P4Error::Pipeline);
        }
        self.check_entries([0, 0])
    }

    /// Checks that the tables have exactly the entries added here.
    pub(crate) fn check(&mut self) -> Result<(), P4Error> {
        self.check_entries([1, 1])
    }

    fn check_entries(&mut self, [own, epoch]: [u32; 2]) -> Result<(), P4Error> {
        for (table, ours) in [(OWN, own), (EPOCH, epoch), (SLOT, self.slots), (ROUTE, self.routes)] {
            let there = self.thrift.entries(table)?;
            if there != ours {
                return Err(P4Error::Tables { table, there, ours });
            }
        }
        Ok(())
    }

    /// Queued tasks of each level, without those that packets carry.
    pub(crate) fn queued(&mut self) -> Result<[u32; 4], P4Error> {
        let mut queued = [0; 4];
        match self.program {
            Program::Safe => {
                for (queued, name) in queued.iter_mut().zip(COUNTS) {
                    *queued = self.thrift.read(name)?.first().copied().unwrap_or(0);
                }
            }
            Program::Published => {
                let (tails, heads) = (self.thrift.read(TAILS)?, self.thrift.read(HEADS)?);
                for (queued, (tail, head)) in queued.iter_mut().zip(tails.into_iter().zip(heads)) {
                    // A pointer ahead of the other waits for its repair.
                    *queued = tail.wrapping_sub(head).cast_signed().max(0).cast_unsigned();
                }
            }
        }
        Ok(queued)
    }
}

/// Initial value of a level's cell of a register.
enum Begin {
    /// A serial number.
    Serial,
    /// A serial number, above the bits of the level.
    Pointer,
    /// A serial number plus the room for tasks.
    Credit,
}

impl Begin {
    fn value(&self, level: u32, serial: u32, room: u32) -> u32 {
        match self {
            Self::Serial => serial,
            Self::Pointer => serial.wrapping_mul(4) | level,
            Self::Credit => serial.wrapping_add(room),
        }
    }
}
