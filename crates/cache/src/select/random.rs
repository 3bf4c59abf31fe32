use super::pick::any;
use super::servers::{Servers, kept_in_servers};
use super::{Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;

/// Chooses uniformly at random. The baseline of every comparison: it needs no state, and selectors do not synchronise.
#[derive(Clone, Debug)]
pub struct Random {
    servers: Servers<()>,
}

impl Random {
    /// For `servers` servers.
    #[must_use]
    pub fn new(servers: u16) -> Self {
        Self { servers: Servers::new(servers) }
    }
}

impl Selector for Random {
    fn choose(&mut self, _now: Nanos, candidates: &Candidates, random: u64) -> Choice {
        let server = any(candidates, random);
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
    fn a_third_of_the_numbers_choose_each_of_three() {
        let candidates = Candidates::new(&[Server(0), Server(1), Server(2)]).unwrap();
        let mut random = Random::new(3);
        // 32 bits x choose the server at ⌊3x / 2³²⌋.
        for (bits, server) in [(0, 0), (0x5555_5555, 0), (0x5555_5556, 1), (0xaaaa_aaab, 2), (0xffff_ffff, 2)] {
            assert_eq!(random.choose(0, &candidates, bits), Choice::Send(Server(server)));
        }
        assert_eq!([0, 1, 2].map(|server| random.outstanding(Server(server))), [2, 1, 2]);
    }
}
