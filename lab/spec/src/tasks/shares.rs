//! Shares (T14): a source may take another record while it holds fewer than eight times as many as are free.

use super::Model;
use super::queue::Task;
use midflight_dataplane::Verdict;
use midflight_wire::Host;
use midflight_wire::tasks::{APPENDED, Reason, SlotKind, TaskInfo};
use std::net::SocketAddr;

/// Bytes of an argument in a block, and blocks in a KiB of memory for them.
const BLOCK_BYTES: usize = 120;
const BLOCKS_A_KIB: usize = 8;

/// The verdict to count and the reason to send when there is no record.
pub(super) type Refusal = (Verdict, Reason);

impl Model {
    pub(super) fn client_room(&self, address: SocketAddr) -> Result<(), Refusal> {
        let held = self.clients.iter().filter(|client| is_one_source(client.address, address)).count();
        let full = (Verdict::ClientsFull, Reason::ClientsFull);
        share(self.config.clients, self.clients.iter().count(), held, full, Verdict::ClientsShare)
    }

    /// Whether this address may take another slot. A prefetch slot must leave as many free as the address holds.
    pub(super) fn slot_room(&self, address: SocketAddr, kind: u8) -> Result<(), Refusal> {
        let held = self.slots.values().filter(|slot| is_one_source(slot.address, address)).count();
        let full = (Verdict::SlotsFull, Reason::SlotsFull);
        share(self.config.slots, self.slots.len(), held, full, Verdict::SlotsShare)?;
        let is_first_refused = kind == SlotKind::Ahead as u8 && held >= self.config.slots as usize - self.slots.len();
        if is_first_refused { Err((Verdict::SlotsShare, Reason::Share)) } else { Ok(()) }
    }

    pub(super) fn task_room(&self, address: SocketAddr) -> Result<(), Refusal> {
        let of_source =
            |task: &&Task| self.client_of(task).is_some_and(|client| is_one_source(client.address, address));
        let held = self.open_tasks().filter(of_source).count();
        share(self.config.queue, self.records(), held, (Verdict::Full, Reason::Full), Verdict::QueueShare)
    }
}

impl Model {
    /// Whether there is room for the argument of another task.
    pub(super) fn argument_room(&self, address: SocketAddr, info: &TaskInfo) -> Result<(), Refusal> {
        if info.argument_length != APPENDED {
            return Ok(());
        }
        let blocks = |task: &Task| blocks_of(&task.info);
        let of_source =
            |task: &&Task| self.client_of(task).is_some_and(|client| is_one_source(client.address, address));
        let held: usize = self.open_tasks().filter(of_source).map(blocks).sum();
        let free = self.config.arguments as usize * BLOCKS_A_KIB - self.blocks();
        if blocks_of(info) > free {
            return Err((Verdict::ArgumentsFull, Reason::Full));
        }
        if held >= 8 * free { Err((Verdict::ArgumentsShare, Reason::Share)) } else { Ok(()) }
    }

    /// Blocks in use by appended arguments.
    pub(super) fn blocks(&self) -> usize {
        self.open_tasks().map(|task| blocks_of(&task.info)).sum()
    }
}

fn blocks_of(info: &TaskInfo) -> usize {
    info.appended_length().div_ceil(BLOCK_BYTES)
}

/// `used` of `capacity` records are in use, `held` of them by the requesting source.
fn share(capacity: u32, used: usize, held: usize, full: Refusal, over_share: Verdict) -> Result<(), Refusal> {
    match capacity as usize - used {
        0 => Err(full),
        free if held >= 8 * free => Err((over_share, Reason::Share)),
        _ => Ok(()),
    }
}

fn is_one_source(a: SocketAddr, b: SocketAddr) -> bool {
    Host::of(a.ip()) == Host::of(b.ip())
}
