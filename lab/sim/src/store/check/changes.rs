//! Membership changes combined with other faults: a replica joins, leaves, or is replaced, while others crash, are
//! partitioned or paused. Each has its own random stream, so that the rest of a trial does not change.

use super::draw::{cut, island, pick};
use super::trial::{ClientSpec, Fault, FaultKind, Mode, Party, Trial};
use crate::check::Common;
use midflight_wire::store::REPLICAS_MAX;
use rand::RngExt;
use rand_pcg::Pcg64;

/// After the first session has begun.
const BEGINS_MS: u64 = 350;
const LASTS_MS: u64 = 700;

pub(super) fn add(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(0.6) {
        return;
    }
    let replicas = pick(random, &[1, 3, 3, 5, 5, 7]);
    trial.replicas = trial.replicas.max(replicas);
    trial.outsiders = pick(random, &[0, 1, 1, 2]).min(REPLICAS_MAX - trial.replicas);
    trial.set.learn_ms = pick(random, &[200, 1_000, 600_000]);
    trial.heal_ms = trial.heal_ms.max(BEGINS_MS + LASTS_MS + 100);
    let faults = match random.random_range(0..10) {
        0 | 8 if trial.replicas >= 5 => shrinking(random, trial),
        9 if trial.replicas >= 3 => last_one(random, trial),
        1 if trial.outsiders > 0 => leader_with_learner(random, trial),
        2 if trial.replicas >= 5 => small_half(random, trial),
        _ => (0..random.random_range(1..=3)).flat_map(|_| change(random, trial)).collect(),
    };
    trial.faults.extend(faults);
}

fn fault(at_ms: u64, for_ms: u64, what: impl Into<FaultKind>) -> Fault {
    Fault { at_ms, for_ms, what: what.into() }
}

fn change(random: &mut Pcg64, trial: &Trial) -> Vec<Fault> {
    let at_ms = random.random_range(BEGINS_MS..trial.heal_ms - 50);
    let place = random.random_range(0..trial.places());
    let what = if place >= trial.replicas {
        FaultKind::Join(place)
    } else if trial.replicas >= 3 && random.random_bool(0.3) {
        FaultKind::Wipe(place)
    } else {
        FaultKind::Leave { replica: place, returns: random.random_bool(0.5) }
    };
    let mut faults = vec![fault(at_ms, random.random_range(1..400), what.clone())];
    if random.random_bool(0.1) {
        faults.push(fault(at_ms + random.random_range(0..100), 1, what));
    }
    if random.random_bool(0.7) {
        faults.push(meets(random, trial, at_ms, place));
    }
    faults
}

fn meets(random: &mut Pcg64, trial: &Trial, at_ms: u64, place: usize) -> Fault {
    let at_ms = at_ms + random.random_range(0..80);
    let leader = if random.random_bool(0.7) { 0 } else { random.random_range(0..trial.replicas) };
    let other = random.random_range(0..trial.places());
    let party = Party::Replica;
    let for_ms = pick(random, &[3, 40, 130, 300, 600]);
    match random.random_range(0..9) {
        0 => fault(at_ms, for_ms, Common::Crash(party(leader))),
        1 => fault(at_ms, for_ms, Common::Crash(party(place))),
        2 => fault(at_ms, for_ms, FaultKind::PowerCut),
        3 => fault(at_ms, for_ms, island(trial, vec![Party::Switch(0), party(leader)], random.random_bool(0.7))),
        4 => fault(at_ms, for_ms, cut(party(leader), party(place), random.random_bool(0.7))),
        5 => fault(at_ms, for_ms, FaultKind::SlowDisk { replica: leader, by: random.random_range(10..200) }),
        6 => fault(at_ms, for_ms, FaultKind::SlowDisk { replica: place, by: random.random_range(10..200) }),
        7 => fault(at_ms, 1, FaultKind::Transfer(place)),
        _ => fault(
            at_ms,
            for_ms,
            FaultKind::Leave { replica: other.min(trial.replicas - 1), returns: random.random_bool(0.5) },
        ),
    }
}

