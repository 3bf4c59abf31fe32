//! The arena's layout: `dataplane/xdp/arena.h`, offset for offset. A test asks the C compiler.

use crate::ffi::{RawDatagram, RawOut, RawPurge};
use midflight_wire::Address;

pub(super) const CONTROL_AT: u64 = 0x0000_1000;
pub(super) const DESKS_AT: u64 = 0x0001_0000;
pub(super) const DESK_BYTES: u64 = 0x0001_0000;
/// User space's, and one for each of 256 CPUs.
pub(super) const DESKS: u64 = 257;
pub(super) const WAYS_AT: u64 = 0x0110_0000;
pub(super) const WAYS: u64 = 16384;
pub(super) const STATE_AT: u64 = 0x0200_0000;
pub(super) const ADDRESSES_MAX: usize = 64;
pub(super) const UNSUMMED_MAX: usize = 64;
/// Bytes of datagram that a desk holds.
pub(super) const DESK_DATA: usize = 1536;

/// What user space asks of `mf_call`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Call {
    Packet,
    Tick,
    Bench,
    Purge,
}

/// `struct mf_control`.
#[repr(C)]
pub(super) struct Control {
    pub lock: u32,
    pub apart: [u32; 15],
    pub port: u16,
    pub addresses: u16,
    pub generic: u32,
    pub address: [Address; ADDRESSES_MAX],
    pub unsummed: [u32; UNSUMMED_MAX],
    pub ways_salt: u64,
    pub call: u32,
    pub verdict: u32,
    pub now_ns: u64,
    pub bench_at: u64,
    pub bench_count: u32,
    pub reserved: u32,
    pub bench_ns: u64,
    pub purge: RawPurge,
}

/// Names and meanings of `struct mf_shell_counts`, in its order: `MF_SHELL_COUNTS`.
pub const SHELL_COUNTS: [(&str, &str); 17] = [
    ("xdp_taken", "datagrams that XDP gave to the core"),
    ("xdp_answered", "answers that XDP sent"),
    ("tc_taken", "datagrams that TC gave to the core: those that may owe several answers"),
    ("tc_answered", "answers that TC sent"),
    ("handed_over", "answers left to user space: cookies, and those for which no way was known"),
    ("hand_over_failed", "answers lost: no room to leave them to user space"),
    ("send_failed", "answers lost: the frame could not be made"),
    ("asserted", "answers lost: the core owed what it had said it would not; a bug"),
    ("passed_source", "datagrams from an address or port that nobody can have there, passed up"),
    ("passed_fragment", "IP fragments to our port or of unknown port, passed up"),
    ("passed_options", "datagrams with IP options or extension headers, passed up"),
    ("passed_checksum", "datagrams whose checksum the shell cannot confirm, passed up"),
    ("passed_length", "datagrams whose lengths disagree, passed up"),
    ("passed_tags", "datagrams in frames with more VLAN tags than two, passed up"),
    ("passed_merged", "datagrams that GRO merged into one before TC saw them, passed up"),
    ("passed_contended", "datagrams that found the queue locked for too long, passed up"),
    ("called", "datagrams that user space brought"),
];

/// `struct mf_way`.
#[repr(C, align(8))]
pub(super) struct Way {
    pub peer: Address,
    pub interface: u32,
    pub own: [u8; 16],
    pub macs: [u8; 12],
    pub tags: u16,
    pub kind: u16,
    pub tag: [u32; 2],
}

/// `struct mf_desk`.
#[repr(C)]
pub(super) struct Desk {
    pub datagram: RawDatagram,
    pub way: Way,
    pub verdict: u32,
    pub reserved: u32,
    pub data: [u8; DESK_DATA],
    pub counts: [u64; SHELL_COUNTS.len()],
    pub other: Way,
    pub out: RawOut,
}

const _: () = {
    assert!(size_of::<Desk>() as u64 <= DESK_BYTES);
    assert!(DESKS_AT + DESKS * DESK_BYTES <= WAYS_AT);
    assert!(WAYS_AT + WAYS * size_of::<Way>() as u64 <= STATE_AT);
    assert!(CONTROL_AT + size_of::<Control>() as u64 <= DESKS_AT);
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
        let mut of_c = [0; 44];
        // SAFETY: it writes at most as many numbers.
        let count = unsafe { mf_arena_layout(of_c.as_mut_ptr()) } as usize;
        let places = [CONTROL_AT, DESKS_AT, DESK_BYTES, DESKS, WAYS_AT, WAYS, STATE_AT].map(|n| n as usize);
        let bounds = [ADDRESSES_MAX, UNSUMMED_MAX];
        let calls = [Call::Packet, Call::Tick, Call::Bench, Call::Purge].map(|call| call as usize);
        let control = [
            size_of::<Control>(),
            offset_of!(Control, lock),
            offset_of!(Control, port),
            offset_of!(Control, addresses),
            offset_of!(Control, generic),
            offset_of!(Control, address),
            offset_of!(Control, unsummed),
            offset_of!(Control, ways_salt),
            offset_of!(Control, call),
            offset_of!(Control, verdict),
            offset_of!(Control, now_ns),
            offset_of!(Control, bench_at),
            offset_of!(Control, bench_count),
            offset_of!(Control, bench_ns),
            offset_of!(Control, purge),
        ];
        let way = [
            size_of::<Way>(),
            offset_of!(Way, interface),
            offset_of!(Way, own),
            offset_of!(Way, macs),
            offset_of!(Way, tags),
            offset_of!(Way, kind),
            offset_of!(Way, tag),
        ];
        let desk = [
            size_of::<Desk>(),
            offset_of!(Desk, way),
            offset_of!(Desk, verdict),
            offset_of!(Desk, data),
            offset_of!(Desk, counts),
            offset_of!(Desk, other),
            offset_of!(Desk, out),
        ];
        let of_rust = places.into_iter().chain(bounds).chain(calls).chain(control).chain(way).chain(desk);
        assert_eq!(of_c[..count], of_rust.map(|n| n as u64).collect::<Vec<_>>());
        assert_eq!(offset_of!(Desk, counts) - offset_of!(Desk, data), DESK_DATA);
    }

    #[test]
    fn shells_count_what_arena_h_says() {
        let text = |number| {
            // SAFETY: it returns a text that ends in NUL and lives for ever, or null.
            unsafe { mf_shell_count(number).as_ref().map(|text| CStr::from_ptr(text).to_str().unwrap_or_default()) }
        };
        let of_c: Vec<_> = (0..).map_while(text).collect();
        let of_rust: Vec<_> = SHELL_COUNTS.iter().flat_map(|&(name, meaning)| [name, meaning]).collect();
        assert_eq!(of_c, of_rust);
    }
}
