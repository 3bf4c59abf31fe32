//! The arena's layout, as in `dataplane/xdp/arena.h`. A test compares each offset with the C compiler's.

use crate::raw::{ORDER_BYTES, RawDatagram, RawOut};
use midflight_wire::Address;

pub(super) const CONTROL_AT: u64 = 0x0000_1000;
pub(super) const SCRATCH_AT: u64 = 0x0001_0000;
pub(super) const SCRATCH_BYTES: u64 = 0x0001_0000;
/// User space's, and one for each of 256 CPUs.
pub(super) const SCRATCHES: u64 = 257;
pub(super) const NEXT_HOPS_AT: u64 = 0x0110_0000;
pub(super) const NEXT_HOPS: u64 = 16384;
pub(super) const STATE_AT: u64 = 0x0200_0000;
pub(super) const ADDRESSES_MAX: usize = 64;
pub(super) const UNSUMMED_MAX: usize = 64;
pub(super) const INTERFACES_MAX: usize = 64;
/// Bytes of datagram that a scratch area holds.
pub(super) const SCRATCH_DATA: usize = 1536;

/// What user space can request from `mf_call`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Call {
    Packet,
    Tick,
    Order,
}

/// `struct mf_control`.
#[repr(C)]
pub(super) struct Control {
    pub lock: u32,
    pub padding: [u32; 15],
    pub port: u16,
    pub addresses: u16,
    pub generic: u32,
    pub address: [Address; ADDRESSES_MAX],
    pub unsummed: [u32; UNSUMMED_MAX],
    pub interface: [u32; INTERFACES_MAX],
    pub next_hop_salt: u64,
    pub call: u32,
    pub verdict: u32,
    pub now_ns: u64,
    pub bench_at: u64,
    pub bench_count: u32,
    pub reserved: u32,
    pub bench_ns: u64,
    pub order: [u64; ORDER_BYTES / 8],
}

/// Names and meanings of `struct mf_shell_counts`, in its order: `MF_SHELL_COUNTS`.
pub const SHELL_COUNTS: [(&str, &str); 19] = [
    ("xdp_taken", "datagrams that XDP gave to the program"),
    ("xdp_answered", "answers that XDP sent"),
    ("tc_taken", "datagrams that TC gave to the program: those that may owe several answers"),
    ("tc_answered", "answers that TC sent"),
    ("forwarded", "datagrams sent on to another address than their sender's"),
    ("handed_over", "answers left to user space: cookies, and those whose next hop is not known"),
    ("hand_over_failed", "answers lost: no room to leave them to user space"),
    ("dropped_checksum", "datagrams to forward that were found damaged when all of them was needed"),
    ("send_failed", "answers lost: the frame could not be made"),
    ("asserted", "answers lost: the program owed more than it had announced; a bug"),
    ("passed_source", "datagrams from an address or port that no sender can have, passed up"),
    ("passed_fragment", "IP fragments to our port or of unknown port, passed up"),
    ("passed_options", "datagrams with IP options or extension headers, passed up"),
    ("passed_checksum", "datagrams whose checksum the shell cannot confirm, passed up"),
    ("passed_length", "datagrams whose lengths disagree, passed up"),
    ("passed_tags", "datagrams in frames with more VLAN tags than two, passed up"),
    ("passed_merged", "datagrams that GRO merged into one before TC saw them, passed up"),
    ("passed_contended", "datagrams that found the program locked for too long, passed up"),
    ("called", "datagrams that user space brought"),
];

/// `struct mf_next_hop`.
#[repr(C, align(8))]
pub(super) struct NextHop {
    pub peer: Address,
    pub interface: u32,
    pub own: [u8; 16],
    pub macs: [u8; 12],
    pub tags: u16,
    pub kind: u16,
    pub tag: [u32; 2],
}

