//! The operator's order: a purge, which removes tasks from the queue.

use midflight_wire::Address;
use std::net::{IpAddr, SocketAddr};

/// The queued tasks to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of the client with this identity.
    Client(u64),
    /// Those that need all of these resources.
    Resources(u8),
    /// Those of clients at this address; of an IPv6 address only the first 64 bits count.
    Address(IpAddr),
}

/// A purge and its progress: `struct mf_tasks_order`. A call visits a bounded number of tasks, so a purge takes several.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Purge {
    by: u32,
    resources: u32,
    client: u64,
    address: Address,
    next: u32,
    purged: u32,
    reserved: u32,
}

/// `MF_PURGE_CLIENT` and the others.
const BY: [u32; 3] = [0, 1, 2];

#[cfg(test)]
pub(super) const LAYOUT: [usize; 4] = [size_of::<Purge>(), BY[0] as usize, BY[1] as usize, BY[2] as usize];

impl std::fmt::Debug for Purge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Purge").field("next", &self.next).field("purged", &self.purged).finish_non_exhaustive()
    }
}

impl Purge {
    /// A purge that has not begun.
    #[must_use]
    pub fn new(which: Which) -> Self {
        let [client, resources, address] = BY;
        let nothing = Self {
            by: client,
            resources: 0,
            client: 0,
            address: Address::from(SocketAddr::from(([0, 0, 0, 0], 0))),
            next: 0,
            purged: 0,
            reserved: 0,
        };
        match which {
            Which::Client(identity) => Self { client: identity.to_be(), ..nothing },
            Which::Resources(mask) => Self { by: resources, resources: u32::from(mask), ..nothing },
            Which::Address(ip) => Self { by: address, address: SocketAddr::new(ip, 0).into(), ..nothing },
        }
    }

    /// The queued tasks to remove.
    #[must_use]
    pub fn which(&self) -> Which {
        let [client, resources, _] = BY;
        match self.by {
            by if by == client => Which::Client(u64::from_be(self.client)),
            by if by == resources => Which::Resources(self.resources as u8),
            _ => Which::Address(SocketAddr::from(self.address).ip()),
        }
    }

    /// Adds to the number of removed tasks.
    pub fn count(&mut self, purged: u32) {
        self.purged += purged;
    }

    /// Tasks removed so far.
    #[must_use]
    pub fn purged(&self) -> u32 {
        self.purged
    }
}
