//! The published queue for the checker.
//!
//! Each valid entry counts as queued, wherever the pointers are: a task is lost only if its entry is overwritten, or if the packet that
//! held it is lost.

use super::fields::{VALID, pointer};
use super::{Answer, Kind, Published, Task};
use crate::tasks::check::{self, PassOutcome, Subject};
use crate::{Machine, Packet, Sent, Word};

/// Addresses begin at 1, so that a packet whose `client_ip` is zero holds no client's task.
fn address(number: u8) -> u32 {
    u32::from(number) + 1
}

fn number(address: u32) -> u8 {
    u8::try_from(address.wrapping_sub(1)).unwrap_or(u8::MAX)
}

/// The value of each word of TDESC.
fn word(&check::Task { tid, level, resources }: &check::Task) -> u32 {
    u32::from(level) << 16 | u32::from(resources) << 8 | (tid + 20)
}

fn job(client: u32) -> (u32, u32) {
    (client + 60, client + 70)
}

impl Published {
    fn kind(&self, packet: &Packet) -> Option<Kind> {
        Kind::from_number(packet.get(self.fields().op))
    }

    fn register(&self, machine: &Machine, name: &str, cell: u32) -> u32 {
        let register = self.program().register(name).expect("a register of the program");
        machine.read(register, cell, Word::Low)
    }

    fn pointers(&self, machine: &Machine, level: u8) -> (u32, u32) {
        let read = |name| self.register(machine, name, u32::from(level) - 1);
        (read("add_ptr"), read("retrieve_ptr"))
    }

    /// The cells of a level's valid entries, the oldest first. A wrong pointer is ahead of the other, which therefore shows the oldest.
    fn valid(&self, machine: &Machine, level: u8) -> Vec<u32> {
        let (add, retrieve) = self.pointers(machine, level);
        let size = self.config().size;
        let overrun = add.wrapping_sub(retrieve).cast_signed() < 0;
        let first = if overrun { add.wrapping_sub(size) } else { retrieve };
        let cell = |n: u32| (u32::from(level) - 1) * size + (first.wrapping_add(n) & (size - 1));
        (0..size).map(cell).filter(|&cell| self.register(machine, "is_valid", cell) & VALID != 0).collect()
    }

    /// Whether it is a SUBMIT made from a SWAP, with one task.
    fn is_put_back(&self, packet: &Packet) -> bool {
        self.kind(packet) == Some(Kind::Submit) && packet.get(self.fields().client_ip) != 0
    }
}

impl Subject for Published {
    fn levels(&self) -> u8 {
        self.config().levels as u8
    }

    fn size(&self) -> usize {
        self.config().size as usize
    }

    fn machine(&self, start: u32) -> Machine {
        let mut machine = Self::machine(self);
        for register in ["add_ptr", "retrieve_ptr"].into_iter().filter_map(|name| self.program().register(name)) {
            (0..self.config().levels).for_each(|level| machine.write(register, level, Word::Low, start));
        }
        machine
    }

    fn submit(&self, client: u8, tasks: &[check::Task]) -> Packet {
        let words = |of: &check::Task| vec![word(of); self.fields().tdesc.len()];
        let task = |t: &check::Task| Task { tid: t.tid, level: t.level, resources: t.resources, words: words(t) };
        let tasks: Vec<Task> = tasks.iter().map(task).collect();
        Self::submit(self, address(client), job(address(client)), &tasks)
    }

    fn retrieve(&self, executor: u8, resources: u8) -> Packet {
        Self::retrieve(self, address(executor), resources)
    }

    fn asker(&self, _: &Packet) -> Option<u8> {
        None
    }

    fn told(&self, sent: &Sent) -> PassOutcome {
        match self.answer(sent) {
            None => PassOutcome::Round,
            Some(Answer::Dropped(_)) => PassOutcome::Gone,
            Some(Answer::NoOp { executor }) => PassOutcome::NoOp { executor: number(executor) },
            Some(Answer::Full { client, tids }) => PassOutcome::Refused { client: number(client), tids },
            Some(Answer::Assign { executor, client, job: found, task: Task { tid, level, resources, words } }) => {
                let own = word(&check::Task { tid, level, resources });
                let whole = found == job(client) && words.iter().all(|&word| word == own);
                PassOutcome::Assigned { executor: number(executor), tid, whole }
            }
        }
    }

