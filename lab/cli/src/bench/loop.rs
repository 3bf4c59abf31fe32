//! `midflight-lab bench loop`: a task's whole path through processes, over loopback.

use super::How;
use super::load::{self, Effort, SLOTS, WithArguments};
use crate::median::median;
use crate::processes::{Process, executor, ours, switch};
use anyhow::Result;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::switches::connect;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// 2,200 slots in all.
const IDLE_EXECUTORS: u32 = 4;
const IDLE_SLOTS: u32 = 550;
/// A small serialised call with its arguments.
const ARGUMENT_BYTES: usize = 200;
/// Time for the last registrations to settle before the idle measurement.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench loop
  midflight-lab bench loop --quick           a few seconds, less exact
  midflight-lab bench loop --json
  midflight-lab bench loop --against ../before/target/release/midflight-lab

RESULTS (medians of the runs)
  loop.rtt_p50_us, loop.rtt_p99_us  one no-op task at a time, from the submit call to its result
  loop.tasks_per_s                  no-op tasks, one client, one executor process with 64 slots
  loop.two_slots_tasks_per_s        the same with 2 slots: the executor asks ahead
  loop.argument_tasks_per_s         no-op tasks that each have an argument of 200 bytes, 64 slots
  loop.argument_rtt_p50_us          one of these at a time
  loop.idle_cpu_percent             of a core, in the switch: 2,200 parked slots, 4 executors

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let effort = Effort::of(how.quick);
    let mut results = busy(&effort)?;
    results.push(two_slots(&effort)?);
    results.extend(arguments(&effort)?);
    results.push(idle(&effort)?);
    Envelope::new("loop", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn loopback_switch() -> Result<(Process, SocketAddr)> {
    switch(ours()?.args(["switch", "--listen", "127.0.0.1:0", "--http", "off"]))
}

fn busy(effort: &Effort) -> Result<Vec<Measure>> {
    let (_switch, address) = loopback_switch()?;
    let _executor = executor(ours()?, address, SLOTS)?;
    let client = connect(vec![address])?;
    Ok(load::measures::<midflight_host::Client>("loop", &load::runs(&client, effort, || Ok(Duration::ZERO))?))
}

/// Throughput of slots that would be idle while they wait for the next task.
fn two_slots(effort: &Effort) -> Result<Measure> {
    let (_switch, address) = loopback_switch()?;
    let _executor = executor(ours()?, address, 2)?;
    let client = connect(vec![address])?;
    let per_s = load::throughput(&client, effort)?.round() as u64;
    Ok(Measure { unit: "tasks/s".into(), ..Measure::count("loop.two_slots_tasks_per_s", per_s, "") })
}

/// [`busy`] with appended arguments.
fn arguments(effort: &Effort) -> Result<Vec<Measure>> {
    let (_switch, address) = loopback_switch()?;
    let _executor = executor(ours()?, address, SLOTS)?;
    let client = connect(vec![address])?;
    let runs = load::runs(&WithArguments(&client, ARGUMENT_BYTES), effort, || Ok(Duration::ZERO))?;
    let (p50_us, per_s) = (load::median_of(&runs, |run| run.p50_us), load::median_of(&runs, |run| run.per_s));
    Ok(vec![
        Measure { unit: "tasks/s".into(), ..Measure::count("loop.argument_tasks_per_s", per_s.round() as u64, "") },
        Measure::quantity("loop.argument_rtt_p50_us", p50_us, "us"),
    ])
}

/// What waiting executors cost the switch.
fn idle(effort: &Effort) -> Result<Measure> {
    let (switch, address) = loopback_switch()?;
    let executors = (0..IDLE_EXECUTORS).map(|_| executor(ours()?, address, IDLE_SLOTS));
    let _executors = executors.collect::<Result<Vec<Process>>>()?;
    sleep(SETTLE);
    let mut percent = Vec::new();
    for run in 1..=effort.runs.div_ceil(2) {
        let (before, started) = (switch.cpu_time()?, Instant::now());
        sleep(effort.idle);
        let share = (switch.cpu_time()? - before).as_secs_f64() / started.elapsed().as_secs_f64();
        eprintln!("idle run {run}: {:.2} % of a core", share * 100.0);
        percent.push(share * 100.0);
    }
    Ok(Measure::quantity("loop.idle_cpu_percent", median(percent), "%"))
}
