//! `midflight bench xdp --program replicas`: what the rules of an operator cost in the kernel. A rule alone, as BPF with the lock included;
//! and frames, from their arrival at XDP to their departure.

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
    use super::super::replicas_packets::{
        BLOCK, Case, From, NOW, SECRET, client, config, other_operator, proven, rules, server,
    };
    use super::How;
    use crate::median::median;
    use anyhow::{Result, ensure};
    use etherparse::PacketBuilder;
    use midflight_dataplane::kernel::{Action, Arrival, BenchPacket, FrameBench, Kernel, Work};
    use midflight_dataplane::program::Engine;
    use midflight_dataplane::replicas::{Outcome, ReplicasProgram, Rule, RuleOrder};
    use midflight_terminal::envelope::{Envelope, Measure};
    use std::net::{IpAddr, SocketAddr};
    use std::process::ExitCode;

    const SWITCH: ([u8; 4], u16) = ([10, 9, 0, 1], 7900);
    /// Arena for a block of packets, none of which is longer.
    const PACKET_BYTES: u64 = 320 * BLOCK as u64;
    /// The rules whose frames are measured too: those of a request, and of its answer.
    const FRAMES: [(Case, &str); 2] = [(Case::Label, "xdp.label_frame_ns"), (Case::Deliver, "xdp.deliver_frame_ns")];

    pub(super) fn run(how: &How) -> Result<ExitCode> {
        let (runs, blocks) = if how.quick { (1, 20) } else { (5, 200) };
        let mut of_rules: [Vec<f64>; Case::ALL.len()] = Default::default();
        let mut of_frames: [Vec<f64>; FRAMES.len()] = Default::default();
        for run in 1..=runs {
            eprintln!("run {run} of {runs}");
            let mut bench = Bench::new()?;
            for ((case, _), costs) in Case::ALL.iter().zip(&mut of_rules) {
                costs.push(bench.rule(*case, blocks)?);
            }
            for ((case, _), costs) in FRAMES.iter().zip(&mut of_frames) {
                costs.push(bench.frames(*case, blocks)?);
            }
        }
        let of_rules = of_rules.map(median);
        let dearest = of_rules.iter().copied().fold(0.0, f64::max);
        let rules = Case::ALL.iter().zip(of_rules).map(|((_, name), cost)| (format!("xdp.{name}"), cost));
        let frames = FRAMES.iter().zip(of_frames.map(median)).map(|((_, name), cost)| ((*name).to_owned(), cost));
        let all = [("xdp.rule_ns".to_owned(), dearest)].into_iter().chain(rules).chain(frames);
        let results = all.map(|(name, cost)| Measure::quantity(&name, cost, "ns")).collect();
        Envelope::new("xdp", results).print(how.json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// An operator in the kernel that knows the way to everybody.
    struct Bench {
        kernel: Kernel<ReplicasProgram>,
        frames: FrameBench,
    }

    impl Bench {
        fn new() -> Result<Self> {
            let mut kernel = Kernel::<ReplicasProgram>::new(&config(), 1, SECRET, PACKET_BYTES)?;
            kernel.serve(SWITCH.1, &[IpAddr::from(SWITCH.0)]);
            let frames = kernel.frame_bench()?;
            let mut bench = Self { kernel, frames };
            // The way to a peer is learned from its request; so all are hosts first.
            bench.set(Rule::Own { rack: Some(0), selector: None })?;
            for other in [other_operator(), server()] {
                bench.set(Rule::Host { ip: other.ip(), rack: 0, group: None })?;
            }
            bench.set(Rule::Server { address: ([10, 1, 0, 9], 7800).into(), rack: 0 })?;
            for other in [other_operator(), server()] {
                bench.learn(other)?;
                bench.set(Rule::Gone(SocketAddr::new(other.ip(), 0)))?;
            }
            for rule in rules() {
                bench.set(rule)?;
            }
            (0..BLOCK).try_for_each(|i| bench.learn(client(0, i)))?;
            Ok(bench)
        }

        fn set(&mut self, rule: Rule) -> Result<()> {
            let mut order = RuleOrder::from(rule);
            while !Engine::order(&mut self.kernel, &mut order)? {}
            ensure!(order.outcome() == Outcome::Done, "the operator refused {rule:?}");
            Ok(())
        }

        fn learn(&mut self, from: SocketAddr) -> Result<()> {
            let frame = frame(&(from, proven(from, 0)))?;
            let departure = self.kernel.run_xdp(NOW, &Arrival::new(&frame))?;
            ensure!([Action::Transmit, Action::Drop].contains(&departure.action), "a request of {from}: {departure:?}");
            Ok(())
        }

        /// Nanoseconds of a rule: the median of blocks.
        fn rule(&mut self, case: Case, blocks: usize) -> Result<f64> {
            let packets = case.packets();
            let packets: Vec<_> =
                packets.iter().map(|(from, datagram)| BenchPacket { from: (*from).into(), datagram }).collect();
            let blocks = (0..blocks).map(|_| Ok(self.kernel.bench(NOW, &packets)? as f64 / f64::from(BLOCK)));
            Ok(median(blocks.collect::<Result<_>>()?))
        }

        /// Nanoseconds of a frame, without those that put it in its place.
        fn frames(&mut self, case: Case, blocks: usize) -> Result<f64> {
            let frames = case.packets().iter().map(frame).collect::<Result<Vec<_>>>()?;
            let costs = (0..blocks).map(|_| {
                let placed = self.kernel.bench_frames(&self.frames, Work::Nothing, NOW, &frames)?;
                let forwarded = self.kernel.bench_frames(&self.frames, Work::Forward, NOW, &frames)?;
                Ok((forwarded as f64 - placed as f64) / f64::from(BLOCK))
            });
            Ok(median(costs.collect::<Result<_>>()?))
        }
    }

    /// A frame to the operator.
    fn frame((from, datagram): &From) -> Result<Vec<u8>> {
        let IpAddr::V4(ip) = from.ip() else { anyhow::bail!("{from} is not of IPv4") };
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [0; 6])
            .ipv4(ip.octets(), SWITCH.0, 64)
            .udp(from.port(), SWITCH.1);
        let mut frame = Vec::new();
        builder.write(&mut frame, datagram)?;
        Ok(frame)
    }
}
