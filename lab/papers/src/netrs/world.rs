//! The evaluation's world: clients, selectors at switches or clients, servers. Packets have no bytes here and queue only at accelerators
//! and servers; `midflight-lab sim check cache` runs the real parties in a real network.

use super::cell::{Cell, Selects};
use super::deployment::Deployment;
use super::placing::Placing;
use super::random::{Purpose, stream};
use super::ring::Ring;
use super::servers::Servers;
use super::tree::{Place, Tree};
use super::workload::Request;
use midflight_cache::select::{Choice, Oracle, Selector, Server, Status, Truth};
use midflight_endpoint::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell as Shared;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

#[derive(Clone, Copy, Debug)]
struct Ways {
    tree: Tree,
    trunk: Nanos,
    host: Nanos,
    /// Not at clients.
    at_switches: bool,
    /// From a switch to its accelerator.
    to_accelerator: Nanos,
    /// Accelerator time for a request.
    selection: Nanos,
    /// Accelerator time for an answer's copy.
    copy: Nanos,
}

struct Site {
    place: Place,
    selector: Box<dyn Selector>,
    /// When the accelerator is idle again.
    free_at: Nanos,
    busy: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    site: u32,
    sent: Nanos,
    status: Option<Status>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request reaches its selector.
    AtSelector(u32),
    AtServer {
        request: u32,
        server: Server,
    },
    /// A server has served a request whose service began at `since`.
    Served {
        request: u32,
        server: Server,
        since: Nanos,
    },
    /// An answer's copy reaches its selector.
    Copied {
        request: u32,
        server: Server,
    },
    /// Rate control may release the first request of this backlog.
    Retry {
        site: u32,
        group: u32,
    },
}

/// Refreshed for the candidates of each choice.
#[derive(Clone)]
struct Truths(Rc<[Shared<f64>]>);

impl Truth for Truths {
    fn expected(&self, server: Server) -> f64 {
        self.0[usize::from(server.0)].get()
    }
}

pub(super) struct Ran {
    /// In the order of requests.
    pub(super) latencies: Vec<Nanos>,
    /// Each rack's requests by the highest tier passed, as monitors count them.
    pub(super) monitored: Vec<[u32; 3]>,
    pub(super) extra_hops: u64,
    pub(super) waited: u64,
    pub(super) busiest: Nanos,
    pub(super) end: Nanos,
    pub(super) events: u64,
}

pub(super) struct World<'a> {
    cell: &'a Cell,
    deployment: &'a Deployment,
    requests: &'a [Request],
    ways: Ways,
    ring: Ring,
    sites: Vec<Site>,
    /// By client.
    site_of: Vec<u32>,
    servers: Servers<u32>,
    /// Requests in flight to each server.
    coming: Vec<u32>,
    truths: Truths,
    random: Pcg64,
    now: Nanos,
    /// By time, then in scheduling order.
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    planned: u64,
    under_way: Vec<UnderWay>,
    /// By selector and replica group, FIFO as in C3's simulator.
    backlogs: BTreeMap<(u32, u32), VecDeque<u32>>,
    sequences: Vec<u16>,
    ran: Ran,
}

impl<'a> World<'a> {
    /// `placing`: `None` if clients select.
    pub(super) fn new(
        cell: &'a Cell,
        deployment: &'a Deployment,
        requests: &'a [Request],
        placing: Option<&Placing>,
    ) -> Self {
        let servers = usize::from(cell.servers);
        let ways = Ways::of(cell, placing.is_some());
        let mut world = Self {
            cell,
            deployment,
            requests,
            ways,
            ring: cell.ring(),
            sites: Vec::new(),
            site_of: Vec::new(),
            servers: Servers::new(cell.server_config(), cell.seed),
            coming: vec![0; servers],
            truths: Truths((0..servers).map(|_| Shared::new(0.0)).collect()),
            random: stream(cell.seed, Purpose::Choices, 0),
            now: 0,
            events: BinaryHeap::new(),
            planned: 0,
            under_way: vec![UnderWay::default(); requests.len()],
            backlogs: BTreeMap::new(),
            sequences: vec![0; servers],
            ran: Ran {
                latencies: vec![0; requests.len()],
                monitored: vec![[0; 3]; ways.tree.racks() as usize],
                extra_hops: 0,
                waited: 0,
                busiest: 0,
                end: 0,
                events: 0,
            },
        };
        match placing {
            Some(placing) => world.place(placing),
            None => world.place_at_clients(),
        }
        world
    }

