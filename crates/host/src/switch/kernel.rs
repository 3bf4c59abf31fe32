//! The core in the kernel. Its shells take packets on their interfaces, before there are sockets; this side brings it what
//! they leave, ticks it, sends the answers that they cannot send, and looks after interfaces and addresses.

use super::life::Core;
use super::{Engine, Facts, Inheritance, KernelOptions, ShellCounts};
use crate::error::Error;
use midflight_dataplane::kernel::{Found, KernelEngine, KernelError, NOW, Place, SERVED_MAX, SHELL_COUNTS};
use midflight_dataplane::{Out, Purge, Stats, TasksConfig};
use midflight_endpoint::Nanos;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub(super) struct KernelCore {
    engine: KernelEngine,
    /// Datagrams and ticks that the kernel did not take.
    calls_failed: u64,
    /// Addresses beyond those that the programs can serve, when it was last said.
    unserved: usize,
}

impl KernelCore {
    /// Starts it; the facts become those of the queue and the interfaces.
    pub(super) fn start(
        tasks: &TasksConfig,
        options: &KernelOptions,
        listen: SocketAddr,
        facts: Facts,
    ) -> Result<(Self, Facts), Error> {
        let KernelOptions { interfaces, mode, keep, fresh } = options.clone();
        let place = Place { listen, interfaces, mode, keep, fresh };
        let engine = KernelEngine::start(tasks, &place, facts.epoch, rand::random())?;
        let queued = engine.tasks().stats().queued.iter().map(|&tasks| u64::from(tasks)).sum();
        let inheritance = match engine.found() {
            Found::Nothing => Inheritance::None,
            Found::ThrownAway => Inheritance::ThrownAway,
            Found::TakenOver => Inheritance::TakenOver { queued },
        };
        let found = KernelOptions { interfaces: engine.interfaces(), ..options.clone() };
        let facts = Facts { epoch: engine.tasks().epoch(), engine: Engine::Kernel(found), inheritance };
        Ok((Self { engine, calls_failed: 0, unserved: 0 }, facts))
    }

    /// A call that failed is like a datagram lost on the wire: the protocol repeats it.
    fn count(&mut self, failed: Option<KernelError>, out: &mut Out) {
        if let Some(error) = failed {
            tracing::debug!("calling the core in the kernel: {error}");
            self.calls_failed += 1;
            out.clear();
        }
    }
}

impl Core for KernelCore {
    fn packet(&mut self, _now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        let failed = self.engine.tasks_mut().packet(NOW, from, datagram, out).err();
        self.count(failed, out);
    }

    fn tick(&mut self, _now: Nanos, out: &mut Out) {
        let failed = self.engine.tasks_mut().tick(NOW, out).err();
        self.count(failed, out);
    }

    fn purge(&mut self, purge: &mut Purge) -> Result<bool, String> {
        self.engine.tasks_mut().purge(purge).map_err(|error| error.to_string())
    }

    fn stats(&self) -> Stats {
        self.engine.tasks().stats()
    }

    fn counts(&self, counts: &mut ShellCounts) {
        let of_shells = SHELL_COUNTS.iter().map(|&(name, _)| name).zip(self.engine.tasks().shell_counts());
        counts.clear();
        counts.extend(of_shells);
        counts.push(("calls_failed", self.calls_failed));
    }

    fn handed_over(&mut self, send: impl FnMut(Option<IpAddr>, SocketAddr, &[u8])) {
        self.engine.handover_mut().drain(send);
    }

    fn hands_over(&self) -> Option<BorrowedFd<'_>> {
        Some(self.engine.handover().as_fd())
    }

    fn own_address(&self, executor: SocketAddr) -> Option<IpAddr> {
        self.engine.tasks().own_address(executor)
    }

    fn watch(&mut self) -> Result<(), String> {
        if let Some(interface) = self.engine.lost_interface() {
            return Err(format!(
                "interface {interface} went away, or a program was detached from it: start again when it is back"
            ));
        }
        match self.engine.refresh_addresses() {
            Ok(unserved) if unserved != self.unserved => {
                self.unserved = unserved;
                if unserved > 0 {
                    tracing::warn!(
                        "this machine has {unserved} addresses more than the {SERVED_MAX} that the kernel engine serves: \
                         what is sent to those takes the slow way, through the socket; --listen serves one address only"
                    );
                }
            }
            Ok(_) => {}
            // Those of before go on.
            Err(error) => tracing::warn!("{error}"),
        }
        Ok(())
    }
}
