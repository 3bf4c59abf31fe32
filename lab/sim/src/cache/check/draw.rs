//! Draws a trial from a seed. Few servers and short times make events collide.

use super::trial::{ClientSpec, Fault, FaultKind, Party, ServerSpec, Trial};
use crate::check::{Common, Net};
use crate::random::{Purpose, stream};
use midflight_cache::select::Algorithm;
use rand::RngExt;
use rand_pcg::Pcg64;

const PPM_MAX: i32 = 20_000;

impl Trial {
    /// The trial of this seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let random = &mut stream(seed, Purpose::Faults, 1);
        let is_tree = random.random_bool(0.5);
        let racks = if is_tree { random.random_range(2..=8) } else { random.random_range(1..=4) };
        let uppers = if is_tree { pick(random, &[0, 2, 4, 12]) } else { random.random_range(0..=3) };
        let servers: Vec<_> = (0..random.random_range(1..=6)).map(|_| server(random)).collect();
        let heal_ms = random.random_range(400..2_000);
        let mut trial = Self {
            seed,
            heal_ms,
            network: network(random),
            is_tree,
            racks,
            uppers,
            select: pick(random, &Algorithm::ALL),
            under_way: pick(random, &[1, 4, 64, 8_192, 8_192]),
            cost_us: pick(random, &[0, 5, 5, 50]),
            is_by_rack: random.random_bool(0.5),
            controllers: 0,
            has_streams: false,
            limit: 0,
            detect_ms: pick(random, &[60, 100, 150]),
            groups: pick(random, &[1, 3, 8]),
            replicas: random.random_range(1..=servers.len().min(3)),
            servers,
            clients: (0..random.random_range(1..=4)).map(|_| client(random, heal_ms)).collect(),
            faults: Vec::new(),
        };
        // Three in ten have only changing plans, so nothing excuses a loss.
        trial.faults = match random.random_range(0..10) {
            0..3 => calm(random, &mut trial),
            3..6 => survived(random, &trial),
            _ => (0..random.random_range(1..=6)).map(|_| fault(random, &trial)).collect(),
        };
        if random.random_bool(0.2) {
            let attacks: Vec<_> = (0..random.random_range(1..=3)).map(|_| attack(random, heal_ms)).collect();
            trial.faults.extend(attacks);
        }
        control(&mut stream(seed, Purpose::Faults, 2), &mut trial);
        answered(&mut stream(seed, Purpose::Faults, 3), &mut trial);
        trial.faults.sort_by_key(|fault| fault.at_ms);
        trial
    }
}

/// Half of the trials have real controllers with faults instead of a script.
fn control(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(0.5) {
        return;
    }
    trial.controllers = random.random_range(1..=3);
    trial.has_streams = random.random_bool(0.5);
    trial.limit = limit(random, trial);
    later(random, trial);
    let (controllers, operators) = (trial.controllers, trial.operators());
    for fault in &mut trial.faults {
        if matches!(fault.what, FaultKind::Plan(_) | FaultKind::Degraded(_) | FaultKind::NoController)
            && random.random_bool(0.5)
        {
            let controller = Party::Controller(random.random_range(0..controllers));
            fault.what = match random.random_range(0..8) {
                0..3 => Common::Crash(controller).into(),
                3 => Common::Drift { party: controller, ppm: PPM_MAX, ahead_ms: pick(random, &[0, 100, 5_000]) }.into(),
                4 => FaultKind::Lies(random.random_range(0..operators)),
                _ => FaultKind::WrongPlans,
            };
        }
        if let FaultKind::Common(Common::Partition { from, to, both }) = &mut fault.what
            && random.random_bool(0.3)
        {
            let controller = vec![Party::Controller(random.random_range(0..controllers))];
            let one = random.random_range(0..operators);
            let some = (0..operators).filter(|operator| *operator == one || random.random_bool(0.5));
            let some: Vec<_> = some.map(Party::Operator).collect();
            (*from, *to) = if random.random_bool(0.5) { (controller, some) } else { (some, controller) };
            *both = random.random_bool(0.6);
        }
    }
}

