use super::pick::least;
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// Chooses the candidate whose last turn is longest ago; with fixed candidates, plain round-robin. A common counter would be unfair: with
/// two alternating groups of two servers, it would always choose the first.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// Number of the server's last turn; 0: none.
    servers: Servers<u64>,
    turns: u64,
}

impl RoundRobin {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::new(servers), turns: 0 }
    }
}

impl Selector for RoundRobin {
    fn choose(&mut self, _now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least(candidates, random, |server| self.servers.own(server).copied().unwrap_or(0));
        self.turns += 1;
        if let Some(turn) = self.servers.own_mut(server) {
            *turn = self.turns;
        }
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
    fn all_get_their_turn_and_groups_that_take_turns_do_not_disturb_it() {
        let groups = [&[0, 1], &[2, 3]].map(|servers| Candidates::new(&servers.map(Server)).unwrap());
        let mut robin = RoundRobin::new(4);
        // All are tied at first, and low bits choose the first. Then the other one's turn is longer ago.
        let chosen: Vec<Choice> = (0..8).map(|i| robin.choose(0, &groups[i % 2], 0)).collect();
        assert_eq!(chosen, [0, 2, 1, 3, 0, 2, 1, 3].map(|server| Choice::Send(Server(server))));
    }
}
