//! One fault while clients use the store, with their history.

use super::kinds::Kind;
use crate::store::cluster::Cluster;
use crate::store::worker::{Done, Plan, Shared, Worker};
use anyhow::{Context, Result, anyhow};
use midflight_host::clock;
use midflight_host::store::StoreClient;
use midflight_spec::store::history::{BYTES_MAX, History, Verdict};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Times before the fault, during it, and after it.
const BEFORE: Duration = Duration::from_millis(300);
const LASTS: Duration = Duration::from_millis(800);
const AFTER: Duration = Duration::from_millis(300);
/// Threads per client, each with one operation at a time.
const THREADS: usize = 2;
/// Few, so that clients conflict.
const KEYS: u32 = 6;
const READS: f64 = 0.5;
/// Timeout of an operation. Faults end sooner, so few operations time out.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Run {
    pub(super) history: History,
    pub(super) verdict: Verdict,
    /// The longest time without a response.
    pub(super) outage_ms: f64,
    /// Why the store does not work afterwards.
    pub(super) stuck: Option<String>,
}

/// One per client host.
pub(super) fn clients(store: &Cluster<'_>) -> Result<Vec<StoreClient>> {
    (0..store.size().clients).map(|number| client(store, number)).collect()
}

fn client(store: &Cluster<'_>, number: usize) -> Result<StoreClient> {
    store.client(number, |client| client.lanes(THREADS).timeout(PATIENCE))
}

/// The store must be healthy, with its session at the first switch.
pub(super) fn run(store: &mut Cluster<'_>, clients: &[StoreClient], kind: &Kind) -> Result<Run> {
    // A history starts with keys that do not exist.
    let prefix = format!("{:016x}-", rand::random::<u64>());
    let plan = Plan { keys: KEYS, prefix, reads: READS, value_bytes: 0, keeps_history: true };
    let shared = Shared::default();
    let workers = clients.iter().flat_map(|client| [client; THREADS]).zip(0..);
    let workers = workers.map(|(client, process)| Worker::new(process, client, &plan)).collect::<Result<Vec<_>>>()?;
    let (happened, done) = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| worker.run(&shared))).collect();
        let happened = happen(store, clients, kind);
        shared.stop.store(true, Relaxed);
        let done = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked")));
        (happened, done.collect::<Result<Vec<_>>>())
    });
    let stuck = happened.err().map(|error| format!("{error:#}"));
    let history = History { operations: done?.into_iter().flat_map(|done: Done| done.history).collect() };
    let verdict = history.check(BYTES_MAX, &|| false);
    Ok(Run { history, verdict, outage_ms: shared.longest_gap_ns(clock::now()) as f64 / 1e6, stuck })
}

/// Waits until all is well.
fn happen(store: &mut Cluster<'_>, clients: &[StoreClient], kind: &Kind) -> Result<()> {
    std::thread::sleep(BEFORE);
    let struck = kind.strike(store)?;
    std::thread::sleep(LASTS);
    kind.mend(store, struck)?;
    store.wait_until_well()?;
    std::thread::sleep(AFTER);
    for client in clients {
        serves(client).context("a client is not served after the fault")?;
    }
    serves(&client(store, 0)?).context("a new client is not served after the fault")
}

fn serves(client: &StoreClient) -> Result<()> {
    client.put("after", "the fault")?;
    client.get("after")?.context("what was written is not there")?;
    Ok(())
}
