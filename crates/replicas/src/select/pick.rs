//! The least of some candidates, or two of them at random. Random bits break ties, each with the same probability but for less than
//! 2⁻²⁸, and nothing else is random in them.

use super::{CANDIDATES_MAX, Candidates, Server};

/// The candidate with the least key. Keys must be ordered: no NaN.
pub(super) fn least<K: PartialOrd + Copy + Default>(
    candidates: &Candidates,
    random: u64,
    mut key: impl FnMut(Server) -> K,
) -> Server {
    let servers = candidates.servers();
    let mut keys = [K::default(); CANDIDATES_MAX];
    let (mut best, mut ties) = (0, 0);
    for (i, &server) in servers.iter().enumerate() {
        keys[i] = key(server);
        if i == 0 || keys[i] < keys[best] {
            (best, ties) = (i, 1);
        } else if keys[i] == keys[best] {
            ties += 1;
        }
    }
    if ties > 1 {
        let nth = below(random as u32, ties);
        let mut tied = (best..servers.len()).filter(|&i| keys[i] == keys[best]);
        best = tied.nth(nth).unwrap_or(best);
    }
    servers[best]
}

/// Two different candidates, all pairs alike; the same one twice where there is no other.
pub(super) fn two(candidates: &Candidates, random: u64) -> [Server; 2] {
    let servers = candidates.servers();
    let first = below(random as u32, servers.len());
    if servers.len() == 1 {
        return [servers[first]; 2];
    }
    let other = below((random >> 32) as u32, servers.len() - 1);
    [servers[first], servers[other + usize::from(other >= first)]]
}

/// One of the candidates, all alike.
pub(super) fn any(candidates: &Candidates, random: u64) -> Server {
    let servers = candidates.servers();
    servers[below(random as u32, servers.len())]
}

/// A number below `count`, by the highest bits of a product (Lemire).
fn below(random: u32, count: usize) -> usize {
    ((u64::from(random) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(servers: &[u16]) -> Candidates {
        Candidates::new(&servers.iter().copied().map(Server).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_least_is_chosen_whatever_is_random() {
        let keys = [5, 3, 4];
        for random in [0, 1 << 31, u64::MAX] {
            assert_eq!(least(&candidates(&[0, 1, 2]), random, |server| keys[usize::from(server.0)]), Server(1));
        }
    }

    #[test]
    fn random_bits_break_ties_evenly() {
        // Of keys 3, 2, 2, 9, 2 three are least. The lower 32 bits decide: a third of them each.
        let keys = [3, 2, 2, 9, 2];
        let of = |random| least(&candidates(&[0, 1, 2, 3, 4]), random, |server| keys[usize::from(server.0)]);
        let third = u64::from(u32::MAX / 3);
        assert_eq!([of(0), of(third + 1), of(2 * third + 2)], [Server(1), Server(2), Server(4)]);
        assert_eq!([of(third), of(u64::from(u32::MAX))], [Server(1), Server(4)]);
    }

    #[test]
    fn two_are_different_and_all_pairs_come() {
        let three = candidates(&[7, 8, 9]);
        let mut seen = std::collections::BTreeSet::new();
        for first in 0..3u64 {
            for other in 0..2u64 {
                // The middle of each part of the range.
                let (low, high) = ((2 * first + 1) * (1 << 31) / 3, (2 * other + 1) << 30);
                let random = (high << 32) | low;
                let [a, b] = two(&three, random);
                assert_ne!(a, b);
                seen.insert((a, b));
            }
        }
        assert_eq!(seen.len(), 6);
        assert_eq!(two(&candidates(&[7]), u64::MAX), [Server(7); 2]);
    }
}
