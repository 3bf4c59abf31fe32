//! `midflight-lab bench xdp --program store`: the cost of each frame of reads and writes at the switch in the kernel: parsing, the program,
//! rewriting. A program in the kernel handles frame after frame between two reads of its clock.

use super::How;
use anyhow::Result;
use std::process::ExitCode;

#[cfg(feature = "kernel")]
pub(super) fn run(how: &How) -> Result<ExitCode> {
    kernel::run(how)
}

#[cfg(not(feature = "kernel"))]
pub(super) fn run(_: &How) -> Result<ExitCode> {
    anyhow::bail!(super::xdp::NO_KERNEL)
}

#[cfg(feature = "kernel")]
mod kernel {
    use super::super::store_packets::{
        BLOCK, REPLICAS, SECRET, VALUE, client_address, heartbeat, hello, renumbered, replica_address, reply, request,
        set,
    };
    use super::How;
    use crate::median::median;
    use anyhow::{Result, ensure};
    use etherparse::PacketBuilder;
    use midflight_dataplane::Cookies;
    use midflight_dataplane::kernel::{Action, Arrival, Kernel, NOW, Work};
    use midflight_dataplane::program::Engine;
    use midflight_dataplane::store::{StoreConfig, StoreProgram};
    use midflight_terminal::envelope::{Envelope, Measure};
    use midflight_wire::store::Operation;
    use std::net::{IpAddr, SocketAddr};
    use std::process::ExitCode;

    /// Lifetime of cookies: longer than the benchmark.
    const COOKIE_NS: u64 = 3_600_000_000_000;
    const SWITCH: ([u8; 4], u16) = ([10, 0, 2, 1], 7700);
    /// Ethernet, IPv4 and UDP headers.
    const HEADERS: usize = 42;
    const KIB: [u8; 1024] = [9; 1024];

