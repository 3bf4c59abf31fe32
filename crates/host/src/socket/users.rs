//! Restricts a process on loopback to the sockets of one user and root: submitted commands run as the executor's user, and a store's values
//! are its user's. Other users' sockets are excluded even if they have the old port of an ended process.
//!
//! The kernel lists the owners of all sockets in some 100 µs, so the list is cached briefly.

use crate::error::Error;
use midflight_endpoint::{MS, Nanos};
#[cfg(any(feature = "agent", feature = "gateway"))]
use procfs::net::TcpNetEntry;
use procfs::net::UdpNetEntry;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Shortest lifetime of the cached list.
const KEPT_FOR: Nanos = 10 * MS;
/// A slow list lives longer, this many times as long as reading took.
const TIMES: Nanos = 20;
/// Early refreshes for an unknown socket: this many at once, then one per `EXTRA_EVERY`.
const EXTRA: u32 = 256;
const EXTRA_EVERY: Nanos = 5 * MS;
const WARNINGS: u32 = 4;
const ROOT: u32 = 0;

#[derive(Debug)]
pub(crate) struct Users {
    user: u32,
    allowed: Vec<u32>,
    /// Owners of the sockets at each port.
    sockets: HashMap<u16, Vec<Owned>>,
    /// Time of the next refresh.
    ask_at: Nanos,
    /// Early refreshes left.
    extra_left: u32,
    extra_counted_at: Nanos,
    warnings_given: u32,
}

#[derive(Clone, Copy, Debug)]
struct Owned {
    ip: IpAddr,
    user: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Allowed,
    Other(u32),
    /// No socket: closed, or younger than the cached list.
    Nobody,
}

impl Users {
    /// Allows this user and root. `own`: an address of this process.
    pub(crate) fn new(user: u32, own: SocketAddr) -> Result<Self, Error> {
        let refused =
            |why: &str| Err(Error::Invalid(format!("cannot see whose the sockets of this machine are: {why}")));
        let (sockets, ask_at, extra_left) = (HashMap::new(), 0, EXTRA);
        let allowed = vec![user, ROOT];
        let mut users = Self { user, allowed, sockets, ask_at, extra_left, extra_counted_at: 0, warnings_given: 0 };
        users.ask(0);
        users.ask_at = 0;
        if users.owner_of(own) == Owner::Nobody {
            return refused("/proc/net/udp does not show this process's own; mount /proc");
        }
        // All users without a number in a user namespace share this one.
        if !sees_all_users() && Some(user) == overflow_user() {
            return refused(
                "this user has no number in this user namespace, as others have none; map one (unshare --map-root-user)",
            );
        }
        Ok(users)
    }

    pub(crate) fn serves(&mut self, now: Nanos, address: SocketAddr) -> bool {
        if now >= self.ask_at {
            self.ask(now);
        }
        let mut owner = self.owner_of(address);
        if owner == Owner::Nobody && self.may_ask_again(now) {
            self.ask(now);
            owner = self.owner_of(address);
        }
        if let Owner::Other(user) = owner {
            self.warn(address, user);
        }
        owner == Owner::Allowed
    }

    /// Whether an allowed user opened this TCP connection to `own`. Reads the current list; `None` if it was read too often.
    #[cfg(any(feature = "agent", feature = "gateway"))]
    pub(crate) fn serves_stream(&mut self, now: Nanos, own: SocketAddr, peer: SocketAddr) -> Option<bool> {
        if !self.may_ask_again(now) {
            return None;
        }
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (own, peer) = (canonical(own), canonical(peer));
        let all = [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten();
        // A connection closed by its process has no inode, and root as its user.
        let its = |entry: &TcpNetEntry| {
            entry.inode != 0 && canonical(entry.local_address) == peer && canonical(entry.remote_address) == own
        };
        let Some(entry) = all.into_iter().find(its) else { return Some(false) };
        let is_served = self.allowed.contains(&entry.uid);
        if !is_served {
            self.warn(peer, entry.uid);
        }
        Some(is_served)
    }

    /// The owner of all sockets that may receive or send datagrams at this address; each must be allowed.
    fn owner_of(&self, address: SocketAddr) -> Owner {
        let ip = address.ip().to_canonical();
        let at_port = self.sockets.get(&address.port()).map_or(&[][..], Vec::as_slice);
        let there =
            at_port.iter().filter(|socket| socket.ip.is_unspecified() || socket.ip == ip || ip.is_unspecified());
        let mut owner = Owner::Nobody;
        for socket in there {
            if !self.allowed.contains(&socket.user) {
                return Owner::Other(socket.user);
            }
            owner = Owner::Allowed;
        }
        owner
    }

    fn ask(&mut self, now: Nanos) {
        let began = Instant::now();
        self.sockets.clear();
        // A kernel without IPv6 has only the first table.
        for UdpNetEntry { local_address, uid, .. } in
            [procfs::net::udp(), procfs::net::udp6()].into_iter().flatten().flatten()
        {
            let owned = Owned { ip: local_address.ip().to_canonical(), user: uid };
            self.sockets.entry(local_address.port()).or_default().push(owned);
        }
        let took = Nanos::try_from(began.elapsed().as_nanos()).unwrap_or(Nanos::MAX);
        self.ask_at = now.saturating_add(took.saturating_mul(TIMES).max(KEPT_FOR));
    }

    fn may_ask_again(&mut self, now: Nanos) -> bool {
        let more = now.saturating_sub(self.extra_counted_at) / EXTRA_EVERY;
        if more > 0 {
            self.extra_left = self.extra_left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(EXTRA);
            self.extra_counted_at = now;
        }
        let may = self.extra_left > 0;
        self.extra_left -= u32::from(may);
        may
    }

    fn warn(&mut self, address: SocketAddr, user: u32) {
        if self.warnings_given < WARNINGS {
            self.warnings_given += 1;
            tracing::warn!("user {user} at {address} is not served: this process is for user {} only", self.user);
        }
    }
}

/// The number shown for users without one.
fn overflow_user() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

/// Whether every user has a number here; false in a user namespace that maps only some.
fn sees_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const NOBODY: u32 = 65_534;

