//! Configuration of a switch.

use crate::busy_poll::BUSY_POLL;
use crate::socket::SocketBuffers;
use midflight_dataplane::program;
use midflight_dataplane::{TasksConfig, TasksProgram, XdpMode};
use std::net::SocketAddr;
use std::time::Duration;

/// Address, program and engine of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig<P: program::Program = TasksProgram> {
    /// UDP address. Port 0: any free one; `[::]` accepts IPv4 too.
    pub listen: SocketAddr,
    /// Bounds and times of the program.
    pub program: P::Config,
    /// Sizes of the socket's kernel buffers.
    pub buffers: SocketBuffers,
    /// Where the program runs.
    pub engine: SwitchEngine,
    /// How long the thread polls the socket before it sleeps, while packets arrive at shorter intervals, yielding the core to others; saves
    /// wake-ups. Default 100 µs; zero: never. Unused with the kernel engine.
    pub busy_poll: Duration,
}

impl SwitchConfig {
    /// The tasks program in user space, with default bounds.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self::of(listen, TasksConfig::default())
    }
}

impl<P: program::Program> SwitchConfig<P> {
    /// A program in user space.
    #[must_use]
    pub fn of(listen: SocketAddr, program: P::Config) -> Self {
        Self { listen, program, buffers: SocketBuffers::default(), engine: SwitchEngine::User, busy_poll: BUSY_POLL }
    }
}

/// Where the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SwitchEngine {
    /// In this process; every packet arrives by the socket.
    #[default]
    User,
    /// In the kernel, as XDP and TC programs (feature `kernel`); the socket receives only what they pass up.
    Kernel(KernelOptions),
    /// In the caller's engine of this name ([`Switch::bind_with`](super::Switch::bind_with)).
    Other(String),
}

/// What an engine must know of its switch.
#[derive(Debug)]
pub struct EnginePlace<'a, P: program::Program> {
    /// Bounds and times of the program.
    pub program: &'a P::Config,
    /// The served address.
    pub listen: SocketAddr,
    /// Identifies this start of the switch; not 0.
    pub epoch: u32,
}

/// Options of the kernel engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Names of the interfaces, at least one.
    pub interfaces: Vec<String>,
    /// How XDP is attached.
    pub mode: XdpMode,
    /// Keeps state and programs after the end of the process, for the next one on this port.
    pub keep: bool,
    /// Discards the state kept by an earlier process.
    pub fresh: bool,
}
