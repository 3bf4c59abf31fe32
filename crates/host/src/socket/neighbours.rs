//! Asks the kernel whether a packet would leave at once, or wait for a neighbour that may not exist.
//!
//! Two netlink requests, without privileges: for the route, and for the neighbour at its end, a gateway or the address itself. The kernel
//! knows neighbours that send packets here, because they have resolved our MAC address.

use midflight_endpoint::{MS, Nanos};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

const KEPT_FOR: Nanos = 100 * MS;
/// Cache entries, one per salted hash.
const REMEMBERED: usize = 4_096;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE: usize = 4;
/// Longest answer that is read; the kernel's have about 150 bytes.
const ANSWER_MAX: usize = 1_024;
const RTA_VIA: u16 = 18;

/// State of the neighbour that packets to an address go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// A packet leaves at once, needs no neighbour, or fails at once.
    Present,
    /// The kernel does not know it or does not say.
    Unknown,
    /// The kernel is resolving it, or has failed to.
    Absent,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    address: IpAddr,
    neighbour: Neighbour,
    until: Nanos,
}

#[derive(Debug)]
pub(crate) struct Neighbours {
    /// `None` if the system refuses it: then all are unknown.
    netlink: Option<OwnedFd>,
    sequence: u32,
    question: Vec<u8>,
    salt: RandomState,
    seen: Vec<Option<Seen>>,
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 of netlink: NETLINK_ROUTE.
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).inspect_err(|error| {
            tracing::warn!(
                "cannot ask the kernel which neighbours are there: {error}. A flood from addresses of absent ones can keep new \
                 clients and executors waiting. Allow AF_NETLINK, in a unit of systemd by RestrictAddressFamilies"
            );
        });
        let (question, seen) = (Vec::with_capacity(64), vec![None; REMEMBERED]);
        Self { netlink: netlink.ok(), sequence: 0, question, salt: RandomState::new(), seen }
    }

    /// The neighbour for this address, as of at most 100 ms ago.
    pub(crate) fn toward(&mut self, now: Nanos, address: IpAddr) -> Neighbour {
        let place = self.salt.hash_one(address) as usize % REMEMBERED;
        if let Some(seen) = self.seen[place].filter(|seen| seen.address == address && now < seen.until) {
            return seen.neighbour;
        }
        let neighbour = self.ask(address.to_canonical()).unwrap_or(Neighbour::Unknown);
        self.seen[place] = Some(Seen { address, neighbour, until: now + KEPT_FOR });
        neighbour
    }

    /// `None` if the kernel does not say.
    fn ask(&mut self, address: IpAddr) -> Option<Neighbour> {
        let mut buffer = [0; ANSWER_MAX];
        // struct rtmsg: family and bits of the destination, then zeros.
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let route = [family_of(address), bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let route = match self.request(libc::RTM_GETROUTE, &route, (libc::RTA_DST, address), &mut buffer)? {
            Ok(route) => route,
            Err(Errno::NETUNREACH | Errno::HOSTUNREACH) => return Some(Neighbour::Present),
            Err(_) => return None,
        };
        let (kind, attributes) = (*route.get(7)?, route.get(12..)?);
        if kind != libc::RTN_UNICAST {
            return Some(Neighbour::Present);
        }
        let interface: [u8; 4] = attribute(attributes, libc::RTA_OIF)?.try_into().ok()?;
        // struct rtvia: a family in two bytes, then an address.
        let via = attribute(attributes, RTA_VIA).and_then(|via| via.get(2..));
        let next_hop = match attribute(attributes, libc::RTA_GATEWAY).or(via) {
            Some(gateway) => ip_of(gateway)?,
            None => address,
        };
        // struct ndmsg: family, interface, then zeros.
        let neighbour = [[family_of(next_hop), 0, 0, 0], interface, [0; 4]];
        let neighbour = neighbour.as_flattened();
        let neighbour = self.request(libc::RTM_GETNEIGH, neighbour, (libc::NDA_DST, next_hop), &mut buffer)?.ok()?;
        let state = u16::from_ne_bytes(neighbour.get(8..10)?.try_into().ok()?);
        let is_absent = state & (libc::NUD_INCOMPLETE | libc::NUD_FAILED) != 0;
        Some(if is_absent { Neighbour::Absent } else { Neighbour::Present })
    }

    /// The body of the kernel's answer, or its error.
    fn request<'a>(
        &mut self,
        kind: u16,
        fixed: &[u8],
        (attribute, address): (u16, IpAddr),
        answer: &'a mut [u8; ANSWER_MAX],
    ) -> Option<Result<&'a [u8], Errno>> {
        let netlink = self.netlink.as_ref()?;
        self.sequence = self.sequence.wrapping_add(1);
        let attribute_length = ATTRIBUTE + if address.is_ipv4() { 4 } else { 16 };
        let length = HEADER + fixed.len() + attribute_length;
        let question = &mut self.question;
        question.clear();
        question.extend_from_slice(&(length as u32).to_ne_bytes());
        question.extend_from_slice(&kind.to_ne_bytes());
        question.extend_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        question.extend_from_slice(&self.sequence.to_ne_bytes());
        question.extend_from_slice(&[0; 4]); // port of this socket, which the kernel knows
        question.extend_from_slice(fixed);
        question.extend_from_slice(&(attribute_length as u16).to_ne_bytes());
        question.extend_from_slice(&attribute.to_ne_bytes());
        match address {
            IpAddr::V4(v4) => question.extend_from_slice(&v4.octets()),
            IpAddr::V6(v6) => question.extend_from_slice(&v6.octets()),
        }
        send(netlink, question, SendFlags::empty()).ok()?;
        // The answer is there when `send` returns, possibly behind an unread older one.
        let length = loop {
            let (length, _) = recv(netlink, answer.as_mut_slice(), RecvFlags::empty()).ok()?;
            if answer[8..12] == self.sequence.to_ne_bytes() {
                break length;
            }
        };
        let (header, said) = answer.get(..length)?.split_at_checked(HEADER)?;
        if header[4..6] == (libc::NLMSG_ERROR as u16).to_ne_bytes() {
            let error = i32::from_ne_bytes(said.get(..4)?.try_into().ok()?);
            return Some(Err(Errno::from_raw_os_error(-error)));
        }
        Some(Ok(said))
    }
}

