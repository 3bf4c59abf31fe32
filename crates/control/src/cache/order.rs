//! The rule that an order sets, and the order in which rules are set.

use midflight_dataplane::cache::Rule;
use midflight_wire::cache::control::{Order, RuleRecord};
use midflight_wire::cache::{ILLEGAL_RSNODE, NO_RSNODE};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `MF_NO_RACK` and `MF_NO_GROUP`.
const NONE: u16 = 65535;
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The subject of a rule. Rules of one operator are set in the order of their keys, because each needs those before it.
///
/// An operator is set before its rack or RSNode, otherwise its answers are refused. Servers come before requests, so that degraded requests
/// reach them. A selector has its replica groups before its operator serves. Hosts come last, so that no request meets half of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The operator's own rack and selector.
    Own,
    /// Another operator.
    Operator(SocketAddr),
    /// A rack.
    Rack(u16),
    /// A server.
    Server(SocketAddr),
    /// A replica group.
    ReplicaGroup(u32),
    /// The number of selectors.
    Selectors,
    /// An RSNode id.
    RsNode(u16),
    /// The label of a traffic group.
    Group(u16),
    /// A host.
    Host(IpAddr),
}

impl Key {
    /// The subject of a rule; `None` for [`Rule::Gone`], which removes what is at an address.
    #[must_use]
    pub fn of(rule: &Rule) -> Option<Self> {
        Some(match *rule {
            Rule::Own { .. } => Self::Own,
            Rule::Rack { rack, .. } => Self::Rack(rack),
            Rule::Host { ip, .. } => Self::Host(ip),
            Rule::Server { address, .. } => Self::Server(address),
            Rule::Operator(address) => Self::Operator(address),
            Rule::RsNode { id, .. } | Rule::Serve(id) => Self::RsNode(id),
            Rule::Group { group, .. } => Self::Group(group),
            Rule::Gone(_) => return None,
        })
    }

    /// The rule that removes the one of this key; `None`: it is the selector's.
    #[must_use]
    pub fn removal(self) -> Option<Rule> {
        Some(match self {
            Self::Own => Rule::Own { rack: None, selector: None },
            Self::Operator(address) | Self::Server(address) => Rule::Gone(address),
            Self::Host(ip) => Rule::Gone(SocketAddr::new(ip, 0)),
            Self::Rack(rack) => Rule::Rack { rack, operator: None, marker: 0 },
            Self::RsNode(id) => Rule::RsNode { id, operator: None },
            Self::Group(group) => Rule::Group { group, rsnode: None },
            Self::ReplicaGroup(_) | Self::Selectors => return None,
        })
    }
}

/// An order that sets this rule.
#[must_use]
pub fn order(rule: Rule) -> Order {
    let mut record = RuleRecord { what: 0, rack: 0, group: 0, rsnode: 0, marker: 0, address: NOWHERE };
    let at = |address: Option<SocketAddr>| address.unwrap_or(NOWHERE);
    record.what = match rule {
        Rule::Own { rack, selector } => {
            (record.rack, record.address) = (rack.unwrap_or(NONE), at(selector));
            0
        }
        Rule::Rack { rack, operator, marker } => {
            (record.rack, record.address, record.marker) = (rack, at(operator), marker);
            1
        }
        Rule::Host { ip, rack, group } => {
            (record.rack, record.group, record.address) = (rack, group.unwrap_or(NONE), SocketAddr::new(ip, 0));
            2
        }
        Rule::Server { address, rack } => {
            (record.rack, record.address) = (rack, address);
            3
        }
        Rule::Operator(address) => {
            record.address = address;
            4
        }
        Rule::Gone(address) => {
            record.address = address;
            5
        }
        Rule::RsNode { id, operator } => {
            (record.rsnode, record.address) = (id, at(operator));
            6
        }
        Rule::Serve(id) => {
            record.rsnode = id;
            7
        }
        Rule::Group { group, rsnode } => {
            (record.group, record.rsnode) = (group, rsnode.unwrap_or(ILLEGAL_RSNODE));
            8
        }
    };
    Order::Rule(record)
}

/// The rule in a record; `None` if it has none.
#[must_use]
pub fn rule(record: &RuleRecord) -> Option<Rule> {
    let RuleRecord { what, rack, group, rsnode, marker, address } = *record;
    let at = (address.port() != 0).then_some(address);
    Some(match what {
        0 => Rule::Own { rack: (rack != NONE).then_some(rack), selector: at },
        1 => Rule::Rack { rack, operator: at, marker },
        2 => Rule::Host { ip: address.ip(), rack, group: (group != NONE).then_some(group) },
        3 => Rule::Server { address: at?, rack },
        4 => Rule::Operator(at?),
        5 => Rule::Gone(address),
        6 => Rule::RsNode { id: rsnode, operator: at },
        7 => Rule::Serve(rsnode),
        8 => Rule::Group { group, rsnode: Some(rsnode).filter(|id| ![ILLEGAL_RSNODE, NO_RSNODE].contains(id)) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_dataplane::cache::RuleOrder;

    #[test]
    fn a_record_says_what_the_operators_core_reads() {
        let address = SocketAddr::from(([10, 0, 0, 1], 7000));
        for said in [
            Rule::Own { rack: None, selector: Some(address) },
            Rule::Own { rack: Some(0), selector: None },
            Rule::Rack { rack: 1, operator: Some(address), marker: 7 },
            Rule::Rack { rack: 1, operator: None, marker: 0 },
            Rule::Host { ip: address.ip(), rack: 1, group: Some(1) },
            Rule::Host { ip: address.ip(), rack: 1, group: None },
            Rule::Server { address, rack: 1 },
            Rule::Operator(address),
            Rule::Gone(address),
            Rule::RsNode { id: 2, operator: None },
            Rule::RsNode { id: 2, operator: Some(address) },
            Rule::Serve(2),
            Rule::Group { group: 1, rsnode: Some(1) },
            Rule::Group { group: 1, rsnode: None },
        ] {
            let Order::Rule(record) = order(said) else { panic!("{said:?} is the operator's") };
            assert_eq!(rule(&record), Some(said));
            assert_eq!(RuleOrder::from(said).rule(), Some(said), "the numbers of rules are those of the core");
        }
        let Order::Rule(record) = order(Rule::Serve(1)) else { panic!() };
        assert_eq!(rule(&RuleRecord { what: 9, ..record }), None);
        assert_eq!(rule(&RuleRecord { what: 3, ..record }), None, "a server without a port");
    }

    #[test]
    fn keys_are_in_the_order_in_which_an_operator_that_starts_gets_its_rules() {
        let (ip, address) = (IpAddr::from([10, 0, 0, 1]), SocketAddr::from(([10, 0, 0, 1], 7000)));
        let keys = [
            Key::Own,
            Key::Operator(address),
            Key::Rack(0),
            Key::Server(address),
            Key::ReplicaGroup(1),
            Key::Selectors,
            Key::RsNode(1),
            Key::Group(0),
            Key::Host(ip),
        ];
        assert!(keys.is_sorted());
    }
}
