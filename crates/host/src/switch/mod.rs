//! The switch: a program, and a thread that passes it the socket's datagrams, sends its answers, and ticks it every 10 ms. Between packets,
//! no lock is held and nothing is allocated. The program runs in this process, in the kernel, where most packets bypass the socket
//! ([`kernel`]), or in an engine of the caller.

mod counted;
mod diversion;
mod hosted;
#[cfg(feature = "kernel")]
mod kernel;
mod options;
mod orders;
mod thread;

pub use diversion::Diversion;
pub use hosted::{Hosted, InProcess, SendFrom};
pub use options::{EnginePlace, KernelOptions, SwitchBuilder, SwitchEngine};

use crate::clock;
use crate::driver::spawn;
use crate::error::Error;
use crate::socket::users::Users;
use crate::socket::{Socket, SocketCounts};
use crate::waker::Waker;
use counted::{COPIED_WITHIN, Counted};
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::{Native, Purge, TasksConfig, TasksProgram, Which};
use midflight_endpoint::Nanos;
use orders::{CurrentOrder, Orders};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use thread::SwitchThread;

/// Counts of the code around the program, by name.
pub type ShellCounts = Vec<(&'static str, u64)>;

/// The state that a switch started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inheritance {
    /// Empty.
    #[default]
    None,
    /// Kept by an earlier process, and taken over.
    TakenOver,
    /// Empty; the state kept by an earlier process was discarded.
    ThrownAway,
}

/// A running switch. Dropping it stops it and loses its state (T9), unless the kernel engine keeps it.
#[derive(Debug)]
pub struct Switch<P: SoftProgram = TasksProgram> {
    shared: Arc<Shared<P>>,
    facts: Facts,
    thread: Option<JoinHandle<()>>,
}

/// A switch with its socket, memory and programs, but no thread. Needs no more privileges.
#[derive(Debug)]
pub struct BoundSwitch<P: SoftProgram = TasksProgram> {
    shared: Arc<Shared<P>>,
    facts: Facts,
    engine: Box<dyn Hosted<P>>,
    order: CurrentOrder<P>,
    ticks: u32,
    diversion: Option<Diversion>,
    users: Option<Users>,
    busy_poll: Duration,
}

#[derive(Clone, Debug)]
struct Facts {
    epoch: u32,
    engine: SwitchEngine,
    inheritance: Inheritance,
}

#[derive(Debug)]
struct Shared<P: SoftProgram> {
    socket: Socket,
    waker: Waker,
    orders: Orders<P>,
    stop: AtomicBool,
    counted: Counted<P>,
    /// Time of the thread's last tick.
    ticked: AtomicU64,
    /// Why the thread failed.
    failure: OnceLock<String>,
}

impl<P: SoftProgram> SwitchBuilder<P> {
    /// Starts the switch and its thread.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound, a configured bound is out of range, or the engine cannot run here.
    pub fn start(&self) -> Result<Switch<P>, Error> {
        self.bind()?.run(|| ())
    }

