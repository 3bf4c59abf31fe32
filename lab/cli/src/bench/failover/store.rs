//! How long a client of the store waits when a leader, a follower or a switch dies.

use super::{Args, slow_disk};
use crate::bench::How;
use crate::engines::LabEngine;
use crate::median::median;
use crate::store::cluster::{Cluster, Ground, Size};
use anyhow::{Result, ensure};
use midflight_net::{Lab, Options};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::usage::INTERRUPTED;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to watch the client after a failure.
const WATCHED: Duration = Duration::from_millis(1_500);
/// Undisturbed time before each failure.
const CALM: Duration = Duration::from_millis(500);
/// Timeout of an operation; the client then retries.
const PATIENCE: Duration = Duration::from_secs(5);

const SIZE: Size = Size { switches: 2, ..Size::USUAL };

#[derive(Clone, Copy, Debug)]
enum Kind {
    Leader,
    Follower,
    Switch,
}

impl Kind {
    const ALL: [(Self, &str); 3] = [(Self::Leader, "leader"), (Self::Follower, "follower"), (Self::Switch, "switch")];
}

pub(super) fn run(args: &Args, interrupted: &AtomicBool) -> Result<ExitCode> {
    let measure = if args.slow_disk { slow_disk::measure } else { measure };
    if !args.lab {
        return measure(&args.how, Ground::Loopback, interrupted);
    }
    let xdp = args.engine == LabEngine::Kernel;
    let options = Options::new(format!("failover{}", std::process::id()), SIZE.hosts()).xdp(xdp);
    let lab = Lab::up_unless(&options, interrupted)?;
    let code = measure(&args.how, Ground::Lab(&lab, args.engine), interrupted);
    lab.down()?;
    code
}

fn measure(how: &How, ground: Ground<'_>, interrupted: &AtomicBool) -> Result<ExitCode> {
    let runs = if how.quick { 3 } else { 20 };
    let mut store = Cluster::start(ground, SIZE)?;
    store.wait_until_well()?;
    let user = User::start(&store)?;
    let progress = Progress::counted(Some(3 * runs), "failures", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
    let (mut results, mut calm) = (Vec::new(), 0.0f64);
    for (kind, name) in Kind::ALL {
        let mut gaps = Vec::new();
        for _ in 0..runs {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            let (before, gap) = fail(&mut store, &user, kind)?;
            calm = calm.max(before);
            gaps.push(gap);
            progress.advance();
        }
        let longest = gaps.iter().copied().fold(0.0, f64::max);
        results.push(Measure::quantity(&format!("failover.{name}.median_ms"), median(gaps), "ms"));
        results.push(Measure::quantity(&format!("failover.{name}.max_ms"), longest, "ms"));
    }
    progress.finish();
    results.push(Measure::quantity("failover.calm_max_ms", calm, "ms"));
    Envelope::new("failover", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The longest gaps before the failure and because of it, in milliseconds.
fn fail(store: &mut Cluster<'_>, user: &User, kind: Kind) -> Result<(f64, f64)> {
    user.take_gap();
    std::thread::sleep(CALM);
    let before = user.take_gap();
    let victim = match kind {
        Kind::Leader => store.leader()?,
        Kind::Follower => store.leader()? % 3 + 1,
        Kind::Switch => store.active_switch()?,
    };
    match kind {
        Kind::Leader | Kind::Follower => store.kill_replica(victim),
        Kind::Switch => store.kill_switch(victim),
    }
    std::thread::sleep(WATCHED);
    let gap = user.take_gap();
    ensure!(gap < WATCHED.as_secs_f64() * 1e3, "no operation has succeeded for {WATCHED:?} after a {kind:?} died");
    match kind {
        Kind::Leader | Kind::Follower => store.start_replica(victim)?,
        Kind::Switch => store.start_switch(victim)?,
    }
    store.wait_until_well()?;
    Ok((before, gap))
}

/// Retries forever.
struct User {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    started: Instant,
    /// Nanoseconds from the start to the last success.
    last: AtomicU64,
    longest: AtomicU64,
    stop: AtomicBool,
}

impl User {
    fn start(store: &Cluster<'_>) -> Result<Self> {
        let client = store.client(0, |client| client.timeout(PATIENCE))?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("failover-user".into()).spawn(move || {
            while !of_thread.stop.load(Ordering::Relaxed) {
                let wrote = client.incr(b"count", 1).is_ok();
                of_thread.note(wrote);
                let read = client.get(b"count").is_ok();
                of_thread.note(read);
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// In milliseconds: the longest time between two successes since the last call, with the current gap.
    fn take_gap(&self) -> f64 {
        let now = self.shared.now();
        let lasting = now.saturating_sub(self.shared.last.load(Ordering::SeqCst));
        let longest = self.shared.longest.swap(0, Ordering::SeqCst).max(lasting);
        longest as f64 / 1e6
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn note(&self, is_success: bool) {
        if is_success {
            let now = self.now();
            let before = self.last.swap(now, Ordering::SeqCst);
            self.longest.fetch_max(now - before, Ordering::SeqCst);
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