    pub(super) fn run(how: &How) -> Result<ExitCode> {
        let (runs, blocks) = if how.quick { (1, 50) } else { (5, 300) };
        let mut costs: [Vec<f64>; 5] = Default::default();
        for run in 1..=runs {
            eprintln!("run {run} of {runs}");
            let of_run = Bench::new()?.run(blocks)?;
            costs.iter_mut().zip(of_run).for_each(|(all, one)| all.push(one));
        }
        let [read, reply, reply_1k, write, write_reply] = costs.map(median);
        let results = vec![
            Measure::quantity("xdp.read_ns", read, "ns"),
            Measure::quantity("xdp.reply_ns", reply, "ns"),
            Measure::quantity("xdp.reply_1k_ns", reply_1k, "ns"),
            Measure::quantity("xdp.write_ns", write, "ns"),
            Measure::quantity("xdp.write_reply_ns", write_reply, "ns"),
        ];
        Envelope::new("xdp", results).print(how.json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// A switch in the kernel with a session of three replicas, which knows the next hops of all of them and of the client.
    struct Bench {
        kernel: Kernel<StoreProgram>,
        cookie: u64,
        index: u64,
    }

    impl Bench {
        fn new() -> Result<Self> {
            let config = StoreConfig { cookie_ns: COOKIE_NS, ..StoreConfig::default() };
            let room = Kernel::<StoreProgram>::bytes_of_bench(BLOCK as usize);
            let mut kernel = Kernel::<StoreProgram>::new(&config, 1, SECRET, room)?;
            let mut order = set();
            while !Engine::order(&mut kernel, &mut order)? {}
            kernel.serve(SWITCH.1, &[IpAddr::from(SWITCH.0)]);
            let now = midflight_host::clock::now_counting_suspension();
            let cookie = Cookies::new(SECRET, COOKIE_NS).give(now, 0, client_address());
            let mut bench = Self { kernel, cookie, index: 1 };
            for slot in 0..REPLICAS {
                bench.send_by_tc(replica_address(slot), &hello(slot, now))?;
            }
            bench.send_by_tc(replica_address(0), &heartbeat(now))?;
            // The switch learns the client's next hop from the first; the second goes through XDP.
            bench.forward(client_address(), &request(Operation::Read, 0, cookie))?;
            Ok(bench)
        }

        fn send_by_tc(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<()> {
            let departure = self.kernel.run_tc(NOW, &Arrival::new(&frame(from, datagram)?))?;
            ensure!(departure.action == Action::Transmit, "the switch did not answer {from}");
            Ok(())
        }

        /// Returns the forwarded datagram.
        fn forward(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<Vec<u8>> {
            let departure = self.kernel.run_xdp(NOW, &Arrival::new(&frame(from, datagram)?))?;
            ensure!(departure.action == Action::Transmit, "XDP did not forward a datagram of {from}");
            Ok(departure.frame[HEADERS..].to_vec())
        }

        /// Nanoseconds of a READ, its reply, one with a KiB, a WRITE and its reply: medians over blocks.
        fn run(&mut self, blocks: usize) -> Result<[f64; 5]> {
            let cookie = self.cookie;
            let requests = |operation| (0..BLOCK).map(move |i| request(operation, i, cookie));
            let reads: Vec<_> = requests(Operation::Read).collect();
            let writes: Vec<_> = requests(Operation::Write).collect();
            let forwarded =
                reads.iter().map(|read| self.forward(client_address(), read)).collect::<Result<Vec<_>>>()?;
            let replies = |value: &[u8]| -> Result<Vec<Vec<u8>>> {
                let replies = forwarded.iter().map(|asked| reply(asked, value, 0));
                replies.map(|reply| reply.and_then(|(from, reply)| frame(from, &reply))).collect()
            };
            let from_client =
                |all: &[Vec<u8>]| all.iter().map(|one| frame(client_address(), one)).collect::<Result<Vec<_>>>();
            let fixed = [from_client(&reads)?, replies(&VALUE)?, replies(&KIB)?];
            let writes = from_client(&writes)?;
            let mut costs: [Vec<f64>; 5] = Default::default();
            for (frames, costs) in fixed.iter().zip(&mut costs) {
                for _ in 0..blocks {
                    costs.push(self.cost(frames)?);
                }
            }
            // Last, because a write invalidates the replies to reads.
            let asked = self.forward(client_address(), &request(Operation::Write, 0, self.cookie))?;
            for _ in 0..blocks {
                let seq = self.kernel.stats().sets[0].writes;
                costs[3].push(self.cost(&writes)?);
                let replies = self.write_replies(&asked, seq)?;
                costs[4].push(self.cost(&replies)?);
            }
            let set = self.kernel.stats().sets[0];
            ensure!(set.unstable == 0 && set.leader_only == 0, "not every write closed: {set:?}");
            Ok(costs.map(median))
        }

        /// Replies to the WRITEs numbered after `seq`; `asked` is one of them, as forwarded.
        fn write_replies(&mut self, asked: &[u8], seq: u64) -> Result<Vec<Vec<u8>>> {
            self.index += 1;
            let reply_to = |i| -> Result<Vec<u8>> {
                let (from, reply) = reply(&renumbered(asked, i, seq + 1 + u64::from(i))?, &[], self.index)?;
                frame(from, &reply)
            };
            (0..BLOCK).map(reply_to).collect()
        }

        /// Nanoseconds per frame, without copying it into place.
        fn cost(&mut self, frames: &[Vec<u8>]) -> Result<f64> {
            let placed = self.kernel.bench_frames(Work::Nothing, NOW, frames)?;
            let forwarded = self.kernel.bench_frames(Work::Forward, NOW, frames)?;
            Ok((forwarded as f64 - placed as f64) / frames.len() as f64)
        }
    }

    fn frame(from: SocketAddr, datagram: &[u8]) -> Result<Vec<u8>> {
        let IpAddr::V4(ip) = from.ip() else { anyhow::bail!("{from} is not of IPv4") };
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [0; 6])
            .ipv4(ip.octets(), SWITCH.0, 64)
            .udp(from.port(), SWITCH.1);
        let mut frame = Vec::new();
        builder.write(&mut frame, datagram)?;
        Ok(frame)
    }
}
