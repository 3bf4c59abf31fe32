use super::{Running, refused};
use crossbeam_channel::{Receiver, Sender, unbounded};
use midflight_baselines::sparrow::client::Event;
use midflight_baselines::sparrow::{Client, ClientConfig};
use midflight_endpoint::Nanos;
use midflight_host::parts::{Driver, Handler, Socket, Waker, local_for};
use midflight_host::{Error, clock};
use midflight_wire::tasks::{Status, TaskInfo};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ended {
        status: Status,
        /// From submit until this was known, in nanoseconds.
        took_ns: Nanos,
    },
    /// No scheduler answered.
    Lost {
        /// Number of tasks.
        tasks: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    /// The client's job number, as workers see it.
    pub job: u32,
    /// Time of submit, by [`clock::now`].
    pub at: Nanos,
}

struct Teller {
    sender: Sender<Outcome>,
    /// Time of submission, and tasks without a reported end.
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

/// Abandons its jobs on drop.
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
    /// Schedulers get jobs in turn.
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

    /// The client's random identity, as workers see it.
    #[must_use]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// # Errors
    /// If it is empty or too large.
    pub(crate) fn submit(&self, tasks: &[TaskInfo]) -> Result<Submitted, Error> {
        let submitted = self.running.driver.with(|now, client, teller| {
            let job = client.submit(tasks)?;
            teller.jobs.insert(job, (now, tasks.len() as u32));
            Ok(Submitted { job, at: now })
        });
        submitted.map_err(|error: midflight_baselines::sparrow::client::SubmitError| Error::Invalid(error.to_string()))
    }

    /// `None` after `patience`.
    #[must_use]
    pub(crate) fn next(&self, patience: Duration) -> Option<Outcome> {
        self.outcomes.recv_timeout(patience).ok()
    }

    /// Retransmissions.
    #[must_use]
    pub(crate) fn repeated(&self) -> u64 {
        self.running.driver.peek(|client, _| client.repeated())
    }
}
