//! An executor as the source of its HTTP server.

use midflight_control::ShellCounters;
use midflight_control::executor::{ExecutorStatus, FunctionStatus, ResourceStatus};
use midflight_control::http::Source;
use midflight_control::metrics::AnySnapshot;
use midflight_host::{Executor, ExecutorCounts, RunTimes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Watched {
    executor: Arc<Executor>,
    started: Instant,
}

impl Watched {
    pub(crate) fn new(executor: Arc<Executor>) -> Self {
        Self { executor, started: Instant::now() }
    }

    fn status(&self) -> ExecutorStatus {
        let (state, counts) = (self.executor.state(), self.executor.counts());
        let slots = [
            ("registered", state.registered),
            ("registered_ahead", state.registered_ahead),
            ("running", state.running),
            ("waiting", state.waiting),
            ("ready", state.ready),
        ];
        ExecutorStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            address: self.executor.local_addr(),
            switch: self.executor.switch(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            slots: owned(slots),
            counters: owned(counts.protocol.named()),
            resources: self.resources(),
            functions: self.executor.run_times().into_iter().map(|(name, times)| (name, function(&times))).collect(),
            shell: shell(&counts, state.unacknowledged),
        }
    }

    fn resources(&self) -> BTreeMap<String, ResourceStatus> {
        let bundles = self.executor.bundles().into_iter();
        let status =
            bundles.map(|(name, of)| (name, ResourceStatus { total: of.total, held: of.held, offered: of.offered }));
        status.collect()
    }
}

impl Source for Watched {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(self.status())
    }

    /// Its slots show whether it is alive.
    fn silent_for(&self) -> Duration {
        Duration::ZERO
    }

    fn ailment(&self) -> Option<String> {
        let switch = self.executor.switch();
        (self.executor.state().registered == 0).then(|| format!("no slot is registered at a switch; asking {switch}"))
    }
}

fn owned<T>(all: impl IntoIterator<Item = (&'static str, T)>) -> BTreeMap<String, T> {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn function(times: &RunTimes) -> FunctionStatus {
    let RunTimes { buckets, sum_ns, failed, stopped } = times;
    FunctionStatus { run_us: buckets.to_vec(), sum_ns: *sum_ns, failed: *failed, stopped: *stopped }
}

fn shell(counts: &ExecutorCounts, unacknowledged: usize) -> ShellCounters {
    let own = [
        ("argument_fetches", counts.argument_fetches),
        ("inline_overruns", counts.inline_overruns),
        ("outputs_not_kept", counts.outputs_not_kept),
        ("workers", counts.workers as u64),
        ("unacknowledged", unacknowledged as u64),
    ];
    owned(counts.socket.by_name().into_iter().chain(own).chain(counts.blobs.by_name()).chain(counts.python.by_name()))
}
