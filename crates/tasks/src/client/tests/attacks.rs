//! T16: after attacks and faults, every task ends once, within a stated time.

use super::faults::{fair, live_through};
use super::world::{Attacks, Faults};
use super::*;
use proptest::prelude::*;

/// End of the faults and attacks.
const CALM_FROM: Nanos = 4_000 * MS;
/// Time after that in which every task ends: the client leaves a silent switch after 1 s, probes a preferred one each second,
/// asks a full one within 1 s, and makes the last attempts.
const HEALED_AFTER: Nanos = 5_000 * MS;
/// At a switch that keeps no record, a lost task is submitted again after at most 64 times `ClientConfig::timeout`.
const MISSED_AFTER: Nanos = 640_000 * MS;

fn attacks() -> impl Strategy<Value = Faults> {
    let network = (any::<u64>(), 0..30_u32, 0..20_u32, 1..50_u64, 100..400_usize, 0..4_usize);
    let attackers = (any::<bool>(), any::<bool>(), 0..60_u32, 0..5_usize, 0..4_usize, 0..3_usize);
    let no_record = prop::bool::weighted(0.1);
    let caller = (0..10_u32, 0..30_u32, prop::option::of(20..500_u64), 1..300_usize);
    (network, attackers, caller, no_record).prop_map(|(network, attackers, caller, no_record)| Faults {
        seed: network.0,
        lost: network.1,
        repeated: network.2,
        delay_max: network.3 * MS,
        capacity: network.4,
        switch_deaths: network.5,
        failed: 5,
        abandoned: 5,
        by_reference: 10,
        fetch_fails: 5,
        executor_dies: caller.0,
        no_record,
        cancelled: caller.1,
        timeout: caller.2.map(|ms| ms * MS),
        retry_failed: true,
        tasks: caller.3,
        attacks: Attacks {
            strict: attackers.0,
            alone: attackers.1,
            forged: attackers.2,
            swaps: attackers.3,
            moves: attackers.4,
            stops: attackers.5,
        },
        calm_from: CALM_FROM,
        end: CALM_FROM + HEALED_AFTER + if no_record { MISSED_AFTER } else { 0 },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t16_every_task_ends_once_within_5_s_of_the_last_mischief(faults in attacks()) {
        live_through(faults)?;
    }
}

/// Without real attacks the property would prove little.
#[test]
fn t16_the_attacks_and_faults_really_happen() {
    let mut faults = Faults { capacity: 100, delay_max: 40 * MS, lost: 10, repeated: 10, ..fair() };
    faults.attacks = Attacks { strict: true, alone: false, forged: 40, swaps: 3, moves: 2, stops: 1 };
    (faults.switch_deaths, faults.executor_dies) = (2, 5);
    (faults.calm_from, faults.end) = (CALM_FROM, CALM_FROM + HEALED_AFTER);
    let mut seen = [0; 11];
    for seed in 0..10 {
        let c = live_through(Faults { seed, ..faults.clone() }).unwrap();
        let answers = [c.cookies, c.old_epoch, c.too_old, c.bad_answers, c.unexpected_answers];
        let remedies = [c.gone, c.resubmitted, c.failovers, c.over_share, c.unproven, c.other_version];
        seen.iter_mut().zip(answers.into_iter().chain(remedies)).for_each(|(all, one)| *all += one);
    }
    assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
}
