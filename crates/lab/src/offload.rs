//! The one thing that `ip` cannot switch: generic receive offload.

use crate::LabError;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// Switches on GRO of an interface of the namespace in which this thread is.
///
/// A veth takes what is redirected to it by XDP only with NAPI, and it has NAPI only with GRO or an XDP program of its own.
pub(crate) fn enable_gro(interface: &str) -> Result<(), LabError> {
    let failed = || LabError::io(format!("switch on GRO of {interface} (ETHTOOL_SGRO)"));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed())?;
    ethtool(&socket, interface, ETHTOOL_SGRO, 1).map_err(failed())?;
    match ethtool(&socket, interface, ETHTOOL_GGRO, 0).map_err(failed())? {
        0 => Err(failed()(io::Error::other("the kernel took it and did nothing"))),
        _ => Ok(()),
    }
}

/// linux/ethtool.h
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;

/// `struct ethtool_value`
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// One of the calls that take or give a number.
fn ethtool(socket: &UdpSocket, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: data };
    // The last byte stays 0.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads `request`, and reads and writes the `EthtoolValue` that it points to; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(value.data) } else { Err(io::Error::last_os_error()) }
}
