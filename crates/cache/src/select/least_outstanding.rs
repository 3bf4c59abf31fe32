//! Least outstanding requests (LOR): Nginx's least connections, also used by Riak (C3, section 2.1).

use super::pick::least;
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// Chooses the candidate with the fewest outstanding requests of this selector.
#[derive(Clone, Debug)]
pub struct LeastOutstanding {
    servers: Servers<()>,
}

impl LeastOutstanding {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::new(servers) }
    }
}

impl Selector for LeastOutstanding {
    fn choose(&mut self, _now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least(candidates, random, |server| self.servers.outstanding(server));
        self.servers.sent(server);
        Choice::Send(server)
    }

    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>) {
        self.servers.answered(now, server, took, status);
    }

    kept_in_servers!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_with_fewest_requests_under_way_is_chosen() {
        let candidates = Candidates::new(&[Server(0), Server(1), Server(2)]).unwrap();
        let mut lor = LeastOutstanding::new(3);
        // All bits 0 choose the first of a tie: 0, 1, 2, and again 0, when each has 1.
        let chosen: Vec<Choice> = (0..4).map(|_| lor.choose(0, &candidates, 0)).collect();
        assert_eq!(chosen, [0, 1, 2, 0].map(|server| Choice::Send(Server(server))));
        // Now 2, 1, 1; server 2 answers: 2, 1, 0.
        lor.answered(1, Server(2), 1, None);
        assert_eq!(lor.choose(1, &candidates, 0), Choice::Send(Server(2)));
        // 2, 1, 1; both of server 0 expire: 0, 1, 1.
        lor.expired(1, Server(0));
        lor.expired(1, Server(0));
        assert_eq!(lor.choose(1, &candidates, u64::MAX), Choice::Send(Server(0)));
    }
}
