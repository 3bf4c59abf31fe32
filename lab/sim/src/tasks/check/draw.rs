//! Draws a trial from a seed. Bounds are small, so that trials reach them, and times short, so that much happens.

use super::trial::{Cancel, ClientSpec, ExecutorSpec, Fault, FaultKind, Job, Party, SwitchSpec, TaskSpec, Trial};
use crate::check::{Common, Net};
use crate::random::{Purpose, stream};
use midflight_tasks::resources::RESOURCE_BITS;
use midflight_wire::tasks::SLOT_PLACES;
use rand::RngExt;
use rand_pcg::Pcg64;

const MASKS: [u8; 6] = [0x00, 0x01, 0x03, 0x10, 0x90, 0xff];
/// In some trials no executor has this resource.
const RARE: u8 = 0x20;

impl Trial {
    /// The trial of this seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = stream(seed, Purpose::Faults, 0);
        let random = &mut random;
        // Three in ten trials have no faults, so that nothing excuses a violation.
        let calm = random.random_bool(0.3);
        let network = network(random, calm);
        let mut executors = executors(random);
        if random.random_bool(0.4) {
            executors.iter_mut().for_each(|executor| executor.resources &= !RARE);
        }
        let slots: u32 = executors.iter().map(|executor| executor.slots).sum();
        let same = executors.iter().all(|executor| executor.resources == executors[0].resources);
        let switches = 0..if random.random_bool(0.2) { 2 } else { 1 };
        let switch = switch(random, slots, same);
        let switches: Vec<_> = switches.map(|_| switch).collect();
        let clients: Vec<_> =
            (0..random.random_range(1..=4)).map(|_| ClientSpec { window: pick(random, &[1, 4, 32, 32]) }).collect();
        let span_us = random.random_range(100_000..1_500_000);
        let jobs = jobs(random, span_us, clients.len(), &executors, switch.levels);
        let mut trial = Self {
            seed,
            heal_ms: span_us / 1000 + random.random_range(0..1500),
            network,
            switches,
            executors,
            clients,
            jobs,
            cancels: Vec::new(),
            faults: Vec::new(),
        };
        trial.cancels = cancels(random, &trial);
        if !calm {
            // Some have only attackers and links with a small MTU, and must keep the same rules as trials without
            // faults.
            let harmless = random.random_bool(0.15);
            for _ in 0..random.random_range(1..=6) {
                let wanted = |fault: &Fault| !harmless || fault.what.is_harmless();
                let fault = std::iter::repeat_with(|| fault(random, &trial)).find(wanted);
                trial.faults.extend(fault);
            }
            trial.faults.sort_by_key(|fault| fault.at_ms);
            leave_what_nobody_runs(random, &mut trial);
            make_room_for_floods(random, &mut trial);
        }
        cancel_what_runs(random, &mut trial);
        ask_ahead(&mut trial);
        count_resources(&mut trial);
        prefer_places(&mut trial);
        wait_for_others(&mut trial);
        trial
    }
}

