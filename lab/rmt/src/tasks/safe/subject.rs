//! The safe queue for the checker.

use super::fields::Kind;
use super::{Answer, Config, Safe, Task};
use crate::tasks::check::{self, PassOutcome, Subject};
use crate::{Machine, Packet, Sent, Word};

/// A task whose words all follow from its TID, level, resources and place in the SUBMIT, which reveals mixed entries. The place is in the
/// upper half of `attempt`, and the index must be the same.
fn task(place: u8, &check::Task { tid, level, resources }: &check::Task, config: Config) -> Task {
    let attempt = (place << 4) | (tid as u8 & 0xF);
    let [high, low] = [level, resources].map(u32::from);
    let word = |number: u32| high << 16 | low << 8 | (tid + 20 * number);
    let words = std::array::from_fn(|number| if number <= config.words as usize { word(number as u32) } else { 0 });
    Task { tid, level, resources, attempt, argument_length: tid as u8 | 0x40, words }
}

fn client(number: u8) -> (u32, u16) {
    (u32::from(number), u16::from(number) << 8 | 3)
}

impl Safe {
    fn kind(&self, packet: &Packet) -> Option<Kind> {
        Kind::from_number(packet.get(self.fields().op))
    }

    /// Zeroes fields that a packet of this kind does not use, such as those of an earlier task of a request.
    fn tidy_packet(&self, packet: &mut Packet) {
        let f = self.fields();
        if self.kind(packet) == Some(Kind::Retrieve) {
            let [high, low] = f.client_port;
            let dead = [f.uid, f.jid, f.tid, f.trsrc, f.client_ip, high, low, f.swap_idx];
            let dead = dead.into_iter().chain([f.index, f.attempt, f.argument_length]).chain(f.tdesc.iter().copied());
            dead.for_each(|field| packet.set(field, 0));
        }
    }
}

impl Subject for Safe {
    fn levels(&self) -> u8 {
        self.config().levels as u8
    }

    fn size(&self) -> usize {
        self.room as usize
    }

    fn machine(&self, start: u32) -> Machine {
        self.machine_from(start)
    }

    fn submit(&self, number: u8, tasks: &[check::Task]) -> Packet {
        let tasks: Vec<Task> = (0..).zip(tasks).map(|(place, of)| task(place, of, self.config())).collect();
        let job = (u32::from(number) + 60, u32::from(number) + 70);
        Self::submit(self, client(number), job, 0, &tasks)
    }

    fn retrieve(&self, executor: u8, resources: u8) -> Packet {
        Self::retrieve(self, executor.into(), resources, 1)
    }

    fn asker(&self, packet: &Packet) -> Option<u8> {
        let number = packet.get(self.fields().address) as u8;
        matches!(self.kind(packet), Some(Kind::Swap | Kind::Retrieve)).then_some(number)
    }

    /// The head's pointer and `accepted` become `start`, as after the controller's set-up; all others move by as much.
    fn number_anew(&self, machine: &mut Machine, flight: &mut [Packet], start: u32) {
        let (f, r, step, size) = (self.fields(), &self.registers.pointers, self.config().step(), self.config().size);
        for level in 0..self.config().levels {
            let cell = |n: u32| (n & (size - 1)) * step + level;
            let from = machine.read(r.retrieve, level, Word::Low).wrapping_sub(start.wrapping_mul(step) | level);
            let paid = machine.read(r.accepted, level, Word::Low).wrapping_sub(start);
            let moved = [
                (r.add, from),
                (r.retrieve, from),
                (r.accepted, paid),
                (r.credit_seen, paid),
                (self.registers.credit, paid),
            ];
            for (register, by) in moved {
                let word = machine.read(register, level, Word::Low);
                machine.write(register, level, Word::Low, word.wrapping_sub(by));
            }
            for stored in &self.registers.entries {
                let at = |n: u32| stored.of(cell(n));
                let read = |(register, index)| machine.read(register, index, Word::Low);
                let words: Vec<u32> = (0..size).map(|n| read(at(n.wrapping_add(from / step)))).collect();
                let mut write = |(register, index), word| machine.write(register, index, Word::Low, word);
                (0..).zip(words).for_each(|(n, word)| write(at(n), word));
            }
            for packet in flight.iter_mut() {
                if self.kind(packet) == Some(Kind::Swap) && packet.get(f.level) == level + 1 {
                    // Wherever the head has overtaken it, it continues at the head.
                    let (head, at) = (start.wrapping_mul(step) | level, packet.get(f.swap_idx).wrapping_sub(from));
                    let is_behind = at.wrapping_sub(head).cast_signed() < 0;
                    packet.set(f.swap_idx, if is_behind { head.wrapping_sub(step) } else { at });
                }
                if self.kind(packet) == Some(Kind::Rest) && packet.get(f.credit_of) == level + 1 {
                    packet.set(f.credit, packet.get(f.credit).wrapping_sub(paid));
                }
            }
        }
    }

