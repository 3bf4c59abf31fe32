//! Datagrams of the program that stay in this process: what it sends to one address goes to a thread here, not through the kernel.

use crate::ring::RingSender;
use std::net::SocketAddr;

/// What goes to this address goes into this ring.
#[derive(Debug)]
pub struct Diversion {
    to: SocketAddr,
    ring: RingSender,
}

impl Diversion {
    #[cfg(feature = "operator")]
    pub(crate) fn new(to: SocketAddr, ring: RingSender) -> Self {
        Self { to, ring }
    }

    /// Takes the datagram, if it is for that address.
    pub(super) fn takes(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        if to != self.to {
            return false;
        }
        self.ring.push(datagram);
        true
    }

    /// Wakes the thread, if there is something for it.
    pub(super) fn flush(&mut self) {
        self.ring.flush();
    }
}
