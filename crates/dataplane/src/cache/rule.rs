//! Orders to an operator: set or remove one of the controller's rules, or read counts.

use super::TIERS_MAX;
use midflight_wire::Address;
use midflight_wire::cache::control::RuleRecord;
use midflight_wire::cache::{CANDIDATES_MAX, ILLEGAL_RSNODE, NO_RSNODE};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use zerocopy::FromZeros;

/// `MF_NO_RACK`: operator without hosts.
const NO_RACK: u16 = 65535;
/// `MF_NO_GROUP`: host that sends no requests.
const NO_GROUP: u16 = 65535;
/// The address in a record that has none.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A rule. Racks and groups are numbered from 0, RSNode ids from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// This operator.
    Own {
        /// Its rack, if it has hosts.
        rack: Option<u16>,
        /// Its selector, if it has one.
        selector: Option<SocketAddr>,
    },
    /// A rack.
    Rack {
        /// Number of the rack.
        rack: u16,
        /// Its operator; `None` removes the rack.
        operator: Option<SocketAddr>,
        /// Marker of its servers' answers.
        marker: u32,
    },
    /// A host.
    Host {
        /// Address of the host.
        ip: IpAddr,
        /// Rack of the host.
        rack: u16,
        /// The traffic group of its requests, if it sends any.
        group: Option<u16>,
    },
    /// A server.
    Server {
        /// Address of the server.
        address: SocketAddr,
        /// Rack of the server.
        rack: u16,
    },
    /// Another operator: packets from there are not a host's.
    Operator(SocketAddr),
    /// Removes the server or operator at this address; with port 0: the host.
    Gone(SocketAddr),
    /// The operator of an RSNode id.
    RsNode {
        /// The RSNode id.
        id: u16,
        /// Its operator; `None`: removed, or not responding.
        operator: Option<SocketAddr>,
    },
    /// Assigns an RSNode id to this operator.
    Serve(u16),
    /// The RSNode of a traffic group.
    Group {
        /// Number of the group.
        group: u16,
        /// The RSNode's id; `None`: the group is degraded.
        rsnode: Option<u16>,
    },
}

/// Outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Done.
    Done = 0,
    /// The configured number of places, servers or replica groups is reached, or too many hashes collide.
    NoRoom = 1,
    /// Out of bounds; or a selector has the address of a server or operator, or vice versa; or the replica group already has other servers,
    /// or the operator does not select itself.
    Bad = 2,
}

/// An order: `struct mf_cache_order`. It sets a [`Rule`], or, if the operator selects itself, a replica group's servers or the number of
/// selectors.
#[repr(C)]
#[derive(Clone, Copy, FromZeros)]
pub struct RuleOrder {
    address: Address,
    marker: u32,
    rack: u16,
    group: u16,
    rsnode: u16,
    what: u8,
    outcome: u8,
    number: u32,
    count: u32,
    servers: [Address; CANDIDATES_MAX],
    counts: [u64; TIERS_MAX],
}

/// `enum mf_cache_what`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum What {
    Own = 0,
    Rack = 1,
    Host = 2,
    Server = 3,
    Operator = 4,
    Gone = 5,
    RsNode = 6,
    Serve = 7,
    Group = 8,
    Counts = 9,
    Replicas = 10,
    Selectors = 11,
}

/// `MF_RULE_END`.
#[cfg(test)]
pub(super) const RULES: usize = 12;

impl From<Rule> for RuleOrder {
    fn from(rule: Rule) -> Self {
        let mut order = Self::new_zeroed();
        let at = |address: Option<SocketAddr>| address.map_or_else(Address::new_zeroed, Address::from);
        match rule {
            Rule::Own { rack, selector } => {
                (order.what, order.rack, order.address) = (What::Own as u8, rack.unwrap_or(NO_RACK), at(selector));
            }
            Rule::Rack { rack, operator, marker } => {
                (order.what, order.rack, order.address, order.marker) = (What::Rack as u8, rack, at(operator), marker);
            }
            Rule::Host { ip, rack, group } => {
                (order.what, order.rack, order.group) = (What::Host as u8, rack, group.unwrap_or(NO_GROUP));
                order.address = SocketAddr::new(ip, 0).into();
            }
            Rule::Server { address, rack } => {
                (order.what, order.rack, order.address) = (What::Server as u8, rack, address.into());
            }
            Rule::Operator(address) => (order.what, order.address) = (What::Operator as u8, address.into()),
            Rule::Gone(address) => (order.what, order.address) = (What::Gone as u8, address.into()),
            Rule::RsNode { id, operator } => {
                (order.what, order.rsnode, order.address) = (What::RsNode as u8, id, at(operator));
            }
            Rule::Serve(id) => (order.what, order.rsnode) = (What::Serve as u8, id),
            Rule::Group { group, rsnode } => {
                (order.what, order.group, order.rsnode) = (What::Group as u8, group, rsnode.unwrap_or(ILLEGAL_RSNODE));
            }
        }
        order
    }
}

