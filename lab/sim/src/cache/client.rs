//! The production client with workers: each begins its next read when the last has ended.

use super::CacheEvent;
use crate::{Actor, Context, Wake};
use midflight_cache::client::{Client, Event, Read, ReadKey};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::cache::{Packet, parse};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::any::Any;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// What workers do.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Number of workers.
    pub workers: u32,
    /// Reads of each, over the process's life.
    pub reads: u32,
    /// Longest pause after each read.
    pub think: Nanos,
    /// The servers of each replica group.
    pub groups: Rc<[Vec<SocketAddr>]>,
}

/// New pace of its workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Factor on pauses.
    pub pause: f64,
}

/// The endpoint and its workers.
pub struct ClientActor {
    client: Client,
    work: Work,
    random: Pcg64,
    left: Vec<u32>,
    workers: HashMap<ReadKey, usize>,
    pace: Pace,
}

/// Requests to a client from its user.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// A read of this replica group, now.
    Read(u32),
    /// A read with the caller's token, by which the caller recognises it; backups in the group's order.
    This {
        /// The replica group.
        group: u32,
        /// The read's payload.
        token: u64,
    },
    /// Its workers stop.
    Stop,
}

impl std::fmt::Debug for ClientActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientActor").field("work", &self.work).finish_non_exhaustive()
    }
}

impl ClientActor {
    /// A fresh client. `random` is of this life only.
    #[must_use]
    pub fn new(client: Client, work: Work, random: Pcg64) -> Self {
        let left = vec![work.reads; work.workers as usize];
        Self { client, work, random, left, workers: HashMap::new(), pace: Pace { pause: 1.0 } }
    }

    /// The endpoint.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn pause_max(&self) -> Nanos {
        (self.work.think as f64 * self.pace.pause) as Nanos
    }

    fn work(&mut self, context: &mut Context<'_>, worker: usize) {
        if self.left.get(worker).is_none_or(|left| *left == 0) {
            return;
        }
        let group = self.random.random_range(0..self.work.groups.len() as u32);
        if self.read(context, group, worker) {
            self.left[worker] -= 1;
        } else {
            context.after(self.work.think + 1, worker as u64);
        }
    }

    /// Begins a read; the backups are in random order.
    fn read(&mut self, context: &mut Context<'_>, group: u32, worker: usize) -> bool {
        let Some(servers) = self.work.groups.get(group as usize) else { return false };
        let mut backups = servers.clone();
        backups.rotate_left(self.random.random_range(0..servers.len()));
        let token = self.random.random::<u64>();
        self.begin(context, group, backups, token, worker)
    }

    /// Begins a read with this token and without a worker; backups in the group's order.
    fn read_this(&mut self, context: &mut Context<'_>, group: u32, token: u64) -> bool {
        let backups = self.work.groups.get(group as usize).cloned().unwrap_or_default();
        self.begin(context, group, backups, token, usize::MAX)
    }

    fn begin(
        &mut self,
        context: &mut Context<'_>,
        group: u32,
        backups: Vec<SocketAddr>,
        token: u64,
        worker: usize,
    ) -> bool {
        let read = Read { group, backups, asked: token.to_be_bytes().to_vec() };
        let Ok(key) = self.client.submit(context.now(), read) else { return false };
        super::record(context, CacheEvent::Begun { key, group, token });
        self.workers.insert(key, worker);
        true
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.client.poll_event() {
            let Event::Done { key, outcome } = event else { continue };
            super::record(context, CacheEvent::Ended { key, outcome });
            if let Some(worker) = self.workers.remove(&key).filter(|&worker| worker < self.left.len()) {
                let pause = self.random.random_range(0..=self.pause_max());
                context.after(pause, worker as u64);
            }
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.client.poll_transmit(context.now(), &mut buffer) {
            if let Ok(Packet::Request(request, ends, _) | Packet::ForServer(_, request, ends, _)) = parse(&buffer) {
                let (number, rsnode) = (ends.request.get(), request.start.rsnode.get());
                super::record(context, CacheEvent::Asked { number, rsnode });
            }
            context.send(to, &buffer);
        }
        match self.client.poll_timeout() {
            Some(due) => context.wake_at(due),
            None => context.sleep(),
        }
    }
}

impl Actor for ClientActor {
    fn start(&mut self, context: &mut Context<'_>) {
        for worker in 0..self.left.len() {
            let pause = self.random.random_range(0..=self.work.think);
            context.after(pause, worker as u64);
        }
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.client.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.client.handle_timeout(context.now()),
            Wake::Token(worker) => self.work(context, worker as usize),
        }
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        match command.downcast().map(|ask| *ask) {
            Ok(Ask::Read(group)) => drop(self.read(context, group, usize::MAX)),
            Ok(Ask::This { group, token }) => drop(self.read_this(context, group, token)),
            Ok(Ask::Stop) => self.left.fill(0),
            Err(other) => {
                if let Ok(pace) = other.downcast() {
                    self.pace = *pace;
                }
                return;
            }
        }
        self.drive(context);
    }
}
