//! Consistent hashing: a key belongs to the servers of the next points on the ring.

use super::random::hashed;
use midflight_cache::select::{Candidates, Server};

#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// Sorted. Keys up to this point have the group at its index.
    points: Vec<u64>,
    groups: Vec<Candidates>,
}

impl Ring {
    /// Each key has `replication` servers, at most 8 and at most all.
    #[must_use]
    pub(super) fn new(servers: u16, points_each: u32, replication: usize, seed: u64) -> Self {
        let point = |server, i| hashed(hashed(seed ^ (u64::from(server) << 32)) ^ u64::from(i));
        let all = (0..servers).flat_map(|server| (0..points_each).map(move |i| (point(server, i), Server(server))));
        Self::of_points(all.collect(), replication)
    }

    /// As in C3's public simulator: one point per server, equally spaced, in numerical order.
    #[must_use]
    pub(super) fn even(servers: u16, replication: usize) -> Self {
        let point = |server| (u64::MAX / u64::from(servers)).wrapping_mul(u64::from(server) + 1);
        Self::of_points((0..servers).map(|server| (point(server), Server(server))).collect(), replication)
    }

    fn of_points(mut points: Vec<(u64, Server)>, replication: usize) -> Self {
        points.sort_unstable();
        let group = |first: usize| {
            let mut replicas: Vec<Server> = Vec::with_capacity(replication);
            for (_, server) in points[first..].iter().chain(&points[..first]) {
                if replicas.len() == replication {
                    break;
                }
                if !replicas.contains(server) {
                    replicas.push(*server);
                }
            }
            Candidates::new(&replicas).expect("1 to 8 servers, each once")
        };
        let groups = (0..points.len()).map(group).collect();
        Self { points: points.into_iter().map(|(point, _)| point).collect(), groups }
    }

    #[must_use]
    pub(super) fn group(&self, key: u64) -> usize {
        self.points.partition_point(|&point| point < key) % self.points.len()
    }

    #[must_use]
    pub(super) fn groups(&self) -> &[Candidates] {
        &self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_the_next_different_servers_of_the_ring() {
        let points = vec![(10, Server(0)), (20, Server(1)), (30, Server(1)), (40, Server(2))];
        let ring = Ring::of_points(points, 2);
        let of = |key| ring.groups()[ring.group(key)].servers().to_vec();
        assert_eq!(of(10), [Server(0), Server(1)]);
        assert_eq!(of(11), [Server(1), Server(2)]);
        assert_eq!(of(25), [Server(1), Server(2)], "the second point of server 1 is no other replica");
        assert_eq!(of(35), [Server(2), Server(0)]);
        assert_eq!(of(41), [Server(0), Server(1)], "behind the last");
    }

    #[test]
    fn each_server_has_about_its_part_of_the_keys() {
        let ring = Ring::new(100, 100, 3, 1);
        assert!(ring.groups().iter().all(|group| group.servers().len() == 3));
        let mut keys = [0; 100];
        for key in 0..100_000 {
            ring.groups()[ring.group(hashed(key))].servers().iter().for_each(|server| keys[usize::from(server.0)] += 1);
        }
        // About 3,000 each; a server's share varies by a tenth with 100 points, less with replicas.
        assert!(keys.iter().all(|count| (2_000..4_000).contains(count)), "{keys:?}");
    }

    #[test]
    fn an_even_ring_gives_all_the_same() {
        let ring = Ring::even(100, 3);
        let mut keys = [0; 100];
        (0..100_000).for_each(|key| keys[ring.group(hashed(key))] += 1);
        assert!(keys.iter().all(|count| (850..1_150).contains(count)), "{keys:?}");
        assert_eq!(ring.groups()[99].servers(), [Server(99), Server(0), Server(1)]);
    }
}
