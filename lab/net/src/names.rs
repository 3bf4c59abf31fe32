//! Names and addresses in a lab, derived from the lab's name and the host's number.

use crate::LabError;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Maximum hosts in a lab.
pub const HOSTS_MAX: usize = 64;
/// Maximum racks in a lab.
pub const RACKS_MAX: usize = 16;
pub(crate) const NAME_MAX: usize = 24;
/// The switch's IPv4 address, the same for every host.
pub const SWITCH_IPV4: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
/// The switch's IPv6 address, the same for every host.
pub const SWITCH_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
/// A host's only interface besides loopback; a rack switch's uplink.
pub const HOST_INTERFACE: &str = "eth0";

/// A network namespace of a lab.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// The central switch.
    Switch,
    /// A rack's switch, by number from 0, between the central switch and the rack's hosts.
    Rack(usize),
    /// A host, by its number from 0.
    Host(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("switch"),
            Self::Rack(number) => write!(f, "rack{number}"),
            Self::Host(number) => write!(f, "host{number}"),
        }
    }
}

impl FromStr for Place {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let numbered = |kind: &str| text.strip_prefix(kind)?.parse().ok();
        let places = [Some(Self::Switch), numbered("rack").map(Self::Rack), numbered("host").map(Self::Host)];
        // Accepts only the canonical spelling of a place.
        let place = places.into_iter().flatten().find(|place| place.to_string() == text);
        place.ok_or_else(|| LabError::Place(text.to_owned()))
    }
}

/// A host or a rack's switch: a place with an uplink.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Host {
    /// `host0`, `rack0`, …; also the name of the interface to it, at the switch above.
    pub name: String,
    /// Network namespace, as `ip netns` names it.
    pub netns: String,
    /// IPv4 address, in its own /24.
    pub ipv4: Ipv4Addr,
    /// IPv6 address, in its own /64.
    pub ipv6: Ipv6Addr,
    /// The switch it connects to.
    pub above: Place,
    /// Default gateway: that switch's IPv4 address on this link.
    pub gateway_ipv4: Ipv4Addr,
    /// The same for IPv6.
    pub gateway_ipv6: Ipv6Addr,
}

impl Host {
    pub(crate) fn new(lab: &str, number: usize, above: Place) -> Self {
        Self::on_link(lab, Place::Host(number), number, above)
    }

    pub(crate) fn rack(lab: &str, number: usize) -> Self {
        Self::on_link(lab, Place::Rack(number), HOSTS_MAX + number, Place::Switch)
    }

    /// The link's number determines its networks.
    fn on_link(lab: &str, place: Place, link: usize, above: Place) -> Self {
        let link = u8::try_from(link).unwrap_or(u8::MAX);
        let ipv4 = |last| Ipv4Addr::new(10, 77, link, last);
        let ipv6 = |last| Ipv6Addr::new(0xfd77, 1, u16::from(link), 0, 0, 0, 0, last);
        Self {
            name: place.to_string(),
            netns: namespace(lab, place),
            above,
            ipv4: ipv4(2),
            ipv6: ipv6(2),
            gateway_ipv4: ipv4(1),
            gateway_ipv6: ipv6(1),
        }
    }
}

pub(crate) fn namespace(lab: &str, place: Place) -> String {
    format!("mf-{lab}-{place}")
}

pub(crate) fn of_namespace(namespace: &str) -> Option<(&str, Place)> {
    let (lab, place) = namespace.strip_prefix("mf-")?.rsplit_once('-')?;
    Some((lab, place.parse().ok()?)).filter(|_| check(lab).is_ok())
}

pub(crate) fn check(name: &str) -> Result<(), LabError> {
    let letters = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let ends = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-');
    if letters && ends && name.len() <= NAME_MAX { Ok(()) } else { Err(LabError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_and_rack_has_addresses_of_its_own() {
        let racks = (0..RACKS_MAX).map(|number| Host::rack("a", number));
        let hosts: Vec<_> = (0..HOSTS_MAX).map(|number| Host::new("a", number, Place::Switch)).chain(racks).collect();
        let mut addresses: Vec<std::net::IpAddr> = vec![SWITCH_IPV4.into(), SWITCH_IPV6.into()];
        for host in &hosts {
            addresses.extend([host.ipv4, host.gateway_ipv4].map(std::net::IpAddr::from));
            addresses.extend([host.ipv6, host.gateway_ipv6].map(std::net::IpAddr::from));
        }
        let all = addresses.len();
        addresses.sort();
        addresses.dedup();
        let different = 4 * (HOSTS_MAX + RACKS_MAX) + 2;
        assert_eq!((addresses.len(), all), (different, different));
        assert_eq!(hosts[10].ipv6.to_string(), "fd77:1:a::2");
    }

    #[test]
    fn a_namespace_belongs_to_one_lab_only() {
        assert_eq!(of_namespace(&namespace("a-host0", Place::Switch)), Some(("a-host0", Place::Switch)));
        assert_eq!(of_namespace("mf-a-host0"), Some(("a", Place::Host(0))));
        for other in ["a-switch", "mf-switch", "mf--switch", "mf-a-hosts", "mf-A-switch", "mf-../x-switch"] {
            assert_eq!(of_namespace(other), None, "{other}");
        }
    }
}
