//! What counts as one host, wherever each may hold a share only.

use std::net::IpAddr;

/// A host: an IPv4 address, or the /64 of an IPv6 address, because one host can use all of it. All addresses of a loopback are one host,
/// of both versions: each process there can use them all. The C core has the same rule (`source_key` in `dataplane/src/tasks/index.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(u64);

impl Host {
    /// That of an address. IPv4 addresses may be written as IPv6 ones, as a socket that listens on `[::]` sees them.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            // That of ::1.
            IpAddr::V4(ip) if ip.is_loopback() => Self(0),
            // No /64 begins like that.
            IpAddr::V4(ip) => Self(0xffff << 32 | u64::from(u32::from(ip))),
            IpAddr::V6(ip) => Self((u128::from(ip) >> 64) as u64),
        }
    }

    /// Another number for each host.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t14_a_host_is_an_ipv4_address_a_network_of_64_bits_or_the_loopback() {
        let of = |address: &str| Host::of(address.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        for loopback in ["127.0.0.2", "127.255.255.254", "::ffff:127.0.0.3", "::1"] {
            assert_eq!(of(loopback), of("127.0.0.1"), "{loopback}");
        }
        assert_ne!(of("127.0.0.1"), of("126.0.0.1"));
        assert_ne!(of("127.0.0.1"), of("128.0.0.1"));
    }
}
