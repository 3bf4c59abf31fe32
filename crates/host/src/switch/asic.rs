//! The asic engine in this process: the model of a switch's pipeline behind a socket, to try it out with real clients and
//! executors.
//!
//! What goes round takes its turns with what arrives, a bounded number of passes for each datagram: a search costs a pass
//! for each entry that it looks at, and would keep the thread as long.

use super::ShellCounts;
use super::life::Core;
use super::options::AsicOptions;
use crate::error::Error;
use midflight_dataplane::asic::{AsicConfig, AsicTasks, Inside, Turn};
use midflight_dataplane::{Datagram, Out, Stats, TasksConfig};
use midflight_endpoint::Nanos;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Passes of what goes round, for each datagram and for each tick.
const PASSES: [u32; 2] = [512, 8_192];
/// Packets that may be on their way round. More requests are dropped, as if they were lost: their senders repeat them.
const ROUND_MAX: usize = 4_096;
/// Datagrams that may be owed before a call ends.
const SENT_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct AsicCore {
    tasks: AsicTasks,
    turn: Turn,
    /// On their way round, the next one first.
    round: VecDeque<Inside>,
    sent: Vec<Datagram>,
    overloaded: u64,
}

impl AsicCore {
    pub(super) fn new(config: &TasksConfig, options: AsicOptions, epoch: u32) -> Result<Self, Error> {
        let AsicOptions { program, levels, queue, poll_us } = options;
        let config = AsicConfig {
            program,
            levels,
            queue,
            argument: 16,
            slots: config.slots,
            lease_ms: u32::try_from(config.lease_ns / 1_000_000).unwrap_or(u32::MAX),
            slot_idle_ns: config.slot_idle_ns,
            cookie_ns: config.cookie_ns,
            poll_us,
        };
        let tasks = AsicTasks::new(&config, epoch, rand::random());
        let tasks = tasks.map_err(|error| Error::Configuration(error.to_string()))?;
        Ok(Self { tasks, turn: Turn::default(), round: VecDeque::new(), sent: Vec::new(), overloaded: 0 })
    }

    /// Keeps what a pass has left.
    fn passed(&mut self) {
        self.sent.append(&mut self.turn.sent);
        self.round.extend(self.turn.round.drain(..));
    }

    fn go_round(&mut self, passes: u32) {
        for _ in 0..passes {
            if self.sent.len() >= SENT_MAX {
                return;
            }
            let Some(inside) = self.round.pop_front() else { return };
            self.tasks.again(inside, &mut self.turn);
            self.passed();
        }
    }

    fn owe(&mut self, out: &mut Out) {
        let left_out = out.replace(self.sent.iter().map(|(to, bytes)| (*to, &bytes[..])));
        debug_assert_eq!(left_out, 0, "a call owes no more than there is room for");
        self.sent.clear();
    }
}

impl Core for AsicCore {
    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        if self.round.len() < ROUND_MAX {
            // The engine counts what it says of the datagram.
            let _verdict = self.tasks.packet(now, from, datagram, &mut self.turn);
            self.passed();
        } else {
            self.overloaded += 1;
        }
        self.go_round(PASSES[0]);
        self.owe(out);
    }

    /// Its network is trusted, and its answers to anybody may come later.
    fn packet_of_executor(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) -> bool {
        self.packet(now, from, datagram, out);
        true
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) {
        self.tasks.tick(now);
        self.go_round(PASSES[1]);
        self.owe(out);
    }

    fn stats(&self) -> Stats {
        self.tasks.stats()
    }

    fn counts(&self, counts: &mut ShellCounts) {
        let c = self.tasks.counters();
        *counts = vec![
            ("asic_dropped", c.dropped),
            ("asic_no_ops", c.no_ops),
            ("asic_overloaded", self.overloaded),
            ("asic_passes", c.passes),
            ("asic_returned", c.returned),
            ("asic_rounds", c.rounds),
        ];
    }
}
