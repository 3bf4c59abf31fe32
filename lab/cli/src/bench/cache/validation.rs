//! The same cache in the simulator, with costs measured live: is the simulator to be believed?

use super::pauses;
use super::report::Pair;
use super::running::Cache;
use super::{Args, Who};
use crate::bench::ratio;
use crate::cache::gets::{Gets, Unwatched};
use crate::median::{at, median};
use anyhow::{Context, Result, bail, ensure};
use midflight_cache::client::{ClientConfig, ReadKey};
use midflight_cache::rsnode::RsNodeConfig;
use midflight_cache::server::{Server, ServerConfig};
use midflight_dataplane::cache::{CacheConfig, Rule};
use midflight_endpoint::Nanos;
use midflight_host::cache::Algorithm;
use midflight_host::clock;
use midflight_sim::cache::{
    Ask, Beside, CacheEvent, Controlled, ReplicaGroups, Rules, ServerActor, Service, Slot, Work, add_client,
    add_operator, add_selector,
};
use midflight_sim::{Action, Actor, Birth, Faults, Happening, Hardware, HostConfig, NodeId, Place, Sink, World};
use midflight_terminal::envelope::Measure;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const SERVERS: u32 = 3;
/// The library's timeout of a get.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Gets that a backend is asked for directly.
const ASKED: usize = 500;
/// Gets a second of the only client: one after the other.
const IDLE_RATE: f64 = 100.0;
/// With this way and without, the simulator shows how many ways a get has.
const PROBE_NS: Nanos = 10_000;

/// Times of one get in a cache that is otherwise idle, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// Of a backend, without its agent: median.
    service: f64,
    /// Selected by the client, and by the operator: median and 95th percentile.
    by: [[f64; 2]; 2],
}

/// What a get takes in the simulator, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    service: Nanos,
    way: Nanos,
    /// Mean of an exponential delay on the way to a server.
    jitter: Nanos,
}

impl Idle {
    /// `gets` are those of the measurement.
    pub(super) fn measure(cache: &Cache<'_>, gets: &Gets, selector: Algorithm, stop: &AtomicBool) -> Result<Self> {
        let gets = Gets { rate: IDLE_RATE, ..gets.clone() };
        let of = |who| -> Result<[f64; 2]> {
            let latencies = gets.run(&cache.clients(who, 1, selector)?, stop, &Unwatched)?.latencies_ns;
            ensure!(!latencies.is_empty(), "no get was answered in the idle cache");
            Ok([0.5, 0.95].map(|quantile| latencies.value_at_quantile(quantile) as f64))
        };
        Ok(Self { service: service(cache.first_backend()?)?, by: [of(Who::Clients)?, of(Who::Switch)?] })
    }

    fn of_rounds(rounds: &[Self]) -> Self {
        let of = |of: &dyn Fn(&Self) -> f64| median(rounds.iter().map(of).collect());
        Self {
            service: of(&|idle| idle.service),
            by: [0, 1].map(|who| [0, 1].map(|what| of(&|idle| idle.by[who][what]))),
        }
    }

    /// The costs with which one get in the simulator takes these times.
    fn costs(&self, who: Who, selector: Algorithm) -> Result<Costs> {
        let [p50, p95] = self.by[who as usize];
        // The median of an exponential distribution is its mean times ln 2, and the 95th percentile exceeds it by its mean times ln 10.
        let service = self.service as Nanos;
        let gets: Vec<(Nanos, usize)> = (1..=100).map(|get| (get * 10_000_000, 0)).collect();
        let alone = |way| -> Result<f64> {
            let costs = Costs { service, way, jitter: 0 };
            Ok(median(simulate(who, selector, 1, costs, &[], &gets)?))
        };
        let [without, with] = [alone(0)?, alone(PROBE_NS)?];
        // A disturbed tail does not move the median.
        let jitter = ((p95 - p50) / 10_f64.ln()).min((p50 - without) / 2_f64.ln()).max(0.0);
        let way = (p50 - jitter * 2_f64.ln() - without) / ((with - without) / PROBE_NS as f64);
        Ok(Costs { service, way: way.max(0.0) as Nanos, jitter: jitter as Nanos })
    }
}

/// The median time of a get at the memcached with this process id.
fn service(pid: i32) -> Result<f64> {
    let file = format!("/proc/{pid}/cmdline");
    let arguments = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let socket = arguments.split('\0').skip_while(|argument| *argument != "-s").nth(1);
    let mut stream = UnixStream::connect(socket.context("a memcached without a socket")?)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut times = Vec::new();
    for _ in 0..ASKED {
        let (begun, mut line) = (Instant::now(), Vec::new());
        stream.write_all(b"get bench:00000000\r\n")?;
        while line != b"END\r\n" {
            line.clear();
            ensure!(answers.read_until(b'\n', &mut line)? > 0, "a memcached has closed its connection");
        }
        times.push(begun.elapsed().as_nanos() as f64);
    }
    Ok(median(times))
}

