//! How a switch is configured.

use crate::busy_poll::BUSY_POLL;
use crate::socket::SocketBuffers;
use midflight_dataplane::asic::Program;
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
    /// In this process, but not as the soft engine: a program for a switch's pipeline, in a model of such a switch.
    Asic(AsicOptions),
    /// In BMv2's simple_switch, a process that takes packets at interfaces (feature `bmv2`); this process is its controller.
    Bmv2(Bmv2Options),
}

/// How a program serves in BMv2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bmv2Options {
    /// Which program, and how large its queue is: of four levels.
    pub queue: AsicQueue,
    /// The switch's ports: names of interfaces, at least one.
    pub interfaces: Vec<String>,
}

impl Bmv2Options {
    /// The size that `tasks` asks for, cut to what the program has room for: four levels of 16,384 entries. Slots ask again after 10 ms.
    #[must_use]
    pub fn new(program: Program, tasks: &TasksConfig, interfaces: Vec<String>) -> Self {
        let queue = AsicQueue::new(program, &TasksConfig { levels: 4, ..*tasks });
        Self { queue: AsicQueue { poll_us: BMV2_POLL_MIN_US, ..queue }, interfaces }
    }
}

/// After how many microseconds a slot that found no task may ask again: BMv2 passes some thousand packets a second.
pub const BMV2_POLL_MIN_US: u16 = 10_000;

/// The pipeline program that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsicOptions {
    /// A queue of tasks.
    Tasks(AsicQueue),
    /// Linearizable reads.
    Reads,
}

/// Which program of a queue serves, and how large that is. [`AsicQueue::new`] chooses a size that fits into a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsicQueue {
    /// The safe program of this project, or the one that the papers published.
    pub program: Program,
    /// Priority levels, 1 to 4.
    pub levels: u32,
    /// Entries of each level, a power of two.
    pub queue: u32,
    /// After how many microseconds a slot that found no task asks again.
    pub poll_us: u16,
}

impl AsicQueue {
    /// The size that `tasks` asks for, cut to what a pipeline has room for: four levels of 16,384 entries, or fewer levels with
    /// more entries each. Slots ask again after a millisecond.
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
    /// State and programs outlive the process, and the next process on the same port takes them over.
    pub keep: bool,
    /// Throws away first what a former process has kept.
    pub fresh: bool,
}
