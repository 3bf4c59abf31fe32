//! The oracle, for simulations only, knows each server's current state. It does not look ahead, so its lead is no strict bound on what
//! others can gain.

use super::pick::least;
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// True state of servers, which a simulated world shares with its oracles.
pub trait Truth {
    /// Expected time of one more request, in any unit, if the server's speed does not change.
    fn expected(&self, server: Server) -> f64;
}

/// Chooses the candidate with the least expected time.
#[derive(Clone, Debug)]
pub struct Oracle<T> {
    servers: Servers<()>,
    truth: T,
}

impl<T: Truth> Oracle<T> {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16, truth: T) -> Self {
        Self { servers: Servers::new(servers), truth }
    }
}

impl<T: Truth> Selector for Oracle<T> {
    fn choose(&mut self, _now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = least(candidates, random, |server| self.truth.expected(server));
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
    use std::cell::Cell;
    use std::rc::Rc;

    impl Truth for Rc<[Cell<f64>]> {
        fn expected(&self, server: Server) -> f64 {
            self[usize::from(server.0)].get()
        }
    }

    #[test]
    fn the_truth_of_this_moment_decides() {
        let truth: Rc<[Cell<f64>]> = [3.0, 1.0, 2.0].map(Cell::new).into();
        let candidates = Candidates::new(&[Server(0), Server(1), Server(2)]).unwrap();
        let mut oracle = Oracle::new(3, Rc::clone(&truth));
        assert_eq!(oracle.choose(0, &candidates, 0), Choice::Send(Server(1)));
        truth[1].set(9.0);
        assert_eq!(oracle.choose(0, &candidates, 0), Choice::Send(Server(2)));
    }
}
