//! Read balancing: replicas report their load, and the leader derives the switch's weights from it. `docs/internals/store-replica.md`,
//! "Balancing".

use super::config::Timing;
use midflight_endpoint::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Interval of weight changes and of load reports, in heartbeats.
const HEARTBEATS: u64 = 5;
/// Largest relative change of a weight at once.
const STEP: f64 = 1.0 / 8.0;
/// Part of a weight's deficit that each change restores for a replica without a queue.
const RETURN: f64 = 1.0 / 32.0;
/// Queue length that is not yet load.
const LIGHT: f64 = 1.0;
/// Longer queues count as this one.
const QUEUE_MAX: f64 = 1000.0;
const EVEN: f64 = 100.0;
/// An even share in a HEARTBEAT.
pub(super) const EVEN_SHARE: u8 = EVEN as u8;

/// A replica's report: READs since it started, and the sum of the queue lengths they found. Both only grow, so reports may be lost or
/// repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) reads: u64,
    pub(super) queued_before: u64,
}

impl Load {
    /// Mean queue length that READs found since `earlier`. `None` without READs, or after a restart.
    fn queue_since(self, earlier: Self) -> Option<f64> {
        let reads = self.reads.checked_sub(earlier.reads).filter(|reads| *reads > 0)?;
        let before = self.queued_before.checked_sub(earlier.queued_before)?;
        Some((before as f64 / reads as f64).min(QUEUE_MAX))
    }
}

/// Measures a replica's own load. All datagrams of one turn of the driver have the same time: they arrived while it was busy.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    turn: Nanos,
    taken: u64,
    behind: u64,
    pub(super) load: Load,
}

impl Gauge {
    /// Begins a turn that leaves `behind` datagrams in the socket. The queue was about as long when the datagrams of this turn arrived.
    pub(super) fn begin_turn(&mut self, behind: u64) {
        self.behind = behind;
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.taken = if now == self.turn { self.taken + 1 } else { 1 };
        self.turn = now;
    }

    /// The datagram is a READ; `waiting` earlier ones are unanswered.
    pub(super) fn read(&mut self, waiting: usize) {
        self.load.reads = self.load.reads.wrapping_add(1);
        let found = self.taken.saturating_sub(1).saturating_add(self.behind).saturating_add(waiting as u64);
        self.load.queued_before = self.load.queued_before.wrapping_add(found);
    }
}

#[derive(Clone, Copy, Debug)]
struct Share {
    reported: Load,
    weighed: Load,
    /// Relative to an even share, at most 1.
    weight: f64,
}

/// A leader's weights. All start at an even share.
#[derive(Debug, Default)]
pub(super) struct Balance {
    shares: BTreeMap<u64, Share>,
    next: Nanos,
}

impl Balance {
    /// A member's first report only sets the base of its counts.
    pub(super) fn report(&mut self, member: u64, load: Load) {
        let first = Share { reported: load, weighed: load, weight: 1.0 };
        self.shares.entry(member).or_insert(first).reported = load;
    }

    pub(super) fn weigh(&mut self, now: Nanos, timing: &Timing, leader: u64, is_member: impl Fn(u64) -> bool) {
        if now < self.next {
            return;
        }
        self.next = now + HEARTBEATS * timing.heartbeat;
        self.shares.retain(|id, _| is_member(*id));
        let usual = self.usual_queue(leader);
        for share in self.shares.values_mut() {
            let queue = share.reported.queue_since(share.weighed);
            let pressure = queue.zip(usual).map_or(0.0, |(queue, usual)| (usual - queue) / (usual + queue + LIGHT));
            share.weight *= 1.0 + STEP * pressure;
            share.weight += RETURN * (1.0 - share.weight) / (1.0 + queue.unwrap_or(0.0));
            share.weight = share.weight.min(1.0);
            share.weighed = share.reported;
        }
    }

    /// Mean queue length of the followers, the reference for all replicas. The leader's own depends on the switch's policy, which is
    /// unknown here.
    fn usual_queue(&self, leader: u64) -> Option<f64> {
        let followers = self.shares.iter().filter(|(id, _)| **id != leader);
        let queues: Vec<f64> = followers.filter_map(|(_, share)| share.reported.queue_since(share.weighed)).collect();
        (!queues.is_empty()).then(|| queues.iter().sum::<f64>() / queues.len() as f64)
    }

