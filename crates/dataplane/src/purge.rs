//! What an operator wants to be gone from the queue.

use crate::ffi::{PURGE_ADDRESS, PURGE_CLIENT, PURGE_RESOURCES, RawPurge};
use midflight_wire::Address;
use std::net::{IpAddr, SocketAddr};

/// Which queued tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of the client with this identity.
    Client(u64),
    /// Those that need all of these resources.
    Resources(u8),
    /// Those of clients at this address; an IPv6 address stands for its first 64 bits.
    Address(IpAddr),
}

/// A purge: which tasks, and how far it has come. A call looks at a bounded number of tasks, so one takes several.
pub struct Purge(RawPurge);

impl std::fmt::Debug for Purge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Purge").field("next", &self.0.next).field("purged", &self.0.purged).finish_non_exhaustive()
    }
}

impl Purge {
    /// One that has not begun.
    #[must_use]
    pub fn new(which: Which) -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let (by, client, resources, address) = match which {
            Which::Client(identity) => (PURGE_CLIENT, identity, 0, nowhere),
            Which::Resources(mask) => (PURGE_RESOURCES, 0, u32::from(mask), nowhere),
            Which::Address(ip) => (PURGE_ADDRESS, 0, 0, SocketAddr::new(ip, 0)),
        };
        Self(RawPurge {
            by,
            resources,
            client: client.to_be(),
            address: Address::from(address),
            next: 0,
            purged: 0,
            reserved: 0,
        })
    }

    /// Tasks that it took out so far.
    #[must_use]
    pub fn purged(&self) -> u32 {
        self.0.purged
    }

    pub(crate) fn raw(&mut self) -> &mut RawPurge {
        &mut self.0
    }
}
