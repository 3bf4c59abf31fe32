//! What the switch's thread needs of an engine beyond `Engine`, in particular of one in the kernel.

use super::ShellCounts;
use midflight_dataplane::Native;
use midflight_dataplane::program::{Engine, SoftProgram};
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;

/// Sends a datagram. Arguments: source address (`None`: chosen by the kernel), destination, bytes.
pub type SendFrom<'a> = dyn FnMut(Option<IpAddr>, SocketAddr, &[u8]) + 'a;

/// An engine, wherever it runs. A failed call counts as a lost datagram; the engine counts it.
pub trait Hosted<P: SoftProgram>: Engine<Program = P> + std::fmt::Debug + Send {
    /// Overwrites `counts` with those of the code around the program.
    fn counts(&self, _counts: &mut ShellCounts) {}

    /// Whether datagrams arrive by the socket. If not, the socket drops all.
    fn uses_socket(&self) -> bool {
        true
    }

    /// Sends the datagrams left by the kernel programs, each from the address that its receiver expects, if known. An error ends the
    /// switch.
    ///
    /// # Errors
    ///
    /// One line that says what is missing.
    fn send_handed_over(&mut self, _send: &mut SendFrom<'_>) -> Result<(), String> {
        Ok(())
    }

    /// A descriptor that is readable when the kernel programs have left datagrams; `None` for other engines.
    fn handover_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Our address that a peer sends to, if only the kernel programs have seen its packets.
    fn own_address(&self, _peer: SocketAddr) -> Option<IpAddr> {
        None
    }

    /// Checks once a second that the engine's prerequisites exist. An error ends the switch.
    ///
    /// # Errors
    ///
    /// One line that says what is missing.
    fn watch(&mut self) -> Result<(), String> {
        Ok(())
    }
}

impl<P: SoftProgram> Hosted<P> for Native<P> {}

/// An engine in this process, without kernel programs.
#[derive(Debug)]
pub struct InProcess<E>(pub E);

impl<E> Deref for InProcess<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E> DerefMut for InProcess<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.0
    }
}

impl<P: SoftProgram, E: Engine<Program = P> + std::fmt::Debug + Send> Hosted<P> for InProcess<E> {}
