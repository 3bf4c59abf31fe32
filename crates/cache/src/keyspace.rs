//! Maps keys to servers: a key hashes to a slot, which belongs to the servers that rank highest for it (rendezvous hashing: Thaler and
//! Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM Transactions on Networking 6(1), 1998). If a server joins or
//! leaves, only its own slots move.
//!
//! A slot is a replica group. Its id contains the keyspace's version, which must increase with each change of the servers, so that an id
//! always means the same servers (N3).

use crate::select::CANDIDATES_MAX;
use midflight_wire::Address;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use thiserror::Error;
use twox_hash::XxHash3_64;
use zerocopy::IntoBytes;

/// Slots of a keyspace. With 100 servers and 3 replicas, a server has about 123 ± 12 slots.
pub const SLOTS: u16 = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;
/// Largest version; ids of replica groups have 24 bits.
pub const VERSION_MAX: u16 = (1 << (24 - SLOT_BITS)) - 1;

/// Why a keyspace is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyspaceError {
    /// Too many replicas, or none.
    #[error(
        "{replicas} replicas of each key on {servers} servers: from 1 to {CANDIDATES_MAX}, and not more than there are servers"
    )]
    Replicas {
        /// Replicas of each key.
        replicas: usize,
        /// Servers.
        servers: usize,
    },
    /// A server is listed twice.
    #[error("server {0} is there twice")]
    Twice(SocketAddr),
    /// The version exceeds [`VERSION_MAX`].
    #[error("version {0} of the keyspace: from 0 to {VERSION_MAX}")]
    Version(u16),
}

/// Maps keys to servers. Equal if servers (in any order), number of replicas and version are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    version: u16,
    replicas: usize,
    /// The replicas of each slot, slot by slot.
    servers: Vec<SocketAddr>,
}

impl Keyspace {
    /// Places `replicas` replicas of each key on these servers.
    ///
    /// # Errors
    /// Why the arguments are invalid.
    pub fn new(servers: &[SocketAddr], replicas: usize, version: u16) -> Result<Self, KeyspaceError> {
        if replicas == 0 || replicas > CANDIDATES_MAX.min(servers.len()) {
            return Err(KeyspaceError::Replicas { replicas, servers: servers.len() });
        }
        if version > VERSION_MAX {
            return Err(KeyspaceError::Version(version));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = servers.iter().find(|server| !seen.insert(**server)) {
            return Err(KeyspaceError::Twice(*twice));
        }
        let servers = (0..SLOTS).flat_map(|slot| highest(servers, replicas, slot)).collect();
        Ok(Self { version, replicas, servers })
    }

    /// The replica group of a key.
    #[must_use]
    pub fn group(&self, key: &[u8]) -> u32 {
        let slot = XxHash3_64::oneshot(key) >> (u64::BITS - SLOT_BITS);
        self.id(slot as u16)
    }

    fn id(&self, slot: u16) -> u32 {
        u32::from(self.version) << SLOT_BITS | u32::from(slot)
    }

    /// The servers of a replica group, by rank; empty for a group of another version.
    #[must_use]
    pub fn servers(&self, group: u32) -> &[SocketAddr] {
        if group >> SLOT_BITS != u32::from(self.version) {
            return &[];
        }
        let first = (group as usize % usize::from(SLOTS)) * self.replicas;
        &self.servers[first..first + self.replicas]
    }

    /// All replica groups with their servers.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &[SocketAddr])> {
        (0..SLOTS).map(|slot| (self.id(slot), self.servers(self.id(slot))))
    }
}

