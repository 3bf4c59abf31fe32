//! A program in the kernel. This thread handles the packets passed up, ticks the program, sends the answers that the kernel cannot send,
//! and watches interfaces and addresses.

use super::hosted::{Hosted, SendFrom};
use super::{Facts, Inheritance, KernelOptions, ShellCounts};
use crate::error::Error;
use midflight_dataplane::Out;
use midflight_dataplane::kernel::{Found, KernelEngine, NOW, Place, SERVED_MAX, SHELL_COUNTS};
use midflight_dataplane::program::{Called, Engine, SoftProgram};
use midflight_endpoint::Nanos;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub(super) struct InKernel<P> {
    engine: KernelEngine<P>,
    /// Calls for a datagram or a tick that the kernel refused; the protocol repeats them like lost packets.
    calls_failed: u64,
    /// Local addresses that did not fit, as last reported to the user.
    unserved: usize,
}

impl<P: SoftProgram> InKernel<P> {
    /// Starts the engine. Returns the actual facts: the epoch of a queue taken over, the interfaces as found.
    pub(super) fn start(
        program: &P::Config,
        options: &KernelOptions,
        listen: SocketAddr,
        facts: Facts,
    ) -> Result<(Self, Facts), Error> {
        let KernelOptions { interfaces, mode, keep, fresh } = options.clone();
        let place = Place { listen, interfaces, mode, keep, fresh };
        let engine = KernelEngine::start(program, &place, facts.epoch, rand::random())?;
        let inheritance = match engine.found() {
            Found::Nothing => Inheritance::None,
            Found::ThrownAway => Inheritance::ThrownAway,
            Found::TakenOver => Inheritance::TakenOver,
        };
        let found = KernelOptions { interfaces: engine.interfaces(), ..options.clone() };
        let facts = Facts { epoch: engine.kernel().epoch(), engine: super::SwitchEngine::Kernel(found), inheritance };
        Ok((Self { engine, calls_failed: 0, unserved: 0 }, facts))
    }
}

/// Ignores the caller's time: in the kernel the program reads its own clock under the lock.
impl<P: SoftProgram> Engine for InKernel<P> {
    type Program = P;

    fn packet(&mut self, _now: Nanos, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<P::Verdict> {
        let taken = Engine::packet(self.engine.kernel_mut(), NOW, from, datagram, out);
        taken.inspect_err(|_| {
            self.calls_failed += 1;
            out.clear();
        })
    }

    fn tick(&mut self, _now: Nanos, out: &mut Out) -> Called<u32> {
        Engine::tick(self.engine.kernel_mut(), NOW, out).inspect_err(|_| {
            self.calls_failed += 1;
            out.clear();
        })
    }

    fn order(&mut self, order: &mut P::Order) -> Called<bool> {
        Engine::order(self.engine.kernel_mut(), order)
    }

    fn stats(&self) -> P::Stats {
        self.engine.kernel().stats()
    }

    fn survey(&self, survey: &mut P::Survey) -> bool {
        Engine::survey(self.engine.kernel(), survey)
    }

    fn check(&self) -> Result<(), String> {
        Engine::check(self.engine.kernel())
    }
}

impl<P: SoftProgram> Hosted<P> for InKernel<P> {
    fn counts(&self, counts: &mut ShellCounts) {
        let of_shells = SHELL_COUNTS.iter().map(|&(name, _)| name).zip(self.engine.kernel().shell_counts());
        counts.clear();
        counts.extend(of_shells);
        counts.push(("calls_failed", self.calls_failed));
    }

    fn send_handed_over(&mut self, send: &mut SendFrom<'_>) -> Result<(), String> {
        self.engine.handover_mut().drain(send);
        Ok(())
    }

    fn handover_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.engine.handover().as_fd())
    }

    fn own_address(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.engine.kernel().own_address(peer)
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
                         packets to those take the slow path, through the socket; --listen ADDRESS serves one address only"
                    );
                }
            }
            Ok(_) => {}
            // The previous addresses stay served.
            Err(error) => tracing::warn!("{error}"),
        }
        Ok(())
    }
}
