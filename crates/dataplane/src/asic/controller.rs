//! The controller: the switch's own CPU. It answers the packets that do not concern the queue, and fills the pipeline's
//! table of slots.

use super::slots::{Ended, Named};
use super::{AsicTasks, Turn, name};
use crate::Verdict;
use midflight_wire::{Cancel, Header, Keepalive, Leave, Probe, Reason, Register, Release, SlotName, TaskName, Wait};
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U64;

impl AsicTasks {
    pub(super) fn register(&mut self, now: u64, from: SocketAddr, register: &Register, turn: &mut Turn) -> Verdict {
        let Register { executor, cookie, .. } = *register;
        if !self.cookies.takes(now, executor.get(), from, cookie.get()) {
            return self.ask_for_cookie(now, from, &register.header, executor, turn);
        }
        let (names, ended) = self.slots.register(now, from, register);
        if let Some(ended) = ended {
            let missing = usize::from(register.header.count) - names.len();
            self.count(ended.verdict(), missing);
        }
        let reason = ended.map_or(Reason::None, Ended::reason);
        turn.sent.push(self.deparser.registered(from, register, &names, reason, &self.config));
        Verdict::Ok
    }

    /// It does not look up the running tasks: no table has them.
    pub(super) fn keepalive(
        &mut self,
        now: u64,
        from: SocketAddr,
        keepalive: &Keepalive,
        waits: &[Wait],
        turn: &mut Turn,
    ) -> Verdict {
        let counter = keepalive.counter;
        if keepalive.header.epoch.get() == 0 {
            let is_known = waits.first().is_some_and(|wait| self.slots.is_of(from, &name(wait)));
            turn.sent.push(self.deparser.reset_all(from, counter, is_known));
            return Verdict::Ok;
        }
        if !self.deparser.is_present(&keepalive.header) {
            return self.foreign(from, counter, turn);
        }
        let is_void = |named| matches!(named, Named::Unknown | Named::Spoofed);
        let void = waits.iter().copied().filter(|wait| is_void(self.hear(now, from, &name(wait), counter)));
        let void: Vec<_> = void.collect();
        turn.sent.extend(self.deparser.reset(from, counter, &void));
        Verdict::Ok
    }

    /// An unknown slot counts as released already.
    pub(super) fn release(
        &mut self,
        now: u64,
        from: SocketAddr,
        release: &Release,
        leaves: &[Leave],
        turn: &mut Turn,
    ) -> Verdict {
        if !self.deparser.is_present(&release.header) {
            return self.foreign(from, release.counter, turn);
        }
        let mut gone = Vec::new();
        for leave in leaves {
            let name = SlotName { slot: leave.slot, generation: leave.generation };
            match self.slots.hear(now, from, &name, release.counter.get()) {
                Named::Slot => {
                    self.slots.vacate(name.slot.get());
                    gone.push(name);
                }
                Named::Unknown => gone.push(name),
                Named::Spoofed => self.count(Verdict::SpoofedSlot, 1),
                Named::Replayed => self.count(Verdict::Replayed, 1),
            }
        }
        turn.sent.extend(self.deparser.released(from, release.counter, &gone));
        Verdict::Ok
    }

    /// The controller stores no clients, so each packet must show a cookie.
    pub(super) fn probe(&mut self, now: u64, from: SocketAddr, probe: &Probe, turn: &mut Turn) -> Verdict {
        if !self.cookies.takes(now, probe.client.get(), from, probe.cookie.get()) {
            return self.ask_for_cookie(now, from, &probe.header, probe.client, turn);
        }
        turn.sent.push(self.deparser.probe_ack(from, probe));
        Verdict::Ok
    }

    /// Queued tasks stay queued: the pipeline has no index to find them.
    pub(super) fn cancel(&mut self, from: SocketAddr, cancel: &Cancel, names: &[TaskName], turn: &mut Turn) -> Verdict {
        self.count(Verdict::NotQueued, names.len());
        turn.sent.push(self.deparser.cancel_ack(from, cancel));
        Verdict::Ok
    }

    fn ask_for_cookie(&self, now: u64, from: SocketAddr, question: &Header, identity: U64, turn: &mut Turn) -> Verdict {
        let cookie = self.cookies.give(now, identity.get(), from);
        turn.sent.push(self.deparser.cookie(from, question, identity, cookie));
        Verdict::NoCookie
    }

    pub(super) fn foreign(&self, from: SocketAddr, counter: U64, turn: &mut Turn) -> Verdict {
        turn.sent.push(self.deparser.reset_all(from, counter, false));
        Verdict::ForeignEpoch
    }
}