/// `validation.cache.SELECTOR.…`: live by simulated, over the rounds, and the costs.
pub(super) fn measures(
    args: &Args,
    selector: Algorithm,
    pairs: &[Pair],
    idle: &[Idle],
    gets: impl Fn(u64) -> Gets,
) -> Result<Vec<Measure>> {
    let name = format!("validation.cache.{}", selector.name().replace('-', "_"));
    let idle = Idle::of_rounds(idle);
    let mut measures = vec![Measure::quantity(&format!("{name}.service_us"), idle.service / 1e3, "us")];
    let mut p99 = |who: Who, key: &str, live: fn(&Pair) -> f64| -> Result<[Vec<f64>; 2]> {
        let costs = idle.costs(who, selector)?;
        let [p50, p95] = idle.by[who as usize];
        let (way, jitter) = (costs.way as f64, costs.jitter as f64);
        for (what, ns) in [("alone", p50), ("alone_p95", p95), ("way", way), ("jitter", jitter)] {
            measures.push(Measure::quantity(&format!("{name}.{key}.{what}_us"), ns / 1e3, "us"));
        }
        let of_round = |round: u64| -> Result<f64> {
            let gets = gets(round);
            let drawn: Vec<(Nanos, usize)> =
                gets.drawn(args.clients as usize).map(|(due, client, _)| (due, client)).collect();
            let pauses = pauses_until(gets.warm_up + gets.measured, args.pause, round);
            let latencies = simulate(who, selector, args.clients, costs, &pauses, &drawn)?;
            let first = drawn.partition_point(|(due, _)| *due < clock::nanos(gets.warm_up));
            Ok(at(latencies[first..].to_vec(), 0.99) / 1e3)
        };
        let simulated = (0..pairs.len() as u64).map(of_round).collect::<Result<Vec<f64>>>()?;
        let live: Vec<f64> = pairs.iter().map(live).collect();
        measures.extend(ratio::measures(&format!("{name}.{key}.p99"), ".ratio", &live, &simulated));
        Ok([live, simulated])
    };
    let clients = p99(Who::Clients, "clients", |pair| pair.clients.p99_us)?;
    let switch = p99(Who::Switch, "switch", |pair| pair.switch.p99_us)?;
    let [live, simulated] = [0, 1].map(|which| -> Vec<f64> {
        switch[which].iter().zip(&clients[which]).map(|(switch, clients)| switch / clients).collect()
    });
    measures.extend(ratio::measures(&format!("{name}.switch_over_clients.p99"), ".ratio", &live, &simulated));
    Ok(measures)
}

/// When the live pauses of this seed begin and end.
fn pauses_until(end: Duration, pause: Duration, seed: u64) -> Vec<(Nanos, Nanos)> {
    let pause = clock::nanos(pause);
    let mut now = 0;
    let all = pauses::gaps(seed).map(|gap| {
        let begin = now + clock::nanos(gap);
        now = begin + pause;
        (begin, now)
    });
    all.take_while(|&(begin, _)| pause > 0 && begin < clock::nanos(end)).collect()
}

/// When a backend that pauses has done work that begins now.
fn done(pauses: &[(Nanos, Nanos)], now: Nanos, work: Nanos) -> Nanos {
    let mut done = now + work;
    for &(begin, end) in pauses.iter().skip_while(|(_, end)| *end <= now) {
        if begin >= done {
            break;
        }
        done += end - begin.max(now);
    }
    done
}

/// Latencies of the gets, by token.
struct Latencies {
    due: Vec<Nanos>,
    tokens: HashMap<(NodeId, ReadKey), usize>,
    took: Vec<Option<Nanos>>,
    ended: usize,
}

impl Sink for Latencies {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        match happening.of::<(NodeId, CacheEvent)>() {
            Some((node, CacheEvent::Begun { key, token, .. })) => {
                self.tokens.insert((*node, *key), *token as usize);
            }
            Some((node, CacheEvent::Ended { key, outcome })) => {
                let Some(token) = self.tokens.remove(&(*node, *key)) else { return };
                self.ended += 1;
                self.took[token] = outcome.as_ref().ok().map(|_| at - self.due[token]);
            }
            _ => {}
        }
    }
}

