//! Settings that `ethtool` can change and `ip` cannot: offloads of segmentation and checksums. Also waits for an interface's queue.
//! Interfaces are those of the calling thread's namespace.

use crate::LabError;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// A veth receives frames redirected by XDP only if it has NAPI, and it has NAPI only with GRO or its own XDP program.
pub(crate) fn enable_gro(interface: &str) -> Result<(), LabError> {
    switch(interface, (ETHTOOL_SGRO, ETHTOOL_GGRO), true).map_err(LabError::io(format!("switch on GRO of {interface}")))
}

/// On a veth, checksums stay incomplete, and the receiver is told.
pub(crate) fn complete_checksums(interface: &str, by_hardware: bool) -> Result<(), LabError> {
    let what = format!("switch checksums of {interface}");
    switch(interface, (ETHTOOL_STXCSUM, ETHTOOL_GTXCSUM), by_hardware).map_err(LabError::io(what))
}

/// Disables frame merging (GRO) and oversized frames on an interface, so that a reader of raw frames, such as a switch, gets each frame as
/// it was sent. This covers only this end of a veth.
///
/// # Errors
/// If there is no such interface, without CAP_NET_ADMIN, or if the interface does not know the setting.
pub fn single_frames(interface: &str) -> Result<(), LabError> {
    let off = |setting: (u32, u32)| {
        // A missing feature is off and cannot be set.
        let is_on = ethtool(&any_socket()?, interface, setting.1, 0)? != 0;
        if is_on { switch(interface, setting, false) } else { Ok(()) }
    };
    let what = || format!("switch off segmentation and merging of {interface}");
    let settings = [(ETHTOOL_SGRO, ETHTOOL_GGRO), (ETHTOOL_STSO, ETHTOOL_GTSO), (ETHTOOL_SGSO, ETHTOOL_GGSO)];
    settings.into_iter().try_for_each(|setting| off(setting).map_err(LabError::io(what())))
}

/// An interface's MAC address.
///
/// # Errors
/// If there is no such interface.
pub fn mac_address(interface: &str) -> Result<[u8; 6], LabError> {
    let failed = || LabError::io(format!("find the interface {interface}"));
    let socket = any_socket().map_err(failed())?;
    let empty = libc::sockaddr { sa_family: 0, sa_data: [0; 14] };
    let mut request = request(interface, libc::__c_anonymous_ifr_ifru { ifru_hwaddr: empty });
    // SAFETY: the kernel reads the name and writes an address of this type.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) };
    if result != 0 {
        return Err(failed()(io::Error::last_os_error()));
    }
    // SAFETY: the field was initialized as an address of this type and the kernel has overwritten it with one.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok(std::array::from_fn(|at| address.sa_data[at] as u8))
}

/// Waits until an interface of this namespace can send. The kernel attaches an interface's queue some time after it comes up and drops what
/// is sent before. From Linux 6.8, asking for the link state makes it do so at once.
pub(crate) fn await_queue(interface: &str) -> Result<(), LabError> {
    let socket = any_socket();
    let has_link = socket.and_then(|socket| ethtool(&socket, interface, ETHTOOL_GLINK, 0));
    let has_link = has_link.map_err(LabError::io(format!("ask whether {interface} has a link")))? != 0;
    let none = || io::Error::other("it is up, and the kernel says that it has none");
    if has_link { Ok(()) } else { Err(LabError::io(format!("find a link at {interface}"))(none())) }
}

/// Verifies the setting.
fn switch(interface: &str, (set, get): (u32, u32), on: bool) -> io::Result<()> {
    let socket = any_socket()?;
    ethtool(&socket, interface, set, on.into())?;
    let is_on = ethtool(&socket, interface, get, 0)? != 0;
    if is_on == on { Ok(()) } else { Err(io::Error::other("the kernel took it and did nothing")) }
}

/// Any socket will do; it selects the network namespace.
fn any_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
}

/// From linux/ethtool.h.
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

fn ethtool(socket: &UdpSocket, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = request(interface, libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() });
    // SAFETY: the kernel reads `request`, and reads and writes the `EthtoolValue` it points to; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(value.data) } else { Err(io::Error::last_os_error()) }
}

fn request(interface: &str, ifr_ifru: libc::__c_anonymous_ifr_ifru) -> libc::ifreq {
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    // Keeps the terminating NUL.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request
}
