//! Clients and their jobs, derived from clients and tasks of a survey.

use super::Listed;
use super::label::label;
use midflight_dataplane::{SurveyedClient, SurveyedTask};
use midflight_endpoint::{MS, Nanos};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientView {
    /// Its [`label`].
    pub id: String,
    /// Its address.
    pub address: String,
    /// The user who runs it, as it says.
    pub uid: u32,
    /// Milliseconds since its last message.
    pub heard_ms: u64,
    /// Its tasks in the switch, queued and running.
    pub open: u32,
}

/// A job that has tasks in the switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    /// Its client.
    pub client: String,
    /// The client's address.
    pub address: String,
    /// Its number at that client.
    pub jid: u32,
    /// The highest level of its tasks; 1 is the highest of all.
    pub level: u8,
    /// Its tasks that wait for an executor.
    pub queued: u64,
    /// Its tasks that executors have.
    pub running: u64,
    /// Its running tasks that have begun before.
    pub again: u64,
    /// Milliseconds for which its oldest task has been in the switch.
    pub oldest_ms: u64,
}

/// Clients, those with the most tasks first.
pub(super) fn clients(now: Nanos, surveyed: &[SurveyedClient]) -> Listed<ClientView> {
    let mut all: Vec<_> = surveyed.iter().map(|client| client_view(now, client)).collect();
    all.sort_by(|a, b| (Reverse(a.open), &a.address, &a.id).cmp(&(Reverse(b.open), &b.address, &b.id)));
    Listed::of(all)
}

fn client_view(now: Nanos, client: &SurveyedClient) -> ClientView {
    ClientView {
        id: label(client.identity()),
        address: client.address().to_string(),
        uid: client.uid,
        heard_ms: now.saturating_sub(client.heard_ns) / MS,
        open: client.open,
    }
}

/// Jobs, those with the most tasks first.
pub(super) fn jobs(now: Nanos, clients: &[SurveyedClient], tasks: &[SurveyedTask]) -> Listed<JobView> {
    let clients: HashMap<u32, &SurveyedClient> = clients.iter().map(|client| (client.number, client)).collect();
    let mut jobs: HashMap<(u32, u32), JobView> = HashMap::new();
    // Tasks of a job are mostly adjacent: one look-up for all of them.
    for run in tasks.chunk_by(|a, b| (a.client, a.jid) == (b.client, b.jid)) {
        let Some(first) = run.first() else { continue };
        // Tasks of a client that arrived during the survey appear in the next one.
        let Some(client) = clients.get(&first.client) else { continue };
        let job = jobs.entry((first.client, first.jid)).or_insert_with(|| JobView {
            client: label(client.identity()),
            address: client.address().to_string(),
            jid: first.jid,
            level: first.level,
            queued: 0,
            running: 0,
            again: 0,
            oldest_ms: 0,
        });
        run.iter().for_each(|task| job.add(now, task));
    }
    let mut all: Vec<_> = jobs.into_values().collect();
    let size = |job: &JobView| Reverse(job.queued + job.running);
    all.sort_by(|a, b| (size(a), &a.client, a.jid).cmp(&(size(b), &b.client, b.jid)));
    Listed::of(all)
}

impl JobView {
    fn add(&mut self, now: Nanos, task: &SurveyedTask) {
        self.level = self.level.min(task.level);
        self.queued += u64::from(!task.is_held());
        self.running += u64::from(task.is_held());
        self.again += u64::from(task.is_held() && task.attempt > 1);
        self.oldest_ms = self.oldest_ms.max(now.saturating_sub(task.accepted_ns) / MS);
    }
}
