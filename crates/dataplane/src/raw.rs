//! The structures of `dataplane/include/midflight/switch.h`. A test compares the sizes.

use midflight_wire::{Address, PACKET_MAX};

/// `MF_OUT_MAX`.
pub(crate) const OUT_MAX: usize = 36;
/// `MF_ORDER_BYTES`.
#[cfg(feature = "kernel")]
pub(crate) const ORDER_BYTES: usize = 232;

/// `struct mf_datagram`.
#[repr(C)]
#[derive(Debug)]
pub struct RawDatagram {
    pub(crate) from: Address,
    pub(crate) length: u32,
    pub(crate) data: *mut u8,
}

impl RawDatagram {
    /// Only for functions that do not write to a datagram.
    pub(crate) fn read_only(from: Address, datagram: &[u8]) -> Self {
        Self { from, length: length(datagram), data: datagram.as_ptr().cast_mut() }
    }

    pub(crate) fn new(from: Address, datagram: &mut [u8]) -> Self {
        Self { from, length: length(datagram), data: datagram.as_mut_ptr() }
    }
}

/// Saturates at 32 bits: anything longer than a packet is TRAILING, whatever its exact length.
fn length(datagram: &[u8]) -> u32 {
    u32::try_from(datagram.len()).unwrap_or(u32::MAX)
}

#[repr(C)]
pub(crate) struct RawPacket {
    pub to: Address,
    pub length: u32,
    pub data: [u8; PACKET_MAX],
    pub appended: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawForward {
    pub to: Address,
    pub copy_to: Address,
    pub header: u32,
    pub length: u32,
}

/// `struct mf_out`.
#[repr(C, align(8))]
pub struct RawOut {
    pub(crate) count: u32,
    pub(crate) is_genuine: u32,
    pub(crate) is_forwarded: u32,
    pub(crate) note: u32,
    pub(crate) packet: [RawPacket; OUT_MAX],
    pub(crate) forward: RawForward,
}

impl std::fmt::Debug for RawOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawOut").field("count", &self.count).finish_non_exhaustive()
    }
}

/// A secret as the core expects it: lower half first.
pub(crate) fn key_of(secret: u128) -> [u64; 2] {
    [secret as u64, (secret >> 64) as u64]
}
