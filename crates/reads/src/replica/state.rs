//! What the log's entries add up to: data, clients, sessions, members. Snapshots hold all of it.

use super::clients::{Client, Clients, Known};
use super::config::{Member, ReplicaConfig};
use super::entry::{Record, SessionName};
use super::store::{Outcome, Shard, Store};
use midflight_endpoint::MS;
use midflight_endpoint::mutants::planted;
use midflight_wire::reads::Status;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The format of snapshots.
const VERSION: u8 = 1;

/// What all replicas have in common once they have applied the same entries.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Keys and values.
    pub(super) store: Store,
    /// Clients and their last writes.
    pub(super) clients: Clients,
    /// Sessions that have begun, and of which no entry says that they are over.
    pub(super) sessions: Vec<SessionName>,
    /// The replicas.
    pub(super) members: Vec<Member>,
    /// Milliseconds that the store has run, as its leaders counted them. It never decreases.
    pub(super) time: u64,
}

impl State {
    /// Before the first entry.
    pub(super) fn new(config: &ReplicaConfig) -> Self {
        Self {
            store: Store::new(config.store_bytes),
            clients: Clients::new(config.clients, config.client_idle / MS),
            sessions: Vec::new(),
            members: config.initial.clone(),
            time: 0,
        }
    }

    /// Applies an entry.
    pub(super) fn apply(&mut self, index: u64, record: Record<'_>) -> Outcome {
        match record {
            Record::Session(session) => {
                self.sessions.retain(|other| other.sid != session.sid);
                self.sessions.push(session);
                Outcome::plain(Status::Done)
            }
            Record::Fenced(sid) => {
                self.sessions.retain(|session| session.sid != sid);
                Outcome::plain(Status::Done)
            }
            Record::Open { time } => {
                self.time = self.time.max(time);
                self.clients.open(index, self.time)
            }
            Record::Write { client, number, time, what } => {
                self.time = self.time.max(time);
                match self.clients.knows(client, number) {
                    Known::New => {
                        let outcome = self.store.apply(what);
                        self.clients.ran(client, number, self.time, outcome.clone());
                        outcome
                    }
                    known => of_known(known),
                }
            }
            Record::Flush => {
                self.store.flush();
                Outcome::plain(Status::Done)
            }
        }
    }

    /// A snapshot's bytes from now on, in parts.
    pub(super) fn freeze(&self) -> Frozen {
        let most = if planted(162) { 2 } else { usize::MAX };
        let clients = self.clients.iter().take(most).map(|(&id, client)| FrozenClient::new(id, client)).collect();
        let (sessions, members) = (self.sessions.clone(), self.members.clone());
        let head = Head { version: VERSION, time: self.time, sessions, members, clients };
        let bytes = postcard::to_allocvec(&head).expect("a snapshot is plain data, and memory grows as needed");
        Frozen { bytes, shards: self.store.shards().to_vec(), next: 0 }
    }

    /// The state of a snapshot.
    ///
    /// # Errors
    /// What is wrong with its bytes.
    pub(super) fn thaw(config: &ReplicaConfig, bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (head, mut rest) = postcard::take_from_bytes::<Head>(bytes).map_err(|_| SnapshotError::Malformed)?;
        if head.version != VERSION {
            return Err(SnapshotError::Version(head.version));
        }
        let mut state = Self { members: head.members, sessions: head.sessions, time: head.time, ..Self::new(config) };
        for client in head.clients {
            let (id, client) = client.thaw()?;
            state.clients.restore(id, client);
        }
        while !rest.is_empty() {
            let (pairs, behind) =
                postcard::take_from_bytes::<Vec<(&[u8], &[u8])>>(rest).map_err(|_| SnapshotError::Malformed)?;
            pairs.into_iter().for_each(|(key, value)| state.store.restore(key, value));
            rest = behind;
        }
        Ok(state)
    }
}

/// What a write that is not new gets as its answer.
pub(super) fn of_known(known: Known) -> Outcome {
    match known {
        Known::Ran(outcome) => outcome,
        Known::Stale => Outcome::plain(Status::Stale),
        Known::NoClient | Known::New => Outcome::plain(Status::UnknownClient),
    }
}

/// A snapshot cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Of another format.
    #[error("the snapshot has format {0}, this program reads format {VERSION}: use a newer one")]
    Version(u8),
    /// Of none.
    #[error("the snapshot's bytes are not those of a snapshot")]
    Malformed,
}

/// The first part of a snapshot.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u8,
    time: u64,
    sessions: Vec<SessionName>,
    members: Vec<Member>,
    clients: Vec<FrozenClient>,
}

#[derive(Serialize, Deserialize)]
struct FrozenClient {
    id: u64,
    number: u64,
    used: u64,
    status: u8,
    value: Vec<u8>,
}

