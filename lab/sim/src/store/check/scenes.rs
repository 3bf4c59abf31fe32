//! Faults that coincide, as when one switch or link fails: a leader that only its switch still hears, a session that
//! moves and returns, a switch that restarts at once, a transfer to a paused replica. Each hits a busy store with two
//! switches. Random single faults rarely fall within the milliseconds of a lease or promise.

use super::draw::{DRIFT_PPM, FARTHEST_PPM, cut, island, pick};
use super::trial::{ClientSpec, Fault, FaultKind, Kind, Mode, Party, SetSpec, Trial};
use crate::check::{Common, Net};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Duration of a scene, and of the first session before it.
const LASTS_MS: u64 = 700;
const BEGINS_MS: u64 = 350;

/// Difference in campaign delay between consecutive places.
const STAGGER_MS: u64 = 25;

/// The more clients wait for a switch, the sooner one finds it active.
const CLIENTS_APART: usize = 4;

#[derive(Clone, Copy)]
struct Cast {
    leader: usize,
    /// Two others.
    second: usize,
    third: usize,
}

impl Cast {
    /// Mostly the first replica leads.
    fn draw(random: &mut Pcg64, replicas: usize) -> Self {
        let leader = if random.random_bool(0.8) { 0 } else { random.random_range(0..replicas) };
        let turn = random.random_range(1..replicas);
        let second = (leader + turn) % replicas;
        let third = (leader + turn % (replicas - 1) + 1) % replicas;
        Self { leader, second, third }
    }
}

pub(super) fn add(random: &mut Pcg64, trial: &mut Trial) {
    trial.switches = 2;
    trial.replicas = trial.replicas.max(3);
    trial.set.mode = Mode::Flair;
    trial.heal_ms = trial.heal_ms.max(BEGINS_MS + LASTS_MS + 100);
    // Unanswered writes do not block the reader; the writer makes what it reads old.
    let worker = |reads| ClientSpec { workers: 4, operations: trial.heal_ms as u32, think_us: 1_000, reads, lanes: 16 };
    let workers = [worker(1.0), worker(0.5)];
    trial.clients.splice(0..trial.clients.len().min(2), workers);
    // Without writes, a partitioned replica lacks nothing, and may be elected.
    if random.random_bool(0.5) {
        trial.clients.iter_mut().for_each(|client| client.reads = 1.0);
    }
    let at_ms = random.random_range(BEGINS_MS..=trial.heal_ms - LASTS_MS);
    let cast = Cast::draw(random, trial.replicas);
    let faults = match random.random_range(0..6) {
        0..3 => hidden_leader(random, trial, cast, at_ms),
        3 => slow_successor(random, trial, cast, at_ms),
        4 => session_that_returns(random, cast, at_ms),
        _ => switch_that_restarts(random, cast, at_ms),
    };
    trial.faults.extend(faults);
}

/// A whole trial. Some clocks drift by the maximum, while a session moves or a leader is replaced. The clients only
/// read, and the network loses nothing.
pub(super) fn clocks_apart(random: &mut Pcg64, trial: &mut Trial) {
    trial.switches = 2;
    (trial.replicas, trial.outsiders) = (3, 0);
    trial.set = SetSpec { mode: Mode::Flair, drift_ppm: DRIFT_PPM, ..trial.set };
    trial.heal_ms = BEGINS_MS + 2 * LASTS_MS;
    let reader = ClientSpec { workers: 2, operations: trial.heal_ms as u32, think_us: 1_000, reads: 1.0, lanes: 16 };
    trial.clients = vec![reader; CLIENTS_APART];
    trial.network = Net { delay_min_us: 20, delay_max_us: 40, loss: 0.0, duplication: 0.0, ..trial.network };
    let at_ms = random.random_range(BEGINS_MS + 50..BEGINS_MS + LASTS_MS);
    trial.faults = if random.random_bool(0.5) {
        moves_by_clocks_apart(random, trial, at_ms)
    } else {
        resigns_by_clocks_apart(trial, at_ms)
    };
}

/// The replicas' clocks are fast, and the first switch's is slow. The leader moves to the other switch, on which all
/// clients but one wait, while that one reads through the first. The leader stops hearing the first switch before that
/// stops hearing the leader, so the session there lasts as long as possible. (If only the first replica's clock were
/// fast, the promises of the others would outlast its campaign, and one of them would lead.)
fn moves_by_clocks_apart(random: &mut Pcg64, trial: &Trial, at_ms: u64) -> Vec<Fault> {
    let (leader, first) = (Party::Replica(0), Party::Switch(0));
    let mut faults = begins_at_first(trial, leader, &[0, 1, 2], &[first]);
    // After a heartbeat with the last answer, and before the leader leaves the switch.
    let silent_ms = at_ms + random.random_range(22..38);
    let waiting = (1..CLIENTS_APART).map(Party::Client).collect();
    faults.extend([
        fault(at_ms, 400, cut(first, leader, false)),
        fault(silent_ms, 400, cut(leader, first, true)),
        fault(at_ms, 400, Common::Partition { from: waiting, to: vec![first], both: true }),
    ]);
    faults
}

/// The last replica leads, which would campaign last. Then only its switch and two clients hear it, and one of these
/// hears nobody else. The clocks of leader and switch are slow, those of the followers fast. So the next session begins
/// as early as possible, and the former leader, whose lease has ended, resigns as late as possible.
fn resigns_by_clocks_apart(trial: &Trial, at_ms: u64) -> Vec<Fault> {
    let (leader, first) = (Party::Replica(2), Party::Switch(0));
    let mut faults = begins_at_first(trial, leader, &[0, 1], &[leader, first]);
    let alone = island(trial, vec![first, leader, Party::Client(1)], true);
    faults.extend([fault(BEGINS_MS - 50, 1, FaultKind::Transfer(2)), fault(at_ms, 400, alone)]);
    faults
}

