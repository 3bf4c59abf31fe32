//! An XDP program for hosts that passes everything.
//!
//! The kernel delivers frames that an XDP program on a veth returns (`XDP_TX`) only if the other end runs an XDP program too
//! (`veth_xdp_tx_flush` in drivers/net/veth.c). So each host runs the shortest one. `ip` attaches programs from object files only. This
//! module loads the instructions by system call and attaches them by a netlink message, for the interface's lifetime.

use crate::LabError;
use crate::names::HOST_INTERFACE;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// In native mode, on the host in whose namespace this thread runs.
pub(crate) fn pass_all() -> Result<(), LabError> {
    load().and_then(|program| attach(&program, HOST_INTERFACE)).map_err(|source| LabError::NoXdp { source })
}

fn load() -> io::Result<OwnedFd> {
    const MOVE_XDP_PASS_TO_R0: u64 = 0xb7 | 2 << 32;
    const EXIT: u64 = 0x95;
    const BPF_PROG_LOAD: libc::c_int = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    /// First fields of `union bpf_attr` for this command; the kernel zeroes the rest.
    #[repr(C)]
    struct ProgLoad {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
    }
    let instructions = [MOVE_XDP_PASS_TO_R0, EXIT];
    let attributes = ProgLoad {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
    };
    // SAFETY: the kernel reads `attributes` and what they point to; all outlive the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const attributes, size_of::<ProgLoad>()) };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new and has no other owner.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `RTM_SETLINK` with `IFLA_XDP`: the interface keeps the program.
fn attach(program: &OwnedFd, interface: &str) -> io::Result<()> {
    // Netlink protocol 0: NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let index = name_to_index(&socket, interface)?;
    let mut socket = File::from(socket);
    socket.write_all(&set_link_xdp(index, program.as_raw_fd()))?;
    let mut answer = [0; 1024];
    let length = socket.read(&mut answer)?;
    // The negative error (0 for success) follows the reply's header (`struct nlmsghdr`, 16 bytes).
    match answer[..length].get(16..20).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel's answer is too short")),
    }
}

fn set_link_xdp(index: u32, program: i32) -> Vec<u8> {
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFLA_XDP_NESTED: u16 = 43 | 1 << 15;
    const IFLA_XDP_FD: u16 = 1;
    const IFLA_XDP_FLAGS: u16 = 3;
    const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
    let attribute = |kind: u16, value: &[u8]| {
        let length = 4 + value.len() as u16;
        [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    };
    let program = attribute(IFLA_XDP_FD, &program.to_ne_bytes());
    let mode = attribute(IFLA_XDP_FLAGS, &XDP_FLAGS_DRV_MODE.to_ne_bytes());
    let xdp = attribute(IFLA_XDP_NESTED, &[program, mode].concat());
    // struct ifinfomsg: family and type, index, flags, mask of flags to change.
    let link = [[0; 4], index.to_ne_bytes(), [0; 4], [0; 4]].concat();
    let length = (16 + link.len() + xdp.len()) as u32;
    // struct nlmsghdr: length, type and flags, sequence, port.
    let kind = [libc::RTM_SETLINK.to_ne_bytes(), NLM_F_REQUEST_ACK.to_ne_bytes()].concat();
    [&length.to_ne_bytes(), kind.as_slice(), &[0; 8], &link, &xdp].concat()
}
