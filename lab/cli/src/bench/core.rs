//! `midflight-lab bench core`: the cost of a decision in a program's C core, on packets in memory; here of tasks.

use super::How;
use super::workload::{Cost, DEPTH, EPOCH, Mix, Packets, SECRET, STEP_NS, Size, Timed, measure};
use anyhow::{Result, ensure};
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::{Out, Tasks, TasksConfig, TasksProgram, Verdict};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_wire::Address;
use std::process::ExitCode;
use std::time::Instant;

const DEEP: usize = 1 << 20;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench core
  midflight-lab bench core --quick           two seconds, less exact
  midflight-lab bench core --json
  midflight-lab bench core --program store
  midflight-lab bench core --against ../before/target/release/midflight-lab

RESULTS of tasks (medians of blocks of 4,096 tasks, then of the runs; one core)
  core.submit_ns, core.retrieve_ns       one task a packet; 64 Ki tasks queued, 4 levels, 8 masks
  core.retrieve_worst_ns                 256 masks of one level, all of which the executor may run
  core.batch_ns_per_task                 a SUBMIT of 32 tasks and a RETRIEVE of 13 slots, their mean
  core.batch_submit_ns_per_task, core.batch_retrieve_ns_per_task
  core.deep_ratio                        submit and retrieve with 1 Mi tasks queued, against 64 Ki
  core.state_bytes, core.state_bytes_1m  of a queue's memory: default bounds; room for 1 Mi tasks

RESULTS of the store (medians of blocks of 4,096 packets, one for each key group; one core)
  core.read_ns, core.read_reply_ns       a READ to one of three replicas; its answer, strict check
  core.write_ns, core.write_reply_ns     a WRITE, and the answer that closes its key group
  core.state_bytes                       of all sets' memory: default bounds

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 20) } else { (5, 200) };
    let mut costs: [Vec<Cost>; 4] = Default::default();
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let usual = Size { depth: DEPTH, blocks };
        costs[0].push(native(usual, Mix::SINGLE)?);
        costs[1].push(native(Size { depth: DEEP, blocks }, Mix::SINGLE)?);
        costs[2].push(native(usual, Mix::BATCH)?);
        costs[3].push(native(usual, Mix::WORST)?);
    }
    let [single, deep, batch, worst] = costs.map(|runs| Cost::median(&runs));
    let bytes = |queue| TasksProgram::state_bytes(&TasksConfig { queue, ..TasksConfig::default() });
    let results = vec![
        Measure::quantity("core.submit_ns", single.submit_ns, "ns"),
        Measure::quantity("core.retrieve_ns", single.retrieve_ns, "ns"),
        Measure::quantity("core.retrieve_worst_ns", worst.retrieve_ns, "ns"),
        Measure::quantity("core.batch_ns_per_task", batch.mean_ns(), "ns"),
        Measure::quantity("core.batch_submit_ns_per_task", batch.submit_ns, "ns"),
        Measure::quantity("core.batch_retrieve_ns_per_task", batch.retrieve_ns, "ns"),
        Measure::quantity("core.deep_ratio", deep.mean_ns() / single.mean_ns(), ""),
        Measure::count("core.state_bytes", bytes(TasksConfig::default().queue), "bytes"),
        Measure::count("core.state_bytes_1m", bytes(1 << 20), "bytes"),
    ];
    Envelope::new("core", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn native(size: Size, mix: Mix) -> Result<Cost> {
    measure(Tasks::new(&size.config()?, EPOCH, SECRET)?, size, mix)
}

impl Timed for Tasks {
    fn feed(&mut self, now_ns: u64, from: Address, packets: &mut Packets, out: &mut Out) -> Result<f64> {
        let (mut now_ns, mut refused) = (now_ns, 0);
        let start = Instant::now();
        for packet in packets.iter_mut() {
            now_ns += STEP_NS;
            let verdict = self.take(now_ns, from, packet, out);
            refused += usize::from(verdict != Verdict::Ok);
        }
        let ns = start.elapsed().as_nanos() as f64;
        ensure!(refused == 0, "the core refused {refused} of {} well-formed packets", packets.len());
        Ok(ns)
    }
}
