//! Shares (T14): of each table a source may take more while it holds fewer than eight times what is free.

use super::Model;
use super::queue::Task;
use midflight_dataplane::Verdict;
use midflight_wire::Reason;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Why there is no record: as it is counted, and as the sender is told.
pub(super) type Refusal = (Verdict, Reason);

impl Model {
    /// Whether a client at this address may be remembered.
    pub(super) fn client_room(&self, address: SocketAddr) -> Result<(), Refusal> {
        let held = self.clients.iter().filter(|client| is_one_source(client.address, address)).count();
        let full = (Verdict::ClientsFull, Reason::ClientsFull);
        share(self.config.clients, self.clients.iter().count(), held, full, Verdict::ClientsShare)
    }

    /// Whether a slot may be registered from this address.
    pub(super) fn slot_room(&self, address: SocketAddr) -> Result<(), Refusal> {
        let held = self.slots.values().filter(|slot| is_one_source(slot.address, address)).count();
        let full = (Verdict::SlotsFull, Reason::SlotsFull);
        share(self.config.slots, self.slots.len(), held, full, Verdict::SlotsShare)
    }

    /// Whether a task of a client at this address may be taken: tasks are held by their clients' sources.
    pub(super) fn task_room(&self, address: SocketAddr) -> Result<(), Refusal> {
        let of_source =
            |task: &&Task| self.client_of(task).is_some_and(|client| is_one_source(client.address, address));
        let held = self.open_tasks().filter(of_source).count();
        share(self.config.queue, self.records(), held, (Verdict::Full, Reason::Full), Verdict::QueueShare)
    }
}

/// Of a table of `capacity` records `used` are, and `held` of them by the source that wants another.
fn share(capacity: u32, used: usize, held: usize, full: Refusal, over_share: Verdict) -> Result<(), Refusal> {
    match capacity as usize - used {
        0 => Err(full),
        free if held >= 8 * free => Err((over_share, Reason::Share)),
        _ => Ok(()),
    }
}

/// Who is one of those that share: an IPv4 address, or all that have the first 64 bits of an IPv6 address.
pub(super) fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ipv4 => ipv4,
    }
}

fn is_one_source(a: SocketAddr, b: SocketAddr) -> bool {
    source(a.ip()) == source(b.ip())
}
