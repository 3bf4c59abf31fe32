//! The table of clients: what makes a write run once, however often it comes (R3).
//!
//! A client's id is the index of the entry that opened it. Ids are given up through the log only, by the store's time, which its
//! entries carry: each replica gives up the same id at the same entry.

use super::store::Outcome;
use midflight_endpoint::mutants::planted;
use midflight_wire::reads::Status;
use std::collections::{BTreeMap, BTreeSet};

/// The last write of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Its number; 0 before the first.
    pub(super) number: u64,
    /// What came of it.
    pub(super) outcome: Outcome,
    /// When it was, by the store's time.
    pub(super) used: u64,
}

/// All clients that may write.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    clients: BTreeMap<u64, Client>,
    /// Time of the last write and id, so that the one that is idle longest comes first.
    by_use: BTreeSet<(u64, u64)>,
    most: usize,
    idle: u64,
}

/// What the table says of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It has not run.
    New,
    /// It has; this came of it.
    Ran(Outcome),
    /// A later one has.
    Stale,
    /// There is no such client, or not any more.
    NoClient,
}

impl Clients {
    /// Up to `most`; one that was idle for `idle` milliseconds makes room for another.
    pub(super) fn new(most: usize, idle: u64) -> Self {
        Self { clients: BTreeMap::new(), by_use: BTreeSet::new(), most, idle }
    }

    /// What it knows of a write.
    pub(super) fn knows(&self, client: u64, number: u64) -> Known {
        match self.clients.get(&client) {
            None => Known::NoClient,
            Some(known) if known.number == number && number > 8 && planted(142) => Known::New,
            Some(known) if known.number == number && number != 0 => Known::Ran(known.outcome.clone()),
            Some(known) if known.number >= number => Known::Stale,
            Some(_) => Known::New,
        }
    }

    /// A client gets the id `index`.
    pub(super) fn open(&mut self, index: u64, time: u64) -> Outcome {
        if self.clients.len() >= self.most {
            let Some(&(used, id)) = self.by_use.first().filter(|(used, _)| used + self.idle <= time) else {
                return Outcome::plain(Status::ClientsFull);
            };
            self.by_use.remove(&(used, id));
            self.clients.remove(&id);
        }
        self.restore(index, Client { number: 0, outcome: Outcome::plain(Status::Done), used: time });
        Outcome::done(index.to_be_bytes().to_vec())
    }

    /// A new write of a client has run.
    pub(super) fn ran(&mut self, client: u64, number: u64, time: u64, outcome: Outcome) {
        if let Some(known) = self.clients.get_mut(&client) {
            self.by_use.remove(&(known.used, client));
            self.by_use.insert((time, client));
            *known = Client { number, outcome, used: time };
        }
    }

    /// Takes a client of a snapshot.
    pub(super) fn restore(&mut self, id: u64, client: Client) {
        self.by_use.insert((client.used, id));
        self.clients.insert(id, client);
    }

    /// All of them, by their ids.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&u64, &Client)> {
        self.clients.iter()
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_a_number_runs_once_and_never_late() {
        let mut clients = Clients::new(2, 100);
        assert_eq!(clients.open(7, 0), Outcome::done(7u64.to_be_bytes().to_vec()));
        assert_eq!(clients.knows(7, 0), Known::Stale, "0 is no number of a write");
        assert_eq!(clients.knows(7, 3), Known::New);
        clients.ran(7, 3, 5, Outcome::done("3"));
        assert_eq!(clients.knows(7, 3), Known::Ran(Outcome::done("3")));
        assert_eq!(clients.knows(7, 2), Known::Stale);
        assert_eq!(clients.knows(7, 4), Known::New);
        assert_eq!(clients.knows(8, 1), Known::NoClient);
    }

    #[test]
    fn r3_an_id_is_given_up_only_when_idle_and_only_for_another() {
        let mut clients = Clients::new(2, 100);
        clients.open(1, 0);
        clients.open(2, 10);
        clients.ran(1, 1, 50, Outcome::plain(Status::Done));
        assert_eq!(clients.open(3, 109).status, Status::ClientsFull, "2 was idle for 99");
        assert_eq!(clients.open(4, 110).status, Status::Done);
        assert_eq!((clients.knows(2, 1), clients.len()), (Known::NoClient, 2));
        assert_eq!(clients.knows(1, 1), Known::Ran(Outcome::plain(Status::Done)));
    }
}
