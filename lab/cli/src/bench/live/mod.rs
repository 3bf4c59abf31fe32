//! `midflight-lab bench falcon-8` and `bench bolt-11`: two of the papers' figures live, in a lab. Midflight with each engine and Sparrow
//! run as processes on equal hosts, round by round.

mod arrivals;
mod backlog;
mod bolt_11;
mod cluster;
mod contender;
mod falcon_8;
mod rounds;
mod starts;
mod validation;

pub(super) use arrivals::{sparrow_ended, sparrow_task};
pub(super) use bolt_11::{BOLT_11, EXAMPLES as BOLT_11_EXAMPLES};
pub(super) use falcon_8::{EXAMPLES as FALCON_8_EXAMPLES, FALCON_8};

use super::How;
use crate::lab_guard::LabGuard;
use crate::report::rows;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use cluster::{Ground, start_switch};
use contender::{ALL, Contender};
use midflight_net::Options;
use midflight_papers::findings::Findings;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::{stdout, usage};
use rounds::{Rounds, Sample};
use std::process::ExitCode;
use std::time::Duration;
use validation::Idle;

/// The warm-up is the duration divided by this.
const WARMUP_SHARE: u32 = 4;

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Rounds, in each of which all are measured at all places; default: 5, with --quick 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// How long each measurement takes, after a quarter of it that is left out; default: see below
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    duration: Option<Duration>,
}

#[derive(ClapArgs)]
pub(super) struct Falcon8Args {
    #[command(flatten)]
    args: Args,
    /// Also run the same in the simulator, with costs that are measured live; at least two rounds
    #[arg(long)]
    simulate: bool,
}

pub(super) struct Live {
    name: &'static str,
    title: &'static str,
    hosts: usize,
    /// Measured positions on the x-axis.
    places: &'static [u32],
    /// Formats a position, such as "80 %".
    place: fn(u32) -> String,
    /// Duration of a measurement, and with `--quick`.
    duration: (Duration, Duration),
    measure: fn(Ground<'_>, &Point) -> Result<Sample>,
    reduce: fn(&Rounds) -> Findings,
}

#[derive(Clone, Copy, Default)]
struct Point {
    place: u32,
    /// Durations of the warm-up and of the measurement.
    warmup: Duration,
    duration: Duration,
    /// The same for all contenders of a round.
    seed: u64,
}

impl Point {
    fn new(place: u32, duration: Duration, round: u32) -> Self {
        Self { place, warmup: duration / WARMUP_SHARE, duration, seed: round.into() }
    }
}

pub(super) fn run_falcon_8(args: &Falcon8Args) -> Result<ExitCode> {
    run(&FALCON_8, &args.args, args.simulate)
}

pub(super) fn run(figure: &Live, args: &Args, simulate: bool) -> Result<ExitCode> {
    let quick = args.how.quick;
    let duration = args.duration.unwrap_or(if quick { figure.duration.1 } else { figure.duration.0 });
    if duration < Duration::from_millis(10) {
        return Err(usage::error(format!("--duration {duration:?}: give 10ms or more")));
    }
    let least = if simulate { 2 } else { 1 };
    let rounds = args.rounds.unwrap_or(if quick { least } else { 5 });
    if rounds < least {
        return Err(usage::error("--simulate compares several rounds: give --rounds 2 or more"));
    }
    midflight_net::available()?;
    let guard = LabGuard::new()?;
    let (contenders, missing) = present();
    let (measured, idle) =
        guard.unless_interrupted(measure(figure, &contenders, (rounds, duration), simulate, &guard))?;
    let points = |place| (1..=rounds).map(|round| Point::new(place, duration, round)).collect();
    let validated = if simulate { validation::measures(figure, &measured, &idle, points) } else { Ok(Vec::new()) };
    // What was measured is not lost if the simulation fails.
    let (validated, outcome) = match validated.context("the cluster cannot be simulated") {
        Ok(validated) => (validated, Ok(ExitCode::SUCCESS)),
        Err(error) => (Vec::new(), Err(error)),
    };
    let mut findings = (figure.reduce)(&measured);
    findings.notes.extend(missing);
    print(figure, &measured, &findings, validated, args.how.json)?;
    outcome
}

/// Contenders that can run here, and why others cannot.
fn present() -> (Vec<Contender>, Vec<String>) {
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    for contender in ALL {
        match contender.missing() {
            None => present.push(contender),
            Some(why) => {
                let why = format!("SKIPPED: {}: {why}", contender.label());
                eprintln!("{why}");
                missing.push(why);
            }
        }
    }
    (present, missing)
}

fn measure(
    figure: &Live,
    contenders: &[Contender],
    (rounds, duration): (u32, Duration),
    with_idle: bool,
    guard: &LabGuard,
) -> Result<(Rounds, Vec<(Contender, Idle)>)> {
    // A lab, with XDP at the hosts for the kernel engine only; it would slow the others.
    let up = |xdp: bool| {
        let name = format!("live{}{}", std::process::id(), if xdp { "x" } else { "" });
        guard.up(&Options::new(name, figure.hosts).xdp(xdp))
    };
    eprintln!("setting up: {} hosts and a switch", figure.hosts);
    let plain = up(false)?;
    let xdp = if contenders.contains(&Contender::Kernel) { Some(up(true)?) } else { None };
    let (mut switches, mut grounds) = (Vec::new(), Vec::new());
    for &contender in contenders {
        let lab = xdp.as_ref().filter(|_| contender == Contender::Kernel).unwrap_or(&plain);
        let started = contender.engine().map(|engine| start_switch(lab, engine)).transpose()?;
        let switch = started.map(|(process, address)| {
            switches.push(process);
            address
        });
        grounds.push(Ground { contender, lab, switch });
    }
    let (mut measured, mut idle) = (Rounds::default(), Vec::new());
    for round in 1..=rounds {
        for &ground in grounds.iter().filter(|ground| with_idle && ground.switch.is_some()) {
            eprintln!("round {round} of {rounds}, idle: {}", ground.contender.label());
            idle.push((ground.contender, Idle::measure(ground)?));
        }
        for &place in figure.places {
            for &ground in &grounds {
                let point = Point::new(place, duration, round);
                let (at, who) = ((figure.place)(place), ground.contender.label());
                let sample =
                    (figure.measure)(ground, &point).with_context(|| format!("{who} was not measured at {at}"))?;
                eprintln!("round {round} of {rounds}, {at}: {who}: {sample}");
                measured.push(ground.contender, place, sample);
            }
        }
    }
    Ok((measured, idle))
}

fn print(figure: &Live, measured: &Rounds, findings: &Findings, validated: Vec<Measure>, json: bool) -> Result<()> {
    let name = format!("live.{}", figure.name);
    let mut results: Vec<Measure> = Vec::new();
    for row in &findings.rows {
        results.extend(rows::measures(&format!("{name}.{}", row.name), row));
    }
    results.extend(rows::counts(&name, findings));
    results.extend(measured.measures(&name));
    if json {
        results.extend(validated);
        return Envelope::new(&name, results).print(true);
    }
    let table = rows::table(&name, figure.title, findings);
    if validated.is_empty() {
        return stdout::print(&format!("{table}{}", Envelope::new(&name, results).footer()));
    }
    stdout::print(&table)?;
    Envelope::new(&name, validated).print(false)
}
