//! Rows of this repository that no other benchmark measures.

use super::row::Row;
use crate::baseline::sparrow::SparrowClient;
use crate::bench::live::{sparrow_ended, sparrow_task};
use crate::bench::load::{self, Effort, Load, SLOTS};
use crate::processes::{Process, executor, ours, switch};
use anyhow::{Context, Result, ensure};
use midflight_host::{Client, Job, TaskSpec};
use midflight_tasks::functions::{EXEC, NOOP};
use midflight_terminal::switches::connect;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

const EXEC_INTERFACE: &str = "one job of tasks that run `true`; latency: a job of one; client, switch and 1 executor \
                              process with 64 slots on loopback";
const SPARROW_INTERFACE: &str = "jobs of 256 tasks, 32 in flight, two reservations a task; latency: a job of one; client, \
                                 1 scheduler and 1 worker process with 64 slots on loopback";
const PATIENCE: Duration = Duration::from_secs(20);

/// Tasks that start programs, as HyperQueue's do.
pub(super) fn exec(name: &str, quick: bool) -> Result<Row> {
    let (_switch, address) = switch(ours()?.args(["switch", "--listen", "127.0.0.1:0", "--http", "off"]))?;
    let _executor = executor(ours()?, address, SLOTS)?;
    let argument = b"true".to_vec();
    measure(name, EXEC_INTERFACE, &Exec { client: connect(vec![address])?, argument }, Effort::of_programs(quick))
}

pub(super) fn sparrow(name: &str, quick: bool) -> Result<Row> {
    let [scheduler, worker] = [free_port()?, free_port()?].map(|address| address.to_string());
    let start = |args: &[&str]| -> Result<Process> {
        let mut process = Process::start(ours()?.args(["baseline", "sparrow"]).args(args))?;
        process.line()?;
        Ok(process)
    };
    let slots = SLOTS.to_string();
    let _worker = start(&["worker", "--listen", &worker, "--slots", &slots])?;
    let _scheduler = start(&["scheduler", "--listen", &scheduler, "--worker", &format!("{worker}/{slots}")])?;
    let client = SparrowClient::connect(vec![scheduler.parse()?])?;
    measure(name, SPARROW_INTERFACE, &Sparrow(client), Effort::of(quick))
}

fn measure<L: Load>(name: &str, interface: &str, load: &L, effort: Effort) -> Result<Row> {
    let runs = load::runs(load, &effort, || Ok(Duration::ZERO))?;
    Ok(Row {
        name: name.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        interface: interface.into(),
        tasks_per_s: load::median_of(&runs, |run| run.per_s),
        rtt_p50_us: load::median_of(&runs, |run| run.p50_us),
        rtt_p99_us: load::median_of(&runs, |run| run.p99_us),
    })
}

/// A port that was free a moment ago; another process may take it.
fn free_port() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port of loopback is free")?;
    Ok(listener.local_addr()?)
}

struct Exec {
    client: Client,
    argument: Vec<u8>,
}

impl Load for Exec {
    const WHAT: &'static str = "tasks";

    fn one(&self) -> Result<()> {
        let outcomes = self.client.submit(TaskSpec::new(EXEC, self.argument.clone()))?.wait();
        ensure!(outcomes.iter().all(Result::is_ok), "a program failed: {outcomes:?}");
        Ok(())
    }

    fn many(&self, count: usize) -> Result<usize> {
        let outcomes = self.client.submit(Job::builder(EXEC).repeat(count, self.argument.clone()).build())?.wait();
        ensure!(outcomes.iter().all(Result::is_ok), "a program failed");
        Ok(count)
    }
}

struct Sparrow(SparrowClient);

impl Sparrow {
    const JOB: usize = 256;
    const IN_FLIGHT: usize = 32 * Self::JOB;
}

impl Load for Sparrow {
    const WHAT: &'static str = "tasks";

    fn one(&self) -> Result<()> {
        self.0.submit(&[sparrow_task(NOOP, &[])])?;
        sparrow_ended(&self.0, PATIENCE)
    }

    fn many(&self, count: usize) -> Result<usize> {
        let job = vec![sparrow_task(NOOP, &[]); Self::JOB];
        let (mut submitted, mut ended) = (0, 0);
        while ended < submitted || submitted < count {
            if submitted < count && submitted - ended + Self::JOB <= Self::IN_FLIGHT {
                self.0.submit(&job)?;
                submitted += Self::JOB;
            } else {
                sparrow_ended(&self.0, PATIENCE)?;
                ended += 1;
            }
        }
        Ok(ended)
    }
}
