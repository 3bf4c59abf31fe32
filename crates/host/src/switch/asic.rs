//! The asic engine in this process: the model of a switch's pipeline behind a socket, to try it out with real clients and executors.
//!
//! What goes round comes back at once. A search costs a pass for each entry that it looks at, and keeps the thread as long.

use super::KernelCounts;
use super::life::Core;
use super::options::AsicOptions;
use crate::error::Error;
use midflight_dataplane::asic::{AsicConfig, AsicTasks, Turn};
use midflight_dataplane::{Out, Stats, TasksConfig};
use midflight_tasks::Nanos;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct AsicCore {
    tasks: AsicTasks,
    turn: Turn,
}

impl AsicCore {
    /// As many levels, up to four, and as large a queue as a pipeline has room for, up to what is asked for.
    pub(super) fn new(config: &TasksConfig, options: AsicOptions, epoch: u32) -> Result<Self, Error> {
        let levels = config.levels.min(4);
        let entries = (config.queue / levels.next_power_of_two()).max(2);
        let config = AsicConfig {
            program: options.program,
            levels,
            queue: (1 << entries.ilog2()).min((64 << 10) / levels.next_power_of_two()),
            argument: 16,
            slots: config.slots,
            lease_ms: u32::try_from(config.lease_ns / 1_000_000).unwrap_or(u32::MAX),
            slot_idle_ns: config.slot_idle_ns,
            poll_us: options.poll_us,
        };
        let tasks = AsicTasks::new(&config, epoch, rand::random());
        let tasks = tasks.map_err(|error| Error::Configuration(error.to_string()))?;
        Ok(Self { tasks, turn: Turn::default() })
    }
}

impl Core for AsicCore {
    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        // The engine counts what it says of the datagram.
        let _verdict = self.tasks.packet(now, from, datagram, &mut self.turn);
        self.tasks.finish(&mut self.turn);
        let left_out = out.replace(self.turn.sent.iter().map(|(to, bytes)| (*to, &bytes[..])));
        debug_assert_eq!(left_out, 0, "a packet is answered with one");
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) {
        self.tasks.tick(now);
        out.clear();
    }

    fn stats(&self) -> Stats {
        self.tasks.stats()
    }

    fn counts(&self, counts: &mut KernelCounts) {
        let c = self.tasks.counters();
        *counts = vec![
            ("asic_dropped", c.dropped),
            ("asic_no_ops", c.no_ops),
            ("asic_passes", c.passes),
            ("asic_returned", c.returned),
            ("asic_rounds", c.rounds),
        ];
    }
}
