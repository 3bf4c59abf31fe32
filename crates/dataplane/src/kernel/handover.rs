//! Answers that the kernel's programs could not send: they put them into a ring buffer, and the process sends them by its socket.

use super::error::KernelError;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use midflight_wire::{Address, PACKET_MAX};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::FromBytes;

#[derive(FromBytes)]
#[repr(C)]
struct Record {
    to: Address,
    length: u32,
    own: [u8; 16],
    data: [u8; PACKET_MAX],
}

/// Answers per call: the ring may fill as fast as it is read, and the reader must also expire leases.
const TAKEN_MAX: usize = 64;

/// The reading end of the ring buffer.
#[derive(Debug)]
pub struct Handover {
    ring: RingBuffer<'static>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Handover {
    pub(super) fn new(map: &MapHandle) -> Result<Self, KernelError> {
        let failed = |error: libbpf_rs::Error| KernelError::libbpf("open the ring buffer of answers", &error);
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        let take = move |record: &[u8]| {
            if let Some(record) = record.get(..size_of::<Record>()) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(record);
            }
            0
        };
        builder.add(map, take).map_err(failed)?;
        Ok(Self { ring: builder.build().map_err(failed)?, taken })
    }

    /// Calls `send` for at most 64 waiting answers: with the address of this machine that the receiver talks to, if known, the receiver,
    /// and the datagram.
    pub fn drain(&mut self, mut send: impl FnMut(Option<IpAddr>, SocketAddr, &[u8])) {
        // Fails only if the callback does, which does not.
        let _ = self.ring.consume_raw_n(TAKEN_MAX);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for bytes in taken.chunks_exact(size_of::<Record>()) {
            if let Ok(record) = Record::read_from_bytes(bytes) {
                let own = Ipv6Addr::from(record.own);
                let own = (!own.is_unspecified()).then(|| IpAddr::from(own).to_canonical());
                send(own, record.to.into(), &record.data[..(record.length as usize).min(PACKET_MAX)]);
            }
        }
        taken.clear();
    }
}

impl AsFd for Handover {
    /// Readable while answers wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring's own descriptor, open for as long as the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}
