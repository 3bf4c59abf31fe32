//! Replica groups: which servers have a key. With consistent hashing there are as many as virtual nodes, so a map of them is small.

use crate::select::{Candidates, CandidatesError, Server};
use std::collections::HashMap;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a replica group is not set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupError {
    /// It must be among the servers that the RSNode was made with.
    #[error("replica group {0}: there is no server {1}")]
    UnknownServer(u32, SocketAddr),
    /// None, too many, or one twice.
    #[error("replica group {0}: {1}")]
    Candidates(u32, CandidatesError),
    /// An id is never used again for other replicas (N3): a request under way would reach servers that do not have its key.
    #[error("replica group {0} has other servers: give these a new id")]
    Reused(u32),
    /// Ids have 24 bits.
    #[error("replica group {0}: ids have 24 bits")]
    TooLarge(u32),
}

#[derive(Debug)]
pub(crate) struct Groups {
    addresses: Vec<SocketAddr>,
    servers: HashMap<SocketAddr, Server>,
    groups: HashMap<u32, Candidates>,
}

impl Groups {
    pub(crate) fn new(addresses: &[SocketAddr]) -> Self {
        let numbered = addresses.iter().zip(0..=u16::MAX).map(|(&address, number)| (address, Server(number)));
        Self { addresses: addresses.to_vec(), servers: numbered.collect(), groups: HashMap::new() }
    }

    pub(crate) fn set(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        if group >> 24 != 0 {
            return Err(GroupError::TooLarge(group));
        }
        let known = |&server: &SocketAddr| self.server(server).ok_or(GroupError::UnknownServer(group, server));
        let mut servers = servers.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        servers.sort_unstable();
        let candidates = Candidates::new(&servers).map_err(|error| GroupError::Candidates(group, error))?;
        match self.groups.insert(group, candidates) {
            Some(before) if before != candidates => {
                self.groups.insert(group, before);
                Err(GroupError::Reused(group))
            }
            _ => Ok(()),
        }
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
}
