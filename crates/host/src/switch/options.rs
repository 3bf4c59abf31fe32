//! What a switch is told.

use crate::busy_poll::BUSY_POLL;
use crate::socket::SocketBuffers;
use midflight_dataplane::asic::Program;
use midflight_dataplane::program;
use midflight_dataplane::{TasksConfig, TasksProgram, XdpMode};
use std::net::SocketAddr;
use std::time::Duration;

/// Where a switch listens, the bounds of its program, and who decides.
#[derive(Clone, Debug)]
pub struct SwitchConfig<P: program::Program = TasksProgram> {
    /// UDP address; port 0 takes a free one; `[::]` takes IPv4 too.
    pub listen: SocketAddr,
    /// Bounds and times of the program; of tasks, the queue's.
    pub program: P::Config,
    /// The kernel's buffers of its socket.
    pub buffers: SocketBuffers,
    /// Where the program runs.
    pub engine: SwitchEngine,
    /// How long the thread of a switch in user space polls the socket before it sleeps, while packets come in intervals
    /// shorter than that: such a packet costs no wake-up. It yields its core to whoever wants it. Default 100 µs; zero for
    /// never.
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
    /// In this process: every packet passes its socket.
    #[default]
    User,
    /// In the kernel, by XDP and TC programs on interfaces (feature `kernel`): the socket gets what they leave.
    Kernel(KernelOptions),
    /// In this process too, but not the soft engine: a program of a switch's pipeline, in a model of such a switch.
    Asic(AsicOptions),
}

/// Which program of a pipeline serves, and how large a queue it has. [`AsicOptions::new`] fits it into a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsicOptions {
    /// Ours, or the papers'.
    pub program: Program,
    /// Priority levels, 1 to 4.
    pub levels: u32,
    /// Entries of each level, a power of two.
    pub queue: u32,
    /// After how many microseconds a slot asks again that found no task.
    pub poll_us: u16,
}

impl AsicOptions {
    /// As much as a pipeline has room for of what `tasks` asks for: four levels of 16,384 entries, or fewer and longer ones. Slots
    /// ask again after a millisecond.
    #[must_use]
    pub fn new(program: Program, tasks: &TasksConfig) -> Self {
        let levels = tasks.levels.clamp(1, 4);
        let rows = levels.next_power_of_two();
        let wanted = (tasks.queue / rows).max(2);
        Self { program, levels, queue: (1 << wanted.ilog2()).min((64 << 10) / rows), poll_us: 1_000 }
    }
}

/// How the kernel engine serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Names of the interfaces, at least one.
    pub interfaces: Vec<String>,
    /// How XDP is attached.
    pub mode: XdpMode,
    /// Queue and programs outlive the process, and the next one on the same port takes them over.
    pub keep: bool,
    /// What was kept is thrown away first.
    pub fresh: bool,
}
