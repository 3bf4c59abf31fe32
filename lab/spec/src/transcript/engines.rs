//! Engines wrapped for tests: they collect answers and check what the engine predicts about a call.

use midflight_dataplane::program::{Called, ConfigError, Engine, Program, SoftProgram, VerdictOf};
use midflight_dataplane::{Datagram, Native, Out, Purge, TasksProgram, Which};
use std::net::SocketAddr;

/// Calls that return an engine's answers as datagrams.
pub trait EngineExt: Engine {
    /// Gives it a datagram. Returns the verdict and the sent datagrams in order.
    ///
    /// # Panics
    /// If the engine could not be called.
    fn ask(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (VerdictOf<Self>, Vec<Datagram>) {
        let (mut datagram, mut out) = (datagram.to_vec(), Out::new());
        let verdict = self.packet(now_ns, from, &mut datagram, &mut out).expect("the engine runs");
        (verdict, out.all(&datagram).map(|(to, bytes)| (to, bytes.to_vec())).collect())
    }

    /// Ticks it. Returns the number of visited slots and the sent datagrams.
    ///
    /// # Panics
    /// As [`ask`](Self::ask).
    fn ask_tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        let mut out = Out::new();
        let visited = self.tick(now_ns, &mut out).expect("the engine runs");
        (visited, out.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect())
    }

    /// Repeats an operator's order until it is complete.
    ///
    /// # Panics
    /// As [`ask`](Self::ask).
    fn ask_order(&mut self, order: &mut <Self::Program as Program>::Order) {
        while !self.order(order).expect("the engine runs") {}
    }

    /// Purges queued tasks and returns their number.
    fn ask_purge(&mut self, which: Which) -> u32
    where
        Self: Engine<Program = TasksProgram>,
    {
        let mut purge = Purge::new(which);
        self.ask_order(&mut purge);
        purge.purged()
    }
}

impl<E: Engine + ?Sized> EngineExt for E {}

/// The soft engine in this process. Checks for each packet that `owes_more` predicted whether the call sends anything
/// but one answer to the sender; XDP relies on it.
#[derive(Debug)]
pub struct CheckedNative<P>(Native<P>);

impl<P: SoftProgram> CheckedNative<P> {
    /// A fresh switch.
    ///
    /// # Errors
    /// If the configuration violates a bound.
    pub fn new(config: &P::Config, epoch: u32, secret: u128) -> Result<Self, ConfigError> {
        Ok(Self(Native::new(config, epoch, secret)?))
    }

    /// The wrapped engine.
    #[must_use]
    pub fn native(&self) -> &Native<P> {
        &self.0
    }
}

impl<P: SoftProgram> Engine for CheckedNative<P> {
    type Program = P;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<P::Verdict> {
        let owes_more = self.0.owes_more(from, datagram, u32::MAX);
        let verdict = self.0.packet(now_ns, from, datagram, out)?;
        let suffices = out.len() <= 1 && out.iter().all(|(to, _)| to == from);
        assert!(owes_more || suffices, "{verdict:?} owes {out:?}");
        Ok(verdict)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        Engine::tick(&mut self.0, now_ns, out)
    }

    fn order(&mut self, order: &mut P::Order) -> Called<bool> {
        Engine::order(&mut self.0, order)
    }

    fn stats(&self) -> P::Stats {
        self.0.stats()
    }

    fn check(&self) -> Result<(), String> {
        Engine::check(&self.0)
    }
}

/// A program in the kernel, called through `BPF_PROG_RUN`. Loading takes a second, so tests reuse it for their next
/// switch.
#[cfg(feature = "kernel")]
#[derive(Debug)]
pub struct KernelOnce<P: SoftProgram> {
    /// `None` only during drop.
    kernel: Option<Kernel<P>>,
    spare: Spare<P>,
}

/// Loaded programs whose switches are no longer used.
#[cfg(feature = "kernel")]
pub type Spare<P> = std::sync::Arc<std::sync::Mutex<Vec<Kernel<P>>>>;

#[cfg(feature = "kernel")]
use midflight_dataplane::kernel::{Kernel, KernelError};

#[cfg(feature = "kernel")]
impl<P: SoftProgram> KernelOnce<P> {
    /// A fresh switch.
    ///
    /// # Errors
    /// If the kernel lacks a feature.
    pub fn new(spare: &Spare<P>, config: &P::Config, epoch: u32, secret: u128) -> Result<Self, KernelError> {
        let spared = lock(spare).pop();
        let again = spared.and_then(|mut kernel| kernel.restart(config, epoch, secret).map(|()| kernel).ok());
        let kernel = again.map_or_else(|| Kernel::new(config, epoch, secret, 0), Ok)?;
        Ok(Self { kernel: Some(kernel), spare: Spare::clone(spare) })
    }
}

/// Ignores poisoning: a failed test leaves the list intact.
#[cfg(feature = "kernel")]
fn lock<P>(spare: &Spare<P>) -> std::sync::MutexGuard<'_, Vec<Kernel<P>>> {
    spare.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(feature = "kernel")]
impl<P: SoftProgram> Drop for KernelOnce<P> {
    fn drop(&mut self) {
        lock(&self.spare).extend(self.kernel.take());
    }
}

#[cfg(feature = "kernel")]
impl<P: SoftProgram> std::ops::Deref for KernelOnce<P> {
    type Target = Kernel<P>;

    fn deref(&self) -> &Kernel<P> {
        self.kernel.as_ref().expect("there until it is dropped")
    }
}

#[cfg(feature = "kernel")]
impl<P: SoftProgram> std::ops::DerefMut for KernelOnce<P> {
    fn deref_mut(&mut self) -> &mut Kernel<P> {
        self.kernel.as_mut().expect("there until it is dropped")
    }
}
