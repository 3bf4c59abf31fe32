//! A trial: a cache, its network, its work and its faults, as data. A run is a pure function of it.

use super::smaller;
use crate::check::{self, BadTrial, Common, Net, Pass, keep_place};
use midflight_cache::select::Algorithm;
use serde::{Deserialize, Serialize};

/// Ten minutes: the latest event and the longest duration.
const LONGEST_MS: u64 = 600_000;
const ANSWERED_MAX: u32 = 10_000;
/// Racks of a fat-tree of 4 ports, and its other switches.
const TREE_RACKS: usize = 8;
const TREE_UPPERS: usize = 12;

/// All input of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Seed of all randomness in the world: secrets, delays, losses.
    pub seed: u64,
    /// When all faults end.
    pub heal_ms: u64,
    /// The network outside of faults.
    pub network: Net,
    /// Operators are switches of a fat-tree of 4 ports with hosts; otherwise all nodes are equally distant.
    pub is_tree: bool,
    /// Operators of racks: 1 to 8.
    pub racks: usize,
    /// Operators without hosts: up to 12; in a tree the aggregation switches first.
    pub uppers: usize,
    /// How replicas are selected.
    pub select: Algorithm,
    /// Requests that a selector remembers.
    pub under_way: u32,
    /// Selector's time per datagram.
    pub cost_us: u64,
    /// The hosts of a rack are one traffic group; otherwise each client is one.
    pub is_by_rack: bool,
    /// Controllers: up to 3, the first one active; 0: a script sets the rules.
    #[serde(default)]
    pub controllers: usize,
    /// Controllers use streams, as in production, instead of datagrams.
    #[serde(default)]
    pub has_streams: bool,
    /// Requests per second of an accelerator, as controllers know it; 0: unlimited.
    #[serde(default)]
    pub limit: u32,
    /// Time to detect a silent operator or selector.
    pub detect_ms: u64,
    /// Replica groups: 1 to 64.
    pub groups: usize,
    /// Servers of each: 1 to 8, at most as many as there are.
    pub replicas: usize,
    /// At least one; placed in racks round-robin.
    pub servers: Vec<ServerSpec>,
    /// At least one; placed in racks round-robin, from the last rack on.
    pub clients: Vec<ClientSpec>,
    /// The faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Requests served in parallel.
    pub slots: usize,
    /// Maximum waiting requests.
    pub queue: usize,
    /// Mean service time.
    pub service_us: u64,
    /// Reports its mean.
    pub says_mean: bool,
}

/// A client process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Workers; each does one read at a time.
    pub workers: u32,
    /// Reads of each worker.
    pub reads: u32,
    /// Longest pause after each read.
    pub think_us: u64,
    /// Maximum reads in flight.
    pub under_way: usize,
    /// Selects by itself.
    pub is_direct: bool,
}

/// A fault of a cache.
pub type Fault = check::Fault<FaultKind>;

/// A node, by its place in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Party {
    /// An operator; those of racks come first.
    Operator(usize),
    /// The selector of this operator.
    Selector(usize),
    /// A server.
    Server(usize),
    /// A client.
    Client(usize),
    /// A controller.
    Controller(usize),
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "a fault that docs/checking.md names, with its fields")]
pub enum FaultKind {
    /// The script changes its plan for good: this number gives each traffic group another RSNode. Real controllers get
    /// random plans for the fault's duration, and this number changes the clients' demand.
    Plan(u32),
    /// The script degrades a traffic group for a while (DRS). With real controllers, the group's clients ask without
    /// pause, which may exceed an accelerator's limit.
    Degraded(usize),
    /// The script sets no rules for a while, or all controllers are dead.
    NoController,
    /// For a while, half of the plans for real controllers are wrong: of another number, or breaking constraints.
    WrongPlans,
    /// A spy outside the cache answers this many requests at once.
    Answered(u32),
    /// A server is slow for a while.
    Slow {
        /// The server.
        server: usize,
        /// Factor on its times.
        by: u32,
    },
    /// A server reports random status for a while.
    Absurd(usize),
    /// A server's application does not answer for a while.
    Silent(usize),
    /// An operator reports invented counts for a while.
    Lies(usize),
    /// A common fault.
    #[serde(untagged)]
    Common(Common<Party>),
}

impl From<Common<Party>> for FaultKind {
    fn from(common: Common<Party>) -> Self {
        Self::Common(common)
    }
}

impl check::FaultKind for FaultKind {
    type Party = Party;

    fn common(&self) -> Option<&Common<Party>> {
        if let Self::Common(common) = self { Some(common) } else { None }
    }

    fn without(&mut self, gone: Party) -> bool {
        match self {
            Self::Common(common) => common.without(gone),
            Self::Slow { server, .. } | Self::Absurd(server) | Self::Silent(server) => {
                keep_place(Party::Server, server, gone)
            }
            Self::Lies(operator) => keep_place(Party::Operator, operator, gone),
            Self::Plan(_) | Self::Degraded(_) | Self::NoController | Self::WrongPlans | Self::Answered(_) => true,
        }
    }
}

impl check::Party for Party {
    fn kind(self) -> &'static str {
        match self {
            Self::Operator(_) => "operator",
            Self::Selector(_) => "selector",
            Self::Server(_) => "server",
            Self::Client(_) => "client",
            Self::Controller(_) => "controller",
        }
    }

    fn place(&mut self) -> &mut usize {
        match self {
            Self::Operator(place)
            | Self::Selector(place)
            | Self::Server(place)
            | Self::Client(place)
            | Self::Controller(place) => place,
        }
    }
}

