//! `midflight-lab bench xdp --program cache`: the cost of an operator's rules in the kernel: a rule alone, as BPF with the lock, and
//! whole frames, from arrival at XDP to departure.

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
    use super::super::cache_packets::{
        BLOCK, CLIENTS, Case, From, NOW, SECRET, SELECTIONS, SERVERS, answer_to, choosing, choosing_orders, chosen,
        client, config, other_operator, proven, rules, server, to_choose,
    };
    use super::How;
    use crate::median::median;
    use anyhow::{Result, ensure};
    use etherparse::PacketBuilder;
    use midflight_dataplane::Out;
    use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, Rule, RuleOrder, Selection};
    use midflight_dataplane::kernel::{Action, Arrival, BenchPacket, Kernel, Work};
    use midflight_dataplane::program::Engine;
    use midflight_endpoint::SECOND;
    use midflight_terminal::envelope::{Envelope, Measure};
    use std::net::{IpAddr, SocketAddr};
    use std::process::ExitCode;

    const SWITCH: ([u8; 4], u16) = ([10, 9, 0, 1], 7900);
    /// Arena for a block of packets, none of which is longer.
    const PACKET_BYTES: u64 = 320 * BLOCK as u64;
    /// Rules whose frames are also measured: one of a request, and one of its response.
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
        let chosen = SELECTIONS.iter().map(|(selection, name)| Ok((*name, select(*selection, runs, blocks)?)));
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let of_rules = of_rules.map(median);
        let dearest = of_rules.iter().copied().fold(0.0, f64::max);
        let rules = Case::ALL.iter().zip(of_rules).map(|((_, name), cost)| (format!("xdp.{name}"), cost));
        let frames = FRAMES.iter().zip(of_frames.map(median)).map(|((_, name), cost)| ((*name).to_owned(), cost));
        let dearest_of = |pick: fn(&Costs) -> f64| chosen.iter().map(|(_, costs)| pick(costs)).fold(0.0, f64::max);
        let totals = [
            ("xdp.rule_ns".to_owned(), dearest),
            ("xdp.select_ns".to_owned(), dearest_of(|costs| costs.select)),
            ("xdp.answer_ns".to_owned(), dearest_of(|costs| costs.answer)),
        ];
        let of_selections = chosen.iter().flat_map(|(name, costs)| {
            [
                (format!("xdp.select_{name}_ns"), costs.select),
                (format!("xdp.answer_{name}_ns"), costs.answer),
                (format!("xdp.select_{name}_frame_ns"), costs.select_frame),
                (format!("xdp.answer_{name}_frame_ns"), costs.answer_frame),
            ]
        });
        let all = totals.into_iter().chain(rules).chain(frames).chain(of_selections);
        let results = all.map(|(name, cost)| Measure::quantity(&name, cost, "ns")).collect();
        Envelope::new("xdp", results).print(how.json)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Cost in nanoseconds at an operator that selects in its core.
    #[derive(Clone, Copy, Debug)]
    struct Costs {
        select: f64,
        answer: f64,
        select_frame: f64,
        answer_frame: f64,
    }

    /// Medians over blocks, then over runs.
    fn select(selection: Selection, runs: usize, blocks: usize) -> Result<Costs> {
        let mut costs: [Vec<f64>; 4] = Default::default();
        for _ in 0..runs {
            let of_run = Bench::choosing(selection)?.select(blocks)?;
            costs.iter_mut().zip(of_run).for_each(|(all, one)| all.push(one));
        }
        let [select, answer, select_frame, answer_frame] = costs.map(median);
        Ok(Costs { select, answer, select_frame, answer_frame })
    }

    /// Knows the next hops of all peers.
    struct Bench {
        kernel: Kernel<CacheProgram>,
    }

    impl Bench {
        fn new() -> Result<Self> {
            let orders = rules().into_iter().map(RuleOrder::from).collect();
            Self::with(&config(), &[other_operator(), server()], orders)
        }

        fn choosing(selection: Selection) -> Result<Self> {
            let peers: Vec<_> = (0..SERVERS).map(chosen).collect();
            let mut bench = Self::with(&choosing(selection), &peers, choosing_orders())?;
            (0..CLIENTS).try_for_each(|i| bench.learn(client(1, i)))?;
            bench.expire()?;
            Ok(bench)
        }

        /// Knows the next hops of these peers and of the clients.
        fn with(config: &CacheConfig, peers: &[SocketAddr], orders: Vec<RuleOrder>) -> Result<Self> {
            let mut kernel = Kernel::<CacheProgram>::new(config, 1, SECRET, PACKET_BYTES)?;
            kernel.serve(SWITCH.1, &[IpAddr::from(SWITCH.0)]);
            let mut bench = Self { kernel };
            // All are hosts first: the operator learns a next hop from a request.
            bench.set(Rule::Own { rack: Some(0), selector: None })?;
            for other in peers {
                bench.set(Rule::Host { ip: other.ip(), rack: 0, group: None })?;
                bench.learn(*other)?;
                bench.set(Rule::Gone(SocketAddr::new(other.ip(), 0)))?;
            }
            orders.into_iter().try_for_each(|order| bench.order(order))?;
            (0..CLIENTS).try_for_each(|i| bench.learn(client(0, i)))?;
            Ok(bench)
        }

        fn set(&mut self, rule: Rule) -> Result<()> {
            self.order(RuleOrder::from(rule))
        }

        fn order(&mut self, mut order: RuleOrder) -> Result<()> {
            while !Engine::order(&mut self.kernel, &mut order)? {}
            ensure!(order.outcome() == Outcome::Done, "the operator refused {order:?}");
            Ok(())
        }

        fn expire(&mut self) -> Result<()> {
            while Engine::tick(&mut self.kernel, NOW + 2 * SECOND, &mut Out::new())? > 0 {}
            Ok(())
        }

        fn learn(&mut self, from: SocketAddr) -> Result<()> {
            let frame = frame(&(from, proven(from, 0)))?;
            let departure = self.kernel.run_xdp(NOW, &Arrival::new(&frame))?;
            ensure!([Action::Transmit, Action::Drop].contains(&departure.action), "a request of {from}: {departure:?}");
            Ok(())
        }

        /// Nanoseconds of a rule: the median over blocks.
        fn rule(&mut self, case: Case, blocks: usize) -> Result<f64> {
            let packets = case.packets();
            let blocks = (0..blocks).map(|_| Ok(self.take(&packets)?.0));
            Ok(median(blocks.collect::<Result<_>>()?))
        }

        /// Nanoseconds per packet, and the rewritten packets.
        fn take(&mut self, packets: &[From]) -> Result<(f64, Vec<Vec<u8>>)> {
            let packets: Vec<_> =
                packets.iter().map(|(from, datagram)| BenchPacket { from: (*from).into(), datagram }).collect();
            let cost = self.kernel.bench_packets(NOW, &packets)? as f64 / f64::from(BLOCK);
            Ok((cost, self.kernel.benched()))
        }

        /// Nanoseconds of a request with selection, its response, and the frames of both: medians over blocks.
        fn select(&mut self, blocks: usize) -> Result<[f64; 4]> {
            let requests = to_choose();
            let frames = requests.iter().map(frame).collect::<Result<Vec<_>>>()?;
            let mut costs: [Vec<f64>; 4] = Default::default();
            let answers =
                |sent: &[Vec<u8>]| (0..).zip(sent).map(|(i, sent)| answer_to(sent, i)).collect::<Result<Vec<_>>>();
            for _ in 0..blocks {
                let (cost, sent) = self.take(&requests)?;
                costs[0].push(cost);
                costs[1].push(self.take(&answers(&sent)?)?.0);
                let (_, sent) = self.take(&requests)?;
                let answered = answers(&sent)?.iter().map(frame).collect::<Result<Vec<_>>>()?;
                costs[3].push(self.cost(&answered)?);
                // These get no response: only the operator knows their numbers.
                costs[2].push(self.cost(&frames)?);
                self.expire()?;
            }
            let stats = self.kernel.stats();
            ensure!((stats.untracked, stats.unmatched) == (0, 0), "not every answer was that of a request: {stats:?}");
            Ok(costs.map(median))
        }

        /// Nanoseconds per frame, without copying it into place.
        fn frames(&mut self, case: Case, blocks: usize) -> Result<f64> {
            let frames = case.packets().iter().map(frame).collect::<Result<Vec<_>>>()?;
            let costs = (0..blocks).map(|_| self.cost(&frames));
            Ok(median(costs.collect::<Result<_>>()?))
        }

        fn cost(&mut self, frames: &[Vec<u8>]) -> Result<f64> {
            let placed = self.kernel.bench_frames(Work::Nothing, NOW, frames)?;
            let forwarded = self.kernel.bench_frames(Work::Forward, NOW, frames)?;
            Ok((forwarded as f64 - placed as f64) / f64::from(BLOCK))
        }
    }

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
