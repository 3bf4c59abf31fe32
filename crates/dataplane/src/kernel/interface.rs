//! Network interfaces: those that are served, and this machine's addresses.

use super::error::KernelError;
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use std::io;
use std::net::IpAddr;

/// An interface that was there when it was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub name: String,
    pub index: u32,
    /// It leads to this machine only.
    pub loopback: bool,
}

impl Interface {
    /// The interface of this name, if it is there and up.
    pub(super) fn find(name: &str) -> Result<Self, KernelError> {
        let unknown = || KernelError::UnknownInterface(name.to_owned());
        let index = if_nametoindex(name).map_err(|error| match error {
            Errno::ENODEV | Errno::ENXIO | Errno::EINVAL => unknown(),
            error => KernelError::io(format!("look for interface {name}"))(error),
        })?;
        let mut all = getifaddrs().map_err(KernelError::io("list the interfaces"))?;
        let this = all.find(|entry| index_of(entry) == Some(index)).ok_or_else(unknown)?;
        if !this.flags.contains(InterfaceFlags::IFF_UP) {
            return Err(KernelError::Down(this.interface_name));
        }
        let loopback = this.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        // The name that was given may be another name of it.
        Ok(Self { name: this.interface_name, index, loopback })
    }
}

fn index_of(entry: &InterfaceAddress) -> Option<u32> {
    let link = entry.address.as_ref()?.as_link_addr()?;
    u32::try_from(link.ifindex()).ok()
}

/// The addresses by which a switch that listens on `listen` is reached, sorted: that one, or all of this machine. Loopback
/// addresses only where a loopback interface is served: nobody else may send to them.
pub(super) fn addresses(listen: IpAddr, loopback: bool) -> io::Result<Vec<IpAddr>> {
    if !listen.is_unspecified() {
        return Ok(vec![listen.to_canonical()]);
    }
    let mut found: Vec<_> = getifaddrs()?
        .filter_map(|entry| address_of(&entry))
        .filter(|address| listen.is_ipv6() || address.is_ipv4())
        .filter(|address| loopback || !address.is_loopback())
        .filter(|address| !is_link_local(address))
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn address_of(entry: &InterfaceAddress) -> Option<IpAddr> {
    let address = entry.address.as_ref()?;
    let four = address.as_sockaddr_in().map(|four| four.ip().into());
    four.or_else(|| address.as_sockaddr_in6().map(|six| six.ip().into()))
}

/// IPv6's: they mean something only together with an interface, which the packets have no field for.
fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for name in ["mf-nowhere0", "", "a name that is far too long for an interface"] {
            let error = Interface::find(name).unwrap_err().to_string();
            assert_eq!(error, format!("there is no interface {name}: `ip link` lists what there is"));
        }
    }

    #[test]
    fn loopback_is_served_only_where_a_loopback_interface_is() {
        let lo = Interface::find("lo").unwrap();
        assert!(lo.loopback && lo.index > 0);
        let (any, here) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::LOCALHOST));
        assert!(addresses(any, true).unwrap().contains(&here));
        assert!(addresses(any, false).unwrap().iter().all(|address| !address.is_loopback() && address.is_ipv4()));
        assert!(addresses(Ipv6Addr::UNSPECIFIED.into(), true).unwrap().contains(&here));
        assert_eq!(addresses(here, false).unwrap(), [here]);
    }
}
