//! The submitter: one thread owns the client and writes the store; each connection of a command has its own thread.
//!
//! | file | subject |
//! |---|---|
//! | `submitter_loop` | that thread's loop and state |
//! | `draft` | one transaction: events and requests |
//! | `task` | commands as tasks, outcomes of tasks as ends of commands |
//! | `server` | connections |
//! | `day` | whether the time of day can be trusted |

mod day;
mod draft;
mod server;
mod submitter_loop;
mod task;

use crate::directory::{DirectoryError, StateDirectory};
use crate::kept::{Store, StoreError};
use crate::model::JobSpec;
use crate::protocol::{Answer, CONNECTIONS_MAX, Status};
use midflight_host::WakesDurable;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use submitter_loop::SubmitterLoop;

/// The bounds of a submitter.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Commands of one job that may be with the switch and its executors. Default 4,096.
    pub window: u32,
    /// Commands of all jobs that may be. Default 65,536.
    pub open_max: usize,
    /// Bytes of command lines and outputs of all jobs. Default 10 GiB.
    pub bytes_max: u64,
    /// How long a job is kept after its end. Default 90 days.
    pub keep: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let keep = Duration::from_secs(90 * 24 * 3_600);
        Self { window: 4_096, open_max: 65_536, bytes_max: 10 << 30, keep }
    }
}

/// Why a submitter cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SubmitterError {
    /// An error of its directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// An error of its store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of its client of the tasks program.
    #[error("commands are with a switch, and their results come to the ports that they were sent from, but: {0}")]
    Client(#[from] midflight_host::Error),
    /// An error of its socket or threads.
    #[error("cannot listen for commands: {0}")]
    Listen(std::io::Error),
}

struct Ask {
    wish: Wish,
    answer: mpsc::SyncSender<Answer>,
}

enum Wish {
    Submit { spec: Box<JobSpec>, items: Vec<Vec<u8>>, switches: Vec<SocketAddr> },
    Cancel(Vec<u64>),
    Remove(Vec<u64>),
}

struct Shared {
    store: Store,
    stop: AtomicBool,
    waker: Mutex<Option<WakesDurable>>,
    /// Whether a command asked if a switch answers.
    is_asked: AtomicBool,
    changed: Mutex<u64>,
    announce: Condvar,
    status: Mutex<(Status, Instant)>,
}

impl Shared {
    fn wake(&self) {
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake();
        }
    }

    /// The status; also makes the loop ask the switch.
    fn status(&self) -> Status {
        self.is_asked.store(true, Ordering::Release);
        self.wake();
        let (status, at) = lock(&self.status).clone();
        let ago = |time: Option<Duration>| time.map(|time| time + at.elapsed());
        Status { answered: ago(status.answered), unanswered: ago(status.unanswered), ..status }
    }

    fn announce(&self) {
        *lock(&self.changed) += 1;
        self.announce.notify_all();
    }

    fn wait(&self, seen: u64, patience: Duration) -> u64 {
        let until = Instant::now() + patience;
        let mut changed = lock(&self.changed);
        while *changed == seen {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            changed = self.announce.wait_timeout(changed, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *changed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// redb panics if pages contradict each other in a way that their checksums do not cover.
fn undamaged<T, E: From<StoreError>>(directory: &StateDirectory, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let damaged = |_panic| Err(StoreError::Damaged { path: directory.store() }.into());
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

fn unix_ms() -> u64 {
    u64::try_from(midflight_host::clock::unix().as_millis()).unwrap_or(u64::MAX)
}

/// The submitter of a state directory.
pub struct Submitter {
    submitter_loop: SubmitterLoop,
    shared: Arc<Shared>,
    socket: PathBuf,
    _lock: crate::directory::Lock,
}

/// Ends a submitter, from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

impl Stopper {
    /// Makes [`Submitter::run`] return soon.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
        self.0.wake();
    }
}

impl std::fmt::Debug for Submitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submitter").finish_non_exhaustive()
    }
}

impl Submitter {
    /// Opens the store, resumes the commands that an earlier submitter has left, and listens.
    ///
    /// # Errors
    /// See [`SubmitterError`].
    pub fn start(directory: &StateDirectory, settings: Settings) -> Result<Self, SubmitterError> {
        let held = directory.lock()?;
        let store = undamaged(directory, || Store::open(&directory.store()))?;
        let status = Status {
            pid: std::process::id(),
            switches: Vec::new(),
            answered: None,
            unanswered: None,
            open: 0,
            bytes: 0,
            bytes_max: settings.bytes_max,
            trouble: None,
        };
        let shared = Arc::new(Shared {
            store,
            stop: AtomicBool::new(false),
            waker: Mutex::new(None),
            is_asked: AtomicBool::new(false),
            changed: Mutex::new(1),
            announce: Condvar::new(),
            status: Mutex::new((status, Instant::now())),
        });
        let (sender, asks) = mpsc::sync_channel(CONNECTIONS_MAX);
        let submitter_loop = undamaged(directory, || SubmitterLoop::load(settings, Arc::clone(&shared), asks))?;
        server::listen(directory, Arc::clone(&shared), sender).map_err(SubmitterError::Listen)?;
        Ok(Self { submitter_loop, shared, socket: directory.socket(), _lock: held })
    }

    /// A handle that ends it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Runs until it is stopped. Commands that are with the switch continue.
    pub fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.submitter_loop.turn();
        }
        let _ = UnixStream::connect(&self.socket); // wakes the listening thread, so that it sees the end
        self.shared.store.close();
    }
}
