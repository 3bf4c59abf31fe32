//! T16: no bad state lasts until a restart. After any faults, an executor serves the switch that remains.

mod faults;
mod network;
mod switch;

use super::*;
use network::{NO_FAULTS, Network};
use proptest::prelude::*;
use switch::Switch;

/// Lease of all switches, which the executor also assumes.
const LEASE: Nanos = 1_000 * MS;
/// The bound in `docs/internals/endpoints.md`: two leases of a silent switch, or the wait after a refusal (6.25 s), and some
/// repeats of REGISTER.
const HEALED_WITHIN: Nanos = 8 * LEASE;

impl Network {
    /// Ends all faults; these switches are alive.
    fn end_faults(&mut self, alive: &[u8]) {
        self.network_faults = NO_FAULTS;
        self.at = alive.iter().map(|&address| (switch(address), usize::from(address))).collect();
        for switch in &mut self.switches {
            (switch.room, switch.tasks) = (1_000, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn t16_every_slot_serves_the_switch_that_is_there_when_faults_end(
        slots in prop::sample::select(vec![1u32, 5, 40]),
        seed in any::<u64>(),
        polled in any::<[bool; 3]>(),
        run_time in prop::sample::select(vec![10 * MS, MS / 10]),
        story in prop::collection::vec(faults::fault(), 1..80),
        (addresses, alive) in prop::sample::select(vec![(1u8, vec![1u8]), (2, vec![1]), (2, vec![2]), (2, vec![1, 2])]),
    ) {
        let switches = (0..3).map(|index| Switch::new(1 + index as u32, polled[index])).collect();
        let mut network = Network::new(slots, seed, addresses, switches);
        network.run_time = run_time;
        network.switches[0].tasks = 300;
        network.run(100 * MS);
        story.into_iter().for_each(|fault| network.suffer(fault));
        network.end_faults(&alive);
        network.run(HEALED_WITHIN);
        prop_assert_eq!(network.executor.registered(), slots);
        prop_assert_eq!(network.executor.switch(), switch(alive[0]));
        // As many endless tasks as slots: each slot gets one.
        network.functions_end = false;
        let here = network.here;
        let met = usize::from(alive[0]);
        network.switches[met].tasks = slots;
        network.run(LEASE / 2);
        prop_assert_eq!((network.executor.running(), network.switches[met].tasks), (slots, 0));
        if !network.switches[met].is_polled() {
            prop_assert_eq!(network.switches[met].assigned(here), slots as usize);
        }
    }
    /// T1: a task that an executor reports as done has run, also if it was prefetched, whatever the network does.
    #[test]
    fn t1_what_the_switch_is_told_is_done_has_run(
        slots in prop::sample::select(vec![1u32, 2, 5]),
        seed in any::<u64>(),
        long in prop::sample::select(vec![0u32, 3]),
        story in prop::collection::vec(faults::of_the_network(), 1..60),
    ) {
        let switches = (0..3).map(|index| Switch::new(1 + index as u32, false)).collect();
        let mut network = Network::new(slots, seed, 1, switches);
        network.run_time = MS / 10;
        network.switches[0].tasks = 200;
        network.run(300 * MS);
        let before = network.executor.counters().polls_ahead + network.executor.counters().taken_early;
        prop_assume!(before > 0); // it prefetches, with nearly all seeds
        network.long = long;
        for fault in story {
            network.suffer(fault);
            network.run(MS);
        }
        network.network_faults = NO_FAULTS;
        network.run(LEASE);
        for done in &network.switches[0].done {
            prop_assert!(network.ran.contains(done), "{done:?} of {} has not run", network.switches[0].done.len());
        }
    }
}