fn pick<T: Copy>(random: &mut Pcg64, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

fn network(random: &mut Pcg64, calm: bool) -> Net {
    let mut share = |p: f64| if random.random_bool(p) { random.random_range(0.001..0.05) } else { 0.0 };
    let loss = share(if calm { 0.15 } else { 0.5 });
    let (duplication, reordering) = (share(0.5), share(0.5));
    let delay_min_us = random.random_range(5..100);
    let delay_max_us = delay_min_us + pick(random, &[0, 20, 100, 1_000]);
    Net { delay_min_us, delay_max_us, loss, duplication, reordering, reordering_us: random.random_range(100..4_000) }
}

fn executors(random: &mut Pcg64) -> Vec<ExecutorSpec> {
    let count = random.random_range(1..=6);
    let same = random.random_bool(0.4);
    let mask = pick(random, &MASKS);
    // The largest takes three REGISTERs.
    let slots = pick(random, &[1, 2, 4, 8, 8, 20, 70]);
    (0..count)
        .map(|_| ExecutorSpec {
            slots: random.random_range(1..=slots),
            resources: if same { mask } else { pick(random, &MASKS) },
            ahead: 0,
            ahead_span_us: 0,
            waiting: 0,
            bundles: [0; RESOURCE_BITS as usize],
            places: [0; SLOT_PLACES],
        })
        .collect()
}

/// `same`: all executors have the same resources, so that none is missing if slots are scarce.
fn switch(random: &mut Pcg64, slots: u32, same: bool) -> SwitchSpec {
    let lease_ms = pick(random, &[60, 150, 300, 1_000]);
    let tight = same && random.random_bool(0.25);
    SwitchSpec {
        queue: pick(random, &[3, 17, 40, 70, 100, 150, 256]),
        slots: if tight { random.random_range(1..=slots) } else { 2 * slots + 8 },
        clients: pick(random, &[1, 2, 3, 16, 16]),
        places: 1024,
        levels: pick(random, &[1, 4, 8]),
        lease_ms,
        slot_idle_ms: lease_ms * pick(random, &[2, 4]),
        client_idle_ms: pick(random, &[1_500, 2_500]),
        cookie_ms: pick(random, &[25, 60]),
    }
}

fn jobs(random: &mut Pcg64, span_us: u64, clients: usize, executors: &[ExecutorSpec], levels: u32) -> Vec<Job> {
    let (count, most) = pick(random, &[(40, 3), (12, 24), (4, 90), (3, 140)]);
    let longest = pick(random, &[200, 2_000, 20_000, 20_000]);
    // Sometimes a task outlives a lease.
    let long = pick(random, &[0.0, 0.02, 0.2]);
    let levels = levels as u8;
    let timeouts = random.random_bool(0.2);
    let mut jobs: Vec<Job> = (0..random.random_range(1..=count))
        .map(|_| {
            let tasks = (0..random.random_range(1..=most))
                .map(|_| {
                    let executor = executors[random.random_range(0..executors.len())];
                    let run_us = if random.random_bool(long) {
                        random.random_range(100_000..1_500_000)
                    } else {
                        random.random_range(0..longest)
                    };
                    TaskSpec {
                        run_us,
                        priority: random.random_range(1..=levels),
                        resources: executor.resources & pick(random, &MASKS),
                        timeout_ms: if timeouts && random.random_bool(0.3) { random.random_range(5..500) } else { 0 },
                        attempts: pick(random, &[1, 3, 3, 8]),
                        deaf: false,
                        place: 0,
                        patience_ms: 0,
                    }
                })
                .collect();
            Job { at_us: random.random_range(0..span_us), client: random.random_range(0..clients), tasks }
        })
        .collect();
    jobs.sort_by_key(|job| job.at_us);
    jobs
}

fn cancels(random: &mut Pcg64, trial: &Trial) -> Vec<Cancel> {
    let count = pick(random, &[0, 0, 1, 4]);
    (0..count)
        .map(|_| {
            let job = random.random_range(0..trial.jobs.len());
            let tasks = trial.jobs[job].tasks.len();
            let first = random.random_range(0..tasks);
            let later = pick(random, &[100, 2_000, 50_000]);
            let at_us = trial.jobs[job].at_us + random.random_range(0..later);
            Cancel { at_us, job, first, count: random.random_range(1..=tasks - first), queued_only: true }
        })
        .collect()
}

/// Executors prefetch in half of the trials. Separate draws, so that the other half does not change.
fn ask_ahead(trial: &mut Trial) {
    let mut random = stream(trial.seed, Purpose::Faults, 1);
    let random = &mut random;
    if random.random_bool(0.5) {
        return;
    }
    for executor in &mut trial.executors {
        executor.ahead = pick(random, &[0, 3, 20, 256]);
    }
    if random.random_bool(0.7) {
        let room = pick(random, &[0, 30, 600]);
        trial.switches.iter_mut().for_each(|switch| switch.slots += room);
    }
    repeat_short_tasks(trial, random);
    // Some as with Python: they prefetch longer tasks, and keep them for longer.
    if random.random_bool(0.2) {
        trial.executors.iter_mut().for_each(|executor| executor.ahead_span_us = pick(random, &[500, 4_000, 20_000]));
    }
}

/// Most trials get many equally short tasks, with occasional longer ones.
fn repeat_short_tasks(trial: &mut Trial, random: &mut Pcg64) {
    if random.random_bool(0.2) {
        return;
    }
    let (run_us, copies, long) =
        (pick(random, &[0, 3, 20, 60]), pick(random, &[1, 3, 6]), pick(random, &[0.0, 0.0, 0.01]));
    for job in &mut trial.jobs {
        let short = |task: &TaskSpec| task.run_us < 100_000;
        let more: Vec<_> = job.tasks.iter().copied().filter(short).collect();
        job.tasks.iter_mut().filter(|task| short(task)).for_each(|task| task.run_us = run_us);
        for task in (1..copies).flat_map(|_| &more) {
            let lasts = random.random_bool(long);
            job.tasks.push(TaskSpec { run_us: if lasts { 10 * task.run_us } else { run_us }, ..*task });
        }
    }
}

/// Executors count some resources in four of ten trials: few bundles, so that tasks wait for them. Separate draws.
fn count_resources(trial: &mut Trial) {
    let mut random = stream(trial.seed, Purpose::Faults, 2);
    let random = &mut random;
    if random.random_bool(0.6) {
        return;
    }
    let most = pick(random, &[1, 2, 2, 6]);
    for executor in &mut trial.executors {
        for bit in 0..RESOURCE_BITS {
            let is_counted = executor.resources & 1 << bit != 0 && random.random_bool(0.6);
            executor.bundles[usize::from(bit)] = if is_counted { random.random_range(1..=most) } else { 0 };
        }
    }
}

/// Most cancellations spare running tasks. In some trials they do not, and tasks are so long that most cancelled ones
/// run.
fn cancel_what_runs(random: &mut Pcg64, trial: &mut Trial) {
    if random.random_bool(if trial.faults.is_empty() { 0.5 } else { 0.75 }) {
        return;
    }
    for cancel in &mut trial.cancels {
        cancel.queued_only = random.random_bool(0.3);
    }
    for _ in 0..random.random_range(1..=3) {
        let job = random.random_range(0..trial.jobs.len());
        let deaf = pick(random, &[0.0, 0.0, 0.2]);
        let Job { at_us, tasks, .. } = &mut trial.jobs[job];
        for task in tasks.iter_mut() {
            task.run_us = random.random_range(500_000..4_000_000);
            task.deaf = random.random_bool(deaf);
        }
        let later = pick(random, &[5_000, 400_000]);
        let (at_us, count) = (*at_us + random.random_range(0..later), tasks.len());
        trial.cancels.push(Cancel { at_us, job, first: 0, count, queued_only: random.random_bool(0.1) });
    }
}

/// In four of ten trials some runs wait for other tasks, and lend their slots, as far as switches have room for spares.
/// Separate draws.
fn wait_for_others(trial: &mut Trial) {
    let mut random = stream(trial.seed, Purpose::Faults, 3);
    let random = &mut random;
    if random.random_bool(0.6) {
        return;
    }
    for executor in &mut trial.executors {
        executor.waiting = pick(random, &[1, 3, 20]);
    }
    if random.random_bool(0.7) {
        let room = pick(random, &[10, 200]);
        trial.switches.iter_mut().for_each(|switch| switch.slots = (switch.slots + room).min(SwitchSpec::SLOTS_MAX));
    }
}

/// In half of the trials tasks prefer places with few executors or none; some switches have no room for all places.
/// Separate draws.
fn prefer_places(trial: &mut Trial) {
    let mut random = stream(trial.seed, Purpose::Faults, 2);
    let random = &mut random;
    if random.random_bool(0.5) {
        return;
    }
    let most = random.random_range(1..=4);
    for executor in &mut trial.executors {
        executor.places = std::array::from_fn(|_| random.random_range(0..=most));
    }
    let room = pick(random, &[1, 2, 1024, 1024]);
    trial.switches.iter_mut().for_each(|switch| switch.places = room);
    let longest = pick(random, &[3, 30, 30, 400]);
    let share = pick(random, &[0.2, 0.8, 1.0]);
    for job in &mut trial.jobs {
        let (place, patience_ms) = (random.random_range(1..=most), random.random_range(0..=longest));
        let all_the_same = random.random_bool(0.7);
        for task in &mut job.tasks {
            if !random.random_bool(share) {
                continue;
            }
            (task.place, task.patience_ms) =
                if all_the_same { (place, patience_ms) } else { (random.random_range(1..=most), patience_ms) };
        }
    }
}

fn leave_what_nobody_runs(random: &mut Pcg64, trial: &mut Trial) {
    if trial.is_runnable(u8::MAX) {
        return;
    }
    for fault in 0..trial.faults.len() {
        let (FaultKind::Death(client), at_ms) = (&trial.faults[fault].what, trial.faults[fault].at_ms) else {
            continue;
        };
        let (client, count) = (*client, pick(random, &[1, 30, 256]));
        let priority = random.random_range(1..=trial.switches[0].levels as u8);
        let task = TaskSpec {
            run_us: 1_000,
            priority,
            resources: u8::MAX,
            timeout_ms: 0,
            attempts: 3,
            deaf: false,
            place: 0,
            patience_ms: 0,
        };
        let at_us = random.random_range(0..=at_ms * 1_000);
        trial.jobs.push(Job { at_us, client, tasks: vec![task; count] });
    }
}

/// Shares need tables with more than a few entries (T14).
fn make_room_for_floods(random: &mut Pcg64, trial: &mut Trial) {
    if trial.faults.iter().any(|fault| matches!(fault.what, FaultKind::Flood { .. })) && random.random_bool(0.7) {
        for switch in &mut trial.switches {
            (switch.queue, switch.clients) = (switch.queue.max(100), 64);
        }
    }
}

fn no_switch(random: &mut Pcg64, trial: &Trial) -> Party {
    if random.random_bool(0.5) {
        Party::Executor(random.random_range(0..trial.executors.len()))
    } else {
        Party::Client(random.random_range(0..trial.clients.len()))
    }
}

fn party(random: &mut Pcg64, trial: &Trial) -> Party {
    match random.random_range(0..5) {
        0 | 1 => Party::Switch(random.random_range(0..trial.switches.len())),
        2 | 3 => Party::Executor(random.random_range(0..trial.executors.len())),
        _ => Party::Client(random.random_range(0..trial.clients.len())),
    }
}

fn parties(random: &mut Pcg64, trial: &Trial) -> Vec<Party> {
    let mut parties: Vec<_> = (0..random.random_range(1..=3)).map(|_| party(random, trial)).collect();
    parties.sort_unstable();
    parties.dedup();
    parties
}

fn fault(random: &mut Pcg64, trial: &Trial) -> Fault {
    let what = match random.random_range(0..33) {
        0..=4 => Common::Crash(party(random, trial)).into(),
        5 | 6 => Common::Pause(party(random, trial)).into(),
        7 => Common::Drift {
            party: party(random, trial),
            ppm: random.random_range(-20_000..20_000),
            ahead_ms: pick(random, &[0, 0, 1, 100, 2_000]),
        }
        .into(),
        8..=12 => {
            let (from, mut to) = (parties(random, trial), parties(random, trial));
            to.retain(|party| !from.contains(party));
            Common::Partition { from, to, both: random.random_bool(0.5) }.into()
        }
        13 | 14 => Common::Burst(Net {
            loss: random.random_range(0.05..0.6),
            duplication: random.random_range(0.0..0.3),
            reordering: random.random_range(0.0..0.3),
            ..trial.network
        })
        .into(),
        15 | 16 => FaultKind::Drain(random.random_range(0..trial.executors.len())),
        17 => Common::Garbage(random.random_range(1..=30)).into(),
        18 => Common::Forged(random.random_range(1..=30)).into(),
        19 | 20 => Common::Replayed(random.random_range(1..=100)).into(),
        21 | 22 => Common::Guessed(random.random_range(1..=100)).into(),
        23 | 24 => FaultKind::Takeover(random.random_range(0..trial.switches.len())),
        25..=27 => FaultKind::Move { party: no_switch(random, trial), returns: random.random_bool(0.5) },
        28 | 29 => FaultKind::Mtu {
            party: if random.random_bool(0.5) { Some(party(random, trial)) } else { None },
            bytes: pick(random, &[1_280, 1_280, 1_400, 1_500]),
        },
        30 => FaultKind::Death(random.random_range(0..trial.clients.len())),
        _ if trial.is_runnable(u8::MAX) => FaultKind::Death(random.random_range(0..trial.clients.len())),
        _ => FaultKind::Flood { sources: pick(random, &[1, 1, 2, 12]), packets: pick(random, &[10, 60, 200]) },
    };
    let drains = matches!(what, FaultKind::Drain(_));
    let longest = if drains { 1_500 } else { pick(random, &[5, 50, 500, 1_500]) };
    Fault { at_ms: random.random_range(0..trial.heal_ms), for_ms: random.random_range(0..longest), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Trial as _;

    #[test]
    fn trials_make_sense_and_are_the_same_when_they_are_read_again() {
        let file = std::env::temp_dir().join(format!("midflight-trials-{}.toml", std::process::id()));
        for seed in 0..200 {
            let trial = Trial::draw(seed);
            trial.validate().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            std::fs::write(&file, trial.to_toml().unwrap()).unwrap();
            assert_eq!(Trial::read(&file).unwrap(), trial, "seed {seed}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn every_kind_of_fault_is_drawn_and_three_trials_in_ten_have_none() {
        let trials: Vec<_> = (0..1_000).map(Trial::draw).collect();
        let kind = |what: &FaultKind| match toml::Value::try_from(what).unwrap() {
            toml::Value::Table(table) => table.keys().next().unwrap().clone(),
            other => panic!("{other}"),
        };
        let mut kinds: Vec<_> = trials.iter().flat_map(|trial| &trial.faults).map(|fault| kind(&fault.what)).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(
            kinds,
            [
                "burst",
                "crash",
                "death",
                "drain",
                "drift",
                "flood",
                "forged",
                "garbage",
                "guessed",
                "move",
                "mtu",
                "partition",
                "pause",
                "replayed",
                "takeover"
            ]
        );
        let calm = trials.iter().filter(|trial| trial.faults.is_empty()).count();
        assert!((250..350).contains(&calm), "{calm}");
    }
}
