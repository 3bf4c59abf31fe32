//! Draws a trial from a seed. Keys and key groups are few, so that operations meet; times are short, so that much happens.

use super::trial::{ClientSpec, Fault, Kind, Mode, PPM_MAX, Party, SetSpec, Trial, What};
use crate::check::Net;
use crate::random::{Purpose, stream};
use rand::RngExt;
use rand_pcg::Pcg64;

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
        let clients = (0..random.random_range(1..=3)).map(|_| client(random)).collect();
        let heal_ms = random.random_range(1_500..4_000);
        let network = network(random);
        let mut trial = Self { seed, heal_ms, network, replicas, switches, set, clients, faults: Vec::new() };
        if !is_calm {
            let faults = (0..random.random_range(1..=7)).map(|_| fault(random, &trial)).collect();
            trial.faults = faults;
            trial.faults.sort_by_key(|fault| fault.at_ms);
        }
        trial
    }
}

fn pick<T: Copy>(random: &mut Pcg64, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

fn set(random: &mut Pcg64) -> SetSpec {
    SetSpec {
        kgroup_bits: pick(random, &[0, 1, 2, 6]),
        keys: pick(random, &[1, 2, 3, 6, 12]),
        mode: pick(random, &[Mode::Flair, Mode::Flair, Mode::Flair, Mode::Flair, Mode::Raft, Mode::LeaderLease]),
        is_relaxed: random.random_bool(0.3),
        avoids_leader: random.random_bool(0.5),
        client_ids: pick(random, &[2, 8, 1024, 1024]),
        client_idle_ms: pick(random, &[50, 500, 5_000]),
        snapshot_after: pick(random, &[2_000, 20_000, 1 << 20]),
        drift_ppm: 50_000,
    }
}

fn client(random: &mut Pcg64) -> ClientSpec {
    ClientSpec {
        workers: random.random_range(1..=4),
        operations: pick(random, &[40, 150, 400]),
        think_us: pick(random, &[0, 500, 5_000, 20_000]),
        reads: pick(random, &[0.2, 0.5, 0.8, 0.95]),
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

fn burst(random: &mut Pcg64) -> Net {
    let delay_min_us = random.random_range(5..2_000);
    Net {
        delay_min_us,
        delay_max_us: delay_min_us + random.random_range(0..10_000),
        loss: random.random_range(0.0..0.5),
        duplication: random.random_range(0.0..0.5),
        reordering: random.random_range(0.0..0.5),
        reordering_us: random.random_range(1_000..200_000),
    }
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
        0..4 => What::Crash(party(random, trial)),
        4 => What::PowerCut,
        5 | 6 => What::Pause(party(random, trial)),
        7 | 8 => What::Drift {
            party: party(random, trial),
            ppm: random.random_range(-PPM_MAX..=PPM_MAX),
            ahead_ms: pick(random, &[0, 0, 100]),
        },
        9..13 => partition(random, trial),
        13 => What::Burst(burst(random)),
        14 | 15 => late(random, trial),
        16 if trial.replicas > 1 => What::Wipe(random.random_range(0..trial.replicas)),
        17 => What::SlowDisk { replica: random.random_range(0..trial.replicas), by: random.random_range(2..100) },
        18 => What::Transfer(random.random_range(0..trial.replicas)),
        _ => What::Flush,
    };
    let for_ms = pick(random, &[5, 40, 130, 300, 1_000]);
    Fault { at_ms: random.random_range(300..trial.heal_ms), for_ms: random.random_range(1..=for_ms), what }
}

fn late(random: &mut Pcg64, trial: &Trial) -> What {
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
    What::Late { party, kind, by_ms: random.random_range(1..400), copies: random.random_bool(0.5) }
}

/// Two parties, or a switch and all replicas, or islands: an old switch with one replica and the clients on one side.
fn partition(random: &mut Pcg64, trial: &Trial) -> What {
    let both = random.random_bool(0.7);
    let all: Vec<Party> = (0..trial.switches)
        .map(Party::Switch)
        .chain((0..trial.replicas).map(Party::Replica))
        .chain((0..trial.clients.len()).map(Party::Client))
        .collect();
    match random.random_range(0..4) {
        0 => {
            let (from, to) = (pick(random, &all), pick(random, &all));
            What::Partition { from: vec![from], to: vec![to], both }
        }
        1 => {
            let switch = Party::Switch(random.random_range(0..trial.switches));
            let replica = Party::Replica(random.random_range(0..trial.replicas));
            What::Partition { from: vec![switch], to: vec![replica], both }
        }
        2 => {
            let one = pick(random, &all);
            What::Partition { from: vec![one], to: all.into_iter().filter(|other| *other != one).collect(), both }
        }
        _ => {
            let (from, to): (Vec<Party>, Vec<Party>) = all.into_iter().partition(|party| match party {
                Party::Switch(n) => *n == 0,
                Party::Replica(_) => random.random_bool(0.4),
                Party::Client(_) => random.random_bool(0.6),
            });
            What::Partition { from, to, both }
        }
    }
}
