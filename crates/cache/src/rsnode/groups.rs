//! Replica groups and their servers. With consistent hashing there is one per virtual node, so the map is small.

use crate::select::{Candidates, CandidatesError, Server};
use std::collections::HashMap;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a replica group is not set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupError {
    /// The server is not among those given to the RSNode.
    #[error("replica group {0}: there is no server {1}")]
    UnknownServer(u32, SocketAddr),
    /// The bound on servers is reached.
    #[error("replica group {0}: no room for server {1}: raise the bound on servers")]
    NoRoomForServer(u32, SocketAddr),
    /// The bound on replica groups is reached.
    #[error("no room for replica group {0}: raise the bound on replica groups")]
    NoRoomForGroup(u32),
    /// The servers are not valid candidates.
    #[error("replica group {0}: {1}")]
    Candidates(u32, CandidatesError),
    /// The group has other servers. An id is never reused for other replicas (N3): a request in flight would reach servers without its
    /// key.
    #[error("replica group {0} has other servers: give these a new id")]
    Reused(u32),
    /// The id exceeds 24 bits.
    #[error("replica group {0}: ids have 24 bits")]
    TooLarge(u32),
}

#[derive(Debug)]
pub(crate) struct Groups {
    addresses: Vec<SocketAddr>,
    servers: HashMap<SocketAddr, Server>,
    groups: HashMap<u32, Candidates>,
    /// Set if servers are learned from groups.
    most: Option<Most>,
}

/// Bounds of an RSNode that learns its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Servers.
    pub servers: u16,
    /// Replica groups.
    pub groups: usize,
}

impl Groups {
    pub(crate) fn new(addresses: &[SocketAddr]) -> Self {
        let numbered = addresses.iter().zip(0..=u16::MAX).map(|(&address, number)| (address, Server(number)));
        Self { addresses: addresses.to_vec(), servers: numbered.collect(), groups: HashMap::new(), most: None }
    }

    /// Learns servers from the groups.
    pub(crate) fn learning(most: Most) -> Self {
        Self { most: Some(most), ..Self::new(&[]) }
    }

    /// By number.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(crate) fn set(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        if group >> 24 != 0 {
            return Err(GroupError::TooLarge(group));
        }
        let mut new = Vec::new();
        let numbers = servers.iter().map(|&server| self.number(group, server, &mut new));
        let mut numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        numbers.sort_unstable();
        let candidates = Candidates::new(&numbers).map_err(|error| GroupError::Candidates(group, error))?;
        match self.groups.get(&group) {
            Some(before) if *before == candidates => return Ok(()),
            Some(_) => return Err(GroupError::Reused(group)),
            None if self.most.is_some_and(|most| self.groups.len() >= most.groups) => {
                return Err(GroupError::NoRoomForGroup(group));
            }
            None => {}
        }
        for server in new {
            self.servers.insert(server, Server(self.addresses.len() as u16));
            self.addresses.push(server);
        }
        self.groups.insert(group, candidates);
        Ok(())
    }

    /// The number of a server. A new server's is valid once the group is set.
    fn number(&self, group: u32, server: SocketAddr, new: &mut Vec<SocketAddr>) -> Result<Server, GroupError> {
        if let Some(known) = self.server(server) {
            return Ok(known);
        }
        let Some(most) = self.most else { return Err(GroupError::UnknownServer(group, server)) };
        let place = new.iter().position(|other| *other == server).unwrap_or_else(|| {
            new.push(server);
            new.len() - 1
        });
        let number = u16::try_from(self.addresses.len() + place).ok().filter(|number| *number < most.servers);
        number.map(Server).ok_or(GroupError::NoRoomForServer(group, server))
    }

    pub(crate) fn get(&self, group: u32) -> Option<Candidates> {
        self.groups.get(&group).copied()
    }

    pub(crate) fn server(&self, address: SocketAddr) -> Option<Server> {
        self.servers.get(&address).copied()
    }

    pub(crate) fn has_server(&self, address: SocketAddr) -> bool {
        self.servers.contains_key(&address)
    }

    pub(crate) fn address(&self, server: Server) -> Option<SocketAddr> {
        self.addresses.get(usize::from(server.0)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> SocketAddr {
        ([10, 0, 0, number], 7800).into()
    }

    #[test]
    fn n3_a_replica_groups_id_is_never_used_for_other_servers() {
        let mut groups = Groups::new(&[address(1), address(2), address(3)]);
        assert_eq!(groups.set(7, &[address(1), address(3)]), Ok(()));
        assert_eq!(groups.get(7).map(|group| group.servers().to_vec()), Some(vec![Server(0), Server(2)]));
        assert_eq!(groups.set(7, &[address(3), address(1)]), Ok(()), "the same again");
        assert_eq!(groups.set(7, &[address(1), address(2)]), Err(GroupError::Reused(7)));
        assert_eq!(groups.get(7).map(|group| group.servers().to_vec()), Some(vec![Server(0), Server(2)]));
    }

    #[test]
    fn n8_groups_that_make_no_sense_are_refused() {
        let mut groups = Groups::new(&[address(1)]);
        assert_eq!(groups.set(1, &[address(2)]), Err(GroupError::UnknownServer(1, address(2))));
        assert_eq!(groups.set(1, &[]), Err(GroupError::Candidates(1, CandidatesError::None)));
        let twice = Err(GroupError::Candidates(1, CandidatesError::Twice(Server(0))));
        assert_eq!(groups.set(1, &[address(1), address(1)]), twice);
        assert_eq!(groups.set(1 << 24, &[address(1)]), Err(GroupError::TooLarge(1 << 24)));
        assert_eq!(groups.get(1), None);
    }

    #[test]
    fn n8_servers_are_learned_from_groups_up_to_a_bound() {
        let mut groups = Groups::learning(Most { servers: 3, groups: 2 });
        let twice = Err(GroupError::Candidates(1, CandidatesError::Twice(Server(0))));
        assert_eq!(groups.set(1, &[address(1), address(1)]), twice);
        assert!(!groups.has_server(address(1)), "a group that is refused teaches nothing");
        assert_eq!(groups.set(1, &[address(1), address(2)]), Ok(()));
        let full = Err(GroupError::NoRoomForServer(2, address(4)));
        assert_eq!(groups.set(2, &[address(3), address(4)]), full);
        assert_eq!(groups.set(2, &[address(3), address(2)]), Ok(()));
        assert_eq!(groups.get(2).map(|group| group.servers().to_vec()), Some(vec![Server(1), Server(2)]));
        assert_eq!(groups.address(Server(2)), Some(address(3)));
        assert_eq!(groups.set(3, &[address(1)]), Err(GroupError::NoRoomForGroup(3)));
        assert_eq!(groups.set(1, &[address(1), address(2)]), Ok(()), "the same again");
    }
}