    fn place_at_clients(&mut self) {
        let places: Vec<Place> = self.deployment.clients.iter().map(|&rack| Place::Rack(rack)).collect();
        self.site_of = (0..places.len() as u32).collect();
        self.add_sites(&places);
    }

    /// Installs fresh selectors for later requests. Answers still go to their request's selector (N7).
    fn place(&mut self, placing: &Placing) {
        let before = self.sites.len() as u32;
        let of = |&rack: &u32| before + placing.of_rack[rack as usize];
        self.site_of = self.deployment.clients.iter().map(of).collect();
        self.add_sites(&placing.sites);
    }

    fn add_sites(&mut self, places: &[Place]) {
        let (servers, selectors) = (self.cell.servers, places.len() as u32);
        for &place in places {
            let selector: Box<dyn Selector> = match self.cell.selector {
                Selects::Really(algorithm) => algorithm.selector(servers, selectors),
                Selects::Oracle => Box::new(Oracle::new(servers, self.truths.clone())),
            };
            self.sites.push(Site { place, selector, free_at: 0, busy: 0 });
        }
    }

    /// From the time of `change`, requests use its placing.
    pub(super) fn run(mut self, change: Option<(Nanos, &Placing)>) -> Ran {
        let mut change = change;
        for request in 0..self.requests.len() as u32 {
            let at = self.requests[request as usize].at;
            self.happen_until(at);
            if let Some((_, placing)) = change.take_if(|(from, _)| *from <= at) {
                self.place(placing);
            }
            self.send(at, request);
        }
        self.happen_until(Nanos::MAX);
        self.ran.busiest = self.sites.iter().map(|site| site.busy).max().unwrap_or(0);
        self.ran.events = self.planned + self.requests.len() as u64;
        self.ran
    }