/// Capacity of an accelerator: unlimited, enough for some plans, or too little for the busiest traffic group at peak.
fn limit(random: &mut Pcg64, trial: &Trial) -> u32 {
    let service: u64 = trial.servers.iter().map(|server| server.service_us).sum::<u64>() / trial.servers.len() as u64;
    let mut rates = vec![0.0; trial.traffic_groups()];
    for (place, client) in trial.clients.iter().enumerate().filter(|(_, client)| !client.is_direct) {
        let busy = f64::from(client.workers).min(client.under_way as f64);
        rates[trial.group_of_client(place)] += busy * 1e6 / (client.think_us / 2 + service + 500) as f64;
    }
    let (all, most): (f64, f64) = (rates.iter().sum(), rates.iter().copied().fold(0.0, f64::max));
    pick(random, &[0, 0, (all * 0.7) as u32 + 1, (most * 1.2) as u32 + 1, (most * 1.2) as u32 + 1])
}

/// A controller assigns no RSNode id in its first 1.5 s. Most trials are longer, with faults at any time, so that they
/// have RSNodes.
fn later(random: &mut Pcg64, trial: &mut Trial) {
    let before = trial.heal_ms;
    trial.heal_ms = before.max(900) + pick(random, &[0, 1_500, 1_500, 3_000]);
    let more = trial.heal_ms - before;
    for fault in &mut trial.faults {
        fault.at_ms += random.random_range(more / 2..=more);
    }
    for client in &mut trial.clients {
        client.reads = (u64::from(client.reads) * trial.heal_ms / before) as u32;
    }
}