    /// 1 to 100.
    pub(super) fn weight(&self, member: u64) -> u8 {
        let share = self.shares.get(&member).map_or(1.0, |share| share.weight);
        (share * EVEN).round().clamp(1.0, EVEN) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    /// Leader 1 and followers.
    struct Set {
        now: Nanos,
        balance: Balance,
        loads: BTreeMap<u64, Load>,
    }

    impl Set {
        fn new() -> Self {
            let mut set = Self { now: 0, balance: Balance::default(), loads: BTreeMap::new() };
            set.pass(1, &[(1, 0), (2, 0), (3, 0)]);
            set
        }

        /// Runs `changes` changes; before each, 100 READs find these queue lengths.
        fn pass(&mut self, changes: u32, queues: &[(u64, u64)]) {
            for _ in 0..changes {
                self.now += 100 * MS;
                for &(id, queue) in queues {
                    let load = self.loads.entry(id).or_default();
                    load.reads += 100;
                    load.queued_before += 100 * queue;
                    self.balance.report(id, *load);
                }
                self.balance.weigh(self.now, &Timing::default(), 1, |id| id != 4);
            }
        }

        fn weights(&self) -> [u8; 3] {
            [1, 2, 3].map(|id| self.balance.weight(id))
        }
    }

    #[test]
    fn who_has_a_longer_queue_gets_less_and_later_as_much_as_before() {
        let mut set = Set::new();
        assert_eq!(set.weights(), [100; 3]);
        set.pass(30, &[(1, 0), (2, 0), (3, 7)]);
        let [leader, fast, slow] = set.weights();
        assert!((leader, fast) == (100, 100) && (10..50).contains(&slow), "{:?}", set.weights());
        set.pass(30, &[(1, 0), (2, 3), (3, 0)]);
        assert_eq!(set.balance.weight(3), 100);
    }

    #[test]
    fn without_reports_or_reads_all_get_the_same_again() {
        let mut set = Set::new();
        set.pass(1000, &[(1, 0), (2, 0), (3, 900)]);
        assert_eq!(set.balance.weight(3), 1);
        set.pass(20, &[(1, 0), (2, 0)]);
        assert!((30..70).contains(&set.balance.weight(3)), "{:?}", set.weights());
        set.pass(100, &[]);
        assert!(set.weights().iter().all(|weight| *weight >= 95), "{:?}", set.weights());
    }

    #[test]
    fn one_change_is_a_small_one() {
        let mut set = Set::new();
        set.pass(1, &[(1, 0), (2, 0), (3, 1_000_000)]);
        assert!(set.balance.weight(3) >= 87);
    }

    #[test]
    fn a_leader_is_compared_with_its_followers() {
        let mut set = Set::new();
        set.pass(30, &[(1, 7), (2, 1), (3, 1)]);
        let [leader, others @ ..] = set.weights();
        assert!(leader < 50 && others == [100; 2], "{:?}", set.weights());
    }

    #[test]
    fn a_replica_that_starts_again_or_lies_does_no_harm() {
        let mut set = Set::new();
        set.pass(3, &[(1, 1), (2, 1), (3, 1)]);
        set.loads.insert(3, Load::default());
        set.pass(1, &[(1, 1), (2, 1), (3, 1)]);
        assert_eq!(set.weights(), [100; 3]);
        for reads in [0, 1, u64::MAX] {
            for before in [0, u64::MAX] {
                set.balance.report(2, Load { reads, queued_before: before });
                set.pass(1, &[(1, 1), (3, 1)]);
            }
        }
        assert!(set.weights().iter().all(|weight| *weight > 50), "{:?}", set.weights());
        set.balance.report(4, Load::default());
        set.pass(1, &[]);
        assert!(!set.balance.shares.contains_key(&4), "no member");
    }

    #[test]
    fn a_read_finds_those_before_it() {
        let mut gauge = Gauge::default();
        for (now, waiting) in [(1, 0), (1, 0), (1, 0), (2, 0), (3, 5)] {
            gauge.take(now);
            gauge.read(waiting);
        }
        assert_eq!(gauge.load, Load { reads: 5, queued_before: 1 + 2 + 5 });
    }

    #[test]
    fn a_read_finds_about_as_many_as_are_left_behind_it() {
        let mut gauge = Gauge::default();
        for (now, behind) in [(1, 40), (2, 30), (3, 0)] {
            gauge.begin_turn(behind);
            gauge.take(now);
            gauge.read(0);
        }
        assert_eq!(gauge.load, Load { reads: 3, queued_before: 40 + 30 });
    }
}
