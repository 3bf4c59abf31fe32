//! A bounded table of next hops by host.

use midflight_endpoint::Nanos;
use midflight_p4::live::NextHop;
use std::collections::HashMap;
use std::net::Ipv4Addr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// The host has not moved.
    Known,
    /// New or moved, perhaps in place of a silent host.
    New {
        instead_of: Option<Ipv4Addr>,
    },
    Full,
}

#[derive(Debug)]
pub(super) struct Hosts {
    /// With the time of each host's last packet.
    known: HashMap<Ipv4Addr, (NextHop, Nanos)>,
    most: usize,
    /// After this silence a host may be replaced.
    idle: Nanos,
}

impl Hosts {
    pub(super) fn new(most: usize, idle: Nanos) -> Self {
        Self { known: HashMap::new(), most, idle }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn learn(&mut self, now: Nanos, host: Ipv4Addr, next: NextHop) -> Learned {
        if let Some((known, heard)) = self.known.get_mut(&host) {
            *heard = now;
            let is_there = std::mem::replace(known, next) == next;
            return if is_there { Learned::Known } else { Learned::New { instead_of: None } };
        }
        let mut instead_of = None;
        if self.known.len() >= self.most {
            let silent = self.known.iter().min_by_key(|(_, (_, heard))| *heard);
            let silent = silent.filter(|(_, (_, heard))| now.saturating_sub(*heard) >= self.idle);
            let Some((&silent, _)) = silent else { return Learned::Full };
            self.known.remove(&silent);
            instead_of = Some(silent);
        }
        self.known.insert(host, (next, now));
        Learned::New { instead_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(port: u16) -> NextHop {
        NextHop { port, mac: [2, 0, 0, 0, 0, 1] }
    }

    #[test]
    fn t14_a_full_table_makes_room_only_for_the_silent() {
        let [a, b, c] = [1, 2, 3].map(|host| Ipv4Addr::new(10, 0, 0, host));
        let mut hosts = Hosts::new(2, 100);
        assert_eq!(hosts.learn(0, a, hop(0)), Learned::New { instead_of: None });
        assert_eq!(hosts.learn(10, b, hop(0)), Learned::New { instead_of: None });
        assert_eq!(hosts.learn(90, a, hop(0)), Learned::Known);
        assert_eq!(hosts.learn(95, a, hop(1)), Learned::New { instead_of: None }, "elsewhere");
        assert_eq!(hosts.learn(109, c, hop(0)), Learned::Full);
        assert_eq!(hosts.learn(110, c, hop(0)), Learned::New { instead_of: Some(b) });
        assert_eq!((hosts.len(), hosts.learn(111, b, hop(0))), (2, Learned::Full));
    }
}
