//! What the switch's thread needs of an engine beyond `Engine`: of the kernel engine and of bmv2, what takes packets without this process.

use super::options::{AsicOptions, Bmv2Options};
use super::{ShellCounts, asic};
use crate::error::Error;
use midflight_dataplane::asic::reads::{AsicReads, UNIT_BITS};
use midflight_dataplane::program::{Engine, SoftProgram};
use midflight_dataplane::reads::{ReadsConfig, ReadsProgram};
use midflight_dataplane::replicas::ReplicasProgram;
use midflight_dataplane::{TasksConfig, TasksProgram};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends a datagram: from which of our addresses (`None`: the kernel chooses), to whom, what.
pub type SendFrom<'a> = dyn FnMut(Option<IpAddr>, SocketAddr, &[u8]) + 'a;

/// An engine, wherever it runs. A failed call is like a datagram lost on the wire; the engine counts it.
pub trait Hosted<P: SoftProgram>: Engine<Program = P> + std::fmt::Debug + Send {
    /// Overwrites `counts` with the counts of the shells or the pipeline around the program.
    fn counts(&self, _counts: &mut ShellCounts) {}

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

/// A program that a switch of this crate can run.
pub trait HostedProgram: SoftProgram {
    /// The asic engine that runs it.
    ///
    /// # Errors
    /// If the options are of another program or the program has no asic engine, or a bound is violated.
    fn asic(_config: &Self::Config, _options: AsicOptions, _epoch: u32) -> Result<Box<dyn Hosted<Self>>, Error> {
        Err(no_such_engine::<Self>())
    }

    /// The engine bmv2 that runs it, and serves this address. Its start is given up once the flag is set.
    ///
    /// # Errors
    /// If the program has none, or a tool, a right or an interface is missing.
    fn bmv2(
        _config: &Self::Config,
        _options: &Bmv2Options,
        _listen: SocketAddr,
        _epoch: u32,
        _interrupted: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Hosted<Self>>, Error> {
        Err(no_bmv2::<Self>())
    }
}

/// Why a program does not run in BMv2, or not by this build.
fn no_bmv2<P: SoftProgram + ?Sized>() -> Error {
    Error::Configuration(format!("{} does not run in bmv2: only tasks does, where this was built with it", P::NAME))
}

fn no_such_engine<P: SoftProgram + ?Sized>() -> Error {
    Error::Configuration(format!("{} has no such asic engine: use the engine user or kernel", P::NAME))
}

impl HostedProgram for TasksProgram {
    fn asic(config: &TasksConfig, options: AsicOptions, epoch: u32) -> Result<Box<dyn Hosted<Self>>, Error> {
        let AsicOptions::Tasks(queue) = options else { return Err(no_such_engine::<Self>()) };
        Ok(Box::new(asic::AsicEngine::new(config, queue, epoch)?))
    }

    #[cfg(feature = "bmv2")]
    fn bmv2(
        config: &TasksConfig,
        options: &Bmv2Options,
        listen: SocketAddr,
        epoch: u32,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Hosted<Self>>, Error> {
        Ok(Box::new(super::bmv2::Bmv2Engine::start(config, options, listen, epoch, interrupted)?))
    }
}

impl HostedProgram for ReadsProgram {
    fn asic(config: &ReadsConfig, options: AsicOptions, _epoch: u32) -> Result<Box<dyn Hosted<Self>>, Error> {
        if options != AsicOptions::Reads {
            return Err(no_such_engine::<Self>());
        }
        let reads = AsicReads::new(config, rand::random(), UNIT_BITS).map_err(Error::Configuration)?;
        Ok(Box::new(reads))
    }
}

impl Hosted<ReadsProgram> for AsicReads {}

/// Its program of a pipeline is a model for tests: it has no thread that reads counters.
impl HostedProgram for ReplicasProgram {}
