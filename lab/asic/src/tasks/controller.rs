//! The controller: the switch's own CPU. It answers the packets that do not concern the queue, and determines the pipeline's table of
//! slots. With the model of a pipeline it is part of [`AsicTasks`](super::AsicTasks); with a real one its owner brings it the packets of
//! the CPU port, and copies [changes](Controller::changed) into the table.

use super::deparser::{self, Deparser};
use super::slots::{Ended, Named, Slots};
use super::{AsicConfig, AsicError, name, parser};
use midflight_dataplane::Cookies;
use midflight_dataplane::read;
use midflight_dataplane::{Datagram, Stats, Verdict};
use midflight_wire::Header;
use midflight_wire::tasks::{
    Cancel, Keepalive, Leave, Packet, Probe, Reason, Register, Release, SlotName, TaskName, Wait,
};
use std::net::SocketAddr;
use zerocopy::FromZeros;
use zerocopy::byteorder::network_endian::U64;

/// A slot's entry in the pipeline's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    /// Names the slot together with its number.
    pub generation: u32,
    /// The source of its RETRIEVEs.
    pub address: SocketAddr,
    /// The lower half of their counters is later than this, as serial numbers.
    pub counter: u32,
}

/// The controller of a pipeline.
#[derive(Clone, Debug)]
pub struct Controller {
    config: AsicConfig,
    pub(super) slots: Slots,
    cookies: Cookies,
    pub(super) deparser: Deparser,
    pub(super) stats: Stats,
}

impl Controller {
    /// The controller of a newly started switch. `epoch` is not 0; cookies and generations are derived from `secret`, which is random.
    ///
    /// # Errors
    /// If a bound of the configuration is violated.
    pub fn new(config: &AsicConfig, epoch: u32, secret: u128) -> Result<Self, AsicError> {
        config.check()?;
        Ok(Self {
            config: *config,
            slots: Slots::new(config, secret),
            cookies: Cookies::new(secret, config.cookie_ns),
            deparser: Deparser::new(epoch),
            stats: Stats::new_zeroed(),
        })
    }