    fn happen_until(&mut self, until: Nanos) {
        while self.events.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            if let Some(Reverse((now, _, event))) = self.events.pop() {
                self.happen(now, event);
            }
        }
    }

    fn happen(&mut self, now: Nanos, event: Event) {
        self.now = now;
        match event {
            Event::AtSelector(request) => self.at_selector(now, request),
            Event::AtServer { request, server } => self.at_server(now, request, server),
            Event::Served { request, server, since } => self.served(now, request, server, since),
            Event::Copied { request, server } => self.copied(now, request, server),
            Event::Retry { site, group } => self.retry(now, site, group),
        }
    }

    fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    fn send(&mut self, now: Nanos, request: u32) {
        self.now = now;
        let site = self.site_of[self.requests[request as usize].client as usize];
        self.under_way[request as usize].site = site;
        if self.ways.at_switches {
            let way = self.ways.up(self.sites[site as usize].place) + self.ways.to_accelerator;
            self.plan(now + way, Event::AtSelector(request));
        } else {
            self.at_selector(now, request);
        }
    }

    fn at_selector(&mut self, now: Nanos, request: u32) {
        let site = self.under_way[request as usize].site;
        let now = self.sites[site as usize].takes(now, self.ways.selection);
        let group = self.group(request);
        if let Some(backlog) = self.backlogs.get_mut(&(site, group)).filter(|backlog| !backlog.is_empty()) {
            backlog.push_back(request);
            self.ran.waited += 1;
        } else if let Err(until) = self.choose(now, request, group) {
            self.backlogs.entry((site, group)).or_default().push_back(request);
            self.ran.waited += 1;
            self.plan(until, Event::Retry { site, group });
        }
    }

    fn group(&self, request: u32) -> u32 {
        self.ring.group(self.requests[request as usize].key) as u32
    }

    fn retry(&mut self, now: Nanos, site: u32, group: u32) {
        // Copies that have arrived are processed first.
        let now = self.sites[site as usize].free_at.max(now);
        while let Some(&request) = self.backlogs.get(&(site, group)).and_then(VecDeque::front) {
            if let Err(until) = self.choose(now, request, group) {
                return self.plan(until, Event::Retry { site, group });
            }
            self.backlogs.get_mut(&(site, group)).and_then(VecDeque::pop_front);
        }
    }

    /// Fails with the time to retry.
    fn choose(&mut self, now: Nanos, request: u32, group: u32) -> Result<(), Nanos> {
        let candidates = self.ring.groups()[group as usize];
        if self.cell.selector == Selects::Oracle {
            for &server in candidates.servers() {
                let coming = self.coming[usize::from(server.0)];
                self.truths.0[usize::from(server.0)].set(self.servers.expected(self.now, server, coming));
            }
        }
        let site = &mut self.sites[self.under_way[request as usize].site as usize];
        match site.selector.choose(now, &candidates, self.random.random()) {
            Choice::Wait(until) => Err(until),
            Choice::Send(server) => {
                let place = site.place;
                self.under_way[request as usize].sent = now;
                self.coming[usize::from(server.0)] += 1;
                let at = now + self.ways.to_accelerator + self.down(place, server);
                self.note_way(place, request, server);
                self.plan(at, Event::AtServer { request, server });
                Ok(())
            }
        }
    }

    fn down(&self, place: Place, server: Server) -> Nanos {
        self.ways.down(place, self.deployment.servers[usize::from(server.0)])
    }

    fn note_way(&mut self, place: Place, request: u32, server: Server) {
        let tree = self.ways.tree;
        let client = self.deployment.clients[self.requests[request as usize].client as usize];
        let server = self.deployment.servers[usize::from(server.0)];
        self.ran.monitored[client as usize][tree.tier(client, server)] += 1;
        let links = Tree::up(place) + tree.down(place, server) - tree.between(client, server);
        self.ran.extra_hops += u64::from(links);
    }

    fn at_server(&mut self, now: Nanos, request: u32, server: Server) {
        self.coming[usize::from(server.0)] -= 1;
        let work = self.requests[request as usize].work;
        if let Some(job) = self.servers.arrived(now, server, request, work) {
            self.plan(now + job.service, Event::Served { request: job.request, server, since: now });
        }
    }

    fn served(&mut self, now: Nanos, request: u32, server: Server, since: Nanos) {
        if let Some(next) = self.servers.finished(now, server) {
            self.plan(now + next.service, Event::Served { request: next.request, server, since: now });
        }
        let sequence = &mut self.sequences[usize::from(server.0)];
        *sequence = sequence.wrapping_add(1);
        let status = Status {
            queue: u16::try_from(self.servers.queue(server)).unwrap_or(u16::MAX),
            service_us: u32::try_from((now - since).div_ceil(1_000)).unwrap_or(u32::MAX).max(1),
            sequence: *sequence,
        };
        let under_way = &mut self.under_way[request as usize];
        under_way.status = Some(status);
        let place = self.sites[under_way.site as usize].place;
        // The answer returns by the same path; only its copy goes to the accelerator.
        let back = now + self.down(place, server);
        self.plan(back + self.ways.to_accelerator, Event::Copied { request, server });
        let at_client = back + self.ways.up(place);
        self.ran.latencies[request as usize] = at_client - self.requests[request as usize].at;
        self.ran.end = self.ran.end.max(at_client);
    }

    fn copied(&mut self, now: Nanos, request: u32, server: Server) {
        let UnderWay { site, sent, status } = self.under_way[request as usize];
        let site = &mut self.sites[site as usize];
        let now = site.takes(now, self.ways.copy);
        site.selector.answered(now, server, now - sent, status);
    }
}

impl Site {
    /// Occupies the accelerator. Returns when it has processed this packet.
    fn takes(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now) + time;
        self.busy += time;
        self.free_at
    }
}

impl Ways {
    fn of(cell: &Cell, at_switches: bool) -> Self {
        let network = cell.network.unwrap_or_default();
        let takes = |ns: u32, is: bool| if is && cell.network.is_some() { Nanos::from(ns) } else { 0 };
        Self {
            tree: Tree::new(network.arity),
            trunk: takes(network.trunk_ns, true),
            host: takes(network.host_ns, true),
            to_accelerator: takes(network.accelerator_way_ns / 2, at_switches),
            selection: takes(network.accelerator_ns, at_switches),
            copy: takes(network.accelerator_ns, at_switches && network.counts_copies),
            at_switches,
        }
    }

    /// Between a client and its selector's switch; 0 if the client selects.
    fn up(&self, place: Place) -> Nanos {
        if self.at_switches { self.host + Nanos::from(Tree::up(place)) * self.trunk } else { 0 }
    }

    /// Between a selector's switch, or a selecting client, and a server in this rack.
    fn down(&self, place: Place, rack: u32) -> Nanos {
        let ends = if self.at_switches { self.host } else { 2 * self.host };
        ends + Nanos::from(self.tree.down(place, rack)) * self.trunk
    }
}
