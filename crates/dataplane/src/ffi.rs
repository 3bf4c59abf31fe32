//! The C interface, as `dataplane/include/midflight/tasks.h` declares it. A test compares the sizes.

use midflight_wire::{Address, LEVELS, PACKET_MAX};
use std::mem::MaybeUninit;

/// `MF_OP_END`: operations are numbered from 1.
pub const OPERATIONS: usize = 19;
/// `MF_WAIT_BUCKETS`.
pub const WAIT_BUCKETS: usize = 40;
/// `MF_TICK_SLOTS`: slots that one tick looks at.
pub const TICK_SLOTS: u32 = 1024;
/// `MF_OUT_MAX`.
pub(crate) const OUT_MAX: usize = 36;

/// `struct mf_tasks`: only ever behind a pointer.
#[repr(C)]
pub(crate) struct RawTasks {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawConfig {
    pub queue: u32,
    pub slots: u32,
    pub clients: u32,
    pub levels: u32,
    pub lease_ns: u64,
    pub slot_idle_ns: u64,
    pub client_idle_ns: u64,
    pub cookie_ns: u64,
}

/// What a switch has counted: `struct mf_tasks_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Datagrams with a valid header, by the number of their operation.
    pub packets: [u64; OPERATIONS],
    /// By the number of the [`crate::Verdict`]: datagrams taken, datagrams and records refused.
    pub reasons: [u64; crate::Verdict::COUNT],
    /// Tasks acknowledged.
    pub submitted: u64,
    /// Assignments, further attempts included, repeats not.
    pub assigned: u64,
    /// Tasks whose slot said that they are done.
    pub completed: u64,
    /// Tasks whose slot went silent (T10).
    pub expired: u64,
    /// Tasks that a leaving or renewed slot gave back.
    pub returned: u64,
    /// Tasks taken out by their client.
    pub cancelled: u64,
    /// Queued tasks given up because their client was silent (T14).
    pub dropped: u64,
    /// Queued tasks that the operator took out.
    pub purged: u64,
    /// Times that ticks were more than a third of a lease apart.
    pub gaps: u64,
    /// Acceptance to first assignment: bucket b counts waits of 2^(b-1) to 2^b µs, bucket 0 those below 1 µs.
    pub wait_us: [u64; WAIT_BUCKETS],
    /// Sum of those waits.
    pub wait_sum_us: u64,
    /// Tasks queued now, by level; index 0 is level 1.
    pub queued: [u32; LEVELS as usize],
    /// Slots that wait now.
    pub parked: u32,
    /// Slots with a task now.
    pub busy: u32,
    /// Slots registered now.
    pub slots: u32,
    /// Clients known now.
    pub clients: u32,
}

impl Stats {
    /// Of a switch that has just started.
    pub const NOTHING: Self = Self {
        packets: [0; OPERATIONS],
        reasons: [0; crate::Verdict::COUNT],
        submitted: 0,
        assigned: 0,
        completed: 0,
        expired: 0,
        returned: 0,
        cancelled: 0,
        dropped: 0,
        purged: 0,
        gaps: 0,
        wait_us: [0; WAIT_BUCKETS],
        wait_sum_us: 0,
        queued: [0; LEVELS as usize],
        parked: 0,
        busy: 0,
        slots: 0,
        clients: 0,
    };

    /// Those of a queue.
    ///
    /// # Safety
    /// The pointer leads to an initialised queue.
    pub(crate) unsafe fn of(tasks: *const RawTasks) -> Self {
        let mut stats = MaybeUninit::uninit();
        // SAFETY: the caller vouches for `tasks`; the call writes all of the statistics.
        unsafe {
            mf_tasks_stats(tasks, stats.as_mut_ptr());
            stats.assume_init()
        }
    }
}

#[repr(C)]
pub(crate) struct RawDatagram {
    pub from: Address,
    pub length: u32,
    pub data: *const u8,
}

#[repr(C)]
pub(crate) struct RawPacket {
    pub to: Address,
    pub length: u32,
    pub data: [u8; PACKET_MAX],
    pub reserved: [u8; 4],
}

#[repr(C, align(8))]
pub(crate) struct RawOut {
    pub count: u32,
    pub voids: u32,
    pub packet: [RawPacket; OUT_MAX],
}

/// `MF_PURGE_CLIENT`.
pub(crate) const PURGE_CLIENT: u32 = 0;
/// `MF_PURGE_RESOURCES`.
pub(crate) const PURGE_RESOURCES: u32 = 1;
/// `MF_PURGE_ADDRESS`.
pub(crate) const PURGE_ADDRESS: u32 = 2;

/// `struct mf_purge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawPurge {
    pub by: u32,
    pub resources: u32,
    pub client: u64,
    pub address: Address,
    pub next: u32,
    pub purged: u32,
    pub reserved: u32,
}

/// A secret as the core takes it: its lower half first.
pub(crate) fn key_of(secret: u128) -> [u64; 2] {
    [secret as u64, (secret >> 64) as u64]
}

unsafe extern "C" {
    pub(crate) fn mf_tasks_size(config: *const RawConfig) -> u64;
    pub(crate) fn mf_tasks_init(tasks: *mut RawTasks, config: *const RawConfig, epoch: u32, key: *const u64);
    pub(crate) fn mf_tasks_packet(
        tasks: *mut RawTasks,
        now_ns: u64,
        datagram: *const RawDatagram,
        out: *mut RawOut,
    ) -> u32;
    pub(crate) fn mf_tasks_owes_several(tasks: *const RawTasks, datagram: *const RawDatagram) -> i32;
    pub(crate) fn mf_tasks_tick(tasks: *mut RawTasks, now_ns: u64, out: *mut RawOut) -> u32;
    pub(crate) fn mf_tasks_purge(tasks: *mut RawTasks, purge: *mut RawPurge) -> u32;
    pub(crate) fn mf_tasks_stats(tasks: *const RawTasks, stats: *mut Stats);
    pub(crate) fn mf_tasks_check(tasks: *const RawTasks) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn mf_tasks_layout(layout: *mut u64);
    }

    #[test]
    fn structures_and_bounds_are_those_of_tasks_h() {
        let mut of_c = [0; 12];
        // SAFETY: it writes twelve numbers.
        unsafe { mf_tasks_layout(of_c.as_mut_ptr()) };
        let sizes =
            [size_of::<RawConfig>(), size_of::<Stats>(), size_of::<RawDatagram>(), size_of::<RawOut>(), OPERATIONS];
        let bounds = [WAIT_BUCKETS, OUT_MAX, TICK_SLOTS as usize];
        let purge = [size_of::<RawPurge>(), PURGE_CLIENT as usize, PURGE_RESOURCES as usize, PURGE_ADDRESS as usize];
        let of_rust = sizes.into_iter().chain(bounds).chain(purge);
        assert_eq!(of_c.to_vec(), of_rust.map(|n| n as u64).collect::<Vec<_>>());
    }
}
