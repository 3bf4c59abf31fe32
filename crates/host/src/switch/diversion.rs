//! Diverts the program's datagrams for one address to a thread of this process, bypassing the kernel.

use crate::socket::ring::RingSender;
use std::net::SocketAddr;

/// Diverts datagrams for one address into a ring.
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

    pub(super) fn takes(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        if to != self.to {
            return false;
        }
        self.ring.push(datagram);
        true
    }

    pub(super) fn flush(&mut self) {
        self.ring.flush();
    }
}