    /// Does all that may fail or needs privileges. The kernel engine serves from here on.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn bind(&self) -> Result<BoundSwitch<P>, Error> {
        self.bind_with(|_| Err(Error::Invalid("this engine needs to be started by the caller".into())))
    }

    /// Like [`bind`](Self::bind); `start` starts an engine that is not part of this crate ([`SwitchEngine::Other`]).
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn bind_with(
        &self,
        start: impl FnOnce(EnginePlace<'_, P>) -> Result<Box<dyn Hosted<P>>, Error>,
    ) -> Result<BoundSwitch<P>, Error> {
        let epoch = rand::random_range(1..=u32::MAX);
        let socket = Socket::bind_with(self.listen, self.buffers)?;
        let waker = Waker::new()?;
        let facts = Facts { epoch, engine: self.engine.clone(), inheritance: Inheritance::None };
        let (engine, facts): (Box<dyn Hosted<P>>, Facts) = match &self.engine {
            SwitchEngine::User => {
                let native = Native::<P>::new(&self.program, epoch, rand::random());
                (Box::new(native.map_err(|error| Error::invalid(&error))?), facts)
            }
            #[cfg(feature = "kernel")]
            SwitchEngine::Kernel(options) => {
                let off = socket.disable_gro();
                off.map_err(Error::resources("switch off UDP_GRO of the socket"))?;
                let started = kernel::InKernel::<P>::start(&self.program, options, socket.local_addr(), facts)?;
                (Box::new(started.0), started.1)
            }
            SwitchEngine::Other(_) => {
                (start(EnginePlace { program: &self.program, listen: socket.local_addr(), epoch })?, facts)
            }
            #[cfg(not(feature = "kernel"))]
            SwitchEngine::Kernel(_) => return Err(Error::NoKernelEngine),
        };
        if !engine.uses_socket() {
            let deaf = socket.take_nothing();
            deaf.map_err(Error::resources("close a socket to datagrams"))?;
        }
        let counted = Counted::new(&*engine);
        let (stop, ticked) = (AtomicBool::new(false), AtomicU64::new(clock::now()));
        let (orders, order) = orders::queue();
        let shared = Arc::new(Shared { socket, waker, orders, stop, counted, ticked, failure: OnceLock::new() });
        let ticks = P::ticks(&self.program);
        Ok(BoundSwitch { shared, facts, engine, order, ticks, diversion: None, users: None, busy_poll: self.busy_poll })
    }
}

impl<P: SoftProgram> Switch<P> {
    /// The bound address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// The epoch: random at each start, or that of the state taken over.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.facts.epoch
    }

    /// The engine. Interfaces have the names that the kernel uses now.
    #[must_use]
    pub fn engine(&self) -> &SwitchEngine {
        &self.facts.engine
    }

    /// The state that it started with.
    #[must_use]
    pub fn inheritance(&self) -> Inheritance {
        self.facts.inheritance
    }

    /// The program's counts, current unless the thread hangs.
    #[must_use]
    pub fn stats(&self) -> P::Stats {
        self.counted(|stats, _| *stats)
    }

    /// Time since the thread's last tick. Ticks are 10 ms apart; much more means that the thread hangs.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.ticked.load(Ordering::Relaxed)))
    }

    /// Counts of the socket.
    #[must_use]
    pub fn socket_counts(&self) -> SocketCounts {
        self.shared.socket.counts()
    }

    /// Counts of the code around the program, as current as [`stats`](Self::stats); empty in user space.
    #[must_use]
    pub fn shell_counts(&self) -> ShellCounts {
        self.counted(|_, counts| counts.clone())
    }

    fn counted<T>(&self, take: impl FnOnce(&P::Stats, &ShellCounts) -> T) -> T {
        // Only the first readers wait for a thread that hangs.
        if self.silent_for() > COPIED_WITHIN {
            return self.shared.counted.read_last(take);
        }
        self.shared.counted.read(|| self.shared.waker.wake(), take)
    }

    /// Why the switch failed, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// Carries out an order. Returns it with its results once it is complete.
    ///
    /// # Errors
    ///
    /// If the engine cannot do it, the switch ends first, or too many orders wait.
    pub fn order(&self, order: P::Order) -> Result<P::Order, Error> {
        self.order_within(order, Duration::MAX)
    }

    /// Like [`order`](Self::order), but waits for at most `within`.
    ///
    /// # Errors
    ///
    /// As [`order`](Self::order), and if it is not complete in time. It may still be completed then, before any later order.
    pub fn order_within(&self, order: P::Order, within: Duration) -> Result<P::Order, Error> {
        let done = self.shared.orders.carry_out(order, within, || self.shared.waker.wake());
        done.map_err(|why| Error::Order { why })
    }

    /// Copies the contents of the tables, for monitoring, in bounded parts between packets. The time is the switch's at completion.
    ///
    /// # Errors
    ///
    /// If it is not complete within `within`, the switch ends first, or too many orders wait.
    pub fn survey(&self, within: Duration) -> Result<(Nanos, P::Survey), Error> {
        let done = self.shared.orders.survey(within, || self.shared.waker.wake());
        let survey = done.map_err(|why| Error::Order { why })?;
        Ok((thread::time_of::<P>(clock::now()), survey))
    }

    /// Stops the switch. The port is free when this returns.
    pub fn stop(self) {
        drop(self);
    }
}

