//! Power of two choices: Mitzenmacher, "The power of two choices in randomized load balancing", IEEE TPDS 12(10), 2001.

use super::pick::{either, two};
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// Of two random candidates, chooses the one with fewer outstanding requests. The paper compares queues; this selector knows only its own
/// requests.
#[derive(Clone, Debug)]
pub struct PowerOfTwo {
    servers: Servers<()>,
}

impl PowerOfTwo {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::new(servers) }
    }
}

impl Selector for PowerOfTwo {
    fn choose(&mut self, _now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        // The pair's order is random, so ties are too.
        let [first, second] = two(candidates, random);
        let is_second_shorter = self.servers.outstanding(second) < self.servers.outstanding(first);
        let server = either(is_second_shorter, second, first);
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
    fn the_shorter_of_two_is_chosen_and_the_third_is_not_looked_at() {
        let candidates = Candidates::new(&[Server(0), Server(1), Server(2)]).unwrap();
        let mut two = PowerOfTwo::new(3);
        // All bits 0: the pair is server 0, and of the rest {1, 2} the first: 1.
        assert_eq!(two.choose(0, &candidates, 0), Choice::Send(Server(0)), "a tie: the first of the pair");
        assert_eq!(two.choose(0, &candidates, 0), Choice::Send(Server(1)), "1 against 0");
        // 1, 1, 0: server 2 has least, but is not in the pair.
        assert_eq!(two.choose(0, &candidates, 0), Choice::Send(Server(0)));
        // All bits 1: the pair is server 2, and of the rest {0, 1} the last: 1.
        assert_eq!(two.choose(0, &candidates, u64::MAX), Choice::Send(Server(2)));
    }
}
