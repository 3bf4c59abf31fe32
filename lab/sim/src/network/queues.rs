//! FIFO queues of links and lanes. A packet reserves its slot when it leaves the previous hop, so that waiting needs no
//! event.

use super::LinkConfig;
use midflight_endpoint::Nanos;
use std::collections::VecDeque;

/// Overhead of a datagram on Ethernet in bytes: preamble and gap (20), Ethernet with checksum (18), IPv4 (20), UDP (8).
const HEADERS: u64 = 66;
const PICOSECONDS: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    latency: Nanos,
    ps_per_byte: u64,
    free: Nanos,
}

impl Link {
    pub(super) fn new(config: LinkConfig) -> Self {
        let ps_per_byte = 8_000_000_000_000u64.checked_div(config.bits_per_second).unwrap_or(0);
        Self { latency: config.latency, ps_per_byte, free: 0 }
    }

    /// When the last byte of a datagram that is ready at `at` reaches the other end.
    pub(super) fn send(&mut self, at: Nanos, bytes: usize) -> Nanos {
        if self.ps_per_byte == 0 {
            return at + self.latency;
        }
        let occupied = ((bytes as u64 + HEADERS) * self.ps_per_byte).div_ceil(PICOSECONDS);
        self.free = self.free.max(at) + occupied;
        self.free + self.latency
    }
}

#[derive(Clone, Debug)]
pub(super) struct Lanes {
    free: Vec<Nanos>,
    /// When lanes begin to handle waiting received packets.
    begins: VecDeque<Nanos>,
    buffer: usize,
}

impl Lanes {
    pub(super) fn new(lanes: u32, buffer: u32) -> Self {
        Self { free: vec![0; lanes.max(1) as usize], begins: VecDeque::new(), buffer: buffer as usize }
    }

    /// When a lane begins on a packet that arrives at `at` and takes `cost`.
    fn reserve(&mut self, at: Nanos, cost: Nanos) -> Nanos {
        let Some(free) = self.free.iter_mut().min() else { return at };
        let begin = at.max(*free);
        *free = begin + cost;
        begin
    }

    /// When a packet that is sent at `at` has left the stack.
    pub(super) fn send(&mut self, at: Nanos, cost: Nanos) -> Nanos {
        if cost == 0 { at } else { self.reserve(at, cost) + cost }
    }

    /// When a packet that arrives at `at` has passed the stack; `None` if the buffer is full.
    pub(super) fn receive(&mut self, at: Nanos, cost: Nanos) -> Option<Nanos> {
        if cost == 0 {
            return Some(at);
        }
        while self.begins.front().is_some_and(|&begin| begin <= at) {
            self.begins.pop_front();
        }
        if self.begins.len() >= self.buffer && self.free.iter().all(|&free| free > at) {
            return None;
        }
        let begin = self.reserve(at, cost);
        if begin > at {
            self.begins.push_back(begin);
        }
        Some(begin + cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, stream};
    use rand::RngExt;

    #[test]
    fn a_link_is_occupied_by_a_packet_for_its_length() {
        // 1,184 bytes and the headers are 1,250 bytes: 10,000 bits, 1 µs at 10 Gbit/s.
        let mut link = Link::new(LinkConfig { latency: 300, bits_per_second: 10_000_000_000 });
        let arrivals: Vec<_> = [0, 0, 500, 9_000].map(|at| link.send(at, 1_184)).into();
        assert_eq!(arrivals, [1_300, 2_300, 3_300, 10_300]);
        let mut free = Link::new(LinkConfig { latency: 300, bits_per_second: 0 });
        assert_eq!((free.send(5, 1_184), free.send(5, 1_184)), (305, 305));
    }

    #[test]
    fn two_lanes_work_side_by_side_and_the_third_packet_waits() {
        let mut lanes = Lanes::new(2, 8);
        assert_eq!([0, 0, 0, 100].map(|at| lanes.receive(at, 1_000)), [1_000, 1_000, 2_000, 2_000].map(Some));
        assert_eq!(lanes.send(100, 500), 2_500, "a send waits as well");
    }

    #[test]
    fn a_full_buffer_takes_nothing_until_a_lane_begins_on_the_next() {
        let mut lanes = Lanes::new(1, 2);
        // One in service, two waiting.
        assert_eq!([0, 0, 0].map(|at| lanes.receive(at, 100)), [100, 200, 300].map(Some));
        assert_eq!(lanes.receive(99, 100), None);
        assert_eq!(lanes.receive(100, 100), Some(400), "the second has left the buffer");
        assert_eq!(lanes.receive(100, 100), None);
        let mut unbuffered = Lanes::new(1, 0);
        assert_eq!([0, 50, 100].map(|at| unbuffered.receive(at, 100)), [Some(100), None, Some(200)]);
    }

    /// Pollaczek-Khinchine: Poisson arrivals at one lane with a constant cost wait ρ / (2 (1 − ρ)) costs on average.
    #[test]
    fn waiting_is_what_the_formula_of_the_m_d_1_queue_says() {
        const COST: f64 = 1_000.0;
        const PACKETS: u32 = 400_000;
        for load in [0.3, 0.6, 0.8] {
            let (mut random, mut lanes) = (stream(1, Purpose::Arrivals, 0), Lanes::new(1, u32::MAX));
            let (mut at, mut waited) = (0.0, 0.0);
            for _ in 0..PACKETS {
                at -= (1.0 - random.random::<f64>()).ln() * COST / load;
                let came = at as Nanos;
                waited += (lanes.receive(came, COST as Nanos).unwrap() - came) as f64 - COST;
            }
            let (mean, expected) = (waited / f64::from(PACKETS), COST * load / (2.0 * (1.0 - load)));
            assert!((mean / expected - 1.0).abs() < 0.03, "load {load}: {mean} ns, by the formula {expected}");
        }
    }
}