fn pick<T: Copy>(random: &mut Pcg64, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

fn server(random: &mut Pcg64) -> ServerSpec {
    ServerSpec {
        slots: pick(random, &[1, 2, 4]),
        queue: pick(random, &[0, 2, 16, 256]),
        service_us: pick(random, &[100, 500, 2_000]),
        says_mean: random.random_bool(0.3),
    }
}

fn client(random: &mut Pcg64, heal_ms: u64) -> ClientSpec {
    let think_us = pick(random, &[1_000, 4_000, 10_000]);
    ClientSpec {
        workers: random.random_range(1..=4),
        reads: (heal_ms * 1_000 / (think_us / 2 + 500)) as u32,
        think_us,
        under_way: pick(random, &[1, 2, 16]),
        is_direct: random.random_bool(0.2),
    }
}

fn network(random: &mut Pcg64) -> Net {
    let mut share = |p: f64| if random.random_bool(p) { random.random_range(0.001..0.03) } else { 0.0 };
    let (loss, duplication, reordering) = (share(0.4), share(0.3), share(0.4));
    let delay_min_us = random.random_range(5..100);
    let delay_max_us = delay_min_us + pick(random, &[0, 20, 200, 1_000]);
    Net { delay_min_us, delay_max_us, loss, duplication, reordering, reordering_us: random.random_range(100..10_000) }
}

fn lasting(random: &mut Pcg64, trial: &Trial, what: impl Into<FaultKind>) -> Fault {
    let for_ms = pick(random, &[2, 30, 120, 400, 1_000]);
    Fault { at_ms: random.random_range(20..trial.heal_ms), for_ms: random.random_range(1..=for_ms), what: what.into() }
}

/// Only plan changes, so nothing is lost.
fn calm(random: &mut Pcg64, trial: &mut Trial) -> Vec<Fault> {
    (trial.network.loss, trial.network.duplication) = (0.0, 0.0);
    let count = random.random_range(0..=6);
    let one = |_| {
        let what = of_plan(random, trial);
        lasting(random, trial, what)
    };
    (0..count).map(one).collect()
}

fn of_plan(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    match random.random_range(0..6) {
        0..4 => FaultKind::Plan(random.random_range(0..1_000)),
        4 => FaultKind::Degraded(random.random_range(0..trial.traffic_groups())),
        _ => FaultKind::NoController,
    }
}

/// Faults that the network must survive.
fn survived(random: &mut Pcg64, trial: &Trial) -> Vec<Fault> {
    let mut one = || {
        let what = match random.random_range(0..8) {
            0..3 if trial.uppers > 0 => {
                Common::Crash(Party::Operator(trial.racks + random.random_range(0..trial.uppers))).into()
            }
            0..4 => Common::Crash(Party::Selector(random.random_range(0..trial.operators()))).into(),
            4 => FaultKind::Absurd(random.random_range(0..trial.servers.len())),
            5 => drift(random, trial),
            _ => FaultKind::Plan(random.random_range(0..1_000)),
        };
        lasting(random, trial, what)
    };
    (0..5).map(|_| one()).collect()
}

fn party(random: &mut Pcg64, trial: &Trial) -> Party {
    match random.random_range(0..10) {
        0..3 => Party::Operator(random.random_range(0..trial.operators())),
        3..5 => Party::Selector(random.random_range(0..trial.operators())),
        5..8 => Party::Server(random.random_range(0..trial.servers.len())),
        _ => Party::Client(random.random_range(0..trial.clients.len())),
    }
}

fn fault(random: &mut Pcg64, trial: &Trial) -> Fault {
    let what = match random.random_range(0..20) {
        0..5 => Common::Crash(party(random, trial)).into(),
        5 | 6 => Common::Pause(party(random, trial)).into(),
        7 => drift(random, trial),
        8..10 => partition(random, trial),
        10 => Common::Burst(Net::burst(random, 1_000)).into(),
        11 | 12 => {
            FaultKind::Slow { server: random.random_range(0..trial.servers.len()), by: random.random_range(2..200) }
        }
        13 => FaultKind::Absurd(random.random_range(0..trial.servers.len())),
        14 => FaultKind::Silent(random.random_range(0..trial.servers.len())),
        _ => of_plan(random, trial),
    };
    lasting(random, trial, what)
}

fn drift(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    let ahead_ms = pick(random, &[0, 0, 100, 5_000]);
    Common::Drift { party: party(random, trial), ppm: random.random_range(-PPM_MAX..=PPM_MAX), ahead_ms }.into()
}

fn partition(random: &mut Pcg64, trial: &Trial) -> FaultKind {
    let both = random.random_bool(0.6);
    let one = party(random, trial);
    let others = (0..trial.operators()).flat_map(|place| [Party::Operator(place), Party::Selector(place)]);
    let others = others.chain((0..trial.servers.len()).map(Party::Server));
    let others: Vec<_> =
        others.chain((0..trial.clients.len()).map(Party::Client)).filter(|party| *party != one).collect();
    let to = if random.random_bool(0.5) { vec![pick(random, &others)] } else { others };
    let (from, to) = if random.random_bool(0.5) { (vec![one], to) } else { (to, vec![one]) };
    Common::Partition { from, to, both }.into()
}

fn attack(random: &mut Pcg64, heal_ms: u64) -> Fault {
    let count = pick(random, &[10, 100, 500]);
    let what = match random.random_range(0..4) {
        0 => Common::Garbage(count),
        1 => Common::Forged(count),
        2 => Common::Replayed(count),
        _ => Common::Guessed(count),
    };
    let at_ms = random.random_range(0..heal_ms);
    Fault { at_ms, for_ms: random.random_range(0..=heal_ms - at_ms), what: what.into() }
}

fn answered(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(0.1) {
        let at_ms = random.random_range(0..trial.heal_ms);
        let for_ms = random.random_range(0..=trial.heal_ms - at_ms);
        trial.faults.push(Fault { at_ms, for_ms, what: FaultKind::Answered(pick(random, &[10, 100, 500])) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Trial as _;

    #[test]
    fn trials_make_sense_and_every_kind_of_fault_is_drawn() {
        let (mut kinds, mut unexcused) = (std::collections::BTreeSet::new(), 0);
        for seed in 0..1_000 {
            let trial = Trial::draw(seed);
            trial.validate().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            unexcused += u32::from(trial.lets_no_read_fail());
            for fault in &trial.faults {
                // `Common(Crash(Operator(0)))`, without numbers.
                let text = format!("{:?}", fault.what);
                let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
                kinds.insert(words.take(4).collect::<Vec<_>>().join(" "));
            }
        }
        for kind in [
            "Plan",
            "Degraded",
            "NoController",
            "Slow",
            "Absurd",
            "Silent",
            "Crash Operator",
            "Crash Selector",
            "Crash Server",
            "Crash Client",
            "Pause",
            "Drift",
            "Partition",
            "Burst",
            "Garbage",
            "Forged",
            "Replayed",
            "Guessed",
            "Crash Controller",
            "Lies",
            "WrongPlans",
            "Answered",
            "Partition Controller",
        ] {
            let words: Vec<_> = kind.split(' ').collect();
            assert!(kinds.iter().any(|seen| words.iter().all(|word| seen.contains(word))), "{kind}: {kinds:?}");
        }
        assert!(unexcused > 300, "{unexcused} of 1,000 excuse no read that fails");
    }
}
