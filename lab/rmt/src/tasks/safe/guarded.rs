//! The safe queue with its front, for the checker.

use super::fields::Kind;
use super::front::{Entered, Guarded, Size, Slot};
use super::{Config, Planted};
use crate::tasks::check::{PassOutcome, Subject, Task};
use crate::{Machine, Packet, Refusal, Sent, Target};

const EPOCH: u32 = 5;
const SIZE: Size = Size { slots: 4, hosts: 4 };

fn slot(executor: u8) -> Slot {
    Slot { slot: executor.into(), generation: 7, address: (executor.into(), 0x0102) }
}

impl Guarded {
    /// With the slots of four executors.
    pub(in crate::tasks) fn checked(
        config: Config,
        target: &Target,
        planted: Option<Planted>,
    ) -> Result<Self, Refusal> {
        let entered = Entered { epoch: EPOCH, slots: (0..4).map(slot).collect() };
        match planted {
            None => Self::build(config, SIZE, &entered, target),
            Some(planted) => Self::planted(config, SIZE, &entered, target, planted),
        }
    }
}

impl Subject for Guarded {
    fn levels(&self) -> u8 {
        self.safe().levels()
    }

    fn size(&self) -> usize {
        self.safe().size()
    }

    fn machine(&self, start: u32) -> Machine {
        self.machine_from(start)
    }

    fn submit(&self, number: u8, tasks: &[Task]) -> Packet {
        Subject::submit(self.safe(), number, tasks)
    }

    fn retrieve(&self, executor: u8, resources: u8) -> Packet {
        self.retrieve_numbered(executor, resources, 1)
    }

    fn retrieve_numbered(&self, executor: u8, resources: u8, counter: u32) -> Packet {
        Self::retrieve(self, EPOCH, &slot(executor), resources, counter, 0)
    }

    fn asker(&self, packet: &Packet) -> Option<u8> {
        self.safe().asker(packet)
    }

    fn told(&self, sent: &Sent) -> PassOutcome {
        if self.is_reset(sent) { PassOutcome::Gone } else { self.safe().told(&self.received(sent)) }
    }

    fn queued(&self, machine: &Machine, level: u8) -> Vec<u32> {
        self.safe().queued(machine, level)
    }

    fn held(&self, packet: &Packet) -> Option<u32> {
        self.safe().held(packet)
    }

    fn asks(&self, packet: &Packet) -> Option<u8> {
        self.safe().asks(packet)
    }

    fn searches(&self, packet: &Packet) -> Option<u8> {
        self.safe().searches(packet)
    }

    fn sound(&self, machine: &Machine, level: u8, held: usize) -> Result<(), String> {
        self.safe().sound(machine, level, held)
    }

    /// Also zeroes what a recirculating packet does not carry according to the program's report.
    fn tidy(&self, machine: &mut Machine, flight: &mut [Packet]) {
        flight.iter_mut().for_each(|packet| self.program().forget(packet));
        self.safe().tidy(machine, flight);
    }

    fn describe(&self, packet: &Packet) -> String {
        let text = self.safe().describe(packet);
        let is_new = packet.get(self.safe().fields().op) == Kind::Retrieve as u32;
        if is_new { format!("{text}, checked {}", packet.get(self.fields().checked)) } else { text }
    }
}
