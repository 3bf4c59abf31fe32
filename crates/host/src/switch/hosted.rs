//! What the switch's thread needs of an engine beyond `Engine`: of one that takes packets without this process, what it has to do with them.

use super::ShellCounts;
use midflight_dataplane::program::{Called, Engine, SoftProgram};
use midflight_dataplane::{Native, Out};
use midflight_endpoint::Nanos;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Sends a datagram: from which of our addresses (`None`: the kernel chooses), to whom, what.
pub type SendFrom<'a> = dyn FnMut(Option<IpAddr>, SocketAddr, &[u8]) + 'a;

/// An engine, wherever it runs. A failed call is like a datagram lost on the wire; the engine counts it.
pub trait Hosted<P: SoftProgram>: Engine<Program = P> + std::fmt::Debug + Send {
    /// Overwrites `counts` with the counts of the shells or the pipeline around the program.
    fn counts(&self, _counts: &mut ShellCounts) {}

    /// Whether datagrams come by the socket. Otherwise the socket takes nothing.
    fn uses_socket(&self) -> bool {
        true
    }

    /// Sends the datagrams that the shells have left for this process, each from the address that its receiver expects, if that
    /// is known. An error ends the switch.
    ///
    /// # Errors
    /// Says what is gone, on one line.
    fn send_handed_over(&mut self, _send: &mut SendFrom<'_>) -> Result<(), String> {
        Ok(())
    }

    /// A descriptor that is readable when the shells have left datagrams; `None` for an engine without shells.
    fn handover_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Our address that a peer sends to, if the shells have learned it from packets that never came here.
    fn own_address(&self, _peer: SocketAddr) -> Option<IpAddr> {
        None
    }

    /// Checks, once a second, that what the engine depends on is still there; an error ends the switch.
    ///
    /// # Errors
    /// Says what is gone, on one line.
    fn watch(&mut self) -> Result<(), String> {
        Ok(())
    }
}

impl<P: SoftProgram> Hosted<P> for Native<P> {}

/// An engine that runs in this process, and has nothing around it.
#[derive(Debug)]
pub struct InProcess<E>(pub E);

impl<E: Engine> Engine for InProcess<E> {
    type Program = E::Program;

    fn packet(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Out,
    ) -> Called<<E::Program as midflight_dataplane::program::Program>::Verdict> {
        self.0.packet(now, from, datagram, out)
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) -> Called<u32> {
        self.0.tick(now, out)
    }

    fn order(&mut self, order: &mut <E::Program as midflight_dataplane::program::Program>::Order) -> Called<bool> {
        self.0.order(order)
    }

    fn stats(&self) -> <E::Program as midflight_dataplane::program::Program>::Stats {
        self.0.stats()
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

impl<P: SoftProgram, E: Engine<Program = P> + std::fmt::Debug + Send> Hosted<P> for InProcess<E> {}
