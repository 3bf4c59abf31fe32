//! Whom of this machine a switch on loopback serves. Whoever submits a command line runs it as the user of an executor; so a switch
//! that one user starts for herself answers nobody else's sockets. Without an answer nobody gets a cookie, and without a cookie
//! the program takes nothing (T13).

use midflight_endpoint::{MS, Nanos, SECOND};
use procfs::net::UdpNetEntry;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Looking a socket up takes the kernel some 100 µs, in which the switch serves nobody: so many at once, and then one in
/// `LOOK_EVERY`.
const LOOKS: u32 = 256;
const LOOK_EVERY: Nanos = 5 * MS;
/// A socket of another user is not looked up again for this long.
const REFUSED_FOR: Nanos = 10 * SECOND;
/// How many of these are remembered.
const REFUSED_MAX: usize = 4096;
/// How many refusals are logged.
const TOLD_MAX: u32 = 4;

/// The users whose processes are answered.
#[derive(Debug)]
pub(super) struct Users {
    allowed: Vec<u32>,
    /// Sockets of others, and until when they are refused without looking.
    refused: HashMap<SocketAddr, Nanos>,
    /// How often one may look now.
    looks: u32,
    counted: Nanos,
    told: u32,
}

impl Users {
    pub(super) fn new(allowed: Vec<u32>) -> Self {
        Self { allowed, refused: HashMap::new(), looks: LOOKS, counted: 0, told: 0 }
    }

    /// Whether all sockets of this machine to which a datagram for this address may go are theirs.
    pub(super) fn may_answer(&mut self, now: Nanos, to: SocketAddr) -> bool {
        if self.refused.get(&to).is_some_and(|&until| now < until) || !self.may_look(now) {
            return false;
        }
        let owners = owners(to);
        let is_theirs = !owners.is_empty() && owners.iter().all(|owner| self.allowed.contains(owner));
        if !is_theirs {
            self.refuse(now, to, &owners);
        }
        is_theirs
    }

    fn may_look(&mut self, now: Nanos) -> bool {
        let more = now.saturating_sub(self.counted) / LOOK_EVERY;
        if more > 0 {
            self.looks = self.looks.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(LOOKS);
            self.counted = now;
        }
        let may = self.looks > 0;
        self.looks -= u32::from(may);
        may
    }

    fn refuse(&mut self, now: Nanos, to: SocketAddr, owners: &[u32]) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear();
        }
        self.refused.insert(to, now + REFUSED_FOR);
        // A socket that has been closed is nobody's.
        if let Some(owner) = owners.iter().find(|owner| !self.allowed.contains(owner))
            && self.told < TOLD_MAX
        {
            self.told += 1;
            tracing::warn!(
                "a process of user {owner} at {to} is not served: this switch is for user {} only",
                self.allowed[0]
            );
        }
    }
}

/// The users that have a UDP socket at this address, or at its port on all addresses.
fn owners(at: SocketAddr) -> Vec<u32> {
    let tables = [procfs::net::udp(), procfs::net::udp6()];
    let is_there = |entry: &UdpNetEntry| {
        let local = entry.local_address;
        local.port() == at.port()
            && (local.ip().is_unspecified() || local.ip().to_canonical() == at.ip().to_canonical())
    };
    // A kernel without IPv6 has one table.
    tables.into_iter().flatten().flatten().filter(is_there).map(|entry| entry.uid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const NOBODY: u32 = 65_534;

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn sockets_of_the_users_are_answered_on_whatever_address_they_listen() {
        let mut users = Users::new(vec![own()]);
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else {
                eprintln!("SKIPPED: {address}, which this machine does not have");
                continue;
            };
            let mut to = socket.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip([127, 0, 0, 1].into());
            }
            assert!(users.may_answer(0, to), "{address}");
        }
    }

    #[test]
    fn t13_sockets_of_others_and_closed_ones_are_not_answered() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut users = Users::new(vec![NOBODY]);
        assert!(!users.may_answer(0, to));
        users.allowed = vec![own()];
        assert!(!users.may_answer(REFUSED_FOR - 1, to), "it is not looked up again");
        assert!(users.may_answer(REFUSED_FOR, to));
        drop(socket);
        assert!(!users.may_answer(2 * REFUSED_FOR, to));
    }

    #[test]
    fn t12_looking_costs_a_bounded_part_of_the_time() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut users = Users::new(vec![own()]);
        let answered = (0..2 * LOOKS).filter(|_| users.may_answer(0, to)).count();
        assert_eq!(answered, LOOKS as usize);
        assert!(users.may_answer(LOOK_EVERY, to));
        assert!(!users.may_answer(LOOK_EVERY, to));
    }

    #[test]
    fn t12_what_is_remembered_of_others_is_bounded() {
        let mut users = Users::new(vec![own()]);
        for port in 0..=REFUSED_MAX as u16 {
            users.refuse(0, ([127, 0, 0, 1], port).into(), &[]);
        }
        assert!(users.refused.len() <= REFUSED_MAX);
    }
}
