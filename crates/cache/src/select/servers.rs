//! Common state of each server in every selector: outstanding requests, and the last report.

use super::{Server, Status, Tally};
use midflight_endpoint::{MS, Nanos, SECOND};

/// Estimates of a server that has not answered for this long are dropped, and the server is tried again. Otherwise a selector would avoid
/// it forever after one slow phase or absurd report, because only requests bring news. Ten seconds is Finagle's default memory of a slow
/// server. The C3 papers have no bound; their implementations send a tenth of all reads to all replicas (read repair).
pub const ESTIMATE_LIFETIME: Nanos = 10 * SECOND;

/// Reports are compared by sequence number for this long. Packets are not reordered by more, and a server that restarts or wraps its
/// numbers is ignored no longer.
const SEQUENCE_LIFETIME: Nanos = 100 * MS;

/// Cap on a response time, so that one of them does not dominate for hours.
const TOOK_MAX: Nanos = 60 * SECOND;

midflight_endpoint::counters! {
    /// Counts of implausible input.
    pub struct Counts {
        /// Reports with impossible values.
        pub statuses_invalid,
        /// Reports older than the server's last one.
        pub statuses_outdated,
        /// Responses and expiries without an outstanding request.
        pub answers_unasked,
        /// Requests, responses and expiries of unknown servers.
        pub servers_unknown,
    }
}

/// Selector methods that all selectors delegate to `servers`.
macro_rules! kept_in_servers {
    () => {
        fn expired(&mut self, _now: Nanos, server: Server) {
            self.servers.expired(server);
        }

        fn outstanding(&self, server: Server) -> u32 {
            self.servers.outstanding(server)
        }

        fn tally(&self, server: Server) -> super::Tally {
            self.servers.tally(server)
        }

        fn counts(&self) -> super::Counts {
            self.servers.counts()
        }
    };
}
pub(super) use kept_in_servers;

/// All servers of a selector that keeps a `T` for each.
#[derive(Clone, Debug)]
pub(super) struct Servers<T> {
    entries: Box<[Entry<T>]>,
    counts: Counts,
    lifetime: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Entry<T> {
    /// Expiry of the estimates; 0: it never answered.
    known_until: Nanos,
    status_at: Option<Nanos>,
    tally: Tally,
    outstanding: u32,
    sequence: u16,
    own: T,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a, T> {
    pub(super) outstanding: u32,
    /// Unexpired estimates.
    pub(super) known: Option<&'a T>,
    /// Whatever their age; `None` for an unknown server.
    pub(super) own: Option<&'a T>,
}

/// An accepted response.
pub(super) struct Answer<'a, T> {
    pub(super) own: &'a mut T,
    pub(super) took: f64,
    /// The report, if accepted.
    pub(super) status: Option<Status>,
    /// After this response.
    pub(super) outstanding: u32,
    /// Whether there were no unexpired estimates.
    pub(super) is_first: bool,
}

impl<T: Clone + Default> Servers<T> {
    pub(super) fn new(servers: u16) -> Self {
        Self::with_lifetime(servers, ESTIMATE_LIFETIME)
    }

    pub(super) fn with_lifetime(servers: u16, lifetime: Nanos) -> Self {
        let entries = vec![Entry::default(); usize::from(servers)].into_boxed_slice();
        Self { entries, counts: Counts::default(), lifetime }
    }
}

impl<T> Servers<T> {
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn outstanding(&self, server: Server) -> u32 {
        self.entries.get(usize::from(server.0)).map_or(0, |entry| entry.outstanding)
    }

    pub(super) fn tally(&self, server: Server) -> Tally {
        self.entries.get(usize::from(server.0)).map_or_else(Tally::default, |entry| entry.tally)
    }

    /// An unknown server looks like one without estimates.
    pub(super) fn see(&self, now: Nanos, server: Server) -> Seen<'_, T> {
        match self.entries.get(usize::from(server.0)) {
            Some(entry) => {
                let known = entry.is_known(now).then_some(&entry.own);
                Seen { outstanding: entry.outstanding, known, own: Some(&entry.own) }
            }
            None => Seen { outstanding: 0, known: None, own: None },
        }
    }

    pub(super) fn own(&self, server: Server) -> Option<&T> {
        self.entries.get(usize::from(server.0)).map(|entry| &entry.own)
    }

    pub(super) fn own_mut(&mut self, server: Server) -> Option<&mut T> {
        self.entries.get_mut(usize::from(server.0)).map(|entry| &mut entry.own)
    }

    pub(super) fn sent(&mut self, server: Server) {
        match self.entries.get_mut(usize::from(server.0)) {
            Some(entry) => {
                entry.outstanding = entry.outstanding.saturating_add(1);
                entry.tally.asked = entry.tally.asked.wrapping_add(1);
            }
            None => self.counts.servers_unknown += 1,
        }
    }

