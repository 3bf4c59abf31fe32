//! Batched UDP: one system call receives up to 8 buffers of 64 KiB (GRO), or sends equally long datagrams to one destination (GSO). A
//! socket on an IPv6 wildcard accepts IPv4 too; callers never see mapped addresses.
//!
//! | file | subject |
//! |---|---|
//! | `gso` | number of datagrams per system call |
//! | `busy_poll`, `poller` | polling a socket before sleeping |
//! | `reply_addresses` | the local address from which each executor expects its tasks |
//! | `reply_limit`, `neighbours` | limits on answers to unproven senders, by the state of their neighbours |
//! | `ring` | datagrams between threads |
//! | `users` | restricts a process on loopback to the sockets of one user |

pub(crate) mod busy_poll;
pub(crate) mod gso;
pub(crate) mod neighbours;
pub(crate) mod poller;
pub(crate) mod reply_addresses;
pub(crate) mod reply_limit;
#[cfg_attr(not(feature = "operator"), allow(dead_code, reason = "only a selector takes datagrams out of a ring"))]
pub(crate) mod ring;
pub(crate) mod users;

use crate::error::Error;
use crate::socket::gso::Gso;
use crate::socket::reply_limit::Refused;
use midflight_endpoint::mutants::planted;
use midflight_wire::PACKET_MAX;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Sizes of a socket's kernel buffers, limited by `net.core.rmem_max` and `wmem_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Receive buffer in bytes. Default 4 MiB.
    pub receive_bytes: usize,
    /// Send buffer in bytes. Default 4 MiB.
    pub send_bytes: usize,
}

impl Default for SocketBuffers {
    fn default() -> Self {
        Self { receive_bytes: 4 << 20, send_bytes: 4 << 20 }
    }
}

const RECEIVE_BATCH: usize = 8;
/// Indexes into `SO_MEMINFO` (include/uapi/linux/sock_diag.h).
#[cfg(feature = "replica")]
const SK_MEMINFO_RMEM_ALLOC: usize = 0;
const SK_MEMINFO_DROPS: usize = 8;
/// Approximate charge of the kernel for a datagram of a few hundred bytes: 768 on loopback, up to 4,000 if a driver keeps a page per
/// packet.
#[cfg(feature = "replica")]
const CHARGED_BYTES: u64 = 1_024;
/// The most that GRO merges.
const RECEIVE_BYTES: usize = 65_535;
const SEND_BYTES: usize = 65_000;
/// A persistent error must not take a whole core.
const RECEIVE_ERROR_PAUSE: Duration = Duration::from_millis(1);
/// Longest wait for a full send buffer; then datagrams are dropped.
const SEND_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

midflight_endpoint::counters! {
    /// Counts of a socket.
    pub struct SocketCounts {
        /// Datagrams received.
        pub received,
        /// System calls that received something.
        pub receive_calls,
        /// Failed receive calls.
        pub receive_errors,
        /// Datagrams longer than any packet; the parser rejects them.
        pub receive_oversized,
        /// Datagrams dropped by the kernel because the receive buffer was full.
        pub kernel_dropped,
        /// Datagrams sent.
        pub sent,
        /// System calls that sent something.
        pub send_calls,
        /// Datagrams refused by the kernel (no route, forbidden).
        pub send_errors,
        /// Datagrams longer than the link's MTU, which is below 1,280 (T15).
        pub send_too_long,
        /// Datagrams dropped because the send buffer stayed full.
        pub send_blocked,
        /// Answers to unproven addresses dropped: absent neighbour.
        pub send_to_absent,
        /// Answers to unproven addresses dropped: send buffer too full.
        pub send_to_unproven,
        /// Datagrams dropped: the peer's socket has another user, or is gone.
        pub not_served,
    } counted by Counters
}

/// A nonblocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    gso: Gso,
    local: SocketAddr,
    /// Send buffer in bytes, including the kernel's overhead per datagram.
    send_buffer: usize,
    /// Whether senders wait briefly for a full send buffer.
    is_patient: bool,
    counters: Counters,
    /// Whether the log mentioned unreachable addresses of the other IP version.
    warned: AtomicBool,
    /// Whether the log mentioned a link with a small MTU.
    warned_of_length: AtomicBool,
}