/// Each get with its time and client. Returns their latencies in nanoseconds.
fn simulate(
    who: Who,
    selector: Algorithm,
    clients: u32,
    costs: Costs,
    pauses: &[(Nanos, Nanos)],
    gets: &[(Nanos, usize)],
) -> Result<Vec<f64>> {
    let faults = Faults { delay_min: costs.way, delay_max: costs.way, ..Faults::INSTANT };
    let mut world = World::with_hardware(1, faults, &Hardware::default());
    let (slot, by) = (Slot::default(), Controlled::default());
    let operator = add_operator(&mut world, Place::Switch(0), CacheConfig::default(), by, slot.clone());
    let operator_at = world.address(operator);
    let servers: Vec<SocketAddr> = (0..SERVERS)
        .map(|server| add_server(&mut world, operator_at, costs, if server == 0 { pauses } else { &[] }))
        .collect();
    let groups = vec![(0, servers.clone())];
    let beside = Beside {
        config: RsNodeConfig::new(operator_at),
        servers: servers.clone(),
        select: selector,
        selectors: 1,
        cost: 0,
        slot,
    };
    let rsnode = add_selector(&mut world, Place::Switch(0), beside);
    let work = Work { workers: 0, reads: 0, think: 0, groups: Rc::new([servers.clone()]) };
    let config = ClientConfig { timeout: clock::nanos(TIMEOUT), ..ClientConfig::new(0) };
    let way = match who {
        Who::Clients => Err((selector, clients, servers.clone())),
        Who::Switch => Ok(operator_at),
    };
    let clients: Vec<NodeId> = (0..clients)
        .map(|_| {
            let host = Place::Host(world.add_host(HostConfig::default()));
            add_client(&mut world, host, config.clone(), way.clone(), work.clone())
        })
        .collect();
    let mut rules = vec![Rule::Rack { rack: 0, operator: Some(operator_at), marker: 0 }, Rule::Serve(1)];
    rules.extend(servers.iter().map(|&address| Rule::Server { address, rack: 0 }));
    rules.push(Rule::Own { rack: Some(0), selector: Some(world.address(rsnode)) });
    rules.push(Rule::Group { group: 0, rsnode: Some(1) });
    let host = |&client: &NodeId| Rule::Host { ip: world.address(client).ip(), rack: 0, group: Some(0) };
    rules.extend(clients.iter().map(host));
    world.at(0, Action::command(operator, Rules(rules)));
    world.at(0, Action::command(rsnode, ReplicaGroups(groups)));
    let (due, count) = (gets.iter().map(|(due, _)| *due).collect(), gets.len());
    world.set_sink(Box::new(Latencies { due, tokens: HashMap::new(), took: vec![None; count], ended: 0 }));
    for (token, &(due, client)) in gets.iter().enumerate() {
        world.at(due, Action::command(clients[client], Ask::This { group: 0, token: token as u64 }));
    }
    world.run(Nanos::MAX, |world| world.sink::<Latencies>().is_some_and(|seen| seen.ended == count));
    let took = &world.sink::<Latencies>().context("the world lost its sink")?.took;
    match took.iter().map(|took| took.map(|ns| ns as f64)).collect() {
        Some(took) => Ok(took),
        None => bail!("a simulated get has failed"),
    }
}

fn add_server(world: &mut World, operator: SocketAddr, costs: Costs, pauses: &[(Nanos, Nanos)]) -> SocketAddr {
    let pauses = pauses.to_vec();
    let takes = move |now, _token| done(&pauses, now, costs.service) - now;
    let service = Service::Computed(Rc::new(takes));
    let host = Place::Host(world.add_host(HostConfig { receive_jitter: costs.jitter, ..HostConfig::default() }));
    let node = world.add_actor(
        host,
        Box::new(move |birth: &mut Birth| {
            let config = ServerConfig::new(birth.address, operator, rand::RngExt::random(&mut birth.random));
            let server = Server::new(config).expect("the defaults are within bounds");
            Box::new(ServerActor::new(server, service.clone())) as Box<dyn Actor>
        }),
    );
    world.address(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_stands_still_in_pauses() {
        let pauses = [(100, 150), (200, 250)];
        for (now, work, end) in
            [(0, 50, 50), (90, 20, 160), (120, 10, 160), (150, 10, 160), (99, 60, 259), (300, 1, 301)]
        {
            assert_eq!(done(&pauses, now, work), end, "{work} from {now}");
        }
    }

    #[test]
    fn costs_are_found_again_from_the_time_of_one_get() {
        for who in [Who::Clients, Who::Switch] {
            let costs = Costs { service: 30_000, way: 20_000, jitter: 0 };
            let gets: Vec<(Nanos, usize)> = (1..=100).map(|get| (get * 10_000_000, 0)).collect();
            let alone = median(simulate(who, Algorithm::C3, 1, costs, &[], &gets).unwrap());
            let idle = Idle { service: 30_000.0, by: [[alone, alone + 1_000.0 * 10_f64.ln()]; 2] };
            let found = idle.costs(who, Algorithm::C3).unwrap();
            assert!(found.way.abs_diff(20_000) < 1_000 && found.jitter.abs_diff(1_000) <= 1, "{who:?}: {found:?}");
        }
    }

    #[test]
    fn a_pause_delays_gets_and_the_switch_learns_of_it_sooner() {
        let costs = Costs { service: 30_000, way: 20_000, jitter: 0 };
        let gets: Vec<(Nanos, usize)> = (0..2_000).map(|get| (get * 500_000, (get * 7) as usize % 64)).collect();
        let pauses: Vec<_> = (1..5).map(|pause| (pause * 200_000_000, pause * 200_000_000 + 50_000_000)).collect();
        let slow = |who, pauses: &[_]| {
            let took = simulate(who, Algorithm::LeastOutstanding, 64, costs, pauses, &gets).unwrap();
            took[200..].iter().filter(|took| **took > 5e6).count()
        };
        assert_eq!(slow(Who::Clients, &[]), 0);
        let (clients, switch) = (slow(Who::Clients, &pauses), slow(Who::Switch, &pauses));
        assert!(switch > 0 && clients > 2 * switch, "{clients} and {switch} slow gets");
    }
}
