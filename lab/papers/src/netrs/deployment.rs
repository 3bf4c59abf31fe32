//! Places clients and servers on random hosts, each host with one role (section V-A).

use super::random::{Purpose, stream};
use super::tree::Tree;
use rand::seq::index::sample;

/// The rack of each client and of each server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deployment {
    pub(super) clients: Vec<u32>,
    pub(super) servers: Vec<u32>,
}

impl Deployment {
    /// There must be enough hosts.
    pub(super) fn draw(tree: Tree, clients: u32, servers: u16, seed: u64) -> Self {
        let mut random = stream(seed, Purpose::Hosts, 0);
        let (clients, all) = (clients as usize, clients as usize + usize::from(servers));
        let hosts = sample(&mut random, tree.hosts() as usize, all);
        let mut racks: Vec<u32> = hosts.iter().map(|host| tree.rack_of_host(host as u32)).collect();
        let servers = racks.split_off(clients);
        Self { clients: racks, servers }
    }

    /// Without a network.
    pub(super) fn together(clients: u32, servers: u16) -> Self {
        Self { clients: vec![0; clients as usize], servers: vec![0; usize::from(servers)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_has_two_roles_and_seeds_differ() {
        let tree = Tree::new(4);
        let of = |seed| Deployment::draw(tree, 10, 6, seed);
        let (one, other) = (of(1), of(2));
        assert_ne!(one, other);
        let mut racks: Vec<u32> = one.clients.iter().chain(&one.servers).copied().collect();
        racks.sort_unstable();
        assert_eq!(racks, (0..8).flat_map(|rack| [rack; 2]).collect::<Vec<_>>(), "16 hosts are 2 in each of 8 racks");
    }
}
