//! `midflight-lab bench xdp`: the cost of a decision in the kernel, here of tasks. Runs the core and packets of `bench core` as BPF:
//! `BPF_PROG_RUN` starts a program that handles a block of packets in the arena one by one, each under the lock, between two reads of the
//! kernel's clock.

use super::How;
use anyhow::Result;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench xdp
  midflight-lab bench xdp --quick            two seconds, less exact
  midflight-lab bench xdp --json
  midflight-lab bench xdp --program store
  midflight-lab bench xdp --program cache
  midflight-lab bench xdp --against ../before/target/release/midflight-lab

RESULTS of tasks (medians of blocks of 4,096 tasks, then of the runs; one core; the lock included)
  xdp.submit_ns, xdp.retrieve_ns         one task a packet; 64 Ki tasks queued, 4 levels, 8 masks
  xdp.retrieve_worst_ns                  256 masks of one level, all of which the executor may run
  xdp.batch_submit_ns_per_task           a SUBMIT of 32 tasks
  xdp.batch_retrieve_ns_per_task         a RETRIEVE of 13 slots, a task each
  xdp.assigned                           tasks assigned, which is as many as were accepted

RESULTS of the store (medians of blocks of 4,096 frames, one for each key group, then of the runs;
one core; from the frame that comes to the frame that leaves, lock and clock included)
  xdp.read_ns                            a READ, from a client to one of three replicas
  xdp.reply_ns, xdp.reply_1k_ns          its answer, with a value of 16 bytes, and of 1 KiB
  xdp.write_ns, xdp.write_reply_ns       a WRITE, and the answer that closes its key group

RESULTS of the cache (medians of blocks of 4,096 packets, then of the runs; with the lock)
  xdp.rule_ns                            the dearest of these six rules of an operator:
  xdp.label_ns, xdp.degrade_ns           a request of a host goes to its RSNode, or to its backup
  xdp.to_selector_ns                     a request goes to the selector beside the operator
  xdp.mark_ns, xdp.copy_ns               an answer goes to its RSNode; that one copies it
  xdp.deliver_ns                         an answer goes to its client
  xdp.label_frame_ns, xdp.deliver_frame_ns   the whole frame, from its arrival to its departure
  xdp.select_ns, xdp.answer_ns           an operator that chooses itself: a request with the choice
                                         among three of 100 servers, and its answer; the dearest
  xdp.select_NAME_ns, xdp.answer_NAME_ns     of each: random, least_outstanding, power_of_two, c3
  xdp.select_NAME_frame_ns, xdp.answer_NAME_frame_ns   the whole frames

It needs root, Linux 6.12 or newer, and a midflight that was built with the feature `kernel`. No
packet leaves the machine, and no interface is touched.

EXIT CODES
  0 measured, 1 failed (no root, an old kernel, built without the feature), 2 wrong usage";

#[cfg(feature = "kernel")]
pub(super) fn run(how: &How) -> Result<ExitCode> {
    kernel::run(how)
}

#[cfg(not(feature = "kernel"))]
pub(super) fn run(_: &How) -> Result<ExitCode> {
    anyhow::bail!(NO_KERNEL)
}

#[cfg(not(feature = "kernel"))]
pub(super) const NO_KERNEL: &str =
    "this midflight was built without the kernel engine; build it with `--features kernel`";

#[cfg(feature = "kernel")]
mod kernel {
    use super::super::workload::{BLOCK, Cost, DEPTH, EPOCH, Mix, Packets, SECRET, Size, Timed, measure};
    use super::How;
    use anyhow::Result;
    use midflight_dataplane::Out;
    use midflight_dataplane::kernel::{BenchPacket, KernelTasks};
    use midflight_terminal::envelope::{Envelope, Measure};
    use midflight_wire::Address;
    use std::process::ExitCode;

    /// Arena for a block of packets: none is longer than 1,500 bytes, and those of one task are far shorter.
    const PACKET_BYTES: u64 = 256 * BLOCK as u64;

    pub(super) fn run(how: &How) -> Result<ExitCode> {
        let (runs, blocks) = if how.quick { (1, 20) } else { (5, 200) };
        let usual = Size { depth: DEPTH, blocks };
        let mut costs: [Vec<Cost>; 3] = Default::default();
        for run in 1..=runs {
            eprintln!("run {run} of {runs}");
            for (mix, costs) in [Mix::SINGLE, Mix::BATCH, Mix::WORST].into_iter().zip(&mut costs) {
                let tasks = KernelTasks::new(&usual.config()?, EPOCH, SECRET, PACKET_BYTES)?;
                costs.push(measure(tasks, usual, mix)?);
            }
        }
        let [single, batch, worst] = costs.map(|runs| Cost::median(&runs));
        let results = vec![
            Measure::quantity("xdp.submit_ns", single.submit_ns, "ns"),
            Measure::quantity("xdp.retrieve_ns", single.retrieve_ns, "ns"),
            Measure::quantity("xdp.retrieve_worst_ns", worst.retrieve_ns, "ns"),
            Measure::quantity("xdp.batch_submit_ns_per_task", batch.submit_ns, "ns"),
            Measure::quantity("xdp.batch_retrieve_ns_per_task", batch.retrieve_ns, "ns"),
            Measure::count("xdp.assigned", single.assigned + batch.assigned + worst.assigned, "tasks"),
        ];
        Envelope::new("xdp", results).print(how.json)?;
        Ok(ExitCode::SUCCESS)
    }

    impl Timed for KernelTasks {
        /// Uses one time for all packets: the core makes keys different by itself.
        fn feed(&mut self, now_ns: u64, from: Address, packets: &mut Packets, _out: &mut Out) -> Result<f64> {
            let packets: Vec<_> = packets.iter_mut().map(|datagram| BenchPacket { from, datagram }).collect();
            Ok(self.bench_packets(now_ns, &packets)? as f64)
        }
    }
}
