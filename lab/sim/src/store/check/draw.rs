//! Draws a trial from a seed. Few keys and key groups make operations collide; short times make much happen.

use super::trial::{ClientSpec, Fault, FaultKind, Kind, Mode, PPM_MAX, Party, SetSpec, Trial};
use super::{changes, scenes};
use crate::check::{Common, Net};
use crate::random::{Purpose, stream};
use midflight_dataplane::store::ReplyCheck;
use rand::RngExt;
use rand_pcg::Pcg64;

/// If all clocks drift, each differs from the world's by this, within the set's bound: 1.05 / 0.95 is less than 1.11.
pub(super) const FARTHEST_PPM: i32 = 50_000;
pub(super) const DRIFT_PPM: u64 = 110_000;

impl Trial {
    /// The trial of this seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = stream(seed, Purpose::Faults, 1);
        let random = &mut random;
        let is_calm = random.random_bool(0.1);
        let replicas = pick(random, &[3, 3, 3, 3, 5, 1]);
        let switches = pick(random, &[1, 2, 2]);
        let set = set(random);
        let heal_ms = random.random_range(1_200..3_000);
        let clients = (0..random.random_range(1..=3)).map(|_| client(random, heal_ms)).collect();
        let network = network(random);
        let (outsiders, faults) = (0, Vec::new());
        let mut trial = Self { seed, heal_ms, network, replicas, outsiders, switches, set, clients, faults };
        if !is_calm {
            let mut faults: Vec<Fault> = (0..random.random_range(1..=5)).map(|_| fault(random, &trial)).collect();
            (0..random.random_range(0..=3)).for_each(|_| faults.extend(storm(random, &trial)));
            if random.random_bool(0.4) {
                trial.set.drift_ppm = DRIFT_PPM;
                faults.extend(clocks(random, &trial));
            }
            trial.faults = faults;
        }
        add_more(&mut stream(seed, Purpose::Faults, 2), &mut trial);
        changes::add(&mut stream(seed, Purpose::Faults, 3), &mut trial);
        trial.faults.sort_by_key(|fault| fault.at_ms);
        choose_mode(&mut stream(seed, Purpose::Faults, 3), &mut trial);
        let random = &mut stream(seed, Purpose::Faults, 4);
        if random.random_bool(0.04) {
            scenes::clocks_apart(random, &mut trial);
        }
        return_directly(&mut stream(seed, Purpose::Faults, 5), &mut trial);
        let random = &mut stream(seed, Purpose::Faults, 6);
        if random.random_bool(0.03) {
            scenes::disk_that_is_lost_unseen(random, &mut trial);
        }
        trial
    }
}

/// Replaces the drawn mode in some trials. (The draw is older than these modes, and finds most mutants.)
fn choose_mode(random: &mut Pcg64, trial: &mut Trial) {
    let mode = if trial.replicas == 1 {
        Mode::Unreplicated
    } else {
        pick(random, &[Mode::FollowerLease, Mode::FollowerLease, Mode::FollowerReadIndex])
    };
    if random.random_bool(0.25) {
        trial.set.mode = mode;
    }
}

/// In some trials replicas reply to clients directly, and in some of these the network blocks it: to some clients, or
/// from one replica.
fn return_directly(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(0.75) {
        return;
    }
    trial.set.reply_check = ReplyCheck::Direct;
    let blocked = match random.random_range(0..4) {
        0 => (all_replicas(trial), vec![Party::Client(random.random_range(0..trial.clients.len()))]),
        1 => (vec![Party::Replica(random.random_range(0..trial.places()))], all_clients(trial)),
        _ => return,
    };
    let what = Common::Partition { from: blocked.0, to: blocked.1, both: false }.into();
    let at_ms = if random.random_bool(0.5) { 0 } else { random.random_range(0..trial.heal_ms) };
    trial.faults.push(Fault { at_ms, for_ms: trial.heal_ms - at_ms, what });
    trial.faults.sort_by_key(|fault| fault.at_ms);
}

fn add_more(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(0.4) {
        scenes::add(random, trial);
    }
    if random.random_bool(0.2) {
        (0..random.random_range(1..=3)).for_each(|_| trial.faults.push(attack(random, trial.heal_ms)));
    }
}

