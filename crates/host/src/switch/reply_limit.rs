//! Limits the answers that anybody can ask for, even from a forged address: how many of them may wait in the send buffer.
//!
//! While the kernel looks for the MAC address of a neighbour that does not exist, it keeps packets to it for three seconds, in the
//! send buffer of their socket. An attacker that forges a few such addresses would fill the buffer, and the switch could answer
//! nobody (T13). So these answers never get the last quarter of the buffer; and once they fill an eighth of it, each address
//! gets one answer in two seconds. Then about as many wait as there are missing neighbours, and a newcomer is still answered.

use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Below so many eighths of the send buffer in use, all are answered.
const FREE_BELOW: usize = 1;
/// From so many eighths on, none is.
const NONE_FROM: usize = 6;
/// Time between two answers to one address. Linux looks for a neighbour for three seconds, so at most two answers wait for each;
/// and a client that starts, which gives up after three seconds, gets one in time.
const INTERVAL: Nanos = 2_000_000_000;
/// Buckets that addresses share by a salted hash: twenty thousand forged addresses a second take most of them, not all.
const BUCKETS: usize = 1 << 16;

/// When the addresses of each bucket may be answered again.
pub(super) struct ReplyLimit {
    salt: RandomState,
    next: Vec<Nanos>,
}

impl ReplyLimit {
    pub(super) fn new() -> Self {
        Self { salt: RandomState::new(), next: vec![0; BUCKETS] }
    }

    /// Whether to answer `to` while so many eighths of the send buffer are in use.
    pub(super) fn may_answer(&mut self, now: Nanos, to: IpAddr, eighths: usize) -> bool {
        let none_from = if planted(89) { NONE_FROM + 2 } else { NONE_FROM };
        if !(FREE_BELOW..none_from).contains(&eighths) {
            return eighths < FREE_BELOW;
        }
        let next = &mut self.next[self.salt.hash_one(to) as usize % BUCKETS];
        let may = now >= *next;
        if may {
            *next = now + INTERVAL;
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
        let mut reply_limit = ReplyLimit::new();
        for now in 0..100 {
            assert!(reply_limit.may_answer(now, address(1), 0));
            assert!(!reply_limit.may_answer(now, address(2), 6) && !reply_limit.may_answer(now, address(2), 8));
        }
    }

    #[test]
    fn t13_absent_neighbours_keep_no_newcomer_out() {
        let (mut reply_limit, mut waiting) = (ReplyLimit::new(), 0);
        for packet in 0..40_000 {
            waiting += u32::from(reply_limit.may_answer(packet * 50_000, address(1 + packet as u32 % 250), 3));
        }
        assert!(waiting <= 250, "{waiting} in two seconds");
        let newcomers = (0..1000).filter(|&n| reply_limit.may_answer(INTERVAL, address(1 << 16 | n), 3)).count();
        assert!(newcomers > 950, "{newcomers} of 1000");
    }
}
