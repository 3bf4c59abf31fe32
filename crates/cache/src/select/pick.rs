//! Picks the minimum of some candidates, or two at random. Random bits break ties uniformly.

use super::{Candidates, Server};

/// Rotation between tie-breaks, so that each uses other bits.
const TIE_BITS: u32 = 23;

/// The candidate with the least key. Keys must be ordered (no NaN).
pub(super) fn least<K: PartialOrd + Copy>(
    candidates: &Candidates,
    random: u64,
    mut key: impl FnMut(Server) -> K,
) -> Server {
    let servers = candidates.servers();
    let mut best = servers[0];
    let mut least = key(best);
    let mut ties = 1;
    let mut random = random;
    for &server in &servers[1..] {
        let key = key(server);
        let (is_less, is_tie) = (key < least, key == least);
        ties = if is_less { 1 } else { ties + usize::from(is_tie) };
        random = random.rotate_left(TIE_BITS);
        // The newest of k replaces the choice with probability 1/k, which gives each of them 1/k.
        best = either(is_less | (is_tie & (below(random as u32, ties) == ties - 1)), server, best);
        least = if is_less { key } else { least };
    }
    best
}

/// As `least`. Takes half the time if ties are rare, as with scores, but twice if they are frequent, as with small integers.
pub(super) fn least_score(candidates: &Candidates, random: u64, mut score: impl FnMut(Server) -> f64) -> Server {
    let servers = candidates.servers();
    let mut best = servers[0];
    let mut lowest = score(best);
    let mut has_tie = false;
    for &server in &servers[1..] {
        let score = score(server);
        has_tie |= score == lowest;
        best = either(score < lowest, server, best);
        lowest = if score < lowest { score } else { lowest };
    }
    if has_tie { least(candidates, random, score) } else { best }
}

/// `first` if `is_so`. Branch-free, because the condition is unpredictable and a misprediction would wait for all its inputs.
pub(super) fn either(is_so: bool, first: Server, second: Server) -> Server {
    let mask = u16::from(is_so).wrapping_neg();
    Server((first.0 & mask) | (second.0 & !mask))
}

pub(super) fn either_number(is_so: bool, first: f64, second: f64) -> f64 {
    let mask = u64::from(is_so).wrapping_neg();
    f64::from_bits((first.to_bits() & mask) | (second.to_bits() & !mask))
}

/// Two different candidates, all pairs equally likely; one candidate twice if there is no other.
pub(super) fn two(candidates: &Candidates, random: u64) -> [Server; 2] {
    let servers = candidates.servers();
    let first = below(random as u32, servers.len());
    if servers.len() == 1 {
        return [servers[first]; 2];
    }
    let other = below((random >> 32) as u32, servers.len() - 1);
    [servers[first], servers[other + usize::from(other >= first)]]
}

pub(super) fn any(candidates: &Candidates, random: u64) -> Server {
    let servers = candidates.servers();
    servers[below(random as u32, servers.len())]
}

/// Lemire's method: the upper bits of a product.
fn below(random: u32, count: usize) -> usize {
    ((u64::from(random) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

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
    fn scores_have_the_same_least_as_other_keys() {
        let mut random = Pcg64::seed_from_u64(2);
        for _ in 0..10_000 {
            let scores: [u8; 6] = std::array::from_fn(|_| random.random_range(0..9));
            let (six, bits) = (candidates(&[0, 1, 2, 3, 4, 5]), random.random());
            let of_keys = least(&six, bits, |server| scores[usize::from(server.0)]);
            assert_eq!(least_score(&six, bits, |server| scores[usize::from(server.0)].into()), of_keys, "{scores:?}");
        }
    }

    #[test]
    fn random_bits_break_ties_evenly() {
        // Of keys 3, 2, 2, 9, 2, 2 four are least.
        let keys = [3, 2, 2, 9, 2, 2];
        let six = candidates(&[0, 1, 2, 3, 4, 5]);
        let mut random = Pcg64::seed_from_u64(1);
        let mut chosen = [0; 6];
        for _ in 0..40_000 {
            chosen[usize::from(least(&six, random.random(), |server| keys[usize::from(server.0)]).0)] += 1;
        }
        assert!([1, 2, 4, 5].iter().all(|&i: &usize| (9_700..10_300).contains(&chosen[i])), "{chosen:?}");
        assert_eq!((chosen[0], chosen[3]), (0, 0));
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
