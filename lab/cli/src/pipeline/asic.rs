//! The asic engine in this process: the model of a switch's pipeline behind a socket.
//!
//! A search costs one pass for each entry that it reads. To let others in, recirculated packets get a bounded number of passes per arriving
//! datagram.

use super::queue::Queue;
use midflight_asic::{AsicConfig, AsicTasks, Inside, Turn};
use midflight_dataplane::program::{CallError, Called, Engine};
use midflight_dataplane::{Datagram, Out, Purge, Stats, TasksConfig, TasksProgram, Verdict};
use midflight_endpoint::Nanos;
use midflight_host::{Error, Hosted, ShellCounts};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Passes of recirculated packets per arriving datagram.
const PASSES_PER_PACKET: u32 = 512;
/// Passes of recirculated packets per tick.
const PASSES_PER_TICK: u32 = 8_192;
/// Most recirculating packets. Requests beyond it are dropped like lost ones: their senders retransmit.
const ROUND_MAX: usize = 4_096;
/// Most datagrams that one call may send.
const SENT_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct AsicEngine {
    tasks: AsicTasks,
    turn: Turn,
    /// The next one first.
    round: VecDeque<Inside>,
    sent: Vec<Datagram>,
    /// Packets refused because too many were recirculating.
    packets_refused: u64,
}

impl AsicEngine {
    pub(super) fn new(config: &TasksConfig, queue: Queue, epoch: u32) -> Result<Self, Error> {
        let Queue { program, levels, entries: queue, poll_us } = queue;
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
        let tasks = tasks.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self { tasks, turn: Turn::default(), round: VecDeque::new(), sent: Vec::new(), packets_refused: 0 })
    }

    fn collect(&mut self) {
        self.sent.append(&mut self.turn.sent);
        self.round.extend(self.turn.round.drain(..));
    }

    fn recirculate(&mut self, passes: u32) {
        for _ in 0..passes {
            if self.sent.len() >= SENT_MAX {
                return;
            }
            let Some(inside) = self.round.pop_front() else { return };
            self.tasks.again(inside, &mut self.turn);
            self.collect();
        }
    }

    fn owe(&mut self, out: &mut Out) {
        let owed = out.owe(&self.sent);
        debug_assert_eq!(owed, Ok(()), "a call owes no more than there is room for");
        self.sent.clear();
    }
}

impl Engine for AsicEngine {
    type Program = TasksProgram;

    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        let has_room = self.round.len() < ROUND_MAX;
        let verdict = has_room.then(|| self.tasks.packet(now, from, datagram, &mut self.turn));
        self.collect();
        self.recirculate(PASSES_PER_PACKET);
        self.owe(out);
        // The network is trusted, and responses to unproven senders may come later.
        out.set_genuine();
        self.packets_refused += u64::from(!has_room);
        verdict.ok_or_else(|| CallError("too many packets recirculate".into()))
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) -> Called<u32> {
        self.tasks.tick(now);
        self.recirculate(PASSES_PER_TICK);
        self.owe(out);
        Ok(0)
    }

    fn order(&mut self, _order: &mut Purge) -> Called<bool> {
        Err(CallError("this engine has no list of its tasks".into()))
    }

    fn stats(&self) -> Stats {
        self.tasks.stats()
    }

    /// `midflight-lab check asic` checks the model.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Hosted<TasksProgram> for AsicEngine {
    fn counts(&self, counts: &mut ShellCounts) {
        let c = self.tasks.counters();
        *counts = vec![
            ("asic_dropped", c.dropped),
            ("asic_no_ops", c.no_ops),
            ("asic_overloaded", self.packets_refused),
            ("asic_passes", c.passes),
            ("asic_returned", c.returned),
            ("asic_rounds", c.rounds),
        ];
    }
}