    /// Handles one datagram from the pipeline. Appends the answers to `sent`.
    pub fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8], sent: &mut Vec<Datagram>) -> Verdict {
        let verdict = match (read(datagram, self.config.levels, &mut self.stats), parser::ipv4(from)) {
            (Ok(packet), Some(_)) => self.take(now_ns, from, packet, sent),
            (refused, _) => self.refuse(from, refused.err(), sent),
        };
        self.count(verdict, 1);
        verdict
    }

    /// Refuses unreadable datagrams, and those from addresses that the pipeline does not support: their slots would be registered but never
    /// get a task.
    pub(super) fn refuse(&self, from: SocketAddr, why: Option<Verdict>, sent: &mut Vec<Datagram>) -> Verdict {
        if why == Some(Verdict::BadVersion) {
            sent.push(deparser::version(from));
        }
        why.unwrap_or(Verdict::NotForSwitch)
    }

    pub(super) fn take(&mut self, now: u64, from: SocketAddr, packet: Packet<'_>, sent: &mut Vec<Datagram>) -> Verdict {
        match packet {
            Packet::Register(register) => self.register(now, from, register, sent),
            Packet::Keepalive(keepalive, waits) => self.keepalive(now, from, keepalive, waits, sent),
            Packet::Release(release, leaves) => self.release(now, from, release, leaves, sent),
            Packet::Probe(probe, _) => self.probe(now, from, probe, sent),
            Packet::Cancel(cancel, names) => self.cancel(from, cancel, names, sent),
            _ => Verdict::NotForSwitch,
        }
    }

    /// Frees slots that have been silent for too long. Visits a bounded number of slots and returns how many; none for a lease's time after
    /// a pause between ticks.
    pub fn tick(&mut self, now_ns: u64) -> u32 {
        self.slots.tick(now_ns)
    }

    /// The numbers of the slots registered or freed since the last call: [`slot`](Self::slot) gives their entries.
    pub fn changed(&mut self) -> Vec<u32> {
        self.slots.changed()
    }

    /// A slot's entry; `None` if it is not registered.
    #[must_use]
    pub fn slot(&self, number: u32) -> Option<SlotEntry> {
        self.slots.entry(number)
    }

    /// Its counts, without the queue's.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { slots: self.slots.registered(), gaps: self.slots.gaps(), ..self.stats }
    }

    fn register(&mut self, now: u64, from: SocketAddr, register: &Register, sent: &mut Vec<Datagram>) -> Verdict {
        let Register { executor, cookie, .. } = *register;
        if !self.cookies.takes(now, executor.get(), from, cookie.get()) {
            return self.ask_for_cookie(now, from, &register.header, executor, sent);
        }
        let (names, ended) = self.slots.register(now, from, register);
        if let Some(ended) = ended {
            let missing = usize::from(register.header.count) - names.len();
            self.count(ended.verdict(), missing);
        }
        let reason = ended.map_or(Reason::None, Ended::reason);
        sent.push(self.deparser.registered(from, register, &names, reason, &self.config));
        Verdict::Ok
    }

    /// Does not look up the running tasks: no table has them.
    fn keepalive(
        &mut self,
        now: u64,
        from: SocketAddr,
        keepalive: &Keepalive,
        waits: &[Wait],
        sent: &mut Vec<Datagram>,
    ) -> Verdict {
        let counter = keepalive.counter;
        if keepalive.header.epoch.get() == 0 {
            let is_known = waits.first().is_some_and(|wait| self.slots.is_of(from, &name(wait)));
            sent.push(self.deparser.reset_all(from, counter, is_known));
            return Verdict::Ok;
        }
        if !self.deparser.is_present(&keepalive.header) {
            return self.foreign(from, counter, sent);
        }
        let is_void = |named| matches!(named, Named::Unknown | Named::Spoofed);
        let void = waits.iter().copied().filter(|wait| is_void(self.hear(now, from, &name(wait), counter)));
        let void: Vec<_> = void.collect();
        sent.extend(self.deparser.reset(from, counter, &void));
        Verdict::Ok
    }

    /// An unknown slot counts as released already.
    fn release(
        &mut self,
        now: u64,
        from: SocketAddr,
        release: &Release,
        leaves: &[Leave],
        sent: &mut Vec<Datagram>,
    ) -> Verdict {
        if !self.deparser.is_present(&release.header) {
            return self.foreign(from, release.counter, sent);
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
        sent.extend(self.deparser.released(from, release.counter, &gone));
        Verdict::Ok
    }

    /// The controller stores no clients, so each packet must have a cookie.
    fn probe(&mut self, now: u64, from: SocketAddr, probe: &Probe, sent: &mut Vec<Datagram>) -> Verdict {
        if !self.cookies.takes(now, probe.client.get(), from, probe.cookie.get()) {
            return self.ask_for_cookie(now, from, &probe.header, probe.client, sent);
        }
        sent.push(self.deparser.probe_ack(from, probe));
        Verdict::Ok
    }

    /// Queued tasks stay queued: the pipeline has no index to find them.
    fn cancel(&mut self, from: SocketAddr, cancel: &Cancel, names: &[TaskName], sent: &mut Vec<Datagram>) -> Verdict {
        self.count(Verdict::NotQueued, names.len());
        sent.push(self.deparser.cancel_ack(from, cancel));
        Verdict::Ok
    }

    fn ask_for_cookie(
        &self,
        now: u64,
        from: SocketAddr,
        question: &Header,
        identity: U64,
        sent: &mut Vec<Datagram>,
    ) -> Verdict {
        let cookie = self.cookies.give(now, identity.get(), from);
        sent.push(self.deparser.cookie(from, question, identity, cookie));
        Verdict::NoCookie
    }

    pub(super) fn foreign(&self, from: SocketAddr, counter: U64, sent: &mut Vec<Datagram>) -> Verdict {
        sent.push(self.deparser.reset_all(from, counter, false));
        Verdict::ForeignEpoch
    }

    /// Records that a slot was heard, if it is the sender's.
    pub(super) fn hear(&mut self, now: u64, from: SocketAddr, name: &SlotName, counter: U64) -> Named {
        let named = self.slots.hear(now, from, name, counter.get());
        match named {
            Named::Slot => {}
            Named::Unknown => self.count(Verdict::ForeignSlot, 1),
            Named::Spoofed => self.count(Verdict::SpoofedSlot, 1),
            Named::Replayed => self.count(Verdict::Replayed, 1),
        }
        named
    }

    pub(super) fn count(&mut self, verdict: Verdict, times: usize) {
        self.stats.reasons[verdict as usize] += times as u64;
    }
}