    fn told(&self, sent: &Sent) -> PassOutcome {
        let number = |address: u32| u8::try_from(address).unwrap_or(u8::MAX);
        match self.answer(sent) {
            None => PassOutcome::Round,
            Some(Answer::Dropped(_)) => PassOutcome::Gone,
            Some(Answer::NoOp { executor }) => PassOutcome::NoOp { executor: number(executor) },
            Some(Answer::Ack { client, taken, refused, .. }) => {
                PassOutcome::Answered { client: number(client), taken, refused }
            }
            Some(Answer::Assign { executor, client: (address, port), job, index, task: found }) => {
                let Task { tid, level, resources, .. } = found;
                let whole = found == task(index, &check::Task { tid, level, resources }, self.config());
                let whole = whole && (address, port) == client(number(address));
                let whole = whole && job == (address + 60, address + 70);
                PassOutcome::Assigned { executor: number(executor), tid, whole }
            }
        }
    }

    fn queued(&self, machine: &Machine, level: u8) -> Vec<u32> {
        self.queue(machine, u32::from(level) - 1)
    }

    fn held(&self, packet: &Packet) -> Option<u32> {
        (self.kind(packet) == Some(Kind::Swap)).then(|| packet.get(self.fields().tid))
    }

    fn asks(&self, packet: &Packet) -> Option<u8> {
        (self.kind(packet) == Some(Kind::Retrieve)).then(|| packet.get(self.fields().level) as u8)
    }

    fn searches(&self, packet: &Packet) -> Option<u8> {
        (self.kind(packet) == Some(Kind::Swap)).then(|| packet.get(self.fields().level) as u8)
    }

    fn sound(&self, machine: &Machine, level: u8, held: usize) -> Result<(), String> {
        let registers = self.level(machine, u32::from(level) - 1);
        let super::Level { add, retrieve, queued, accepted, credit, credit_seen } = registers;
        let (held, size) = (held as u32, self.room);
        let length = add.wrapping_sub(retrieve) & (u32::MAX / self.config().levels.next_power_of_two());
        let inside = accepted.wrapping_sub(credit.wrapping_sub(size));
        let say = |what: &str| Err(format!("{what}: {registers:?}, {held} held"));
        match () {
            () if length != queued => say("the count is not the distance of the pointers"),
            () if length + held != inside => say("accepted less finished is not what is there"),
            () if inside > size => say("more than there is room for"),
            () if credit.wrapping_sub(credit_seen).cast_signed() < 0 => say("the copy is ahead of the credit"),
            () if credit_seen.wrapping_sub(accepted).cast_signed() < 0 => say("accepted beyond the limit"),
            () => Ok(()),
        }
    }

    fn tidy(&self, machine: &mut Machine, flight: &mut [Packet]) {
        for level in 0..self.config().levels {
            let live: Vec<u32> = self.cells(machine, level).collect();
            let step = self.config().levels.next_power_of_two();
            let dead = (0..self.config().size).map(|n| n * step + level).filter(|cell| !live.contains(cell));
            for (register, index) in dead.flat_map(|cell| self.registers.entries.iter().map(move |r| r.of(cell))) {
                machine.write(register, index, Word::Low, 0);
            }
            machine.write(self.registers.pointers.retrieve, level, Word::High, 0);
        }
        flight.iter_mut().for_each(|packet| self.tidy_packet(packet));
    }

    fn describe(&self, packet: &Packet) -> String {
        let f = self.fields();
        let get = |field| packet.get(field);
        match self.kind(packet) {
            Some(Kind::Swap) => format!(
                "SWAP of executor {} holds task {}, looks at {:#x} of level {}",
                get(f.address),
                get(f.tid),
                get(f.swap_idx),
                get(f.level)
            ),
            Some(Kind::Rest) => format!(
                "REST of client {}: {} tasks, the first is {}; credit {} of level {}",
                get(f.address),
                get(f.tasks),
                get(f.tid),
                get(f.credit),
                get(f.credit_of)
            ),
            Some(Kind::Retrieve) => format!("RETRIEVE of executor {} from level {}", get(f.address), get(f.level)),
            kind => format!("{kind:?}"),
        }
    }
}
