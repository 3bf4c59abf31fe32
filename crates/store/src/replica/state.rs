//! What the log's records add up to: keys and values, client ids, members, the session.

use super::clients::{Clients, Known};
use super::config::{Member, ReplicaConfig};
use super::entry::{ClientWrite, Record, SessionName};
use super::founding::Founders;
use super::store::{Outcome, Store};
use midflight_endpoint::MS;
use midflight_wire::store::Status;

/// The replicated state: the same in all replicas that have applied the same entries. Snapshots contain all of it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) clients: Clients,
    /// Sessions that have begun and have no `Fenced` entry.
    pub(super) sessions: Vec<SessionName>,
    pub(super) members: Vec<Member>,
    /// The first members and their disks. Never changes.
    pub(super) founders: Founders,
    /// Milliseconds for which the store has run, as counted by its leaders. Never decreases.
    pub(super) time: u64,
}

impl State {
    pub(super) fn new(config: &ReplicaConfig) -> Self {
        Self {
            store: Store::new(config.store_bytes, config.seed),
            clients: Clients::new(config.clients, config.client_idle / MS),
            sessions: Vec::new(),
            members: config.initial.clone(),
            founders: Founders::new(),
            time: 0,
        }
    }

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
            Record::Open { time, source } => {
                self.time = self.time.max(time);
                self.clients.open(index, self.time, source)
            }
            Record::Write(_, write) if write.is_expiry() => {
                self.time = self.time.max(write.time);
                self.store.apply(index, write.what, self.time)
            }
            Record::Write(_, write) => {
                let ClientWrite { client, number, time, what } = write;
                self.time = self.time.max(time);
                match self.clients.knows(client, number) {
                    Known::New => {
                        let outcome = self.store.apply(index, what, self.time);
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
}

pub(super) fn of_known(known: Known) -> Outcome {
    match known {
        Known::Ran(outcome) => outcome,
        Known::Stale => Outcome::plain(Status::Stale),
        Known::NoClient | Known::New => Outcome::plain(Status::UnknownClient),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::clients::Source;
    use crate::replica::entry::What;
    use crate::replica::item::Item;

    fn config() -> ReplicaConfig {
        ReplicaConfig::new(1, 1, 1, Vec::new(), Vec::new(), 1)
    }

    fn session(sid: u64) -> SessionName {
        SessionName { sid, switch: "10.0.0.1:7700".parse().unwrap(), incarnation: 9 }
    }

    fn write(client: u64, what: What<'_>) -> Record<'_> {
        Record::Write(1, ClientWrite { client, number: 1, time: 5, what })
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
        state.apply(1, Record::Open { time: 0, source: Source::of([1; 16]) });
        let first = write(1, What::Incr { key: b"a", by: 1 });
        assert_eq!(state.apply(2, first.clone()), Outcome::done(1i64.to_be_bytes().to_vec()));
        assert_eq!(state.apply(3, first), Outcome::done(1i64.to_be_bytes().to_vec()), "the stored reply");
        assert_eq!(state.store.get(b"a").map(Item::value), Some(&b"1"[..]));
        let unknown = write(2, What::Delete { key: b"a" });
        assert_eq!(state.apply(4, unknown).status, Status::UnknownClient);
        assert_eq!(state.store.keys(), 1, "it did nothing");
    }
}