    fn queued(&self, machine: &Machine, level: u8) -> Vec<u32> {
        self.valid(machine, level).into_iter().map(|cell| self.register(machine, "tid", cell)).collect()
    }

    fn held(&self, packet: &Packet) -> Option<u32> {
        let holds = self.kind(packet) == Some(Kind::Swap) || self.is_put_back(packet);
        holds.then(|| packet.get(self.fields().tid))
    }

    fn asks(&self, packet: &Packet) -> Option<u8> {
        (self.kind(packet) == Some(Kind::Retrieve)).then(|| packet.get(self.fields().rtrv_prio) as u8)
    }

    /// Its pointers may have any value: they will be repaired.
    fn sound(&self, _: &Machine, _: u8, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn at_rest(&self, machine: &Machine) -> Result<(), String> {
        match self.register(machine, "is_repairing", 0) {
            0 => Ok(()),
            flags => Err(format!("flags {flags:#b} are up, and no REPAIR flies that would clear them")),
        }
    }

    fn tidy(&self, machine: &mut Machine, flight: &mut [Packet]) {
        let dead = |machine: &Machine, cell| self.register(machine, "is_valid", cell) & VALID == 0;
        let words = self.fields().tdesc.len();
        let names = ["is_valid", "tid", "uid", "jid", "client_ip", "client_port"].map(str::to_owned);
        let names: Vec<String> = names.into_iter().chain((0..words).map(|n| format!("tdesc{n}"))).collect();
        let registers: Vec<_> = names.iter().filter_map(|name| self.program().register(name)).collect();
        for cell in
            (0..self.config().levels * self.config().size).filter(|&cell| dead(machine, cell)).collect::<Vec<_>>()
        {
            registers.iter().for_each(|&register| machine.write(register, cell, Word::Low, 0));
        }
        let f = self.fields();
        for packet in flight.iter_mut().filter(|packet| self.is_put_back(packet)) {
            [f.swap_idx, f.pkt_retrieve_ptr, f.exec_rsrc, f.rtrv_prio].into_iter().for_each(|dead| packet.set(dead, 0));
        }
    }

    fn show(&self, machine: &Machine, level: u8) -> String {
        let (add, retrieve) = self.pointers(machine, level);
        let (size, index) = (self.config().size, u32::from(level) - 1);
        let entry = |cell| match self.register(machine, "is_valid", cell) & VALID {
            0 => "-".to_owned(),
            _ => self.register(machine, "tid", cell).to_string(),
        };
        let entries: Vec<String> = (index * size..(index + 1) * size).map(entry).collect();
        format!("[{}] retrieve_ptr {retrieve}, add_ptr {add}", entries.join(" "))
    }

    fn describe(&self, packet: &Packet) -> String {
        let f = self.fields();
        let get = |field| packet.get(field);
        match self.kind(packet) {
            Some(Kind::Submit) if self.is_put_back(packet) => {
                format!("SUBMIT of task {}, which a SWAP held", get(f.tid))
            }
            Some(Kind::Submit) => {
                format!(
                    "SUBMIT of client {}: {} tasks, the first is {}",
                    number(get(f.address)),
                    get(f.tasks),
                    get(f.tid)
                )
            }
            Some(Kind::Retrieve) => format!("RETRIEVE of executor {}", number(get(f.address))),
            Some(Kind::Swap) => format!(
                "SWAP of executor {} holds task {}, looks at {}, pkt_retrieve_ptr {}",
                number(get(f.address)),
                get(f.tid),
                get(f.swap_idx),
                get(f.pkt_retrieve_ptr)
            ),
            Some(Kind::Repair) => {
                let name = if get(f.ptr) == pointer::ADD { "add_ptr" } else { "retrieve_ptr" };
                format!("REPAIR: {name} := {}", get(f.value))
            }
            Some(Kind::OweNoOp) => format!("no-op owed to executor {}", number(get(f.address))),
            Some(kind) => format!("{kind:?} to {}", number(get(f.address))),
            None => "a packet of no kind".into(),
        }
    }
}
