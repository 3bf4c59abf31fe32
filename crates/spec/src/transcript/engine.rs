//! What a story is told by: an engine, as packets in and packets out.

use crate::model::Model;
use midflight_dataplane::{ConfigError, Datagram, Out, Purge, Stats, Tasks, TasksConfig, Verdict, Which};
use std::net::SocketAddr;

/// An implementation of the tasks program.
pub trait Engine {
    /// Takes one datagram: the verdict on it, and what is owed for it, in order.
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>);
    /// Time has come: how many slots it looked at, and what is owed.
    fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>);
    /// The operator takes queued tasks out: how many there were.
    fn purge(&mut self, which: Which) -> u32;
    /// What was counted so far, and the gauges now.
    fn stats(&self) -> Stats;
    /// Whether its structures agree with each other.
    ///
    /// # Errors
    /// Says what does not.
    fn check(&self) -> Result<(), String>;
}

/// The C core, as user space runs it.
#[derive(Debug)]
pub struct Core {
    tasks: Tasks,
    out: Out,
}

impl Core {
    /// A switch that has just started.
    ///
    /// # Errors
    /// Where a bound of the configuration is violated.
    pub fn new(config: &TasksConfig, epoch: u32, secret: u128) -> Result<Self, ConfigError> {
        Ok(Self { tasks: Tasks::new(config, epoch, secret)?, out: Out::new() })
    }
}

fn datagrams(out: &Out) -> Vec<Datagram> {
    out.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect()
}

impl Engine for Core {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let owes_several = self.tasks.owes_several(from, datagram);
        let verdict = self.tasks.packet(now_ns, from, datagram, &mut self.out);
        let sent = datagrams(&self.out);
        // What XDP relies on.
        assert!(owes_several || sent.iter().all(|(to, _)| *to == from) && sent.len() <= 1, "{verdict:?} owes {sent:?}");
        (verdict, sent)
    }

    fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        let looked = self.tasks.tick(now_ns, &mut self.out);
        (looked, datagrams(&self.out))
    }

    fn purge(&mut self, which: Which) -> u32 {
        let mut purge = Purge::new(which);
        while !self.tasks.purge(&mut purge) {}
        purge.purged()
    }

    fn stats(&self) -> Stats {
        self.tasks.stats()
    }

    fn check(&self) -> Result<(), String> {
        self.tasks.check().map_err(|line| format!("tasks_check.c, line {line}"))
    }
}

/// The same core in the kernel, called through `BPF_PROG_RUN`.
#[cfg(feature = "kernel")]
#[derive(Debug)]
pub struct KernelCore {
    /// There until it is dropped.
    tasks: Option<midflight_dataplane::kernel::KernelTasks>,
    out: Out,
}

/// Queues whose stories are told: loading the programs takes a second, so they are handed on.
#[cfg(feature = "kernel")]
static TOLD: std::sync::Mutex<Vec<midflight_dataplane::kernel::KernelTasks>> = std::sync::Mutex::new(Vec::new());

#[cfg(feature = "kernel")]
impl KernelCore {
    /// A switch that has just started.
    ///
    /// # Errors
    /// What the kernel lacks.
    pub fn new(
        config: &TasksConfig,
        epoch: u32,
        secret: u128,
    ) -> Result<Self, midflight_dataplane::kernel::KernelError> {
        let told = TOLD.lock().ok().and_then(|mut told| told.pop());
        let again = told.and_then(|mut tasks| tasks.restart(config, epoch, secret).map(|()| tasks).ok());
        let tasks =
            again.map_or_else(|| midflight_dataplane::kernel::KernelTasks::new(config, epoch, secret, 0), Ok)?;
        Ok(Self { tasks: Some(tasks), out: Out::new() })
    }

    fn tasks(&self) -> &midflight_dataplane::kernel::KernelTasks {
        self.tasks.as_ref().expect("there until it is dropped")
    }
}

#[cfg(feature = "kernel")]
impl Drop for KernelCore {
    fn drop(&mut self) {
        if let Ok(mut told) = TOLD.lock() {
            told.extend(self.tasks.take());
        }
    }
}

/// Transcripts are told in tests: where a loaded program does not run there is nothing to go on with.
#[cfg(feature = "kernel")]
impl Engine for KernelCore {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let tasks = self.tasks.as_mut().expect("there until it is dropped");
        let verdict = tasks.packet(now_ns, from, datagram, &mut self.out).expect("the program runs");
        (verdict, datagrams(&self.out))
    }

    fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        let tasks = self.tasks.as_mut().expect("there until it is dropped");
        let looked = tasks.tick(now_ns, &mut self.out).expect("the program runs");
        (looked, datagrams(&self.out))
    }

    fn purge(&mut self, which: Which) -> u32 {
        let tasks = self.tasks.as_mut().expect("there until it is dropped");
        let mut purge = Purge::new(which);
        while !tasks.purge(&mut purge).expect("the program runs") {}
        purge.purged()
    }

    fn stats(&self) -> Stats {
        self.tasks().stats()
    }

    fn check(&self) -> Result<(), String> {
        self.tasks().check().map_err(|line| format!("tasks_check.c, line {line}"))
    }
}

impl Engine for Model {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        Model::packet(self, now_ns, from, datagram)
    }

    fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        Model::tick(self, now_ns)
    }

    fn purge(&mut self, which: Which) -> u32 {
        Model::purge(self, which)
    }

    fn stats(&self) -> Stats {
        Model::stats(self)
    }

    fn check(&self) -> Result<(), String> {
        Model::check(self)
    }
}