    fn socket() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn users(user: u32) -> Users {
        let (_own, address) = socket();
        Users::new(user, address).unwrap()
    }

    #[test]
    fn sockets_of_the_user_are_served_on_whatever_address_they_listen() {
        let mut users = users(own());
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else {
                eprintln!("SKIPPED: {address}, which this machine does not have");
                continue;
            };
            let mut from = socket.local_addr().unwrap();
            if from.ip().is_unspecified() {
                from.set_ip([127, 0, 0, 1].into());
            }
            assert!(users.serves(0, from), "{address}");
        }
    }

    #[test]
    fn t13_sockets_of_others_and_closed_ones_are_not_served() {
        let (socket, from) = socket();
        let mut users = users(own());
        users.allowed = vec![own().wrapping_add(1)];
        assert!(!users.serves(0, from), "another's");
        users.allowed = vec![own()];
        assert!(users.serves(0, from));
        drop(socket);
        assert!(!users.serves(u64::MAX / 2, from), "nobody's");
    }

    /// A port of an ended process gives its new owner nothing.
    #[test]
    fn t13_whose_a_socket_is_is_asked_again_soon() {
        let mut users = users(own());
        users.ask(0);
        let asked = users.ask_at;
        assert!(asked >= KEPT_FOR);
        let (socket, from) = socket();
        users.extra_left = 0;
        users.extra_counted_at = asked;
        assert!(!users.serves(asked - 1, from), "not known yet");
        assert!(users.serves(asked, from));
        drop(socket);
        let again = users.ask_at;
        assert!(users.serves(again - 1, from), "as the kernel said");
        assert!(!users.serves(again, from));
    }

    #[test]
    fn t12_asking_for_new_sockets_is_bounded() {
        let mut users = users(own());
        users.ask_at = Nanos::MAX;
        let asked = (0..2 * EXTRA).filter(|_| users.may_ask_again(0)).count();
        assert_eq!(asked, EXTRA as usize);
        assert!(users.may_ask_again(EXTRA_EVERY));
        assert!(!users.may_ask_again(EXTRA_EVERY));
    }

    #[cfg(feature = "agent")]
    #[test]
    fn t13_streams_of_others_and_closed_ones_are_not_served() {
        use std::net::{TcpListener, TcpStream};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let mut users = users(own());
        let stream = TcpStream::connect(at).unwrap();
        let (_accepted, peer) = listener.accept().unwrap();
        assert_eq!(users.serves_stream(0, at, peer), Some(true));
        users.allowed = vec![own().wrapping_add(1)];
        assert_eq!(users.serves_stream(0, at, peer), Some(false), "another's");
        users.allowed = vec![own(), ROOT];
        drop(stream);
        assert_eq!(users.serves_stream(0, at, peer), Some(false), "the kernel says that what has no process is root's");
        users.extra_left = 0;
        assert_eq!(users.serves_stream(0, at, peer), None, "asked too often");
    }

    #[test]
    fn t13_whoever_cannot_see_his_own_socket_serves_nobody() {
        let (closed, address) = socket();
        drop(closed);
        let why = Users::new(NOBODY, address).unwrap_err().to_string();
        assert!(why.contains("/proc/net/udp") && why.contains("mount /proc"), "{why}");
    }
}
