//! Bolt, figure 11, live: decisions a second, of empty tasks.

use super::backlog::rate;
use super::cluster::{Cluster, Ground, Layout, Sparrow};
use super::contender::Contender;
use super::rounds::{Quantity, Rounds, Sample};
use super::{Live, Point};
use anyhow::Result;
use midflight_papers::findings::Paper::{self, AtLeast, Is, Says};
use midflight_papers::findings::Unit::{Factor, PerSecond};
use midflight_papers::findings::{Band, Class, Estimate, Findings, Holds, Row};
use std::time::Duration;

pub(in super::super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench bolt-11                       about three minutes, as root
  midflight-lab bench bolt-11 --quick
  midflight-lab bench bolt-11 --svg decisions.svg --json

Bolt's figure 11 live, in a lab: one client keeps 8,192 empty tasks in flight, for one executor
process of 1 to 720 slots. Midflight with the kernel engine, with the switch in user space, and
Sparrow (one scheduler, where the switch is, without probing: slots ask) take turns. A decision is
a task that has ended. A measurement takes 1 s (--quick: 200 ms), after a warm-up. Let nothing
else run.

RESULTS (medians of the rounds; CONTENDER is kernel, user or sparrow)
  live.bolt-11.ROW.paper, .ours, .ratio, .verdict  as of `midflight-lab sim figure`
  live.bolt-11.pass, .shape, .fail                 rows
  live.bolt-11.CONTENDER.SLOTS.decisions_per_s

The papers' numbers are of 720 executors with cores of their own and a switch of hardware. Here
all shares the cores of one machine: read order and shape first. docs/figures.md says more.

EXIT CODES
  0 measured, whatever the verdicts, 1 failed (no root), 2 wrong usage, 130 interrupted";

pub(in super::super) const BOLT_11: Live = Live {
    name: "bolt-11",
    title: "Scheduling decisions a second, live",
    hosts: 2,
    places: &[1, 4, 16, SOME, FLAT_FROM, 300, MOST],
    place: |slots| if slots == 1 { "1 slot".into() } else { format!("{slots} slots") },
    duration: (Duration::from_secs(1), Duration::from_millis(200)),
    measure,
    reduce,
};

/// The papers' most, where they say that the curve is flat, and up to where the simulated figure is linear.
const MOST: u32 = 720;
const FLAT_FROM: u32 = 150;
const SOME: u32 = 60;
/// Growth by more than `FLAT` is not flat; proportional growth stays within the other factor. As in the simulated figure.
const FLAT: f64 = 1.15;
const LINEAR: f64 = 1.1;

fn measure(ground: Ground<'_>, point: &Point) -> Result<Sample> {
    let layout = Layout { clients: 1, nodes: 1, slots: point.place, sparrow: Sparrow::Asked };
    let cluster = Cluster::start(ground, layout)?;
    let client = cluster.client(0)?;
    let rate = rate(&client, point.warmup, point.duration)?;
    // Closes while the executors run: a client of Midflight waits, up to a second, until they have stopped its cancelled tasks.
    drop(client);
    cluster.end()?;
    Ok(Sample::rate(rate))
}

fn reduce(rounds: &Rounds) -> Findings {
    let has = |contender| rounds.contenders().any(|who| who == contender);
    let mut rows = Vec::new();
    if has(Contender::Kernel) {
        rows.extend(kernel_rows(rounds));
    }
    rows.extend(user_rows(rounds));
    rows.extend(sparrow_rows(rounds));
    let notes = vec![
        "One machine's cores run client, switch or scheduler, and executor: values are this machine's, order and shape are \
         compared."
            .into(),
    ];
    Findings { rows, notes, ..Findings::default() }
}

/// The kernel engine takes the place of Bolt's switch.
fn kernel_rows(rounds: &Rounds) -> [Row; 4] {
    use Contender::{Kernel, Sparrow, User};
    let above = |other| Holds::within(by(rounds, (Kernel, MOST), (other, MOST)), Band::from(1.0));
    let linear = by(rounds, (Kernel, MOST), (Kernel, SOME)).map(per_slot);
    [
        peak("kernel-peak", "kernel engine, most", AtLeast(23e6), rounds, Kernel, above(Sparrow)),
        row("kernel-by-sparrow", "kernel engine by Sparrow, 720 slots", Is(46.0))
            .found(by(rounds, (Kernel, MOST), (Sparrow, MOST)), above(Sparrow)),
        row("kernel-by-user", "kernel engine by the switch in user space, 720 slots", Is(46.0))
            .found(by(rounds, (Kernel, MOST), (User, MOST)), above(User)),
        row(
            "kernel-linear",
            "kernel engine: decisions a slot, 720 slots by 60",
            Says("linear", Band::around(1.0, LINEAR)),
        )
        .found_alone(linear),
    ]
}

/// The user-space switch takes the place of Bolt-Server, which the paper shows level with Sparrow.
fn user_rows(rounds: &Rounds) -> [Row; 3] {
    use Contender::{Sparrow, User};
    let level = by(rounds, (User, MOST), (Sparrow, MOST));
    [
        peak("user-peak", "switch in user space, most", AtLeast(0.5e6), rounds, User, is_flat(rounds, User)),
        row("user-by-sparrow", "switch in user space by Sparrow, 720 slots", AtLeast(1.0)).found_alone(level),
        flat("user-flat", "switch in user space, 720 slots by 150", rounds, User),
    ]
}

fn sparrow_rows(rounds: &Rounds) -> [Row; 2] {
    use Contender::Sparrow;
    let holds = is_flat(rounds, Sparrow);
    [
        peak("sparrow-peak", "Sparrow with one scheduler, most", Is(0.5e6), rounds, Sparrow, holds),
        flat("sparrow-flat", "Sparrow with one scheduler, 720 slots by 150", rounds, Sparrow),
    ]
}

fn by(rounds: &Rounds, over: (Contender, u32), under: (Contender, u32)) -> Option<Estimate> {
    rounds.factor(over, under, Quantity::Rate)
}

/// Divides a factor between the most slots and fewer by the ratio of slots.
fn per_slot(factor: Estimate) -> Estimate {
    Estimate { mean: factor.mean * f64::from(SOME) / f64::from(MOST), ..factor }
}

fn best(rounds: &Rounds, contender: Contender) -> Option<u32> {
    let rate = |slots: u32| rounds.median(contender, slots, Quantity::Rate);
    let measured = BOLT_11.places.iter().copied().filter(|&slots| rate(slots).is_finite());
    measured.max_by(|&a, &b| rate(a).total_cmp(&rate(b)))
}

fn is_flat(rounds: &Rounds, contender: Contender) -> Holds {
    Holds::within(by(rounds, (contender, MOST), (contender, FLAT_FROM)), Band::up_to(FLAT))
}

/// Its rules were chosen with results in view.
fn row(name: &str, what: &str, paper: Paper) -> Row {
    Row::new(Class::Seen, Factor, name, what, paper)
}

fn flat(name: &str, what: &str, rounds: &Rounds, contender: Contender) -> Row {
    let ours = by(rounds, (contender, MOST), (contender, FLAT_FROM));
    row(name, what, Says("flat from 150", Band::up_to(FLAT))).found_alone(ours)
}

fn peak(name: &str, what: &str, paper: Paper, rounds: &Rounds, contender: Contender, order: Holds) -> Row {
    let ours = best(rounds, contender).and_then(|slots| rounds.estimate(contender, slots, Quantity::Rate));
    Row::new(Class::Seen, PerSecond, name, what, paper).found(ours, order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_papers::findings::Verdict;

    /// The same rates in each of three rounds, by slots.
    fn rounds(rates: &[(Contender, [f64; 7])]) -> Rounds {
        let mut rounds = Rounds::default();
        for _ in 0..3 {
            for &(contender, rates) in rates {
                for (&slots, rate) in BOLT_11.places.iter().zip(rates) {
                    rounds.push(contender, slots, Sample::rate(rate));
                }
            }
        }
        rounds
    }

    const SERVER: [f64; 7] = [0.05e6, 0.1e6, 0.2e6, 0.4e6, 0.5e6, 0.5e6, 0.5e6];

    #[test]
    fn the_paper_s_curves_pass() {
        let linear = BOLT_11.places.iter().map(|&slots| 23e6 * f64::from(slots) / f64::from(MOST));
        let linear: [f64; 7] = linear.collect::<Vec<_>>().try_into().unwrap();
        let all = [(Contender::Kernel, linear), (Contender::User, SERVER), (Contender::Sparrow, SERVER)];
        let findings = reduce(&rounds(&all));
        assert_eq!(findings.rows.len(), 9);
        assert!(findings.rows.iter().all(|row| row.verdict() == Verdict::Pass), "{:?}", findings.rows);
    }

    #[test]
    fn on_few_cores_order_remains_and_lines_end() {
        let [fast, slow] = [20.0, 0.6].map(|by| SERVER.map(|rate| rate * by));
        let all = [(Contender::Kernel, fast), (Contender::User, fast), (Contender::Sparrow, slow)];
        let findings = reduce(&rounds(&all));
        assert_eq!(findings.verdict("kernel-peak"), Some(Verdict::Shape));
        assert_eq!(findings.verdict("kernel-by-sparrow"), Some(Verdict::Shape));
        assert_eq!(findings.verdict("kernel-by-user"), Some(Verdict::Fail), "no faster");
        assert_eq!(findings.verdict("kernel-linear"), Some(Verdict::Fail));
        assert_eq!(findings.verdict("sparrow-peak"), Some(Verdict::Shape));
    }

    #[test]
    fn the_most_is_that_of_the_best_place() {
        let peak = [1.0, 2.0, 9.0, 4.0, 5.0, 6.0, 7.0];
        let rounds = rounds(&[(Contender::User, peak), (Contender::Sparrow, SERVER)]);
        assert_eq!(best(&rounds, Contender::User), Some(BOLT_11.places[2]));
        assert!(reduce(&rounds).rows.iter().all(|row| !row.name.starts_with("kernel")));
    }
}
