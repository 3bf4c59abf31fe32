//! Network interfaces to serve on, and this machine's addresses.

use super::error::{KernelError, MTU_MIN};
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_indextoname, if_nametoindex};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// An interface that existed when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub name: String,
    pub index: u32,
    /// Whether frames may arrive whose senders left the checksum to hardware that does not exist.
    pub unsummed: bool,
}

impl Interface {
    /// The interface of this name, if it exists, is up, and can be served.
    pub(super) fn find(name: &str) -> Result<Self, KernelError> {
        let unknown = || KernelError::UnknownInterface(name.to_owned());
        let index = if_nametoindex(name).map_err(|error| match error {
            Errno::ENODEV | Errno::ENXIO | Errno::EINVAL => unknown(),
            error => KernelError::io(format!("look for interface {name}"))(error),
        })?;
        // `name` may be an alternative name.
        let name = if_indextoname(index).ok().and_then(|name| name.into_string().ok()).ok_or_else(unknown)?;
        let all: Vec<_> = getifaddrs().map_err(KernelError::io("list the interfaces"))?.collect();
        let mut entries = all.iter().filter(|entry| entry.interface_name == name);
        let flags = entries.clone().next().ok_or_else(unknown)?.flags;
        if !flags.contains(InterfaceFlags::IFF_UP) {
            return Err(KernelError::Down(name));
        }
        let loopback = flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let kind = entries.find_map(|entry| Some(entry.address.as_ref()?.as_link_addr()?.hatype()));
        if kind != Some(libc::ARPHRD_ETHER) && !loopback {
            return Err(KernelError::NotEthernet(name));
        }
        let mtu = mtu(&name).map_err(KernelError::io(format!("ask {name} for its MTU")))?;
        if mtu < MTU_MIN {
            return Err(KernelError::Mtu { interface: name, mtu });
        }
        // An interface without a known driver leaves nothing to hardware.
        let unsummed = driver(&name).is_ok_and(|driver| UNSUMMED.contains(&driver.as_str()));
        Ok(Self { name, index, unsummed })
    }
}

/// Drivers with native XDP whose frames come unchanged from the stack of this machine or of a virtual one. Others' frames were on a wire,
/// or their drivers complete or drop such frames before XDP (`virtio_net`).
const UNSUMMED: [&str; 2] = ["veth", "tun"];

fn mtu(interface: &str) -> io::Result<u32> {
    let answer = ask(interface, libc::SIOCGIFMTU, libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 })?;
    // SAFETY: the kernel has written a number there.
    u32::try_from(unsafe { answer.ifru_mtu }).map_err(io::Error::other)
}

fn driver(interface: &str) -> io::Result<String> {
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    ask(interface, libc::SIOCETHTOOL, libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut info).cast() })?;
    let name = CStr::from_bytes_until_nul(&info.driver).map_err(io::Error::other)?;
    Ok(name.to_string_lossy().into_owned())
}

/// linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 3;

/// `struct ethtool_drvinfo`
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// Asks the kernel about an interface. A pointer in the request must have the room that the kernel needs.
fn ask(
    interface: &str,
    what: libc::Ioctl,
    question: libc::__c_anonymous_ifr_ifru,
) -> io::Result<libc::__c_anonymous_ifr_ifru> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: question };
    // The last byte stays 0.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads and writes `request` and the memory that it points to; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request.ifr_ifru) }
}

/// The addresses by which other machines reach a switch that listens on `listen`, sorted: that one, or all of this machine. Loopback
/// addresses are excluded: the kernel's stack lets only this machine send to them.
pub(super) fn addresses(listen: IpAddr) -> io::Result<Vec<IpAddr>> {
    if !listen.is_unspecified() {
        return Ok(Vec::from_iter(Some(listen.to_canonical()).filter(|address| !address.is_loopback())));
    }
    let mut found: Vec<_> = getifaddrs()?
        .filter_map(|entry| address_of(&entry))
        .filter(|address| listen.is_ipv6() || address.is_ipv4())
        .filter(|address| !address.is_loopback() && !is_link_local(address))
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

/// IPv6 link-local addresses need an interface, for which the packets have no field.
fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_net::Place;
    use std::net::Ipv6Addr;

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for name in ["mf-nowhere0", "", "a name that is far too long for an interface"] {
            let error = Interface::find(name).unwrap_err().to_string();
            assert_eq!(error, format!("there is no interface {name}: `ip link` lists what there is"));
        }
    }

    #[test]
    fn checksums_are_left_to_hardware_where_a_stack_is_at_the_other_end() {
        if let Err(missing) = midflight_net::available() {
            return println!("SKIPPED: {missing}");
        }
        let lab = midflight_net::Lab::up(&midflight_net::Options::temporary(1)).unwrap();
        let ip = |arguments: &str| {
            lab.command(Place::Switch, "ip").args(arguments.split(' ')).status().is_ok_and(|status| status.success())
        };
        let unsummed = |name| lab.within(Place::Switch, || Interface::find(name)).unwrap().unwrap().unsummed;
        assert!(unsummed("host0"));
        assert!(!unsummed("lo"));
        for (add, expected) in [("tuntap add mode tap other", true), ("link add other type bridge", false)] {
            if ip(add) && ip("link set other up") {
                assert_eq!(unsummed("other"), expected, "{add}");
                assert!(ip("link delete other"));
            } else {
                println!("SKIPPED: no kernel module for `ip {add}`");
            }
        }
    }

    #[test]
    fn loopback_addresses_are_never_served() {
        let none: [IpAddr; 0] = [];
        for here in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(addresses(here.parse().unwrap()).unwrap(), none, "{here}");
        }
        let [four, six] = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()].map(addresses);
        assert!(four.unwrap().iter().all(|address| !address.is_loopback() && address.is_ipv4()));
        assert!(six.unwrap().iter().all(|address| !address.is_loopback()));
        assert_eq!(addresses([10, 0, 0, 1].into()).unwrap(), [IpAddr::from([10, 0, 0, 1])]);
    }
}
