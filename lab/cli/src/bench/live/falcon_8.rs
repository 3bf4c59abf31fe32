//! Falcon, figure 8, live: scheduling delay against load, of tasks that sleep.

use super::arrivals::{Arrivals, Known, submit};
use super::cluster::{Cluster, Ground, Layout, Sparrow};
use super::contender::Contender;
use super::rounds::{Quantity, Rounds, Sample};
use super::starts::Begun;
use super::starts::join;
use super::{Live, Point};
use anyhow::{Result, anyhow};
use midflight_endpoint::Nanos;
use midflight_host::clock;
use midflight_papers::cell::{Cell, Cluster as SimulatedCluster, Load, Scheme, Work};
use midflight_papers::findings::Paper::{AtMost, Is, Says};
use midflight_papers::findings::Unit::{Factor, Time};
use midflight_papers::findings::{Band, Class, Findings, Holds, Row};
use std::time::Duration;

pub(in super::super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench falcon-8                      about five minutes, as root
  midflight-lab bench falcon-8 --quick
  midflight-lab bench falcon-8 --simulate           also simulates it, with costs measured live
  midflight-lab bench falcon-8 --svg delay.svg --json

Falcon's figure 8 live, in a lab: two clients submit a job every 10.2 ms each (as in the simulated
figure), of tasks that sleep for 10 ms, to 60 executor slots on 10 hosts. The tasks of a job set
the utilisation: 50, 65, 80 and 95 %. Midflight with the kernel engine, with the switch in user
space, and Sparrow (two schedulers, on the clients' hosts, two reservations a task) take turns.
Delay is from the call of submit to the start of the function. A measurement takes 3 s (--quick:
500 ms), after a warm-up. Let nothing else run.

RESULTS (medians of the rounds; CONTENDER is kernel, user or sparrow; LOAD in percent)
  live.falcon-8.ROW.paper, .ours, .ratio, .verdict  as of `midflight-lab sim figure`
  live.falcon-8.pass, .shape, .fail                 rows
  live.falcon-8.CONTENDER.LOAD.delay_p50_us, .delay_p5_us, .delay_p95_us, .delay_p99_us
  validation.falcon-8.ENGINE.LOAD.p50, .p95, .p99   with --simulate, at 50 and 80 %: live by
                                        simulated, where the same cluster runs in the simulator with
                                        costs measured in idle clusters: .ratio, .low, .high
  validation.falcon-8.ENGINE.alone_us, .alone_p95_us, .first_us, .late_us   these measurements: delay
                                        of a task alone, of the first of 30, of a sleep's end
  validation.falcon-8.ENGINE.turn_us, .task_us, .way_us, .jitter_us   costs by them: CPU time of an
                                        executor that is woken, a submission's for each task, a
                                        packet's way, and its random part

The papers' numbers are of 12 machines and a switch of hardware. Here all shares the cores of one:
read order and shape first. docs/figures.md says more.

EXIT CODES
  0 measured, whatever the verdicts, 1 failed (no root), 2 wrong usage, 130 interrupted";

pub(in super::super) const FALCON_8: Live = Live {
    name: "falcon-8",
    title: "Scheduling delay against load, tasks that sleep, live",
    hosts: CLIENTS + NODES,
    places: &[50, 65, 80, 95],
    place: |percent| format!("{percent} %"),
    duration: (Duration::from_secs(3), Duration::from_millis(500)),
    measure,
    reduce,
};

const CLIENTS: usize = 2;
pub(super) const NODES: usize = 10;
pub(super) const SLOTS: u32 = 6;
/// Time between the start of the threads and the first interval.
const LEAD: Duration = Duration::from_millis(20);
/// If the median at 95 % exceeds that at 50 % by this factor, it is not flat, as in the simulated figure.
const FLAT: f64 = 1.25;

fn measure(ground: Ground<'_>, point: &Point) -> Result<Sample> {
    let cell = cell(point);
    let arrivals = (0..CLIENTS as u32).map(|client| Arrivals::of(&cell, client)).collect::<Result<Vec<_>>>()?;
    let Ran { origin, begun, .. } = run(ground, &arrivals)?;
    let from = origin + clock::nanos(point.warmup);
    let measured = begun.iter().filter(|begun| begun.submitted >= from);
    Ok(Sample::delays(&measured.map(Begun::delay).collect::<Vec<_>>()))
}

/// The same cluster and jobs in the simulator.
pub(super) fn cell(point: &Point) -> Cell {
    let ms = |time: Duration| time.as_millis() as u64;
    Cell {
        scheme: Scheme::Midflight,
        cluster: SimulatedCluster::uniform(NODES as u32, SLOTS),
        load: Load::Sw1 { clients: CLIENTS as u32, utilisation: f64::from(point.place) / 100.0, work: Work::Compute },
        seed: point.seed,
        warmup_ms: ms(point.warmup),
        duration_ms: ms(point.warmup + point.duration),
        drain_ms: 20_000,
    }
}

pub(super) struct Ran {
    /// The time 0 of the jobs.
    origin: Nanos,
    pub(super) begun: Vec<Begun>,
    /// CPU time of the executors each time that one was woken, in nanoseconds.
    pub(super) turn: f64,
}

/// Runs each client's jobs.
pub(super) fn run(ground: Ground<'_>, arrivals: &[Arrivals]) -> Result<Ran> {
    let layout = Layout { clients: CLIENTS, nodes: NODES, slots: SLOTS, sparrow: Sparrow::Probing };
    let cluster = Cluster::start(ground, layout)?;
    let clients = (0..arrivals.len()).map(|number| cluster.client(number)).collect::<Result<Vec<_>>>()?;
    let before = cluster.turns()?;
    let origin = clock::now() + clock::nanos(LEAD);
    let known = std::thread::scope(|scope| {
        let start = |(client, arrivals)| scope.spawn(move || submit(client, arrivals, origin));
        let threads: Vec<_> = clients.iter().zip(arrivals).map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Known>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a client's thread panicked")))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let (mut begun, mut given) = (Vec::new(), Vec::new());
    for known in known {
        match known {
            Known::Ways(ways) => begun.extend(ways),
            Known::Jobs(jobs) => given.extend(jobs),
        }
    }
    let after = cluster.turns()?;
    // All tasks have ended, so the clients are no longer needed.
    drop(clients);
    begun.extend(join(&given, &cluster.end()?)?);
    Ok(Ran { origin, begun, turn: (after[0] - before[0]) / (after[1] - before[1]) })
}

fn reduce(rounds: &Rounds) -> Findings {
    let mut rows = Vec::new();
    for contender in rounds.contenders() {
        match contender {
            Contender::Kernel => rows.extend(engine_rows(rounds, contender, "kernel engine")),
            Contender::User => rows.extend(engine_rows(rounds, contender, "switch in user space")),
            Contender::Sparrow => rows.extend(sparrow_rows(rounds)),
        }
    }
    let notes = vec![
        "One machine's cores run clients, switch or schedulers, and executors: values are this machine's, order and shape \
         are compared."
            .into(),
    ];
    Findings { rows, notes, ..Findings::default() }
}

fn engine_rows(rounds: &Rounds, who: Contender, engine: &str) -> [Row; 6] {
    let sparrow_by = |place, quantity| rounds.factor((Contender::Sparrow, place), (who, place), quantity);
    let first = |place, quantity| Holds::within(sparrow_by(place, quantity), Band::from(1.0));
    let row = |unit, name: &str, what: String, paper| {
        Row::new(Class::Seen, unit, format!("{}-{name}", who.key()), what, paper)
    };
    let time = |name, what: &str, paper, quantity| {
        let row = row(Time, name, format!("{engine}: {what} at 95 %"), AtMost(paper));
        row.found(rounds.estimate(who, 95, quantity), first(95, quantity))
    };
    let factor = |name, what: &str, paper, place, quantity| {
        let what = format!("Sparrow's {what} by that of the {engine}, {place} %");
        row(Factor, name, what, Is(paper)).found(sparrow_by(place, quantity), first(place, quantity))
    };
    let flat = rounds.factor((who, 95), (who, 50), Quantity::P50);
    [
        time("median-95", "median", 0.09e6, Quantity::P50),
        time("p95-95", "95th percentile", 0.25e6, Quantity::P95),
        factor("factor-median-95", "median", 23.0, 95, Quantity::P50),
        factor("factor-p95-95", "95th percentile", 9.7, 95, Quantity::P95),
        factor("factor-median-50", "median", 22.0, 50, Quantity::P50),
        row(Factor, "flat", format!("{engine}: median at 95 % by that at 50 %"), Says("flat", Band::up_to(FLAT)))
            .found_alone(flat),
    ]
}

fn sparrow_rows(rounds: &Rounds) -> [Row; 3] {
    let who = Contender::Sparrow;
    // Whether it is worse than every other contender.
    let last = |quantity| {
        let others = rounds.contenders().filter(|&other| other != who);
        let by = |other| rounds.factor((who, 95), (other, 95), quantity);
        others.fold(Holds::Yes, |last, other| last.and(Holds::within(by(other), Band::from(1.0))))
    };
    let time = |name, what, paper, quantity| {
        Row::new(Class::Seen, Time, name, what, Is(paper)).found(rounds.estimate(who, 95, quantity), last(quantity))
    };
    let grows = rounds.factor((who, 95), (who, 50), Quantity::P50);
    [
        time("sparrow-median-95", "Sparrow: median at 95 %", 2.22e6, Quantity::P50),
        time("sparrow-p95-95", "Sparrow: 95th percentile at 95 %", 2.68e6, Quantity::P95),
        Row::new(
            Class::Seen,
            Factor,
            "sparrow-grows",
            "Sparrow: median at 95 % by that at 50 %",
            Says("grows with the load", Band::from(1.0)),
        )
        .found_alone(grows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_papers::findings::Verdict;

    /// Microseconds at 50 and 95 %, equal for all tasks.
    fn rounds(delays: &[(Contender, u64, u64)]) -> Rounds {
        let mut rounds = Rounds::default();
        for &(contender, half, full) in delays {
            for (place, us) in [(50, half), (95, full)] {
                (0..3).for_each(|_| rounds.push(contender, place, Sample::delays(&[us * 1_000; 20])));
            }
        }
        rounds
    }

    #[test]
    fn the_paper_s_numbers_pass() {
        let all = [(Contender::Kernel, 90, 90), (Contender::User, 90, 90), (Contender::Sparrow, 1_980, 2_220)];
        let findings = reduce(&rounds(&all));
        assert_eq!(findings.rows.len(), 15);
        // With equal delays, the 95th percentiles are the medians.
        let other = |row: &&Row| !row.name.contains("factor-p95");
        assert!(findings.rows.iter().filter(other).all(|row| row.verdict() == Verdict::Pass), "{:?}", findings.rows);
    }

    #[test]
    fn order_makes_a_shape_and_its_lack_a_failure() {
        let slow = reduce(&rounds(&[(Contender::User, 40, 100), (Contender::Sparrow, 500, 1_000)]));
        for name in ["user-median-95", "user-factor-median-95", "user-factor-median-50", "sparrow-median-95"] {
            assert_eq!(slow.verdict(name), Some(Verdict::Shape), "{name}");
        }
        assert_eq!(slow.verdict("user-flat"), Some(Verdict::Fail));
        assert_eq!(slow.verdict("sparrow-grows"), Some(Verdict::Pass));
        let behind = reduce(&rounds(&[(Contender::User, 600, 1_000), (Contender::Sparrow, 500, 400)]));
        for name in ["user-median-95", "user-factor-median-95", "sparrow-median-95", "sparrow-grows"] {
            assert_eq!(behind.verdict(name), Some(Verdict::Fail), "{name}");
        }
    }

    #[test]
    fn who_did_not_take_part_has_no_rows() {
        let findings = reduce(&rounds(&[(Contender::User, 90, 90), (Contender::Sparrow, 1_980, 2_220)]));
        assert!(findings.rows.iter().all(|row| !row.name.starts_with("kernel")));
    }
}
