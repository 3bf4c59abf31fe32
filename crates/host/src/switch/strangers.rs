//! Answers that anybody can ask for, from whatever address: how many of them may wait in the send buffer.
//!
//! The kernel keeps what is for a neighbour who is not there for three seconds, in the buffer of the socket that sent it. Who
//! forges the addresses of a few such would fill it, and nobody would hear of the switch any more (T13). So these answers
//! never get the last quarter of it, and where they begin to gather each address gets one in two seconds: about as many wait as
//! there are neighbours who can be looked for, and a newcomer is answered.

use midflight_endpoint::Nanos;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Eighths of the send buffer: below the first they are free, from the second on there are none.
const FREE_BELOW: usize = 1;
const NONE_FROM: usize = 6;
/// Linux looks for a neighbour for three seconds, so at most two wait for each. A client that is started gives up after three.
const APART: Nanos = 2_000_000_000;
/// Addresses share places by a salted hash: twenty thousand forged ones a second take most of them, not all.
const PLACES: usize = 1 << 16;

/// When which addresses are answered again.
pub(super) struct Strangers {
    salt: RandomState,
    next: Vec<Nanos>,
}

impl Strangers {
    pub(super) fn new() -> Self {
        Self { salt: RandomState::new(), next: vec![0; PLACES] }
    }

    /// Whether `to` is answered, while so many eighths of the send buffer are taken.
    pub(super) fn may_answer(&mut self, now: Nanos, to: IpAddr, eighths: usize) -> bool {
        if !(FREE_BELOW..NONE_FROM).contains(&eighths) {
            return eighths < FREE_BELOW;
        }
        let next = &mut self.next[self.salt.hash_one(to) as usize % PLACES];
        let may = now >= *next;
        if may {
            *next = now + APART;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        (0x0A00_0000 | number).to_be_bytes().into()
    }

    #[test]
    fn an_empty_buffer_answers_everybody_and_a_full_one_nobody() {
        let mut strangers = Strangers::new();
        for now in 0..100 {
            assert!(strangers.may_answer(now, address(1), 0));
            assert!(!strangers.may_answer(now, address(2), 6) && !strangers.may_answer(now, address(2), 8));
        }
    }

    #[test]
    fn t13_absent_neighbours_keep_no_newcomer_out() {
        let (mut strangers, mut waiting) = (Strangers::new(), 0);
        for packet in 0..40_000 {
            waiting += u32::from(strangers.may_answer(packet * 50_000, address(1 + packet as u32 % 250), 3));
        }
        assert!(waiting <= 250, "{waiting} in two seconds");
        let newcomers = (0..1000).filter(|&n| strangers.may_answer(APART, address(1 << 16 | n), 3)).count();
        assert!(newcomers > 950, "{newcomers} of 1000");
    }
}
