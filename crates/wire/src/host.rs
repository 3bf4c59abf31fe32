//! The unit to which per-host shares apply.

use std::net::IpAddr;

/// An IPv4 address, or the /64 of an IPv6 address, because one host can use the whole /64. All loopback addresses are one host,
/// because any local process can use them. The C core has the same rule (`source_key` in `dataplane/src/tasks/index.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(u64);

impl Host {
    /// Host of an address. Accepts IPv4-mapped IPv6 addresses, which a socket on `[::]` reports.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            // The number of ::1.
            IpAddr::V4(ip) if ip.is_loopback() => Self(0),
            // No /64 in use has this prefix.
            IpAddr::V4(ip) => Self(0xffff << 32 | u64::from(u32::from(ip))),
            IpAddr::V6(ip) => Self((u128::from(ip) >> 64) as u64),
        }
    }

    /// Distinct for each host.
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
