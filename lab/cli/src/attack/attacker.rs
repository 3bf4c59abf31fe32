//! Sends the packets of an attack at a rate, from a host of the lab that is off the path.

use super::datagram::Datagram;
use super::forge::Forge;
use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags, SocketType, ipproto, sendmmsg,
    socket_with, sockopt,
};
use rustix::time::{ClockId, clock_gettime};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Packets per system call.
const BATCH: usize = 64;
/// Long enough to be cheap, short enough for a steady stream.
const BREATH: Duration = Duration::from_millis(1);
/// Backlog to catch up after the machine was busy.
const BEHIND_MOST: u64 = 1024;
const SEND_BUFFER: usize = 4 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    /// Packets that its own kernel refused.
    pub(super) refused: u64,
    /// CPU time of its thread, including the kernel's work for a packet's way through veth pairs.
    pub(super) busy: Duration,
    pub(super) lasted: Duration,
}

/// `rate` is per second. Runs in the network namespace of this thread.
///
/// # Errors
/// If the kernel refuses the socket.
pub(super) fn attack(forge: &mut Forge, make: fn(&mut Forge), rate: u64, ended: &AtomicBool) -> Result<Sent> {
    let socket = open(forge.known.switch.ip()).context("cannot open a raw socket (CAP_NET_RAW)")?;
    let (started, busy_before) = (Instant::now(), busy());
    let (mut sent, mut due_before, mut batch) = (Sent::default(), 0, Batch::default());
    while !ended.load(Relaxed) {
        let due = u64::try_from(started.elapsed().as_micros() * u128::from(rate) / 1_000_000)?;
        let mut now = (due - due_before).min(BEHIND_MOST);
        due_before = due;
        while now > 0 {
            let some = now.min(BATCH as u64);
            for _ in 0..some {
                forge.begin();
                make(forge);
                batch.push(&forge.out)?;
            }
            batch.send(&socket, &mut sent);
            now -= some;
        }
        std::thread::sleep(BREATH);
    }
    (sent.lasted, sent.busy) = (started.elapsed(), busy().saturating_sub(busy_before));
    Ok(sent)
}

/// A raw socket: packets carry their own IP headers.
fn open(of: IpAddr) -> Result<OwnedFd> {
    let family = if of.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW))?;
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
    sockopt::set_socket_broadcast(&socket, true)?;
    Ok(socket)
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// End of each in `bytes`, and its destination.
    packets: Vec<(usize, SocketAddrAny)>,
}

impl Batch {
    fn push(&mut self, datagram: &Datagram) -> Result<()> {
        datagram.write(&mut self.bytes)?;
        // The port is in the packet; here IPv6 would take it for a protocol number.
        let to = SocketAddr::new(datagram.to.ip(), 0);
        self.packets.push((self.bytes.len(), to.as_any()));
        Ok(())
    }

    fn send(&mut self, socket: &OwnedFd, sent: &mut Sent) {
        let mut start = 0;
        let bytes_of =
            |&(end, _): &(usize, SocketAddrAny)| [IoSlice::new(&self.bytes[std::mem::replace(&mut start, end)..end])];
        let slices: Vec<_> = self.packets.iter().map(bytes_of).collect();
        let mut nothing: Vec<_> = self.packets.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let messages = self.packets.iter().zip(&slices).zip(&mut nothing);
        let mut messages: Vec<_> =
            messages.map(|(((_, to), slice), nothing)| MMsgHdr::new_with_addr(to, slice, nothing)).collect();
        let mut done = 0;
        while done < messages.len() {
            match sendmmsg(socket, &mut messages[done..], SendFlags::empty()) {
                Ok(count) => {
                    done += count;
                    sent.packets += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    // Skip the refused packet, and send the others.
                    done += 1;
                    sent.refused += 1;
                }
            }
        }
        drop(messages);
        self.bytes.clear();
        self.packets.clear();
    }
}

fn busy() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// A meaningless packet with any source, from the network namespace of this thread.
///
/// # Errors
/// If the kernel refuses the socket.
pub(super) fn send_one(from: SocketAddr, to: SocketAddr) -> Result<()> {
    let (mut batch, mut sent) = (Batch::default(), Sent::default());
    batch.push(&Datagram::new(from, to))?;
    batch.send(&open(to.ip())?, &mut sent);
    anyhow::ensure!(sent.packets == 1, "the kernel does not take a forged packet");
    Ok(())
}
