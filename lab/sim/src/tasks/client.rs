//! The production client, and the jobs that it submits at set times.

use super::{Command, Submission, Submissions, TaskEnd, TaskEvent};
use crate::{Actor, Context, Wake};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_tasks::client::{Client, Event, Outcome, SubmitError, Task};
use midflight_wire::tasks::Status;
use std::any::Any;
use std::fmt;
use std::net::SocketAddr;

/// Delay before a job that found no room is submitted again.
const ROOM: Nanos = 1_000_000;

/// The endpoint and its future jobs.
pub struct ClientActor {
    client: Client,
    next: Option<Submission>,
    submissions: Submissions,
}

impl fmt::Debug for ClientActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientActor").field("next", &self.next).finish_non_exhaustive()
    }
}

impl ClientActor {
    /// A client with this endpoint, which submits these jobs at their times; others come by [`Command::Submit`].
    #[must_use]
    pub fn new(client: Client, submissions: Submissions) -> Self {
        Self { client, next: None, submissions }
    }

    /// The endpoint.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A driver's turn: handles the endpoint's events, sends its datagrams, and requests its next wake-up.
    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.client.poll_event() {
            let (key, end) = match event {
                Event::Completed { key, result: Outcome::Inline(result), status, attempt, .. } => {
                    (key, TaskEnd::Completed { ok: status == Status::Ok, attempt, result })
                }
                Event::Completed { key, .. } | Event::Lost { key, .. } => (key, TaskEnd::Lost),
                Event::Cancelled { key, how } => (key, TaskEnd::Cancelled(how)),
                _ => continue,
            };
            context.record(&TaskEvent::Reported { client: context.node(), key, end });
        }
        context.drive(&mut self.client);
    }

    /// Whether there was room.
    fn submit(&mut self, context: &mut Context<'_>, jid: u32, tasks: &[Task]) -> bool {
        match self.client.submit(context.now(), jid, tasks) {
            Ok(keys) => context.record(&TaskEvent::Submitted { client: context.node(), jid, keys }),
            Err(SubmitError::TooManyOpen { open: 1.., .. }) => return false,
            Err(error) => panic!("a scenario submits what a client takes: {error}"),
        }
        true
    }

    /// Submits the jobs that are due, and requests a wake-up for the next. Retries jobs that find no room.
    fn submit_due(&mut self, context: &mut Context<'_>) {
        loop {
            let Some(next) = self.next.take().or_else(|| self.submissions.next()) else { return };
            if next.at > context.now() {
                context.after(next.at - context.now(), 0);
                self.next = Some(next);
                return;
            }
            if !self.submit(context, next.jid, &next.tasks) {
                context.after(ROOM, 0);
                self.next = Some(next);
                return;
            }
        }
    }
}

impl Actor for ClientActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.submit_due(context);
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.client.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.client.handle_timeout(context.now()),
            Wake::Token(_) => self.submit_due(context),
        }
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        let Ok(command) = command.downcast() else { return };
        match *command {
            Command::Submit { jid, tasks } => {
                let room = self.submit(context, jid, &tasks);
                assert!(room, "a scenario submits what a client takes: job {jid} exceeds max_open");
            }
            Command::Cancel { keys, stop } => {
                if stop {
                    self.client.cancel(context.now(), &keys);
                } else {
                    self.client.cancel_queued(context.now(), &keys);
                }
                context.record(&TaskEvent::CancelAsked { client: context.node(), keys, stop });
            }
            Command::Drain => return,
        }
        self.drive(context);
    }
}
