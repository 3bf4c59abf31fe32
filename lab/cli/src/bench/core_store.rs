//! `midflight-lab bench core --program store`: the core's cost of each packet of reads and writes, in memory.

use super::How;
use super::store_packets::{
    BLOCK, LEADER, SECRET, VALUE, client_address, heartbeat, replica_address, reply, request, set,
};
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::store::{Store, StoreConfig, StoreProgram, Verdict};
use midflight_dataplane::{Cookies, Out};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_wire::Address;
use midflight_wire::store::Operation;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;

/// Simulated time from packet to packet.
const STEP_NS: u64 = 20;
const PACKET_BYTES: usize = 192;

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 50) } else { (5, 500) };
    let mut costs: [Vec<f64>; 4] = Default::default();
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let of_run = Bench::new()?.run(blocks)?;
        costs.iter_mut().zip(of_run).for_each(|(all, one)| all.push(one));
    }
    let [read, read_reply, write, write_reply] = costs.map(median);
    let results = vec![
        Measure::quantity("core.read_ns", read, "ns"),
        Measure::quantity("core.read_reply_ns", read_reply, "ns"),
        Measure::quantity("core.write_ns", write, "ns"),
        Measure::quantity("core.write_reply_ns", write_reply, "ns"),
        Measure::count("core.state_bytes", StoreProgram::state_bytes(&StoreConfig::default()), "bytes"),
    ];
    Envelope::new("core", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone)]
struct Datagram {
    from: Address,
    length: usize,
    bytes: [u8; PACKET_BYTES],
}

impl Datagram {
    fn new((from, packet): (SocketAddr, Vec<u8>)) -> Self {
        let mut bytes = [0; PACKET_BYTES];
        bytes[..packet.len()].copy_from_slice(&packet);
        Self { from: from.into(), length: packet.len(), bytes }
    }
}

/// A switch with a session of three replicas, all of them consistent.
struct Bench {
    store: Store,
    out: Out,
    now: u64,
    index: u64,
}

impl Bench {
    fn new() -> Result<Self> {
        let config = StoreConfig::default();
        let mut bench =
            Self { store: Store::new(&config, 1, SECRET)?, out: Out::new(), now: config.cookie_ns, index: 1 };
        let mut order = set();
        while !bench.store.order(&mut order) {}
        let mut beat = heartbeat(bench.now);
        let verdict = bench.store.take(bench.now, replica_address(LEADER), &mut beat, &mut bench.out);
        ensure!(verdict == Verdict::Ok, "the switch refused a HEARTBEAT: {verdict:?}");
        Ok(bench)
    }

    /// Nanoseconds of a READ, its reply, a WRITE and its reply: medians over blocks.
    fn run(&mut self, blocks: usize) -> Result<[f64; 4]> {
        let mut costs: [Vec<f64>; 4] = Default::default();
        let cookie = Cookies::new(SECRET, StoreConfig::default().cookie_ns).give(self.now, 0, client_address());
        let all_of = |operation| -> Vec<Datagram> {
            (0..BLOCK).map(|i| Datagram::new((client_address(), request(operation, i, cookie)))).collect()
        };
        for _ in 0..blocks {
            self.index += 1;
            for (operation, of) in [(Operation::Read, 0), (Operation::Write, 2)] {
                let mut passed = all_of(operation);
                costs[of].push(self.feed(&mut passed)?);
                let answer = |asked: &Datagram| reply(&asked.bytes[..asked.length], &VALUE, self.index);
                let mut replies =
                    passed.iter().map(|asked| answer(asked).map(Datagram::new)).collect::<Result<Vec<_>>>()?;
                costs[of + 1].push(self.feed(&mut replies)?);
            }
        }
        let set = self.store.stats().sets[0];
        let all = blocks as u64 * u64::from(BLOCK);
        ensure!(set.closed == all && set.unstable == 0 && set.leader_only == 0, "not every write closed: {set:?}");
        Ok(costs.map(median))
    }

    /// Nanoseconds per datagram.
    fn feed(&mut self, datagrams: &mut [Datagram]) -> Result<f64> {
        let (count, mut refused) = (datagrams.len(), 0);
        let start = Instant::now();
        for datagram in datagrams {
            self.now += STEP_NS;
            let bytes = &mut datagram.bytes[..datagram.length];
            let verdict = self.store.take(self.now, datagram.from, bytes, &mut self.out);
            refused += usize::from(verdict != Verdict::Forwarded);
        }
        let ns = start.elapsed().as_nanos() as f64;
        ensure!(refused == 0, "the core refused {refused} of {count} well-formed packets");
        Ok(ns / count as f64)
    }
}