    /// `None` if nothing was outstanding.
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        server: Server,
        took: Nanos,
        status: Option<Status>,
    ) -> Option<Answer<'_, T>> {
        let entry = take_back(&mut self.entries, &mut self.counts, server)?;
        let is_first = !entry.is_known(now);
        entry.tally.answered = entry.tally.answered.wrapping_add(1);
        entry.tally.expired_since = 0;
        entry.known_until = now.saturating_add(self.lifetime);
        let status = status.filter(|status| entry.believe(now, *status, &mut self.counts));
        let took = took.min(TOOK_MAX) as f64;
        Some(Answer { own: &mut entry.own, took, status, outstanding: entry.outstanding, is_first })
    }

    pub(super) fn expired(&mut self, server: Server) {
        if let Some(entry) = take_back(&mut self.entries, &mut self.counts, server) {
            entry.tally.expired = entry.tally.expired.wrapping_add(1);
            entry.tally.expired_since = entry.tally.expired_since.wrapping_add(1);
        }
    }
}

fn take_back<'a, T>(entries: &'a mut [Entry<T>], counts: &mut Counts, server: Server) -> Option<&'a mut Entry<T>> {
    let Some(entry) = entries.get_mut(usize::from(server.0)) else {
        counts.servers_unknown += 1;
        return None;
    };
    match entry.outstanding.checked_sub(1) {
        Some(left) => entry.outstanding = left,
        None => {
            counts.answers_unasked += 1;
            return None;
        }
    }
    Some(entry)
}

impl<T> Entry<T> {
    fn is_known(&self, now: Nanos) -> bool {
        now < self.known_until
    }

    fn believe(&mut self, now: Nanos, status: Status, counts: &mut Counts) -> bool {
        if !status.is_believable() {
            counts.statuses_invalid += 1;
            return false;
        }
        let is_recent = self.status_at.is_some_and(|at| now.saturating_sub(at) < SEQUENCE_LIFETIME);
        if is_recent && !status.is_later_than(self.sequence) {
            counts.statuses_outdated += 1;
            return false;
        }
        self.status_at = Some(now);
        self.sequence = status.sequence;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Server = Server(1);

    fn status(sequence: u16) -> Option<Status> {
        Some(Status { queue: 2, service_us: 1_000, sequence })
    }

    fn asked(times: usize) -> Servers<()> {
        let mut servers = Servers::new(2);
        (0..times).for_each(|_| servers.sent(ONE));
        servers
    }

    #[test]
    fn outstanding_requests_end_by_response_or_expiry_and_are_never_less_than_none() {
        let mut servers = asked(2);
        assert!(servers.answered(5, ONE, 5, None).is_some());
        servers.expired(ONE);
        assert_eq!(servers.outstanding(ONE), 0);
        servers.expired(ONE);
        assert!(servers.answered(6, ONE, 5, status(1)).is_none());
        assert_eq!((servers.outstanding(ONE), servers.counts().answers_unasked), (0, 2));
        assert_eq!(servers.tally(ONE), Tally { asked: 2, answered: 1, expired: 1, expired_since: 1 });
        assert_eq!(servers.tally(Server(2)), Tally::default());
        servers.sent(ONE);
        servers.answered(7, ONE, 1, None);
        assert_eq!(servers.tally(ONE), Tally { asked: 3, answered: 2, expired: 1, expired_since: 0 });
    }

    #[test]
    fn n8_servers_outside_of_the_table_change_nothing() {
        let mut servers = asked(1);
        servers.sent(Server(2));
        servers.expired(Server(2));
        assert!(servers.answered(5, Server(2), 5, status(1)).is_none());
        assert_eq!((servers.outstanding(Server(2)), servers.counts().servers_unknown), (0, 3));
    }

    #[test]
    fn n8_a_status_that_was_overtaken_is_not_believed_but_the_response_counts() {
        let mut servers = asked(4);
        assert!(servers.answered(1, ONE, 1, status(65_535)).unwrap().status.is_some());
        assert!(servers.answered(2, ONE, 1, status(1)).unwrap().status.is_some(), "later: numbers wrap");
        assert!(servers.answered(3, ONE, 1, status(0)).unwrap().status.is_none());
        assert!(servers.answered(4, ONE, 1, status(1)).unwrap().status.is_none(), "the same once more");
        assert_eq!((servers.outstanding(ONE), servers.counts().statuses_outdated), (0, 2));
    }

    #[test]
    fn n8_a_server_that_starts_again_is_ignored_for_a_tenth_of_a_second_at_most() {
        let mut servers = asked(3);
        assert!(servers.answered(0, ONE, 1, status(30_000)).unwrap().status.is_some());
        assert!(servers.answered(SEQUENCE_LIFETIME - 1, ONE, 1, status(5)).unwrap().status.is_none());
        assert!(servers.answered(SEQUENCE_LIFETIME, ONE, 1, status(6)).unwrap().status.is_some());
    }

    #[test]
    fn estimates_end_with_their_lifetime() {
        let mut servers = asked(2);
        assert!(servers.see(0, ONE).known.is_none());
        assert!(servers.answered(7, ONE, 1, None).unwrap().is_first);
        assert!(servers.see(6 + ESTIMATE_LIFETIME, ONE).known.is_some());
        assert!(servers.see(7 + ESTIMATE_LIFETIME, ONE).known.is_none());
        assert!(servers.answered(7 + ESTIMATE_LIFETIME, ONE, 1, None).unwrap().is_first);
    }
}