/// Some replicas' clocks are fast, and some parties' are slow. At first the leader does not reach the second switch, so
/// its session begins at the first.
fn begins_at_first(trial: &Trial, leader: Party, fast: &[usize], slow: &[Party]) -> Vec<Fault> {
    let clock = |party, ppm| fault(0, trial.heal_ms, Common::Drift { party, ppm, ahead_ms: 0 });
    let fast = fast.iter().map(|&place| clock(Party::Replica(place), FARTHEST_PPM));
    let slow = slow.iter().map(|&party| clock(party, -FARTHEST_PPM));
    let late = fault(0, BEGINS_MS, cut(leader, Party::Switch(1), true));
    fast.chain(slow).chain([late]).collect()
}

/// A whole trial. A replica is down during writes. Then all are down. It returns first, together with one that has lost
/// its disk and was restarted under its old id; the only complete replica returns last.
pub(super) fn disk_that_is_lost_unseen(random: &mut Pcg64, trial: &mut Trial) {
    (trial.replicas, trial.outsiders) = (3, 0);
    trial.set = SetSpec { mode: Mode::Flair, ..trial.set };
    trial.heal_ms = BEGINS_MS + 3 * LASTS_MS;
    let worker = |reads| ClientSpec { workers: 4, operations: trial.heal_ms as u32, think_us: 1_000, reads, lanes: 16 };
    trial.clients = vec![worker(0.9), worker(0.5)];
    let Cast { leader, second, third } = Cast::draw(random, trial.replicas);
    let at_ms = random.random_range(BEGINS_MS..BEGINS_MS + LASTS_MS / 2);
    let lost_ms = at_ms + random.random_range(20..200);
    let back_ms = lost_ms + random.random_range(0..50);
    let last_ms = back_ms + random.random_range(400..800);
    let crash = |place| Common::Crash(Party::Replica(place));
    trial.faults = vec![
        fault(at_ms, back_ms - at_ms, crash(third)),
        fault(lost_ms, last_ms - lost_ms, crash(leader)),
        fault(lost_ms, last_ms + 50 - lost_ms, FaultKind::Refound { replica: second, joins: random.random_bool(0.4) }),
    ];
}

fn fault(at_ms: u64, for_ms: u64, what: impl Into<FaultKind>) -> Fault {
    Fault { at_ms, for_ms, what: what.into() }
}

/// The leader is cut off from the second replica, whose campaigns fail while the third hears the leader. Then, or just
/// before the first campaign, only its switch and a client hear the leader; the third replica may restart.
fn hidden_leader(random: &mut Pcg64, trial: &Trial, cast: Cast, at_ms: u64) -> Vec<Fault> {
    let first_ms = if random.random_bool(0.5) { 130..250 } else { 50..110 };
    let alone_ms = at_ms + random.random_range(first_ms) + STAGGER_MS * cast.second as u64;
    let alone = island(trial, vec![Party::Switch(0), Party::Replica(cast.leader)], random.random_bool(0.8));
    let mut faults = vec![
        fault(at_ms, 600, cut(Party::Replica(cast.leader), Party::Replica(cast.second), true)),
        fault(alone_ms, random.random_range(250..400), alone),
    ];
    if random.random_bool(0.6) {
        let restart_ms = alone_ms + random.random_range(0..20) - 10;
        faults.push(fault(restart_ms, random.random_range(1..4), Common::Crash(Party::Replica(cast.third))));
    }
    faults
}

/// The leader hands over to a paused replica, which acts on it only after the leader has given up the transfer; then
/// only its switch and a client hear the old leader.
fn slow_successor(random: &mut Pcg64, trial: &Trial, cast: Cast, at_ms: u64) -> Vec<Fault> {
    let still_ms = random.random_range(122..200);
    let alone_ms = at_ms + still_ms + random.random_range(0..20) - 15;
    let alone = island(trial, vec![Party::Switch(0), Party::Replica(cast.leader)], true);
    vec![
        fault(at_ms, 1, FaultKind::Transfer(cast.third)),
        fault(at_ms, still_ms, Common::Pause(Party::Replica(cast.third))),
        fault(alone_ms, random.random_range(250..400), alone),
    ]
}

/// The leader moves to the other switch for a while, and then returns by itself; some heartbeats to the other one are
/// late.
fn session_that_returns(random: &mut Pcg64, cast: Cast, at_ms: u64) -> Vec<Fault> {
    let leader = Party::Replica(cast.leader);
    let away_ms = random.random_range(200..350);
    let back_ms = at_ms + away_ms + random.random_range(20..200);
    let leaves = if random.random_bool(0.6) { FaultKind::Flush } else { FaultKind::Transfer(cast.second) };
    let late =
        FaultKind::Late { party: leader, kind: Kind::Heartbeat, by_ms: pick(random, &[30, 60, 100]), copies: true };
    vec![
        fault(at_ms, away_ms, cut(leader, Party::Switch(0), true)),
        fault(back_ms - 100, 250, late),
        fault(back_ms, 1, leaves),
    ]
}

/// A switch restarts at once, while the leader does not reach a replica.
fn switch_that_restarts(random: &mut Pcg64, cast: Cast, at_ms: u64) -> Vec<Fault> {
    let dies_ms = at_ms + random.random_range(0..80);
    vec![
        fault(at_ms, 200, cut(Party::Replica(cast.leader), Party::Replica(cast.second), true)),
        fault(dies_ms, random.random_range(1..10), Common::Crash(Party::Switch(0))),
    ]
}
