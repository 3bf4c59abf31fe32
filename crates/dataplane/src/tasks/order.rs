//! The operator's order: a purge, which takes tasks out of the queue.

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

/// A purge: which tasks, and how far it has come. A call looks at a bounded number of tasks, so one takes several. It is
/// `struct mf_tasks_order`.
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

    /// Which queued tasks.
    #[must_use]
    pub fn which(&self) -> Which {
        let [client, resources, _] = BY;
        match self.by {
            by if by == client => Which::Client(u64::from_be(self.client)),
            by if by == resources => Which::Resources(self.resources as u8),
            _ => Which::Address(SocketAddr::from(self.address).ip()),
        }
    }

    /// Counts tasks that were taken out.
    pub fn count(&mut self, purged: u32) {
        self.purged += purged;
    }

    /// Tasks that it took out so far.
    #[must_use]
    pub fn purged(&self) -> u32 {
        self.purged
    }
}