/// Two members leave in quick succession; then they and a third one that stays, together an earlier majority, are cut
/// off from the others. The third may restart.
fn shrinking(random: &mut Pcg64, trial: &mut Trial) -> Vec<Fault> {
    busy(random, trial);
    let at_ms = random.random_range(BEGINS_MS..=trial.heal_ms - LASTS_MS);
    // The operator acts every 20 ms, and a change takes a round.
    let cut_ms = at_ms + if random.random_bool(0.5) { random.random_range(20..25) } else { random.random_range(1..60) };
    let last = trial.replicas - 1;
    let leaves = |replica| FaultKind::Leave { replica, returns: false };
    let mut faults =
        vec![fault(at_ms, 1, leaves(last)), fault(at_ms + pick(random, &[0, 0, 10, 30]), 1, leaves(last - 1))];
    let staying = (0..trial.replicas / 2).map(Party::Replica);
    let staying = staying.chain((0..trial.switches).map(Party::Switch)).collect();
    faults.push(fault(cut_ms, random.random_range(300..600), island(trial, staying, true)));
    if random.random_bool(0.6) {
        let third = Party::Replica(trial.replicas / 2);
        faults.push(fault(cut_ms + random.random_range(1..30), random.random_range(1..5), Common::Crash(third)));
    }
    faults
}

/// All but the first leave; the last of them is renewed as soon as it has left, while the first one restarts. There are
/// no writes, so no other entry follows.
fn last_one(random: &mut Pcg64, trial: &mut Trial) -> Vec<Fault> {
    let apart_ms = random.random_range(45..75);
    trial.clients.iter_mut().for_each(|client| client.reads = 1.0);
    let last = trial.replicas - 1;
    let at_ms = random.random_range(BEGINS_MS..=trial.heal_ms - LASTS_MS);
    let leave = |place: usize| {
        let what = FaultKind::Leave { replica: place, returns: place == last };
        fault(at_ms + apart_ms * (place as u64 - 1), 1, what)
    };
    let mut faults: Vec<Fault> = (1..=last).map(leave).collect();
    let restarts_ms = at_ms + apart_ms * (last as u64 - 1) + random.random_range(20..80);
    faults.push(fault(restarts_ms, random.random_range(1..5), Common::Crash(Party::Replica(0))));
    faults
}

/// The leader's disk is slow, so that it has no snapshot for a new member, which stays a learner. Then only the
/// learner, a switch and a client hear the leader.
fn leader_with_learner(random: &mut Pcg64, trial: &mut Trial) -> Vec<Fault> {
    busy(random, trial);
    trial.replicas = trial.replicas.max(3);
    trial.outsiders = trial.outsiders.min(REPLICAS_MAX - trial.replicas);
    let at_ms = random.random_range(BEGINS_MS..=trial.heal_ms - LASTS_MS);
    let learner = trial.replicas;
    let alone = island(trial, vec![Party::Switch(0), Party::Replica(0), Party::Replica(learner)], true);
    vec![
        fault(at_ms, 600, FaultKind::SlowDisk { replica: 0, by: random.random_range(50..300) }),
        fault(at_ms, 1, FaultKind::Join(learner)),
        fault(at_ms + random.random_range(30..200), random.random_range(250..400), alone),
    ]
}

/// The leader of a larger set keeps one follower, or two of seven: less than a majority.
fn small_half(random: &mut Pcg64, trial: &mut Trial) -> Vec<Fault> {
    busy(random, trial);
    let at_ms = random.random_range(BEGINS_MS..=trial.heal_ms - LASTS_MS);
    let mut side: Vec<Party> = (0..trial.replicas / 2).map(Party::Replica).collect();
    side.push(Party::Switch(0));
    let mut faults = vec![fault(at_ms, random.random_range(250..600), island(trial, side, random.random_bool(0.8)))];
    if trial.outsiders > 0 {
        faults.push(fault(at_ms - random.random_range(0..60), 1, FaultKind::Join(trial.replicas)));
    }
    faults
}

/// Two switches, and two busy clients: one only reads, so unanswered writes do not block it; the other also writes.
fn busy(random: &mut Pcg64, trial: &mut Trial) {
    trial.switches = 2;
    trial.set.mode = Mode::Flair;
    let think_us = pick(random, &[1_000, 10_000, 300_000]);
    let worker =
        |reads, think_us| ClientSpec { workers: 4, operations: trial.heal_ms as u32, think_us, reads, lanes: 16 };
    let workers = [worker(1.0, 1_000), worker(0.5, think_us)];
    trial.clients.splice(0..trial.clients.len().min(2), workers);
}
