//! `midflight-lab bench controller`: the cost of the cache's controller in a network of the paper's size.

use super::How;
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_control::cache::keeper::Load;
use midflight_control::cache::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_control::cache::{
    ControlMessage, Controller, ControllerConfig, Event, Grouping, Network, NetworkParts, Parts, Role, RuleKeeper,
    Start,
};
use midflight_dataplane::cache::{Cache, CacheConfig, Outcome, Rule, TIERS_MAX};
use midflight_endpoint::{Nanos, SECOND};
use midflight_placement::topology::{Accelerator, Topology};
use midflight_terminal::envelope::{Envelope, Measure};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The paper's: 320 switches, 128 racks, 1,024 hosts, of which 100 are servers and 500 clients (section V-A).
const PORTS: usize = 16;
const SERVERS: usize = 100;
const CLIENTS: usize = 500;
/// Polls of all operators.
const ROUNDS: usize = 50;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench controller
  midflight-lab bench controller --quick     one run instead of five
  midflight-lab bench controller --json
  midflight-lab bench controller --against ../before/target/release/midflight-lab

A controller and 320 operators with their real cores, in a 16-ary fat-tree with 100 servers and
500 clients; messages take no time. Only what the controller does is measured, on one core.

RESULTS (medians of the runs)
  controller.k16.load_ms                 from the takeover until all operators have all their rules
  controller.k16.orders                  orders that it has sent until then
  controller.k16.keeper_load_ms          what one operator takes to carry its share of them out
  controller.k16.round_us                all operators asked, and their reports taken
  controller.k16.failure_us              an RSNode has died: all operators are told, groups moved

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let runs = if how.quick { 1 } else { 5 };
    let mut all: Vec<Vec<f64>> = vec![vec![]; NAMES.len()];
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let of_run = Bench::new()?.run()?;
        all.iter_mut().zip(of_run).for_each(|(all, one)| all.push(one));
    }
    let result = |((name, unit), values): ((&str, &'static str), Vec<f64>)| {
        Measure::quantity(&format!("controller.k16.{name}"), median(values), unit)
    };
    Envelope::new("controller", NAMES.into_iter().zip(all).map(result).collect()).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

const NAMES: [(&str, &str); 5] =
    [("load_ms", "ms"), ("orders", "orders"), ("keeper_load_ms", "ms"), ("round_us", "us"), ("failure_us", "us")];

fn network() -> Result<Network> {
    let topology = Topology::fat_tree(PORTS, &Accelerator::paper("each".into()))?;
    let at = |subnet: u8, number: usize, port: u16| {
        SocketAddr::from(([10, subnet, (number / 250) as u8, (number % 250) as u8], port))
    };
    let operators = topology.operators().iter().enumerate().map(|(number, operator)| OperatorAt {
        switch: operator.id.clone(),
        address: at(0, number, 7700),
        selector: Some(at(1, number, 7701)),
    });
    let hosts = topology.areas().iter().flat_map(|area| area.hosts.iter().cloned());
    let hosts: Vec<String> = hosts.collect();
    let spread = |count: usize, first: usize| (0..count).map(move |n| n * 2 + first);
    let servers: Vec<ServerAt> =
        spread(SERVERS, 0).map(|host| ServerAt { at: hosts[host].clone(), address: at(3, host, 7800) }).collect();
    let replica_groups = (0..SERVERS).map(|n| ReplicaGroup {
        id: n as u32 + 1,
        servers: (0..3).map(|i| servers[(n + i) % SERVERS].address).collect(),
    });
    Ok(Network::new(NetworkParts {
        operators: operators.collect(),
        hosts: spread(CLIENTS, 1).map(|host| HostAt { host: hosts[host].clone(), ip: at(2, host, 0).ip() }).collect(),
        replica_groups: replica_groups.collect(),
        servers,
        grouping: Grouping::Racks,
        topology,
    })?)
}

/// An operator's core, and a selector that accepts everything.
struct Core(Cache);

impl Parts for Core {
    fn set(&mut self, rule: Rule) -> Outcome {
        self.0.set(rule)
    }

    fn counts(&self, group: u16) -> [u64; TIERS_MAX] {
        self.0.counts(group)
    }

    fn load(&self) -> Load {
        Load::default()
    }

    fn set_replica_group(&mut self, _: u32, _: &[SocketAddr]) -> Outcome {
        Outcome::Done
    }

    fn set_selectors(&mut self, _: u32) {}
}

struct Bench {
    now: Nanos,
    controller: Controller,
    operators: Vec<(RuleKeeper, Core)>,
    dead: Option<usize>,
    orders: usize,
    /// CPU time in the controller and the keepers.
    spent: Duration,
    spent_by_keepers: Duration,
}

impl Bench {
    fn new() -> Result<Self> {
        let network = Arc::new(network()?);
        let bounds = CacheConfig { masks: network.masks(), ..CacheConfig::default() };
        let operators = (0..network.operators()).map(|number| {
            let id = number as u64 + 1;
            let core = Cache::new(&bounds, number as u32 + 1, id.into())
                .map_err(|error| anyhow::anyhow!("an operator's bounds: {error}"))?;
            Ok((RuleKeeper::new(id, Some(id)), Core(core)))
        });
        let config = ControllerConfig { start: Start::OwnRack, ..ControllerConfig::default() };
        Ok(Self {
            now: SECOND,
            controller: Controller::new(SECOND, config, network.clone(), 1),
            operators: operators.collect::<Result<_>>()?,
            dead: None,
            orders: 0,
            spent: Duration::ZERO,
            spent_by_keepers: Duration::ZERO,
        })
    }

    /// In the order of [`NAMES`].
    fn run(&mut self) -> Result<[f64; 5]> {
        while !matches!(self.controller.role(), Role::Active(_)) {
            self.round();
        }
        while !self.is_ready() {
            ensure!(self.now < 60 * SECOND, "after a minute some operators still lack rules");
            self.round();
        }
        let (load, by_keepers, orders) = (self.spent, self.spent_by_keepers, self.orders);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            self.spent = Duration::ZERO;
            self.round();
            rounds.push(self.spent.as_secs_f64() * 1e6);
        }
        // A rack's RSNode: the initial plan makes each rack's own operator one.
        let target = self.controller.status().target.into_iter().flatten().next();
        self.dead = target;
        self.spent = Duration::ZERO;
        let mut quiet = 0;
        while !self.has_failed() {
            self.spent = Duration::ZERO;
            quiet += 1;
            ensure!(quiet < 100, "an operator that answers nothing is not found dead");
            self.round();
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let failure = self.spent.as_secs_f64() * 1e6;
        Ok([ms(load), orders as f64, ms(by_keepers) / self.operators.len() as f64, median(rounds), failure])
    }

    fn is_ready(&self) -> bool {
        let status = self.controller.status();
        status.is_deployed && status.operators.iter().all(|operator| operator.is_up_to_date)
    }

    fn has_failed(&mut self) -> bool {
        std::iter::from_fn(|| self.controller.poll_event()).any(|event| matches!(event, Event::OperatorFailed { .. }))
    }

    /// The controller's next turn, and everything that follows from it.
    fn round(&mut self) {
        self.now = self.controller.poll_timeout();
        let start = Instant::now();
        self.controller.handle_timeout(self.now);
        let mut messages: VecDeque<_> = std::iter::from_fn(|| self.controller.poll_transmit()).collect();
        self.spent += start.elapsed();
        while let Some((operator, message)) = messages.pop_front() {
            let Some(answer) = self.give(operator, &message) else { continue };
            let start = Instant::now();
            self.controller.handle(self.now, operator, &answer);
            messages.extend(std::iter::from_fn(|| self.controller.poll_transmit()));
            self.spent += start.elapsed();
        }
    }

    fn give(&mut self, operator: usize, message: &ControlMessage) -> Option<ControlMessage> {
        if self.dead == Some(operator) {
            return None;
        }
        if let ControlMessage::Set(set) = message {
            self.orders += set.orders.len();
        }
        let start = Instant::now();
        let (keeper, core) = &mut self.operators[operator];
        let answer = keeper.handle(self.now, message, core);
        self.spent_by_keepers += start.elapsed();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operators_of_the_papers_network_get_their_rules() {
        let mut bench = Bench::new().unwrap();
        let [load, orders, keeper, round, failure] = bench.run().unwrap();
        // Each gets 319 others, 128 racks, 100 servers, 500 hosts.
        assert!(orders > 320.0 * 1_000.0, "{orders}");
        assert!([load, keeper, round, failure].iter().all(|time| *time > 0.0));
        let refused = bench.operators.iter().map(|(keeper, _)| keeper.counters().orders_refused).sum::<u64>();
        assert_eq!(refused, 0);
    }
}
