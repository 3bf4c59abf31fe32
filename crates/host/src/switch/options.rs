//! How a switch is configured.

use crate::busy_poll::BUSY_POLL;
use crate::socket::SocketBuffers;
use midflight_dataplane::program;
use midflight_dataplane::{TasksConfig, TasksProgram, XdpMode};
use std::net::SocketAddr;
use std::time::Duration;

/// Where a switch listens, the bounds of its program, and where that runs.
#[derive(Clone, Debug)]
pub struct SwitchConfig<P: program::Program = TasksProgram> {
    /// UDP address; port 0 takes a free one; `[::]` takes IPv4 too.
    pub listen: SocketAddr,
    /// Bounds and times of the program, such as the size of the queue of tasks.
    pub program: P::Config,
    /// Sizes of the kernel's buffers of its socket.
    pub buffers: SocketBuffers,
    /// Where the program runs.
    pub engine: SwitchEngine,
    /// Busy poll: how long the thread polls the socket before it sleeps, while packets come in shorter intervals than that. Such a
    /// packet costs no wake-up. The thread yields its core to others that want it. Default 100 µs; zero switches it off. Not used
    /// with the kernel engine.
    pub busy_poll: Duration,
}

impl SwitchConfig {
    /// The tasks program in user space, with the default bounds.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self::of(listen, TasksConfig::default())
    }
}

impl<P: program::Program> SwitchConfig<P> {
    /// A program with these bounds, in user space.
    #[must_use]
    pub fn of(listen: SocketAddr, program: P::Config) -> Self {
        Self { listen, program, buffers: SocketBuffers::default(), engine: SwitchEngine::User, busy_poll: BUSY_POLL }
    }
}

/// Where the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SwitchEngine {
    /// In this process: every packet comes by its socket.
    #[default]
    User,
    /// In the kernel, as XDP and TC programs on interfaces (feature `kernel`): the socket gets only what they pass up.
    Kernel(KernelOptions),
    /// In an engine that the caller starts ([`Switch::bind_with`](super::Switch::bind_with)), of this name.
    Other(String),
}

/// What an engine must know of the switch that it is for.
#[derive(Debug)]
pub struct EnginePlace<'a, P: program::Program> {
    /// Bounds and times of the program.
    pub program: &'a P::Config,
    /// The address that is served.
    pub listen: SocketAddr,
    /// Names this start of the switch; not 0.
    pub epoch: u32,
}

/// How the kernel engine serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Names of the interfaces, at least one.
    pub interfaces: Vec<String>,
    /// How XDP is attached.
    pub mode: XdpMode,
    /// State and programs outlive the process, and the next process on the same port takes them over.
    pub keep: bool,
    /// Throws away first what a former process has kept.
    pub fresh: bool,
}
