//! A client, and the events that it gets.

use super::{Running, refused};
use crossbeam_channel::{Receiver, Sender, unbounded};
use midflight_baselines::sparrow::client::Event;
use midflight_baselines::sparrow::{Client, ClientConfig};
use midflight_endpoint::Nanos;
use midflight_host::parts::{Driver, Handler, Socket, Waker, local_for};
use midflight_host::{Error, clock};
use midflight_wire::{Status, TaskInfo};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a task ended, or that no scheduler accepted a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ended.
    Ended {
        /// How.
        status: Status,
        /// From the call of submit until this was known, in nanoseconds.
        took_ns: Nanos,
    },
    /// No scheduler answered.
    Lost {
        /// How many tasks that are.
        tasks: u32,
    },
}

/// A job that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    /// The client's number for it, as it is sent to workers.
    pub job: u32,
    /// When submit was called, by [`clock::now`].
    pub at: Nanos,
}

struct Teller {
    sender: Sender<Outcome>,
    /// By job: when it was submitted, and how many of its ends have not been reported.
    jobs: HashMap<u32, (Nanos, u32)>,
}

impl Handler<Client> for Teller {
    fn event(&mut self, _client: &mut Client, event: Event) {
        let outcome = match event {
            Event::Ended { job, status, .. } => {
                let Some((submitted, left)) = self.jobs.get_mut(&job) else { return };
                let took_ns = clock::now().saturating_sub(*submitted);
                *left -= 1;
                if *left == 0 {
                    self.jobs.remove(&job);
                }
                Outcome::Ended { status, took_ns }
            }
            Event::Failed { job, open } => {
                self.jobs.remove(&job);
                Outcome::Lost { tasks: open }
            }
        };
        let _ = self.sender.send(outcome); // the receiver may be gone
    }
}

/// A client of Sparrow schedulers; dropping it forgets its jobs.
pub(crate) struct SparrowClient {
    identity: u64,
    running: Running<Client, Teller>,
    outcomes: Receiver<Outcome>,
}

impl std::fmt::Debug for SparrowClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparrowClient").field("schedulers", &"…").finish_non_exhaustive()
    }
}

impl SparrowClient {
    /// Connects to these schedulers, which take jobs in turn.
    ///
    /// # Errors
    /// If there is no scheduler, or the system refuses a socket or a thread.
    pub(crate) fn connect(schedulers: Vec<SocketAddr>) -> Result<Self, Error> {
        let local = local_for(&schedulers);
        let identity = rand::random();
        let client = Client::new(ClientConfig::new(identity, schedulers)).map_err(refused)?;
        let (sender, outcomes) = unbounded();
        let driver = Driver::new(client, Teller { sender, jobs: HashMap::new() }, Socket::bind(local)?, Waker::new()?);
        Ok(Self { identity, running: Running::start("mf-sparrow", Arc::new(driver))?, outcomes })
    }

    /// Identifies this client to workers: random, different for each client.
    #[must_use]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Submits a job.
    ///
    /// # Errors
    /// Where it is empty or too large.
    pub(crate) fn submit(&self, tasks: &[TaskInfo]) -> Result<Submitted, Error> {
        let submitted = self.running.driver.with(|now, client, teller| {
            let job = client.submit(tasks)?;
            teller.jobs.insert(job, (now, tasks.len() as u32));
            Ok(Submitted { job, at: now })
        });
        submitted
            .map_err(|error: midflight_baselines::sparrow::client::SubmitError| Error::Configuration(error.to_string()))
    }

    /// The next outcome; `None` if none comes in time.
    #[must_use]
    pub(crate) fn next(&self, patience: Duration) -> Option<Outcome> {
        self.outcomes.recv_timeout(patience).ok()
    }

    /// Requests that were sent again.
    #[must_use]
    pub(crate) fn repeated(&self) -> u64 {
        self.running.driver.peek(|client, _| client.repeated())
    }
}
