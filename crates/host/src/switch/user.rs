//! The core in this process.

use super::life::Core;
use crate::error::Error;
use midflight_dataplane::{Out, Purge, Stats, Tasks, TasksConfig};
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct UserCore(Tasks);

impl UserCore {
    pub(super) fn new(config: &TasksConfig, epoch: u32) -> Result<Self, Error> {
        let tasks = Tasks::new(config, epoch, rand::random());
        tasks.map(Self).map_err(|error| Error::Configuration(error.to_string()))
    }
}

impl Core for UserCore {
    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        // The core counts what it says of the datagram.
        let _verdict = self.0.packet(now, from, datagram, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) {
        self.0.tick(now, out);
    }

    fn purge(&mut self, purge: &mut Purge) -> Result<bool, String> {
        Ok(self.0.purge(purge))
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}