impl check::Trial for Trial {
    type FaultKind = FaultKind;
    const PASSES: &'static [Pass<Self>] = smaller::PASSES;

    check::kept_in_fields!();

    fn size(&self) -> String {
        let reads: u32 = self.clients.iter().map(|client| client.workers * client.reads).sum();
        let (faults, operators, servers) = (self.faults.len(), self.operators(), self.servers.len());
        format!("{faults} faults, {operators} operators, {servers} servers, {reads} reads")
    }

    fn validate(&self) -> Result<(), BadTrial> {
        let check = |is_right: bool, what: String| if is_right { Ok(()) } else { Err(BadTrial(what)) };
        let within = |name: &str, value: usize, least: usize, most: usize| {
            check((least..=most).contains(&value), format!("{name} = {value}: use {least} to {most}"))
        };
        within("racks", self.racks, 1, TREE_RACKS)?;
        within("uppers", self.uppers, 0, TREE_UPPERS)?;
        within("servers", self.servers.len(), 1, 64)?;
        within("clients", self.clients.len(), 1, 64)?;
        within("controllers", self.controllers, 0, 3)?;
        within("groups", self.groups, 1, 64)?;
        within("replicas", self.replicas, 1, self.servers.len().min(8))?;
        within("under_way", self.under_way as usize, 1, 1 << 16)?;
        within("heal_ms", self.heal_ms as usize, 0, LONGEST_MS as usize)?;
        within("detect_ms", self.detect_ms as usize, 1, 10_000)?;
        within("limit", self.limit as usize, 0, 1_000_000)?;
        within("cost_us", self.cost_us as usize, 0, 10_000)?;
        self.network.validate("network")?;
        for server in &self.servers {
            let is_right = (1..=64).contains(&server.slots) && server.queue <= 1_024 && server.service_us <= 100_000;
            check(is_right, format!("{server:?}: use 1 to 64 slots, a queue up to 1024, service_us up to 100000"))?;
        }
        for client in &self.clients {
            let is_right = (1..=64).contains(&client.workers)
                && client.reads <= 100_000
                && client.think_us <= 10_000_000
                && (1..=64).contains(&client.under_way);
            check(
                is_right,
                format!(
                    "{client:?}: use 1 to 64 workers, up to 100000 reads, think_us up to 10000000, under_way 1 to 64"
                ),
            )?;
        }
        self.faults.iter().try_for_each(|fault| self.validate_fault(fault))
    }
}

impl Trial {
    fn validate_fault(&self, fault: &Fault) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(format!("fault at {} ms: {what}", fault.at_ms)));
        if fault.at_ms > LONGEST_MS || fault.for_ms > LONGEST_MS {
            return bad(format!("use times up to {LONGEST_MS} ms"));
        }
        let is_attack = fault.what.is_attack();
        if is_attack && fault.at_ms + fault.for_ms > self.heal_ms {
            return bad(format!("an attack ends with the other faults: at {} ms", self.heal_ms));
        }
        let known = |party: Party| if self.has(party) { Ok(()) } else { bad(format!("there is no {party:?}")) };
        match &fault.what {
            FaultKind::Common(common) => common.validate(|party| self.has(party)).or_else(|BadTrial(why)| bad(why)),
            FaultKind::Slow { by, .. } if *by > 1_000 => bad(format!("by = {by}: use up to 1000")),
            FaultKind::Slow { server, .. } | FaultKind::Absurd(server) | FaultKind::Silent(server) => {
                known(Party::Server(*server))
            }
            FaultKind::Lies(operator) => known(Party::Operator(*operator)),
            FaultKind::Degraded(group) if *group >= self.traffic_groups() => {
                bad(format!("there is no traffic group {group}"))
            }
            FaultKind::Answered(count) if *count > ANSWERED_MAX => bad(format!("use up to {ANSWERED_MAX} answers")),
            FaultKind::Plan(_)
            | FaultKind::Degraded(_)
            | FaultKind::NoController
            | FaultKind::WrongPlans
            | FaultKind::Answered(_) => Ok(()),
        }
    }

    pub(super) fn operators(&self) -> usize {
        self.racks + self.uppers
    }

    pub(super) fn traffic_groups(&self) -> usize {
        if self.is_by_rack { self.racks } else { self.clients.len() }
    }

    pub(super) fn rack_of_server(&self, server: usize) -> usize {
        server % self.racks
    }

    pub(super) fn rack_of_client(&self, client: usize) -> usize {
        (self.racks - 1 + client) % self.racks
    }

    pub(super) fn group_of_client(&self, client: usize) -> usize {
        if self.is_by_rack { self.rack_of_client(client) } else { client }
    }

    pub(super) fn servers_of(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.replicas).map(move |replica| (group + replica) % self.servers.len())
    }

    fn has(&self, party: Party) -> bool {
        match party {
            Party::Operator(n) | Party::Selector(n) => n < self.operators(),
            Party::Server(n) => n < self.servers.len(),
            Party::Client(n) => n < self.clients.len(),
            Party::Controller(n) => n < self.controllers,
        }
    }
}

impl FaultKind {
    pub(super) fn is_attack(&self) -> bool {
        matches!(self, Self::Answered(_)) || check::FaultKind::common(self).is_some_and(Common::is_attack)
    }
}
