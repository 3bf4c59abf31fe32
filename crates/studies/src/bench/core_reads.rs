//! `midflight bench core --program reads`: what the switch's core costs on each packet of reads and writes, in memory.

use super::How;
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::reads::{
    LEASE_MAX_NS, NewSet, Policy, Reads, ReadsConfig, ReadsProgram, ReplyCheck, SetOrder, Verdict,
};
use midflight_dataplane::{Cookies, Out};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_wire::reads::{Heartbeat, Operation, Replica, Request, Write};
use midflight_wire::{Address, packet};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const SECRET: u128 = 0x5eed;
const SET: u16 = 1;
const KGROUP_BITS: u8 = 12;
/// Packets between two looks at the clock: one for each key group.
const BLOCK: u32 = 1 << KGROUP_BITS;
/// Time that passes from packet to packet.
const STEP_NS: u64 = 20;
const KEY: [u8; 16] = [7; 16];
const VALUE: [u8; 16] = [8; 16];
const REPLICAS: u8 = 3;
/// Room for the longest of these packets.
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
        Measure::count("core.state_bytes", ReadsProgram::state_bytes(&ReadsConfig::default()), "bytes"),
    ];
    Envelope::new("core", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A datagram in a receive buffer.
#[derive(Clone)]
struct Datagram {
    from: Address,
    length: usize,
    bytes: [u8; PACKET_BYTES],
}

impl Datagram {
    fn new(from: Address, parts: &[&[u8]]) -> Self {
        let packet = parts.concat();
        let mut bytes = [0; PACKET_BYTES];
        bytes[..packet.len()].copy_from_slice(&packet);
        Self { from, length: packet.len(), bytes }
    }

    fn request(&self) -> Result<Request> {
        let (request, _) = Request::ref_from_prefix(&self.bytes).map_err(|_| anyhow::anyhow!("it is no request"))?;
        Ok(*request)
    }
}

/// A switch with a session of three replicas, all of which may answer.
struct Bench {
    reads: Reads,
    out: Out,
    now: u64,
    index: u64,
}

fn replica_address(slot: u8) -> Address {
    SocketAddr::from(([10, 0, 0, slot + 1], 7001)).into()
}

fn client_address() -> Address {
    SocketAddr::from(([10, 0, 1, 1], 7000)).into()
}

impl Bench {
    fn new() -> Result<Self> {
        let config = ReadsConfig::default();
        let mut bench =
            Self { reads: Reads::new(&config, 1, SECRET)?, out: Out::new(), now: config.cookie_ns, index: 1 };
        let replicas: Vec<Address> = (0..REPLICAS).map(replica_address).collect();
        let mut order = SetOrder::add(&NewSet {
            number: SET,
            incarnation: 1,
            lease_ns: LEASE_MAX_NS,
            kgroup_bits: KGROUP_BITS,
            reply_check: ReplyCheck::Strict,
            policy: Policy::LeaderAvoidance,
            replicas: replicas.iter().map(|&address| address.into()).collect(),
        });
        while !bench.reads.order(&mut order) {}
        let beat = Heartbeat {
            incarnation: 1.into(),
            sid: 1.into(),
            start: 1.into(),
            echo: bench.now.into(),
            set: SET.into(),
            kgroup_bits: KGROUP_BITS,
            ..Heartbeat::new(0, 1)
        };
        let member = |&address| Replica { address, weight: 10, matched: 1.into(), reserved: [0; 3] };
        let mut beat = packet(&beat, &replicas.iter().map(member).collect::<Vec<_>>());
        let verdict = bench.reads.take(bench.now, replicas[0], &mut beat, &mut bench.out);
        ensure!(verdict == Verdict::Ok, "the switch refused a HEARTBEAT: {verdict:?}");
        Ok(bench)
    }

    /// Nanoseconds of a READ, its reply, a WRITE and its reply: medians of blocks.
    fn run(&mut self, blocks: usize) -> Result<[f64; 4]> {
        let mut costs: [Vec<f64>; 4] = Default::default();
        let cookie = Cookies::new(SECRET, ReadsConfig::default().cookie_ns).give(self.now, 0, client_address());
        let reads: Vec<Datagram> = (0..BLOCK).map(|i| request(Operation::Read, i, cookie)).collect();
        let writes: Vec<Datagram> = (0..BLOCK).map(|i| request(Operation::Write, i, cookie)).collect();
        for _ in 0..blocks {
            self.index += 1;
            for (requests, of) in [(&reads, 0), (&writes, 2)] {
                let mut passed = requests.clone();
                costs[of].push(self.feed(&mut passed)?);
                let mut replies = passed.iter().map(|asked| self.reply(asked)).collect::<Result<Vec<_>>>()?;
                costs[of + 1].push(self.feed(&mut replies)?);
            }
        }
        let set = self.reads.stats().sets[0];
        let all = blocks as u64 * u64::from(BLOCK);
        ensure!(set.closed == all && set.unstable == 0 && set.leader_only == 0, "not every write closed: {set:?}");
        Ok(costs.map(median))
    }

    /// Nanoseconds a datagram.
    fn feed(&mut self, datagrams: &mut [Datagram]) -> Result<f64> {
        let (count, mut refused) = (datagrams.len(), 0);
        let start = Instant::now();
        for datagram in datagrams {
            self.now += STEP_NS;
            let bytes = &mut datagram.bytes[..datagram.length];
            let verdict = self.reads.take(self.now, datagram.from, bytes, &mut self.out);
            refused += usize::from(verdict != Verdict::Forwarded);
        }
        let ns = start.elapsed().as_nanos() as f64;
        ensure!(refused == 0, "the core refused {refused} of {count} well-formed packets");
        Ok(ns / count as f64)
    }

    /// What the replica answers to which a request went.
    fn reply(&self, asked: &Datagram) -> Result<Datagram> {
        let asked = asked.request()?;
        let mut reply = Request { replicas: (1 << REPLICAS) - 1, ..asked };
        reply.header.operation += 1;
        let from = replica_address(asked.slot);
        if asked.header.operation == Operation::Read as u8 {
            return Ok(Datagram::new(from, &[reply.as_bytes(), &KEY, &VALUE]));
        }
        (reply.index, reply.key_length) = (self.index.into(), 0.into());
        Ok(Datagram::new(from, &[reply.as_bytes()]))
    }
}

/// A request for a key of key group `i`.
fn request(operation: Operation, i: u32, cookie: u64) -> Datagram {
    let mut request = Request {
        request: u64::from(i).into(),
        hash: (i.reverse_bits()).into(),
        set: SET.into(),
        key_length: (KEY.len() as u16).into(),
        ..Request::new(operation)
    };
    request.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    let write = Write::new_zeroed();
    match operation {
        Operation::Write => Datagram::new(client_address(), &[request.as_bytes(), write.as_bytes(), &KEY, &VALUE]),
        _ => Datagram::new(client_address(), &[request.as_bytes(), &KEY]),
    }
}