impl Socket {
    /// Binds this address; port 0: any free one.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        Self::bind_with(address, SocketBuffers::default())
    }

    pub(crate) fn bind_with(address: SocketAddr, buffers: SocketBuffers) -> Result<Self, Error> {
        let bind = Error::bind("UDP", address);
        let socket = Self::open(address, buffers).map_err(bind)?;
        warn_if_small(&socket, buffers).map_err(bind)?;
        Ok(socket)
    }

    /// A send-only socket on the same local addresses. Drops datagrams at once when its buffer is full.
    #[cfg(feature = "replica")]
    pub(crate) fn bind_to_send(&self, send_bytes: usize) -> Result<Self, Error> {
        let any_port = SocketAddr::new(self.local.ip(), 0);
        // The kernel's minimum: nothing is received there.
        let opened = Self::open(any_port, SocketBuffers { receive_bytes: 0, send_bytes });
        let socket = opened.map_err(Error::bind("UDP", any_port))?;
        Ok(Self { is_patient: false, ..socket })
    }

    fn open(address: SocketAddr, buffers: SocketBuffers) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_recv_buffer_size(buffers.receive_bytes)?;
        socket.set_send_buffer_size(buffers.send_bytes)?;
        socket.bind(&address.into())?;
        let send_buffer = socket.send_buffer_size()?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        let (gso, local) = (Gso::new(state.max_gso_segments()), socket.local_addr()?);
        let counters = Counters::default();
        let [warned, warned_of_length] = [false; 2].map(AtomicBool::new);
        Ok(Self { socket, state, gso, local, send_buffer, is_patient: true, counters, warned, warned_of_length })
    }

    /// Disables `UDP_GRO`, so that the kernel engine's TC program sees unmerged datagrams; it accepts no others.
    #[cfg(feature = "kernel")]
    pub(crate) fn disable_gro(&self) -> io::Result<()> {
        let off: libc::c_int = 0;
        let (level, length) = (libc::SOL_UDP, size_of_val(&off) as libc::socklen_t);
        // SAFETY: the kernel reads one number, which outlives the call.
        let result =
            unsafe { libc::setsockopt(self.socket.as_raw_fd(), level, libc::UDP_GRO, (&raw const off).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Drops all incoming datagrams by a filter. The address stays bound, so senders get no ICMP error.
    pub(crate) fn take_nothing(&self) -> io::Result<()> {
        let mut none = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let filter = libc::sock_fprog { len: 1, filter: &raw mut none };
        let (level, length) = (libc::SOL_SOCKET, size_of_val(&filter) as libc::socklen_t);
        // SAFETY: the kernel copies the filter of one instruction, which outlives the call.
        let result = unsafe {
            libc::setsockopt(self.socket.as_raw_fd(), level, libc::SO_ATTACH_FILTER, (&raw const filter).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The bound address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn counts(&self) -> SocketCounts {
        SocketCounts { kernel_dropped: u64::from(self.kernel_dropped()), ..self.counters.read() }
    }

    fn kernel_dropped(&self) -> u32 {
        self.memory_info()[SK_MEMINFO_DROPS]
    }

    /// A high estimate of the waiting datagrams, from the kernel's charge: those that arrived together are charged until the last of them
    /// is received.
    #[cfg(feature = "replica")]
    pub(crate) fn waiting(&self) -> u64 {
        u64::from(self.memory_info()[SK_MEMINFO_RMEM_ALLOC]) / CHARGED_BYTES
    }

    /// The kernel's memory counts of this socket; zeros if unknown.
    fn memory_info(&self) -> [u32; SK_MEMINFO_DROPS + 1] {
        let mut info = [0; SK_MEMINFO_DROPS + 1];
        let mut length = size_of_val(&info) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `info`, and both outlive the call.
        unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            );
        }
        info
    }

    pub(crate) fn unsent(&self) -> usize {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the kernel writes one number, which outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
    }

    /// Send buffer in bytes, including the kernel's overhead per datagram.
    pub(crate) fn send_buffer(&self) -> usize {
        self.send_buffer
    }

    pub(crate) fn count_unanswered(&self, refused: Refused) {
        let counter = match refused {
            Refused::Absent => &self.counters.send_to_absent,
            Refused::Full => &self.counters.send_to_unproven,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_not_served(&self) {
        self.counters.not_served.fetch_add(1, Relaxed);
    }

    pub(crate) fn receive(&self, batch: &mut ReceiveBatch) -> bool {
        batch.filled = 0;
        let mut chunks = batch.bytes.chunks_exact_mut(RECEIVE_BYTES).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; RECEIVE_BATCH] =
            std::array::from_fn(|_| chunks.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        match self.state.recv((&self.socket).into(), &mut buffers, &mut batch.meta) {
            Ok(filled) => batch.filled = filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.counters.receive_errors.fetch_add(1, Relaxed);
                tracing::debug!("receiving on {} failed: {error}", self.local);
                std::thread::sleep(RECEIVE_ERROR_PAUSE);
            }
        }
        if batch.filled > 0 {
            let metas = &batch.meta[..batch.filled];
            let datagrams: usize = metas.iter().map(|m| m.len.div_ceil(m.stride.max(1)).max(1)).sum();
            let oversized = metas.iter().filter(|m| m.stride > PACKET_MAX).count();
            let datagrams = if planted(88) { metas.len() } else { datagrams };
            self.counters.received.fetch_add(datagrams as u64, Relaxed);
            self.counters.receive_calls.fetch_add(1, Relaxed);
            self.counters.receive_oversized.fetch_add(oversized as u64, Relaxed);
        }
        batch.filled > 0
    }

    pub(crate) fn is_on_all_addresses(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// Sends datagrams of `segment` bytes each, the last one possibly shorter. `from`: source address; `None`: chosen by the kernel.
    fn send(&self, from: Option<IpAddr>, to: SocketAddr, contents: &[u8], segment: usize) {
        let datagrams = contents.len().div_ceil(segment.max(1)).max(1);
        let from = if planted(83) { None } else { from };
        let segment_size = (datagrams > 1).then_some(segment);
        let mut transmit =
            Transmit { destination: self.destination(to), ecn: None, contents, segment_size, src_ip: from };
        if datagrams == 1 {
            self.gso.sent_one();
        }
        if self.try_send(&transmit, datagrams).is_ok() {
            return;
        }
        // The device may not support GSO: send one by one.
        transmit.segment_size = None;
        let mut sent = 0;
        for datagram in contents.chunks(segment) {
            transmit.contents = datagram;
            sent += self.try_send(&transmit, 1).unwrap_or(0);
        }
        if sent > 0 || planted(85) {
            self.gso.refused();
        }
    }

    /// Returns the number sent. `Err`: sending one by one may work; other errors are counted here.
    fn try_send(&self, transmit: &Transmit<'_>, datagrams: usize) -> Result<usize, ()> {
        let mut result = self.state.try_send((&self.socket).into(), transmit);
        if self.is_patient && result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Some(&SEND_PATIENCE));
            result = self.state.try_send((&self.socket).into(), transmit);
        }
        let counter = match result {
            Ok(()) => {
                self.counters.send_calls.fetch_add(1, Relaxed);
                self.counters.sent.fetch_add(datagrams as u64, Relaxed);
                return Ok(datagrams);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => &self.counters.send_blocked,
            Err(_) if datagrams > 1 => return Err(()),
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                self.warn_of_length(transmit);
                &self.counters.send_too_long
            }
            Err(error) => {
                tracing::debug!("sending to {} failed: {error}", transmit.destination);
                self.warn_of_family(transmit.destination);
                &self.counters.send_errors
            }
        };
        counter.fetch_add(datagrams as u64, Relaxed);
        Ok(0)
    }

    /// An IPv4 socket, such as an executor's, cannot send to IPv6 clients; an IPv6 socket can send to both.
    fn warn_of_family(&self, to: SocketAddr) {
        if self.local.is_ipv4() && to.is_ipv6() && !self.warned.swap(true, Relaxed) {
            tracing::warn!(
                "{to} cannot be reached from {}, which is for IPv4 only: results to such clients are lost; --bind [::]:0, \
                 or the switch's IPv6 address, serves both",
                self.local
            );
        }
    }

    /// Every link must carry every packet (T15): one that is too long is lost on every repetition.
    fn warn_of_length(&self, transmit: &Transmit<'_>) {
        if !self.warned_of_length.swap(true, Relaxed) {
            tracing::warn!(
                "a packet of {} bytes to {} is too long for the link, whose MTU is below 1280 bytes: raise it, as in `ip link set \
                 eth0 mtu 1500`; what is lost until then counts as send_too_long",
                transmit.contents.len(),
                transmit.destination
            );
        }
    }

    /// An IPv6 socket needs the mapped form of an IPv4 address.
    fn destination(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.local.is_ipv6() => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            other => other,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn warn_if_small(socket: &Socket, wanted: SocketBuffers) -> io::Result<()> {
    let socket = socket2::SockRef::from(&socket.socket);
    // The kernel doubles the requested size to cover its overhead.
    let (receive, send) = (socket.recv_buffer_size()? / 2, socket.send_buffer_size()? / 2);
    let SocketBuffers { receive_bytes, send_bytes } = wanted;
    if receive < receive_bytes || send < send_bytes {
        tracing::warn!(
            "the kernel gives {} KiB to receive (of {}) and {} KiB to send (of {}): bursts may be lost and repeated; \
             sysctl -w net.core.rmem_max={receive_bytes} net.core.wmem_max={send_bytes}",
            receive >> 10,
            receive_bytes >> 10,
            send >> 10,
            send_bytes >> 10,
        );
    }
    Ok(())
}

pub(crate) struct ReceiveBatch {
    bytes: Vec<u8>,
    meta: [RecvMeta; RECEIVE_BATCH],
    filled: usize,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        // Zeroed memory costs nothing until the kernel writes to it.
        Self { bytes: vec![0; RECEIVE_BATCH * RECEIVE_BYTES], meta: [RecvMeta::default(); RECEIVE_BATCH], filled: 0 }
    }

    #[cfg(feature = "replica")]
    pub(crate) fn is_full(&self) -> bool {
        self.filled == RECEIVE_BATCH
    }

    pub(crate) fn iter(&mut self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.iter_with_local_address().map(|(from, _, datagram)| (from, &*datagram))
    }

    /// The datagrams with sender and our address. The caller may rewrite them.
    pub(crate) fn iter_with_local_address(&mut self) -> impl Iterator<Item = (SocketAddr, Option<IpAddr>, &mut [u8])> {
        let buffers = self.bytes.chunks_exact_mut(RECEIVE_BYTES).zip(&self.meta[..self.filled]);
        buffers.flat_map(|(bytes, meta)| {
            let ip = if planted(86) { meta.addr.ip() } else { meta.addr.ip().to_canonical() };
            let from = SocketAddr::new(ip, meta.addr.port());
            let own = meta.dst_ip.map(|own| own.to_canonical()).filter(|own| !own.is_multicast());
            let empty = (meta.len == 0).then_some(&mut [][..]);
            let stride = if planted(82) { RECEIVE_BYTES } else { meta.stride.max(1) };
            let datagrams = empty.into_iter().chain(bytes[..meta.len].chunks_mut(stride));
            datagrams.map(move |datagram| (from, own, datagram))
        })
    }
}

const LANES: usize = 4;

/// Collects datagrams: equally long ones to one destination leave in one system call. Keeps the order per destination only.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    lanes: [Lane; LANES],
    next: usize,
}

#[derive(Debug, Default)]
struct Lane {
    from: Option<IpAddr>,
    to: Option<SocketAddr>,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
}

impl SendQueue {
    pub(crate) fn push(&mut self, socket: &Socket, to: SocketAddr, datagram: &[u8]) {
        self.push_from(socket, None, to, datagram);
    }

    /// `from`: source address; `None`: chosen by the kernel.
    pub(crate) fn push_from(&mut self, socket: &Socket, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        let known = self.lanes.iter().position(|lane| lane.to == Some(to));
        let lane = known.or_else(|| self.lanes.iter().position(|lane| lane.to.is_none())).unwrap_or_else(|| {
            self.next = (self.next + 1) % LANES;
            self.next
        });
        self.lanes[lane].push(socket, from, to, datagram);
    }

    pub(crate) fn flush(&mut self, socket: &Socket) {
        for lane in &mut self.lanes {
            lane.flush(socket);
        }
    }

    /// Like `flush`, starting with the destination added last.
    pub(crate) fn flush_last_first(&mut self, socket: &Socket) {
        for lane in self.lanes.iter_mut().rev() {
            lane.flush(socket);
        }
    }
}

impl Lane {
    fn push(&mut self, socket: &Socket, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        let fits = (self.from == from || planted(87))
            && self.to == Some(to)
            && (datagram.len() <= self.segment || (planted(80) && self.count > 0))
            && self.count < socket.gso.most()
            && self.bytes.len() + datagram.len() <= SEND_BYTES;
        if !fits {
            self.flush(socket);
            (self.from, self.to) = (from, Some(to));
            self.segment = datagram.len();
        }
        self.bytes.extend_from_slice(datagram);
        self.count += 1;
        if (datagram.len() < self.segment && !planted(81)) || datagram.is_empty() {
            self.flush(socket); // GSO allows only the last datagram to be shorter
        }
    }

    fn flush(&mut self, socket: &Socket) {
        if let Some(to) = self.to.take() {
            socket.send(self.from, to, &self.bytes, self.segment);
            self.bytes.clear();
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests;
