//! A central scheduler with a cost per task, to show its shape: no sub-second tasks, and unbounded delay beyond its capacity. Jobs wait for
//! the driver, tasks for an executor, first come, first served.

use crate::calibration::{SPARK_JOB_NS, SPARK_TASK_NS};
use crate::cell::{Cell, CellError, CellResult, Jobs, Load, Meter, Sample};
use midflight_endpoint::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) fn run(cell: &Cell) -> Result<CellResult, CellError> {
    match cell.load {
        Load::Noop { .. } => return Err(CellError::Unfit { scheme: "spark", load: "noop" }),
        Load::Sw2 => return Err(CellError::Unfit { scheme: "spark", load: "sw2" }),
        _ => {}
    }
    let mut meter = Meter::new(cell);
    let mut free = executors(cell);
    let end = (cell.duration_ms + cell.drain_ms) * 1_000_000;
    let (mut driver, mut events): (Nanos, u64) = (0, 0);
    for job in Jobs::new(cell)? {
        meter.submitted(job.tasks.len() as u64);
        for task in &job.tasks {
            // Jobs overlap in their fixed cost, so it adds latency but takes no capacity.
            driver = driver.max(job.at) + SPARK_TASK_NS;
            let Some(mut next) = free.peek_mut() else { continue };
            let Reverse((idle, group)) = *next;
            let started = idle.max(driver + SPARK_JOB_NS);
            if started > end {
                continue;
            }
            meter.started(&Sample { submitted: job.at, started, level: task.level, ..Sample::default() });
            let ended = started + task.duration_ns;
            *next = Reverse((ended, group));
            if ended <= end {
                meter.ended(ended, group);
            }
            events += 2;
        }
    }
    Ok(meter.result(events))
}

/// When each executor is free, and its node's group.
fn executors(cell: &Cell) -> BinaryHeap<Reverse<(Nanos, usize)>> {
    let groups = cell.cluster.groups.iter().enumerate();
    let of_group = |(group, g): (usize, &crate::cell::Group)| {
        (0..u64::from(g.nodes) * u64::from(g.executors)).map(move |_| Reverse((0, group)))
    };
    groups.flat_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cluster, Scheme, Work};

    fn median_s(utilisation: f64) -> f64 {
        let cluster = Cluster::uniform(10, 6);
        let load = Load::Sw1 { clients: 2, utilisation, work: Work::Sleep };
        let (warmup_ms, duration_ms, drain_ms) = (1_000, 20_000, 60_000);
        let cell = Cell { scheme: Scheme::Spark, cluster, load, seed: 1, warmup_ms, duration_ms, drain_ms };
        run(&cell).unwrap().delay.median_ms() / 1e3
    }

    #[test]
    fn seconds_at_half_load_and_no_bound_above() {
        let (half, more) = (median_s(0.5), median_s(0.8));
        assert!((2.0..4.5).contains(&half), "{half} s");
        assert!(more > 2.0 * half, "{more} s");
    }
}
