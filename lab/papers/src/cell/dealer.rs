//! Distributes a cell's jobs to many clients that take them one by one. Each job is drawn once, regardless of the number of clients, and
//! kept only until its client takes it.

use super::{DrawnJob, Jobs};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

struct Dealer {
    jobs: Jobs,
    shards: usize,
    /// Jobs of each client so far: they go to the shards round robin.
    turns: Vec<usize>,
    /// By client and shard.
    hands: Vec<VecDeque<DrawnJob>>,
}

/// The jobs of one client at one shard.
pub(super) struct Hand {
    dealer: Rc<RefCell<Dealer>>,
    number: usize,
}

/// One hand per client and shard, ordered by client.
pub(super) fn deal(jobs: Jobs, clients: usize, shards: usize) -> impl Iterator<Item = Hand> {
    let hands = (0..clients * shards).map(|_| VecDeque::new()).collect();
    let dealer = Rc::new(RefCell::new(Dealer { jobs, shards, turns: vec![0; clients], hands }));
    (0..clients * shards).map(move |number| Hand { dealer: Rc::clone(&dealer), number })
}

impl Iterator for Hand {
    type Item = DrawnJob;

    fn next(&mut self) -> Option<DrawnJob> {
        let mut dealer = self.dealer.borrow_mut();
        let Dealer { jobs, shards, turns, hands } = &mut *dealer;
        while hands[self.number].is_empty() {
            let job = jobs.next()?;
            let client = job.client as usize;
            turns[client] += 1;
            hands[client * *shards + turns[client] % *shards].push_back(job);
        }
        hands[self.number].pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Cluster, Load, Scheme};
    use super::*;

    #[test]
    fn every_job_is_dealt_once_whoever_asks_first() {
        let load = Load::Mix { short_us: 500.0, long_us: 500.0, short_share: 1.0, load: 0.5, clients: 3 };
        let cluster = Cluster::uniform(2, 8);
        let cell =
            Cell { scheme: Scheme::Midflight, cluster, load, seed: 1, warmup_ms: 0, duration_ms: 20, drain_ms: 1 };
        let all: Vec<_> = Jobs::new(&cell).unwrap().collect();
        let mut hands: Vec<_> = deal(Jobs::new(&cell).unwrap(), 3, 2).collect();
        hands.reverse(); // the last asks first
        let mut dealt: Vec<_> = hands.iter_mut().flat_map(|hand| hand.by_ref().collect::<Vec<_>>()).collect();
        dealt.sort_by_key(|job| job.at);
        assert_eq!(dealt, all);
        let mut hands = deal(Jobs::new(&cell).unwrap(), 3, 2).enumerate();
        assert!(hands.all(|(number, mut hand)| hand.all(|job| job.client as usize == number / 2)));
    }
}
