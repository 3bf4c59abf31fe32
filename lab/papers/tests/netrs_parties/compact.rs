//! The evaluation's compact world, included from its sources to see the latency of each read. (Its public entry gives percentiles; a test
//! checks that both agree.) These sources' unit tests therefore run here again.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "sources of another crate, of which a part is used")]

#[path = "../../src/netrs/cell.rs"]
mod cell;
#[path = "../../src/netrs/deployment.rs"]
mod deployment;
#[path = "../../src/netrs/placing.rs"]
mod placing;
#[path = "../../src/netrs/random.rs"]
mod random;
#[path = "../../src/netrs/ring.rs"]
mod ring;
#[path = "../../src/netrs/run.rs"]
mod run;
#[path = "../../src/netrs/servers.rs"]
mod servers;
#[path = "../../src/netrs/tree.rs"]
mod tree;
#[path = "../../src/netrs/workload.rs"]
mod workload;
#[path = "../../src/netrs/world.rs"]
mod world;

pub(crate) use cell::{Cell, Keyspace, Network, Placement, Selects};

use deployment::Deployment;
use midflight_cache::select::{Candidates, Server};
use midflight_endpoint::{Nanos, SECOND};
use placing::Placing;
use rand::RngExt;
use random::{Purpose, stream};
use ring::Ring;
use servers::Servers;
use std::collections::VecDeque;
use tree::{Place, Tree};
use workload::Request;
use world::World;

pub(crate) const BEGIN: Nanos = SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// CliRS.
    Clients,
    Racks,
    /// The first of each pod.
    Pods,
    Core,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) at: Nanos,
    pub(crate) client: u32,
    pub(crate) group: u32,
    /// In mean service times of its server.
    pub(crate) work: f64,
}

pub(crate) struct Scenario {
    pub(crate) cell: Cell,
    deployment: Deployment,
    requests: Vec<Request>,
    ring: Ring,
}

impl Scenario {
    /// The real parties need time to get ready, and selectors may depend on the time.
    pub(crate) fn new(cell: Cell) -> Self {
        let mut scenario = Self::from_the_start(cell);
        scenario.requests.iter_mut().for_each(|request| request.at += BEGIN);
        scenario
    }

    /// Reads begin at once, as in a figure's cell.
    pub(crate) fn from_the_start(cell: Cell) -> Self {
        cell.check().unwrap();
        let deployment =
            Deployment::draw(Tree::new(cell.network.unwrap().arity), cell.clients, cell.servers, cell.seed);
        let requests = cell.workload().requests(cell.seed);
        Self { ring: cell.ring(), deployment, requests, cell }
    }

    pub(crate) fn network(&self) -> Network {
        self.cell.network.unwrap()
    }

    fn tree(&self) -> Tree {
        Tree::new(self.network().arity)
    }

    pub(crate) fn racks(&self) -> u32 {
        self.tree().racks()
    }

    pub(crate) fn pod(&self, rack: u32) -> u32 {
        self.tree().pod(rack)
    }

    pub(crate) fn racks_of_clients(&self) -> &[u32] {
        &self.deployment.clients
    }

    pub(crate) fn racks_of_servers(&self) -> &[u32] {
        &self.deployment.servers
    }

    pub(crate) fn groups(&self) -> &[Candidates] {
        self.ring.groups()
    }

    pub(crate) fn reads(&self) -> impl Iterator<Item = Read> + '_ {
        self.requests.iter().map(|&Request { at, client, key, work }| Read {
            at,
            client,
            group: self.ring.group(key) as u32,
            work,
        })
    }

    /// Equal at any time to those of the compact world.
    pub(crate) fn speeds(&self) -> Speeds {
        Speeds(Servers::new(self.cell.server_config(), self.cell.seed))
    }

    pub(crate) fn site_of_client(&self, at: At, client: usize) -> usize {
        self.placing(at).map_or(client, |placing| placing.of_rack[self.deployment.clients[client] as usize] as usize)
    }

    pub(crate) fn sites(&self, at: At) -> usize {
        self.placing(at).map_or(self.deployment.clients.len(), |placing| placing.sites.len())
    }

    /// Empty if clients select.
    pub(crate) fn switches(&self, at: At) -> Vec<SwitchOf> {
        let of = |place: &Place| match *place {
            Place::Rack(rack) => SwitchOf::Rack(rack),
            Place::Aggregation(pod) => SwitchOf::Pod(pod),
            Place::Core => SwitchOf::Core,
        };
        self.placing(at).map_or_else(Vec::new, |placing| placing.sites.iter().map(of).collect())
    }

    fn placing(&self, at: At) -> Option<Placing> {
        let (tree, racks) = (self.tree(), self.racks());
        match at {
            At::Clients => None,
            At::Racks => Some(Placing::tor(tree, &self.deployment.clients)),
            At::Pods => {
                let pods = tree.pod(racks - 1) + 1;
                let sites = (0..pods).map(Place::Aggregation).collect();
                Some(Placing { sites, of_rack: (0..racks).map(|rack| tree.pod(rack)).collect(), bound: None })
            }
            At::Core => Some(Placing { sites: vec![Place::Core], of_rack: vec![0; racks as usize], bound: None }),
        }
    }

    /// By read.
    pub(crate) fn latencies(&self, at: At) -> Vec<Nanos> {
        World::new(&self.cell, &self.deployment, &self.requests, self.placing(at).as_ref()).run(None).latencies
    }

    /// Random bits of each site's choices, in the order of its reads. All ways to a placement's sites are equally long, so reads reach them
    /// in arrival order.
    pub(crate) fn luck(&self, at: At) -> Vec<VecDeque<u64>> {
        let mut random = stream(self.cell.seed, Purpose::Choices, 0);
        let mut luck = vec![VecDeque::new(); self.sites(at)];
        let site_of: Vec<usize> =
            (0..self.deployment.clients.len()).map(|client| self.site_of_client(at, client)).collect();
        for request in &self.requests {
            luck[site_of[request.client as usize]].push_back(random.random());
        }
        if let [only] = &mut luck[..] {
            // With rate control it may choose several times per read.
            only.extend((0..100 * self.requests.len()).map(|_| random.random::<u64>()));
        }
        luck
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchOf {
    Rack(u32),
    /// The first of the pod.
    Pod(u32),
    Core,
}

pub(crate) struct Speeds(Servers<()>);

impl Speeds {
    /// An idle server's expected time is its mean service time.
    pub(crate) fn takes(&mut self, now: Nanos, server: u16, work: f64) -> Nanos {
        (self.0.expected(now, Server(server), 0) * work) as Nanos
    }
}