/// `struct mf_scratch`.
#[repr(C)]
pub(super) struct Scratch {
    pub datagram: RawDatagram,
    pub back: NextHop,
    pub verdict: u32,
    pub is_whole: u16,
    pub whole_check: u16,
    pub copied: u32,
    pub reserved: u32,
    pub data: [u8; SCRATCH_DATA],
    pub counts: [u64; SHELL_COUNTS.len()],
    pub other: NextHop,
    pub out: RawOut,
}

const _: () = {
    assert!(size_of::<Scratch>() as u64 <= SCRATCH_BYTES);
    assert!(SCRATCH_AT + SCRATCHES * SCRATCH_BYTES <= NEXT_HOPS_AT);
    assert!(NEXT_HOPS_AT + NEXT_HOPS * size_of::<NextHop>() as u64 <= STATE_AT);
    assert!(CONTROL_AT + size_of::<Control>() as u64 <= SCRATCH_AT);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CStr, c_char};
    use std::mem::offset_of;

    unsafe extern "C" {
        fn mf_arena_layout(layout: *mut u64) -> u32;
        fn mf_shell_count(number: u32) -> *const c_char;
    }

    #[test]
    fn the_arena_is_laid_out_as_arena_h_says() {
        let mut of_c = [0; 48];
        // SAFETY: it writes at most this many numbers.
        let count = unsafe { mf_arena_layout(of_c.as_mut_ptr()) } as usize;
        let places =
            [CONTROL_AT, SCRATCH_AT, SCRATCH_BYTES, SCRATCHES, NEXT_HOPS_AT, NEXT_HOPS, STATE_AT].map(|n| n as usize);
        let bounds = [ADDRESSES_MAX, UNSUMMED_MAX, INTERFACES_MAX];
        let calls = [Call::Packet, Call::Tick, Call::Order].map(|call| call as usize);
        let control = [
            size_of::<Control>(),
            offset_of!(Control, lock),
            offset_of!(Control, port),
            offset_of!(Control, addresses),
            offset_of!(Control, generic),
            offset_of!(Control, address),
            offset_of!(Control, unsummed),
            offset_of!(Control, interface),
            offset_of!(Control, next_hop_salt),
            offset_of!(Control, call),
            offset_of!(Control, verdict),
            offset_of!(Control, now_ns),
            offset_of!(Control, bench_at),
            offset_of!(Control, bench_count),
            offset_of!(Control, bench_ns),
            offset_of!(Control, order),
        ];
        let next_hop = [
            size_of::<NextHop>(),
            offset_of!(NextHop, interface),
            offset_of!(NextHop, own),
            offset_of!(NextHop, macs),
            offset_of!(NextHop, tags),
            offset_of!(NextHop, kind),
            offset_of!(NextHop, tag),
        ];
        let scratch = [
            size_of::<Scratch>(),
            offset_of!(Scratch, back),
            offset_of!(Scratch, verdict),
            offset_of!(Scratch, is_whole),
            offset_of!(Scratch, copied),
            offset_of!(Scratch, data),
            offset_of!(Scratch, counts),
            offset_of!(Scratch, other),
            offset_of!(Scratch, out),
        ];
        let of_rust = places.into_iter().chain(bounds).chain(calls).chain(control).chain(next_hop).chain(scratch);
        assert_eq!(of_c[..count], of_rust.map(|n| n as u64).collect::<Vec<_>>());
        assert_eq!(offset_of!(Scratch, counts) - offset_of!(Scratch, data), SCRATCH_DATA);
    }

    #[test]
    fn shells_count_what_arena_h_says() {
        let text = |number| {
            // SAFETY: it returns a static NUL-terminated text, or null.
            unsafe { mf_shell_count(number).as_ref().map(|text| CStr::from_ptr(text).to_str().unwrap_or_default()) }
        };
        let of_c: Vec<_> = (0..).map_while(text).collect();
        let of_rust: Vec<_> = SHELL_COUNTS.iter().flat_map(|&(name, meaning)| [name, meaning]).collect();
        assert_eq!(of_c, of_rust);
    }
}