impl FrozenClient {
    fn new(id: u64, client: &Client) -> Self {
        let Client { number, outcome, used } = client;
        Self { id, number: *number, used: *used, status: outcome.status.into(), value: outcome.value.to_vec() }
    }

    fn thaw(self) -> Result<(u64, Client), SnapshotError> {
        let status = Status::from_number(self.status).ok_or(SnapshotError::Malformed)?;
        let outcome = Outcome { status, value: self.value.into() };
        Ok((self.id, Client { number: self.number, outcome, used: self.used }))
    }
}

/// A snapshot that is being written. It shares its shards with the store.
#[derive(Debug)]
pub(super) struct Frozen {
    bytes: Vec<u8>,
    shards: Vec<Arc<Shard>>,
    next: usize,
}

impl Frozen {
    /// Writes about `budget` bytes more. Returns whether all is written.
    pub(super) fn write(&mut self, budget: usize) -> bool {
        let until = self.bytes.len() + budget;
        while self.next < self.shards.len() && self.bytes.len() < until {
            let shard = std::mem::take(&mut self.shards[self.next]);
            self.next += 1;
            if shard.is_empty() {
                continue;
            }
            let pairs: Vec<(&[u8], &[u8])> = shard.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            let bytes = std::mem::take(&mut self.bytes);
            self.bytes = postcard::to_extend(&pairs, bytes).expect("plain data, and memory grows as needed");
        }
        self.next == self.shards.len()
    }

    /// What was written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::entry::What;
    use proptest::prelude::*;

    fn config() -> ReplicaConfig {
        ReplicaConfig::new(1, 1, 1, Vec::new(), Vec::new(), 1)
    }

    fn session(sid: u64) -> SessionName {
        SessionName { sid, switch: "10.0.0.1:7700".parse().unwrap(), incarnation: 9 }
    }

    #[test]
    fn sessions_stay_on_the_list_until_they_are_fenced() {
        let mut state = State::new(&config());
        for sid in [1, 2, 3] {
            state.apply(sid, Record::Session(session(sid)));
        }
        state.apply(4, Record::Fenced(2));
        assert_eq!(state.sessions, [session(1), session(3)]);
    }

    #[test]
    fn r3_an_entry_twice_in_the_log_runs_once() {
        let mut state = State::new(&config());
        state.apply(1, Record::Open { time: 0 });
        let write = Record::Write { client: 1, number: 1, time: 5, what: What::Incr { key: b"a", by: 1 } };
        assert_eq!(state.apply(2, write.clone()), Outcome::done(1i64.to_be_bytes().to_vec()));
        assert_eq!(state.apply(3, write), Outcome::done(1i64.to_be_bytes().to_vec()), "the stored reply");
        assert_eq!(state.store.get(b"a").map(|value| &value[..]), Some(&b"1"[..]));
        let unknown = Record::Write { client: 2, number: 1, time: 5, what: What::Delete { key: b"a" } };
        assert_eq!(state.apply(4, unknown).status, Status::UnknownClient);
        assert_eq!(state.store.keys(), 1, "it did nothing");
    }

    proptest! {
        /// A snapshot is the state when it began, however slowly it is written, and whatever is applied meanwhile.
        #[test]
        fn a_snapshot_is_the_state_when_it_began(
            keys in prop::collection::vec((0u8..20, prop::option::of(any::<u8>())), 0..60),
            later in prop::collection::vec((0u8..20, any::<u8>()), 0..30),
            budget in 1usize..200,
        ) {
            let mut state = State::new(&config());
            state.apply(1, Record::Open { time: 3 });
            state.apply(2, Record::Session(session(7)));
            let write = |state: &mut State, number: usize, key: u8, value: Option<u8>| {
                let (key, value) = ([key], value.map(|value| [value]));
                let what = match &value {
                    Some(value) => What::Put { key: &key, value },
                    None => What::Delete { key: &key },
                };
                state.apply(0, Record::Write { client: 1, number: number as u64 + 1, time: number as u64, what });
            };
            for (number, &(key, value)) in keys.iter().enumerate() {
                write(&mut state, number, key, value);
            }
            let mut frozen = state.freeze();
            let before = state.clone();
            let mut later = later.into_iter().enumerate();
            while !frozen.write(budget) {
                if let Some((number, (key, value))) = later.next() {
                    write(&mut state, keys.len() + number, key, Some(value));
                }
            }
            let thawed = State::thaw(&config(), &frozen.into_bytes()).unwrap();
            prop_assert_eq!(thawed.store.shards(), before.store.shards());
            prop_assert_eq!((thawed.store.keys(), thawed.store.bytes()), (before.store.keys(), before.store.bytes()));
            prop_assert!(thawed.clients.iter().eq(before.clients.iter()));
            prop_assert_eq!((thawed.sessions, thawed.time), (before.sessions, before.time));
        }

        #[test]
        fn bytes_that_are_no_snapshot_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = State::thaw(&config(), &bytes);
        }
    }
}
