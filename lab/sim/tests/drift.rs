//! Clocks that drift beyond the set's bound ρ: leases and fences then differ, two switches are active at once, and the
//! checker notices. The same trials hold with sound clocks, and with a bound that covers the drift.

use midflight_dataplane::store::ReplyCheck;
use midflight_sim::check::{Common, Fault, Net, Trial as _, run};
use midflight_sim::store::check::{ClientSpec, FaultKind, Mode, Party, SetSpec, StoreSubject, Trial};

/// Drift of each clock from the world's: two machines may differ by twice this.
const PPM: i32 = 50_000;
/// (1 + 0.05) / (1 - 0.05) is less than 1.11.
const COVERS_PPM: u64 = 110_000;
const SEEDS: std::ops::Range<u64> = 0..8;
/// One of this many shows it: the cut must come just after an echo, and both switches must have requests at the same
/// time.
const MANY: u64 = 100;

/// The leader is cut off from one switch, and later from the other: each time it moves to the one that it reaches when,
/// by its own clock, the session at the other must be over. Its clock is fast, and theirs are slow. The writer moves to
/// the other switch too; the reader is answered by followers.
fn trial(seed: u64, ppm: i32, bound_ppm: u64) -> Trial {
    let clock = |party, ppm| Common::Drift { party, ppm, ahead_ms: 0 };
    let lasting = |what: Common<Party>| Fault { at_ms: 0, for_ms: 900, what: FaultKind::Common(what) };
    let mut faults: Vec<_> = (0..2).map(|place| lasting(clock(Party::Switch(place), -ppm))).collect();
    faults.extend((0..3).map(|place| lasting(clock(Party::Replica(place), ppm))));
    // Heartbeats with the last echo still arrive; the end of the session does not. The time of an echo hardly depends
    // on the seed, so the times of the cuts do.
    let (later, gap) = (seed * 3 % 20, 22 + seed * 7 % 36);
    let cut = |switch, at_ms| {
        let at_ms = at_ms + later;
        let (from, to) = (vec![Party::Switch(switch)], vec![Party::Replica(0)]);
        let part = |both| FaultKind::Common(Common::Partition { from: from.clone(), to: to.clone(), both });
        [
            Fault { at_ms, for_ms: 250, what: part(false) },
            Fault { at_ms: at_ms + gap, for_ms: 250 - gap, what: part(true) },
        ]
    };
    faults.extend([cut(1, 250), cut(0, 550)].concat());
    let client = |reads| ClientSpec { workers: 4, operations: 2_000, think_us: 2_000, reads, lanes: 4 };
    Trial {
        seed,
        heal_ms: 900,
        network: Net { delay_max_us: 100, ..Net::KIND },
        replicas: 3,
        outsiders: 0,
        switches: 2,
        set: SetSpec {
            kgroup_bits: 6,
            keys: 6,
            mode: Mode::Flair,
            reply_check: ReplyCheck::Strict,
            avoids_leader: true,
            is_asic: false,
            client_ids: 64,
            client_idle_ms: 5_000,
            snapshot_after: 1 << 20,
            drift_ppm: bound_ppm,
            learn_ms: 600_000,
        },
        clients: vec![client(1.0), client(0.0), client(0.0)],
        faults,
    }
}

fn broken(seed: u64, ppm: i32, bound_ppm: u64) -> Option<String> {
    let trial = trial(seed, ppm, bound_ppm);
    trial.validate().unwrap_or_else(|error| panic!("{error}"));
    run::<StoreSubject>(&trial).violation.map(|violation| violation.broken.rule.to_string())
}

fn all_broken(ppm: i32, bound_ppm: u64) -> Vec<String> {
    SEEDS.filter_map(|seed| broken(seed, ppm, bound_ppm)).collect()
}

#[test]
fn r4_breaks_where_clocks_drift_beyond_the_bound() {
    let rule = (0..MANY).find_map(|seed| broken(seed, PPM, 0)).expect("no trial shows it");
    assert!(rule == "R1" || rule == "R4", "{rule}");
}

#[test]
fn r1_to_r6_hold_with_the_same_faults_and_sound_clocks() {
    assert_eq!(all_broken(0, 0), Vec::<String>::new());
}

#[test]
fn r1_to_r6_hold_with_the_same_drift_inside_the_bound() {
    assert_eq!(all_broken(PPM, COVERS_PPM), Vec::<String>::new());
}
