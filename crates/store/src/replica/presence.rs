//! HELLOs to switches from a replica that does not lead. A switch in the kernel sends READs to the address where it last heard a replica,
//! so it must hear each one, also after a move.

use super::config::ReplicaConfig;
use super::packets;
use super::session::{Datagrams, Heard};
use super::switches::Switches;
use midflight_endpoint::Nanos;
use midflight_wire::store::State;
use std::net::SocketAddr;

pub(super) const HELLO_HEARTBEATS: u64 = 5;

pub(super) struct Presence {
    set: u16,
    every: Nanos,
    next: Nanos,
    switches: Switches,
    sequence: u32,
    /// Time of the last HELLOs, and whether a switch answered the previous ones.
    greeted: Nanos,
    pub(super) is_heard: bool,
}

impl Presence {
    pub(super) fn new(config: &ReplicaConfig, now: Nanos) -> Self {
        Self {
            set: config.set,
            every: HELLO_HEARTBEATS * config.timing.heartbeat,
            next: now,
            switches: Switches::new(&config.switches),
            sequence: (config.seed >> 16) as u32,
            greeted: now,
            is_heard: false,
        }
    }

    pub(super) fn timeout(&self) -> Nanos {
        self.next
    }

    /// Sends HELLOs if it is time; returns whether it did. Each HELLO repeats the switch's last answer, which proves to the switch that this
    /// replica received it.
    pub(super) fn greet(&mut self, now: Nanos, slot: u8, out: &mut Datagrams) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.every;
        self.is_heard = self.switches.last_answer() >= self.greeted;
        self.greeted = now;
        let addresses: Vec<SocketAddr> = self.switches.addresses().collect();
        for address in addresses {
            self.sequence = self.sequence.wrapping_add(1);
            let hello = packets::hello(self.sequence, self.set, slot, self.switches.last(address));
            self.switches.ask(address, self.sequence);
            out.push_back((address, hello));
        }
        true
    }

    /// Handles an answer. Whether a leader could use the switch is irrelevant here.
    pub(super) fn answered(&mut self, now: Nanos, from: SocketAddr, state: &State) -> Heard {
        let is_answer = state.set.get() == self.set && self.switches.was_asked(from, state);
        let is_taken = is_answer && self.switches.answered(now, from, state);
        if is_taken { Heard::Taken } else { Heard::Stray }
    }
}