fn family_of(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn ip_of(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let value = attributes.get(ATTRIBUTE..length)?;
        if attributes[2..4] == kind.to_ne_bytes() {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_net::testing::labs_work;
    use midflight_net::{Lab, Options, Place, SWITCH_IPV4, SWITCH_IPV6};
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    fn send_to(address: IpAddr) {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        UdpSocket::bind(any).unwrap().send_to(b"x", (address, 9)).unwrap();
    }

    fn becomes(neighbours: &mut Neighbours, address: IpAddr, expected: Neighbour) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while neighbours.ask(address) != Some(expected) {
            assert!(Instant::now() < deadline, "{address} is not {expected:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn t13_the_kernel_says_which_neighbours_are_there() {
        if !labs_work() {
            return;
        }
        let lab = Lab::up(&Options::temporary(2)).unwrap();
        let [host, behind] = [0, 1].map(|number| lab.hosts()[number].clone());
        for (present, behind, own, [absent, unroutable]) in [
            (host.ipv4.into(), behind.ipv4.into(), SWITCH_IPV4.into(), ["10.77.0.99", "9.9.9.9"]),
            (host.ipv6.into(), behind.ipv6.into(), IpAddr::from(SWITCH_IPV6), ["fd77:1::99", "2001:db8::9"]),
        ] {
            let [absent, unroutable]: [IpAddr; 2] = [absent, unroutable].map(|address| address.parse().unwrap());
            // Makes the host known to the switch.
            lab.within(Place::Host(0), || send_to(own)).unwrap();
            lab.within(Place::Switch, || {
                let mut neighbours = Neighbours::new();
                assert_eq!(neighbours.ask(own), Some(Neighbour::Present), "this machine");
                assert_eq!(neighbours.ask(unroutable), Some(Neighbour::Present), "it cannot be sent at all");
                assert_eq!(neighbours.ask(absent), None);
                becomes(&mut neighbours, present, Neighbour::Present);
                send_to(absent);
                becomes(&mut neighbours, absent, Neighbour::Absent);
            })
            .unwrap();
            lab.within(Place::Host(0), || becomes(&mut Neighbours::new(), behind, Neighbour::Present)).unwrap();
        }
    }

    #[test]
    fn what_the_kernel_says_is_kept_for_a_moment() {
        let mut neighbours = Neighbours::new();
        let own = "127.0.0.1".parse().unwrap();
        assert_eq!(neighbours.toward(0, own), Neighbour::Present);
        neighbours.netlink = None;
        assert_eq!(neighbours.toward(KEPT_FOR - 1, own), Neighbour::Present);
        assert_eq!(neighbours.toward(KEPT_FOR, own), Neighbour::Unknown, "the kernel does not say");
    }
}