fn attack(random: &mut Pcg64, heal_ms: u64) -> Fault {
    let count = pick(random, &[10, 100, 1_000]);
    let what = match random.random_range(0..6) {
        0 => Common::Garbage(count).into(),
        1 => Common::Forged(count).into(),
        2 | 3 => Common::Replayed(count).into(),
        4 => Common::Guessed(count).into(),
        _ => FaultKind::Rogue(count),
    };
    let at_ms = random.random_range(0..heal_ms);
    Fault { at_ms, for_ms: random.random_range(0..=heal_ms - at_ms), what }
}

pub(super) fn pick<T: Copy>(random: &mut Pcg64, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

fn set(random: &mut Pcg64) -> SetSpec {
    SetSpec {
        kgroup_bits: pick(random, &[0, 1, 6, 6]),
        keys: pick(random, &[1, 2, 3, 6, 12]),
        mode: pick(random, &[Mode::Flair, Mode::Flair, Mode::Flair, Mode::Flair, Mode::Raft, Mode::LeaderLease]),
        reply_check: if random.random_bool(0.3) { ReplyCheck::Relaxed } else { ReplyCheck::Strict },
        avoids_leader: random.random_bool(0.5),
        is_asic: false,
        client_ids: pick(random, &[2, 8, 1024, 1024]),
        client_idle_ms: pick(random, &[50, 500, 5_000]),
        snapshot_after: pick(random, &[2_000, 20_000, 1 << 20]),
        drift_ppm: 50_000,
        learn_ms: 600_000,
    }
}

/// Most work until the faults end; the others finish before the first fault.
fn client(random: &mut Pcg64, heal_ms: u64) -> ClientSpec {
    let think_us = pick(random, &[0, 1_000, 3_000, 10_000]);
    let lasting = (heal_ms * 1_000 / (think_us / 2 + 500)) as u32;
    ClientSpec {
        workers: random.random_range(1..=4),
        operations: if think_us == 0 { pick(random, &[40, 400]) } else { lasting },
        think_us,
        // Unanswered writes do not block a client that only reads.
        reads: pick(random, &[0.2, 0.5, 0.8, 1.0, 1.0]),
        lanes: pick(random, &[1, 2, 16]),
    }
}

fn network(random: &mut Pcg64) -> Net {
    let mut share = |p: f64| if random.random_bool(p) { random.random_range(0.001..0.05) } else { 0.0 };
    let (loss, duplication, reordering) = (share(0.5), share(0.4), share(0.5));
    let delay_min_us = random.random_range(5..200);
    let delay_max_us = delay_min_us + pick(random, &[0, 50, 300, 2_000]);
    Net { delay_min_us, delay_max_us, loss, duplication, reordering, reordering_us: random.random_range(100..10_000) }
}

fn party(random: &mut Pcg64, trial: &Trial) -> Party {
    match random.random_range(0..10) {
        0..3 => Party::Switch(random.random_range(0..trial.switches)),
        3..9 => Party::Replica(random.random_range(0..trial.replicas)),
        _ => Party::Client(random.random_range(0..trial.clients.len())),
    }
}

fn fault(random: &mut Pcg64, trial: &Trial) -> Fault {
    let what = match random.random_range(0..20) {
        0..4 => Common::Crash(party(random, trial)).into(),
        4 => FaultKind::PowerCut,
        5 | 6 => Common::Pause(party(random, trial)).into(),
        7 | 8 => drift(random, trial),
        9..13 => partition(random, trial),
        13 => Common::Burst(Net::burst(random, 2_000)).into(),
        14 | 15 => late(random, trial),
        16 if trial.replicas > 1 => FaultKind::Wipe(random.random_range(0..trial.replicas)),
        17 => FaultKind::SlowDisk { replica: random.random_range(0..trial.replicas), by: random.random_range(2..100) },
        18 => FaultKind::Transfer(random.random_range(0..trial.replicas)),
        _ => FaultKind::Flush,
    };
    let for_ms = pick(random, &[5, 40, 130, 300, 1_000]);
    Fault { at_ms: random.random_range(300..trial.heal_ms), for_ms: random.random_range(1..=for_ms), what }
}

/// A clock drifts, and may jump. A replica's does not jump: its promises and fences would end early, as with drift
/// beyond the set's ρ.
fn drift(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    let (party, ppm) = (party(random, trial), random.random_range(-PPM_MAX..=PPM_MAX));
    let jump_ms = pick(random, &[0, 0, 100]);
    let ahead_ms = if matches!(party, Party::Replica(_)) { 0 } else { jump_ms };
    Common::Drift { party, ppm, ahead_ms }.into()
}

/// Combined faults around the leader, mostly the first one.
fn storm(random: &mut Pcg64, trial: &Trial) -> Vec<Fault> {
    let leader = if random.random_bool(0.7) { 0 } else { random.random_range(0..trial.replicas) };
    let at_ms = random.random_range(300..trial.heal_ms);
    let first = |for_ms, what| Fault { at_ms, for_ms, what };
    let soon_ms = at_ms + random.random_range(0..80);
    let soon = |for_ms, what| Fault { at_ms: soon_ms, for_ms, what };
    let (switch, party) = (Party::Switch(0), Party::Replica(leader));
    match random.random_range(0..8) {
        // FLUSHDB while a switch does not hear that its session ends.
        0 => vec![first(200, cut(party, switch, true)), soon(1, FaultKind::Flush)],
        // Writes of a session arrive in the next one, and so do their replies.
        1 => vec![
            first(200, FaultKind::Late { party: switch, kind: Kind::Write, by_ms: 60, copies: false }),
            first(200, FaultKind::Late { party, kind: Kind::WriteReply, by_ms: 100, copies: true }),
            soon(1, FaultKind::Flush),
        ],
        // Writes are in flight for long, and some are lost.
        2 => vec![
            first(300, FaultKind::SlowDisk { replica: (leader + 1) % trial.replicas, by: 50 }),
            first(300, FaultKind::SlowDisk { replica: (leader + 2) % trial.replicas, by: 80 }),
            soon(200, FaultKind::Late { party: switch, kind: Kind::Write, by_ms: 100, copies: false }),
        ],
        // The leader does not hear its switch, whose heartbeats still arrive; then it cannot end the session there.
        3 => vec![first(150, cut(switch, party, false)), soon(300, island(trial, vec![switch], true))],
        4 => slow_disk(random, trial, leader, at_ms),
        _ => behind_its_back(random, trial, leader, at_ms),
    }
}

/// The leader's disk is slow, and one replica does not hear the leader. Then the leader loses what is not durable,
/// while the third replica, which has it, is down.
fn slow_disk(random: &mut Pcg64, trial: &Trial, leader: usize, at_ms: u64) -> Vec<Fault> {
    let (second, third) = ((leader + 1) % trial.replicas, (leader + 2) % trial.replicas);
    let fault = |at_ms, for_ms, what| Fault { at_ms, for_ms, what };
    let dies_ms = at_ms + random.random_range(20..100);
    vec![
        fault(at_ms, 400, FaultKind::SlowDisk { replica: leader, by: pick(random, &[20, 100, 1_000]) }),
        fault(at_ms, 100, cut(Party::Replica(leader), Party::Replica(second), true)),
        fault(dies_ms, 5, Common::Crash(Party::Replica(leader)).into()),
        fault(dies_ms, random.random_range(5..400), Common::Crash(Party::Replica(third)).into()),
    ]
}

/// The leader is cut off from one replica, which campaigns; then it is alone with a switch. A third replica restarts,
/// or gets the leadership.
fn behind_its_back(random: &mut Pcg64, trial: &Trial, leader: usize, at_ms: u64) -> Vec<Fault> {
    let party = |place| Party::Replica((leader + place) % trial.replicas);
    let alone_at = at_ms + random.random_range(130..300);
    let alone = island(trial, vec![Party::Switch(0), party(0)], random.random_bool(0.8));
    let mut faults = vec![
        Fault { at_ms, for_ms: 600, what: cut(party(0), party(1), true) },
        Fault { at_ms: alone_at, for_ms: random.random_range(200..500), what: alone },
    ];
    let near = alone_at - 20 + random.random_range(0..80);
    match random.random_range(0..3) {
        0 => faults.push(Fault { at_ms: near, for_ms: 3, what: Common::Crash(party(2)).into() }),
        1 => faults.push(Fault { at_ms: near, for_ms: 1, what: FaultKind::Transfer((leader + 2) % trial.replicas) }),
        _ => {}
    }
    faults
}

pub(super) fn cut(from: Party, to: Party, both: bool) -> FaultKind {
    Common::Partition { from: vec![from], to: vec![to], both }.into()
}

/// Cuts these off from all others except the first client, which hears both sides.
pub(super) fn island(trial: &Trial, on_it: Vec<Party>, both: bool) -> FaultKind {
    let from = all(trial).into_iter().filter(|party| *party != Party::Client(0) && !on_it.contains(party)).collect();
    Common::Partition { from, to: on_it, both }.into()
}

fn all(trial: &Trial) -> Vec<Party> {
    let switches = (0..trial.switches).map(Party::Switch);
    switches.chain(all_replicas(trial)).chain(all_clients(trial)).collect()
}

fn all_replicas(trial: &Trial) -> Vec<Party> {
    (0..trial.places()).map(Party::Replica).collect()
}

fn all_clients(trial: &Trial) -> Vec<Party> {
    (0..trial.clients.len()).map(Party::Client).collect()
}

fn clocks(random: &mut Pcg64, trial: &Trial) -> Vec<Fault> {
    let parties = (0..trial.switches).map(Party::Switch).chain((0..trial.replicas).map(Party::Replica));
    let drift = |party| {
        let ppm = if random.random_bool(0.5) { FARTHEST_PPM } else { -FARTHEST_PPM };
        Fault { at_ms: 0, for_ms: trial.heal_ms, what: Common::Drift { party, ppm, ahead_ms: 0 }.into() }
    };
    parties.map(drift).collect()
}

fn late(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    let kind = pick(random, &Kind::ALL);
    let party = match kind {
        Kind::Read | Kind::Write if random.random_bool(0.5) => {
            Party::Client(random.random_range(0..trial.clients.len()))
        }
        Kind::Hello | Kind::Heartbeat | Kind::EndSession => Party::Replica(random.random_range(0..trial.replicas)),
        Kind::ReadReply | Kind::WriteReply if random.random_bool(0.5) => {
            Party::Replica(random.random_range(0..trial.replicas))
        }
        _ => Party::Switch(random.random_range(0..trial.switches)),
    };
    FaultKind::Late { party, kind, by_ms: random.random_range(1..400), copies: random.random_bool(0.5) }
}

/// Between two parties, a switch and all replicas, or islands: an old switch with one replica and the clients on one
/// side.
fn partition(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    let both = random.random_bool(0.7);
    let all = all(trial);
    match random.random_range(0..4) {
        0 => {
            let (from, to) = (pick(random, &all), pick(random, &all));
            Common::Partition { from: vec![from], to: vec![to], both }.into()
        }
        1 => {
            let switch = Party::Switch(random.random_range(0..trial.switches));
            let replica = Party::Replica(random.random_range(0..trial.replicas));
            Common::Partition { from: vec![switch], to: vec![replica], both }.into()
        }
        2 => {
            let one = pick(random, &all);
            Common::Partition { from: vec![one], to: all.into_iter().filter(|other| *other != one).collect(), both }
                .into()
        }
        _ => {
            let (from, to): (Vec<Party>, Vec<Party>) = all.into_iter().partition(|party| match party {
                Party::Switch(n) => *n == 0,
                Party::Replica(_) => random.random_bool(0.4),
                Party::Client(_) => random.random_bool(0.6),
            });
            Common::Partition { from, to, both }.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Trial as _;

    #[test]
    fn trials_make_sense_and_every_kind_of_fault_is_drawn() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..1_000 {
            let trial = Trial::draw(seed);
            trial.validate().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let read: Trial = toml::from_str(&trial.to_toml().unwrap()).unwrap();
            assert_eq!(read, trial, "seed {seed}");
            kinds.extend(trial.faults.iter().map(|fault| match toml::Value::try_from(&fault.what).unwrap() {
                toml::Value::Table(table) => table.keys().next().unwrap().clone(),
                other => other.to_string(),
            }));
        }
        // All kinds: ten of the store's own, nine common ones.
        assert_eq!(kinds.len(), 19, "{kinds:?}");
    }
}