fn highest(servers: &[SocketAddr], count: usize, slot: u16) -> impl Iterator<Item = SocketAddr> {
    let rank = |server: &SocketAddr| XxHash3_64::oneshot_with_seed(slot.into(), Address::from(*server).as_bytes());
    let mut ranked: Vec<(u64, SocketAddr)> = servers.iter().map(|server| (rank(server), *server)).collect();
    // If ranks collide, the address decides, independent of the servers' order.
    ranked.sort_unstable_by(|one, other| other.cmp(one));
    ranked.into_iter().take(count).map(|(_, server)| server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: u8) -> Vec<SocketAddr> {
        (0..count).map(|n| ([10, 0, 0, n], 7800).into()).collect()
    }

    /// Clients, agents and controllers of all releases must agree.
    #[test]
    fn keys_stay_where_they_are_in_every_release() {
        let keyspace = Keyspace::new(&servers(5), 3, 2).unwrap();
        let group = keyspace.group(b"user:1001");
        let last: Vec<String> = keyspace.servers(group).iter().map(ToString::to_string).collect();
        assert_eq!((group, last.join(" ").as_str()), (10_115, "10.0.0.1:7800 10.0.0.3:7800 10.0.0.0:7800"));
        // XXH3 of the empty string is 2d06800538d394c2, as published: slot 2d0 of version 2.
        assert_eq!(keyspace.group(b""), 0x22d0);
    }

    #[test]
    fn each_server_has_about_its_share() {
        let all = servers(20);
        let keyspace = Keyspace::new(&all, 3, 0).unwrap();
        let share = usize::from(SLOTS) * 3 / all.len();
        for server in &all {
            let has = keyspace.groups().filter(|(_, servers)| servers.contains(server)).count();
            assert!(has.abs_diff(share) < share / 5, "{server} has {has} slots of {share}");
        }
    }

    #[test]
    fn a_server_that_joins_takes_its_share_and_nothing_else_moves() {
        let (before, after) = (servers(9), servers(10));
        let [old, new] = [&before, &after].map(|servers| Keyspace::new(servers, 3, 0).unwrap());
        let joined = after[9];
        let mut taken = 0;
        for ((group, was), (_, is)) in old.groups().zip(new.groups()) {
            let kept: Vec<_> = is.iter().filter(|server| **server != joined).collect();
            assert!(kept.iter().zip(was).all(|(one, other)| **one == *other), "group {group}: {was:?}, then {is:?}");
            taken += usize::from(is.contains(&joined));
        }
        let share = usize::from(SLOTS) * 3 / 10;
        assert!(taken.abs_diff(share) < share / 5, "{taken} of {share}");
    }

    /// N3: an id always means the same servers, if the version increases with each change.
    #[test]
    fn n3_ids_of_two_versions_are_different() {
        let [one, two] = [0, 1].map(|version| Keyspace::new(&servers(4), 2, version).unwrap());
        let ids: BTreeSet<u32> = one.groups().chain(two.groups()).map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 2 * usize::from(SLOTS));
        assert!(ids.iter().all(|id| id >> 24 == 0));
        assert!(two.servers(one.group(b"key")).is_empty());
        assert_eq!(two.servers(two.group(b"key")), one.servers(one.group(b"key")));
    }

    #[test]
    fn the_order_of_the_servers_does_not_matter() {
        let mut turned = servers(7);
        turned.reverse();
        assert_eq!(Keyspace::new(&turned, 3, 5), Keyspace::new(&servers(7), 3, 5));
    }

    #[test]
    fn what_is_no_keyspace_is_refused_by_name() {
        let error = |servers: &[SocketAddr], replicas, version| {
            Keyspace::new(servers, replicas, version).unwrap_err().to_string()
        };
        assert!(error(&servers(2), 3, 0).starts_with("3 replicas of each key on 2 servers"));
        assert!(error(&servers(2), 0, 0).starts_with("0 replicas"));
        assert!(error(&servers(20), 9, 0).starts_with("9 replicas"));
        assert_eq!(error(&[servers(1)[0]; 2], 1, 0), "server 10.0.0.0:7800 is there twice");
        assert_eq!(error(&servers(1), 1, 4_096), "version 4096 of the keyspace: from 0 to 4095");
    }
}
