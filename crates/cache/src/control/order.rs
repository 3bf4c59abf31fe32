//! The rule that an order sets, and the order in which rules are set.

use midflight_dataplane::cache::{Rule, RuleOrder};
use midflight_wire::cache::control::{Order, RuleRecord};
use std::net::{IpAddr, SocketAddr};

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
    Order::Rule(RuleOrder::from(rule).record())
}

/// The rule in a record; `None` if it has none.
#[must_use]
pub fn rule(record: &RuleRecord) -> Option<Rule> {
    let rule = RuleOrder::from(record).rule()?;
    let is_nowhere = matches!(rule, Rule::Server { address, .. } | Rule::Operator(address) if address.port() == 0);
    (!is_nowhere).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_it_was_made_of() {
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
