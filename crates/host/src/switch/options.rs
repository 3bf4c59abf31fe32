//! Configuration of a switch.

use crate::socket::SocketBuffers;
use crate::socket::busy_poll::BUSY_POLL;
use midflight_dataplane::program;
use midflight_dataplane::{TasksProgram, XdpMode};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Builds a [`Switch`](super::Switch); see [`Switch::builder`](super::Switch::builder).
#[derive(Clone, Debug)]
pub struct SwitchBuilder<P: program::Program = TasksProgram> {
    pub(super) listen: SocketAddr,
    pub(super) program: P::Config,
    pub(super) buffers: SocketBuffers,
    pub(super) engine: SwitchEngine,
    pub(super) busy_poll: Duration,
}

impl<P: program::Program> SwitchBuilder<P> {
    /// A switch of this program, with its bounds and times.
    #[must_use]
    pub fn of(program: P::Config) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            program,
            buffers: SocketBuffers::default(),
            engine: SwitchEngine::User,
            busy_poll: BUSY_POLL,
        }
    }

    /// UDP address. Port 0: any free one; `[::]` accepts IPv4 too. Default: `127.0.0.1:0`.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Bounds and times of the program.
    #[must_use]
    pub fn program(mut self, program: P::Config) -> Self {
        self.program = program;
        self
    }

    /// Sizes of the socket's kernel buffers.
    #[must_use]
    pub fn buffers(mut self, buffers: SocketBuffers) -> Self {
        self.buffers = buffers;
        self
    }

    /// Where the program runs. Default: in user space.
    #[must_use]
    pub fn engine(mut self, engine: SwitchEngine) -> Self {
        self.engine = engine;
        self
    }

    /// How long the thread polls the socket before it sleeps, while packets arrive at shorter intervals, yielding the core to others; saves
    /// wake-ups. Default 100 µs; zero: never. Unused with the kernel engine.
    #[must_use]
    pub fn busy_poll(mut self, longest: Duration) -> Self {
        self.busy_poll = longest;
        self
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
    /// In the caller's engine of this name ([`SwitchBuilder::bind_with`]).
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

/// Options of the kernel engine: make them by `default()`, then set fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
