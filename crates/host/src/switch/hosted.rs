//! An engine as the switch's thread runs it: with what stands around it outside of this process.

use super::options::AsicOptions;
use super::{ShellCounts, asic};
use crate::error::Error;
use midflight_dataplane::program::{Engine, SoftProgram};
use midflight_dataplane::{TasksConfig, TasksProgram};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Sends a datagram from an address of ours, or from the one that the kernel chooses.
pub type SendFrom<'a> = dyn FnMut(Option<IpAddr>, SocketAddr, &[u8]) + 'a;

/// An engine, wherever it runs. A call of it that fails is like a datagram lost on the wire: it counts it itself.
pub trait Hosted<P: SoftProgram>: Engine<Program = P> + std::fmt::Debug + Send {
    /// Overwrites `counts` with what stands around it has counted.
    fn counts(&self, _counts: &mut ShellCounts) {}

    /// Hands out what it owes for datagrams that it took without this thread, with the address of ours that the receiver
    /// asks, if that is known.
    fn handed_over(&mut self, _send: &mut SendFrom<'_>) {}

    /// Readable when there is such.
    fn hands_over(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The address of ours that a peer asks, if its packets pass this thread by.
    fn own_address(&self, _peer: SocketAddr) -> Option<IpAddr> {
        None
    }

    /// Looks after what it depends on, once a second; an error ends the switch.
    ///
    /// # Errors
    /// Says what is gone, on one line.
    fn watch(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A program that a switch of this crate can run.
pub trait HostedProgram: SoftProgram {
    /// Its asic engine.
    ///
    /// # Errors
    /// Where it has none, or a bound is violated.
    fn asic(_config: &Self::Config, _options: AsicOptions, _epoch: u32) -> Result<Box<dyn Hosted<Self>>, Error> {
        Err(Error::Configuration(format!("{} has no asic engine: use user or kernel", Self::NAME)))
    }
}

impl HostedProgram for TasksProgram {
    fn asic(config: &TasksConfig, options: AsicOptions, epoch: u32) -> Result<Box<dyn Hosted<Self>>, Error> {
        Ok(Box::new(asic::AsicEngine::new(config, options, epoch)?))
    }
}