impl Switch {
    /// Describes a switch of the tasks program, in user space and with default bounds. For other programs: [`SwitchBuilder::of`].
    #[must_use]
    pub fn builder() -> SwitchBuilder {
        SwitchBuilder::of(TasksConfig::default())
    }

    /// Removes queued tasks and returns their number. Clients that still run notice and resubmit them.
    ///
    /// # Errors
    ///
    /// As [`order`](Self::order).
    pub fn purge(&self, which: Which) -> Result<u32, Error> {
        Ok(self.order(Purge::new(which))?.purged())
    }
}

impl<P: SoftProgram> BoundSwitch<P> {
    /// The bound address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Diverts datagrams for one address to a thread of this process.
    pub fn divert(&mut self, diversion: Diversion) {
        self.diversion = Some(diversion);
    }

    /// Serves only sockets of this user and root. For a switch on loopback in user space.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell the owners of sockets.
    pub fn serve_only(&mut self, user: u32) -> Result<(), Error> {
        self.users = Some(Users::new(user, self.local_addr())?);
        Ok(())
    }

    /// A switch whose thread takes no order, for tests.
    #[cfg(all(test, feature = "operator"))]
    pub(crate) fn hang(self) -> (Switch<P>, impl Sized + use<P>) {
        (Switch { shared: self.shared, facts: self.facts, thread: None }, self.order)
    }

    /// Starts the thread. On a later failure it calls `on_failure`; see [`Switch::failure`].
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn run(self, on_failure: impl FnOnce() + Send + 'static) -> Result<Switch<P>, Error> {
        let Self { shared, facts, engine, order, ticks, diversion, users, busy_poll } = self;
        let of_thread = Arc::clone(&shared);
        let serve = move || {
            let shared = Arc::clone(&of_thread);
            let mut thread = SwitchThread::new(shared, engine, order, ticks, (diversion, users, busy_poll));
            let ended = catch_unwind(AssertUnwindSafe(|| thread.run()));
            if let Err(why) = ended.unwrap_or_else(|_| Err("the switch has panicked: the log has the message".into())) {
                // Tells callers at once that their orders will not be carried out.
                drop(thread);
                // Cannot fail: set only here.
                let _ = of_thread.failure.set(why);
                on_failure();
            }
        };
        let thread = Some(spawn("mf-switch", serve)?);
        Ok(Switch { shared, facts, thread })
    }
}

/// Detaches the programs that a kernel engine kept on this port and deletes their state; `false` if there were none.
///
/// # Errors
///
/// If a running process serves the port, privileges are missing, or this build has no kernel engine.
pub fn detach(port: u16) -> Result<bool, Error> {
    #[cfg(feature = "kernel")]
    return Ok(midflight_dataplane::kernel::detach(port)?);
    #[cfg(not(feature = "kernel"))]
    {
        let _ = port;
        Err(Error::NoKernelEngine)
    }
}

impl<P: SoftProgram> Drop for Switch<P> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_out_of_range_is_refused_by_name() {
        let bounds = TasksConfig { levels: 9, ..TasksConfig::default() };
        let error = Switch::builder().program(bounds).start().unwrap_err().to_string();
        assert!(error.contains("levels"), "{error}");
    }

    #[test]
    fn a_stopped_switch_leaves_its_port_free() {
        let first = Switch::builder().start().unwrap();
        let address = first.local_addr();
        assert!(Switch::builder().listen(address).start().is_err());
        first.stop();
        assert_eq!(Switch::builder().listen(address).start().unwrap().local_addr(), address);
    }
}
