//! An interface as packet sockets see it: sent frames, and received frames with the kernel's metadata.

use crate::frame::{bytes, put16};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Limit of a wait for a frame or datagram.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A packet socket on an interface of the network namespace in which it was opened.
pub(crate) struct Port {
    socket: OwnedFd,
    pub(crate) index: u32,
    pub(crate) mac: [u8; 6],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// With the VLAN tag that the kernel keeps in metadata.
    pub(crate) frame: Vec<u8>,
    pub(crate) outgoing: bool,
    pub(crate) partial: bool,
}

/// What a sent frame leaves to hardware.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offload {
    /// Offset of the UDP header whose checksum is to be completed.
    pub(crate) l4: Option<usize>,
    /// Payload bytes of each datagram that the frame is to be split into.
    pub(crate) segment: u16,
}

/// `struct virtio_net_hdr`
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const UDP_SEGMENTS: u8 = 5;

impl Port {
    pub(crate) fn open(interface: &str) -> Self {
        let name = CString::new(interface).unwrap();
        // SAFETY: plain system calls; their buffers have the given lengths and outlive them.
        unsafe {
            let all = (libc::ETH_P_ALL as u16).to_be();
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(all));
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(fd);
            let index = libc::if_nametoindex(name.as_ptr());
            assert!(index > 0, "{interface}: {}", io::Error::last_os_error());
            for option in [libc::PACKET_AUXDATA, PACKET_VNET_HDR] {
                set_option(fd, libc::SOL_PACKET, option, 1);
            }
            set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            (address.sll_family, address.sll_protocol, address.sll_ifindex) =
                (libc::AF_PACKET as u16, all, index as i32);
            let length = size_of_val(&address) as u32;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0, "{}", io::Error::last_os_error());
            let mut length = length;
            assert_eq!(libc::getsockname(fd, (&raw mut address).cast(), &raw mut length), 0);
            Self { socket, index, mac: bytes(&address.sll_addr, 0) }
        }
    }

    pub(crate) fn send(&self, frame: &[u8], offload: Offload) {
        let mut header = [0; HEADER];
        if let Some(l4) = offload.l4 {
            header[0] = NEEDS_CHECKSUM;
            header[6..8].copy_from_slice(&(l4 as u16).to_ne_bytes());
            header[8..10].copy_from_slice(&6u16.to_ne_bytes());
            if offload.segment > 0 {
                header[1] = UDP_SEGMENTS;
                header[2..4].copy_from_slice(&(l4 as u16 + 8).to_ne_bytes());
                header[4..6].copy_from_slice(&offload.segment.to_ne_bytes());
            }
        }
        let sent = [&header, frame].concat();
        // SAFETY: the kernel reads as many bytes as there are.
        let result = unsafe { libc::send(self.socket.as_raw_fd(), sent.as_ptr().cast(), sent.len(), 0) };
        assert_eq!(result, sent.len() as isize, "{}", io::Error::last_os_error());
    }

    /// Does not wait.
    pub(crate) fn next(&self) -> Option<Seen> {
        let mut buffer = vec![0u8; HEADER + 65536];
        let mut control = [0u64; 16];
        // SAFETY: zero is valid for these structures; the kernel writes as many bytes as it is told there are.
        unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_name = (&raw mut address).cast();
            message.msg_namelen = size_of_val(&address) as u32;
            (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
            (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
            let received = libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT);
            if received < HEADER as isize {
                return None;
            }
            buffer.truncate(received as usize);
            let partial = buffer[0] & NEEDS_CHECKSUM != 0;
            let mut frame = buffer.split_off(HEADER);
            let data = libc::CMSG_FIRSTHDR(&raw const message);
            if !data.is_null() && (*data).cmsg_type == libc::PACKET_AUXDATA {
                let beside = libc::CMSG_DATA(data).cast::<libc::tpacket_auxdata>().read_unaligned();
                if beside.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                    let mut tag = [0; 4];
                    put16(&mut tag, 0, beside.tp_vlan_tpid);
                    put16(&mut tag, 2, beside.tp_vlan_tci);
                    frame.splice(12..12, tag);
                }
            }
            Some(Seen { frame, outgoing: address.sll_pkttype == libc::PACKET_OUTGOING, partial })
        }
    }

    /// Does not wait.
    pub(crate) fn all(&self, of_interest: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        std::iter::from_fn(|| self.next()).filter(of_interest).collect()
    }

    pub(crate) fn wait(&self, of_interest: impl Fn(&Seen) -> bool) -> Option<Seen> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.next() {
                Some(seen) if of_interest(&seen) => return Some(seen),
                Some(_) => {}
                None if Instant::now() > until => return None,
                None => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}

/// linux/if_packet.h
const PACKET_VNET_HDR: i32 = 15;

fn set_option(fd: i32, level: i32, option: i32, value: i32) {
    // SAFETY: the kernel reads one number.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size_of_val(&value) as u32) };
    assert_eq!(result, 0, "option {option}: {}", io::Error::last_os_error());
}
