//! How the interpreter checks an engine: against the model, or by invariants where the engine may differ.

use crate::transcript::{EngineExt, PollingAsic};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Datagram, Stats, TaskTotals, Which};
use midflight_wire::tasks::parse;
use std::net::SocketAddr;

/// An engine that is checked after each call.
pub trait Checker {
    /// Whether the engine supports IPv6.
    const IPV6: bool;
    /// Whether it queues appended arguments.
    const APPENDED: bool;

    /// Gives it a datagram.
    ///
    /// # Errors
    /// If the engine misbehaves, or a rule is broken afterwards.
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String>;

    /// Ticks it.
    ///
    /// # Errors
    /// As for [`packet`](Self::packet).
    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String>;

    /// Purges it.
    ///
    /// # Errors
    /// As for [`packet`](Self::packet).
    fn purge(&mut self, which: Which) -> Result<(), String>;

    /// The engine's counters.
    fn stats(&self) -> Stats;
}

/// The asic engine, checked for T1 and T2: when nothing recirculates, each accepted task is queued or was assigned.
pub(super) struct AsicChecker(pub(super) PollingAsic);

impl AsicChecker {
    fn check(&self, sent: Vec<Datagram>) -> Result<Vec<Datagram>, String> {
        let Stats { tasks: TaskTotals { submitted, assigned, .. }, queued, .. } = self.0.stats();
        let waiting: u64 = queued.iter().map(|&tasks| u64::from(tasks)).sum();
        if submitted != assigned + waiting {
            return Err(format!("T1, T2: {submitted} tasks were taken, {assigned} assigned, {waiting} wait"));
        }
        match sent.iter().find(|(_, bytes)| parse(bytes).is_err()) {
            Some((to, bytes)) => Err(format!("no packet, to {to}: {bytes:02x?}")),
            None => self.0.check().map(|()| sent),
        }
    }
}

impl Checker for AsicChecker {
    const IPV6: bool = false;
    const APPENDED: bool = false;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String> {
        let (_, sent) = self.0.ask(now_ns, from, datagram);
        self.check(sent)
    }

    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String> {
        let (_, sent) = self.0.ask_tick(now_ns);
        self.check(sent)
    }

    fn purge(&mut self, which: Which) -> Result<(), String> {
        self.0.ask_purge(which);
        self.check(Vec::new()).map(drop)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}