impl From<&RuleRecord> for RuleOrder {
    fn from(record: &RuleRecord) -> Self {
        let RuleRecord { what, rack, group, rsnode, marker, address } = *record;
        Self { what, rack, group, rsnode, marker, address: address.into(), ..Self::new_zeroed() }
    }
}

impl std::fmt::Debug for RuleOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.rule(), self.counted_group()) {
            (Some(rule), _) => f.debug_tuple("RuleOrder").field(&rule).finish(),
            (None, Some(group)) => f.debug_struct("RuleOrder").field("counts_of", &group).finish(),
            (None, None) => {
                f.debug_struct("RuleOrder").field("what", &self.what).field("number", &self.number).finish()
            }
        }
    }
}

impl RuleOrder {
    /// An order that reads the monitor's counts of a traffic group.
    #[must_use]
    pub fn counts_of(group: u16) -> Self {
        Self { what: What::Counts as u8, group, ..Self::new_zeroed() }
    }

    /// The traffic group whose counts it reads, for engines in Rust.
    #[must_use]
    pub fn counted_group(&self) -> Option<u16> {
        (self.what == What::Counts as u8).then_some(self.group)
    }

    /// The result of [`RuleOrder::counts_of`], once done: answers by the highest tier passed, 0 the topmost.
    #[must_use]
    pub fn counts(&self) -> [u64; TIERS_MAX] {
        self.counts
    }

    /// Sets the counts, for engines in Rust.
    pub fn set_counts(&mut self, counts: [u64; TIERS_MAX]) {
        self.counts = counts;
    }

    /// An order that sets a replica group's servers. A known group is not changed (N3).
    #[must_use]
    pub fn replica_group(group: u32, servers: &[SocketAddr]) -> Self {
        let mut order = Self::new_zeroed();
        (order.what, order.number) = (What::Replicas as u8, group);
        // Too many are refused by their count.
        order.count = u32::try_from(servers.len()).unwrap_or(u32::MAX);
        order.servers.iter_mut().zip(servers).for_each(|(place, &server)| *place = server.into());
        order
    }

    /// An order that sets the number of selectors that share the same servers.
    #[must_use]
    pub fn selectors(selectors: u32) -> Self {
        Self { what: What::Selectors as u8, number: selectors, ..Self::new_zeroed() }
    }

    /// The rule that it sets, as a controller's record.
    #[must_use]
    pub fn record(&self) -> RuleRecord {
        let Self { what, rack, group, rsnode, marker, .. } = *self;
        let address = SocketAddr::from(self.address);
        let address = if address.ip().is_unspecified() { NOWHERE } else { address };
        RuleRecord { what, rack, group, rsnode, marker, address }
    }

    /// The rule that it sets, for engines in Rust; `None` if it sets none.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        let address = SocketAddr::from(self.address);
        let at = (address.port() != 0).then_some(address);
        Some(match self.what {
            what if what == What::Own as u8 => {
                Rule::Own { rack: (self.rack != NO_RACK).then_some(self.rack), selector: at }
            }
            what if what == What::Rack as u8 => Rule::Rack { rack: self.rack, operator: at, marker: self.marker },
            what if what == What::Host as u8 => {
                Rule::Host { ip: address.ip(), rack: self.rack, group: (self.group != NO_GROUP).then_some(self.group) }
            }
            what if what == What::Server as u8 => Rule::Server { address, rack: self.rack },
            what if what == What::Operator as u8 => Rule::Operator(address),
            what if what == What::Gone as u8 => Rule::Gone(address),
            what if what == What::RsNode as u8 => Rule::RsNode { id: self.rsnode, operator: at },
            what if what == What::Serve as u8 => Rule::Serve(self.rsnode),
            what if what == What::Group as u8 => {
                let rsnode = ![ILLEGAL_RSNODE, NO_RSNODE].contains(&self.rsnode);
                Rule::Group { group: self.group, rsnode: rsnode.then_some(self.rsnode) }
            }
            _ => return None,
        })
    }

    /// Its outcome, valid once it is done.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.outcome {
            0 => Outcome::Done,
            1 => Outcome::NoRoom,
            _ => Outcome::Bad,
        }
    }

    /// Sets its outcome, for engines in Rust.
    pub fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome as u8;
    }
}
