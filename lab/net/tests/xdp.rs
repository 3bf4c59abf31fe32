//! Hosts receive frames that the switch's XDP program sends back. Needs root, iproute2 and a kernel with BPF; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{about, ask, received_of};
use midflight_net::testing::{labs_work, skip};
use midflight_net::{Lab, LabError, Options, Place, SWITCH_IPV4};
use rustix::net::netdevice::name_to_index;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/bpf.h
mod uapi {
    pub(super) const PROG_LOAD: libc::c_long = 5;
    pub(super) const LINK_CREATE: libc::c_long = 28;
    pub(super) const PROG_TYPE_XDP: u32 = 6;
    pub(super) const ATTACH_XDP: u32 = 37;
    pub(super) const XDP_NATIVE: u32 = 1 << 2;
}

/// Code, registers (source in the upper half), offset, operand.
const fn op(code: u8, registers: u8, offset: i16, operand: i32) -> u64 {
    code as u64 | (registers as u64) << 8 | (offset as u16 as u64) << 16 | (operand as u32 as u64) << 32
}

#[derive(Clone, Copy, Debug)]
enum Back {
    Transmit,
    Redirect,
}

/// Returns UDP over IPv4, without a checksum, and passes everything else.
fn reflector(back: Back) -> Vec<u64> {
    const LOAD: [u8; 5] = [0, 0x71, 0x69, 0, 0x61]; // by size in bytes: r = *(r + offset)
    const STORE: [u8; 5] = [0, 0x73, 0x6b, 0, 0x63];
    let load = |to: u8, size: usize, from: u8, offset| op(LOAD[size], from << 4 | to, offset, 0);
    let store = |from: u8, size: usize, to: u8, offset| op(STORE[size], from << 4 | to, offset, 0);
    let set = |to: u8, value| op(0xb7, to, 0, value);
    let exit = op(0x95, 0, 0, 0);
    // (size, offset, offset): swaps Ethernet, IPv4 and UDP addresses. r2 = data, r4 and r5 are scratch.
    let swaps = [(4, 0, 6), (2, 4, 10), (4, 26, 30), (2, 34, 36)];
    let swaps = swaps.into_iter().flat_map(|(size, a, b)| {
        [load(4, size, 2, a), load(5, size, 2, b), store(4, size, 2, b), store(5, size, 2, a)]
    });
    let mut body: Vec<u64> = swaps.chain([set(4, 0), store(4, 2, 2, 40)]).collect();
    match back {
        Back::Transmit => body.extend([set(0, 3), exit]), // XDP_TX
        // bpf_redirect(context->ingress_ifindex, 0)
        Back::Redirect => body.extend([load(1, 4, 6, 12), set(2, 0), op(0x85, 0, 0, 23), exit]),
    }
    let to_pass = |before: i16| i16::try_from(body.len()).unwrap() + before;
    // r6 = context, r3 = end.
    let mut program = vec![op(0xbf, 0x16, 0, 0), load(3, 4, 1, 4), load(2, 4, 1, 0), op(0xbf, 0x24, 0, 0)];
    program.extend([op(0x07, 4, 0, 42), op(0x2d, 0x34, to_pass(4), 0)]); // shorter than the three headers
    program.extend([load(4, 2, 2, 12), op(0x55, 4, to_pass(2), 0x0800_u16.to_be().into())]); // not IPv4
    program.extend([load(4, 1, 2, 23), op(0x55, 4, to_pass(0), 17)]); // not UDP
    program.extend(body);
    program.extend([set(0, 2), exit]); // XDP_PASS
    program
}

fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `attributes` and what they point to; all outlive the call, which returns a new descriptor.
    unsafe {
        match libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(i32::try_from(fd).unwrap())),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn load(program: &[u64]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        kind: u32,
        instructions: u32,
        program: u64,
        license: u64,
    }
    let (instructions, license) = (u32::try_from(program.len()).unwrap(), c"Apache-2.0".as_ptr() as u64);
    bpf(uapi::PROG_LOAD, &Load { kind: uapi::PROG_TYPE_XDP, instructions, program: program.as_ptr() as u64, license })
}

/// Attaches until the descriptor is closed. No fallback to generic mode, which would not test the host's end.
fn attach(program: &OwnedFd, interface: &str) -> io::Result<OwnedFd> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let index = name_to_index(&socket, interface)?;
    let program = u32::try_from(program.as_raw_fd()).unwrap();
    bpf(uapi::LINK_CREATE, &[program, index, uapi::ATTACH_XDP, uapi::XDP_NATIVE])
}

struct Reflecting {
    lab: Lab,
    /// Closing these detaches the programs.
    _attached: Vec<OwnedFd>,
}

/// A port without a listener.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(SWITCH_IPV4), 7);

impl Reflecting {
    fn new(options: &Options, back: Back) -> Option<Self> {
        if !labs_work() {
            return None;
        }
        let program = match load(&reflector(back)) {
            Err(why) if why.raw_os_error() == Some(libc::ENOSYS) => {
                skip(format!("no BPF: {why}"));
                return None;
            }
            program => program.unwrap(),
        };
        let lab = match Lab::up(options) {
            Err(why @ LabError::NoLoss { .. }) => {
                skip(why);
                return None;
            }
            lab => lab.unwrap(),
        };
        let attached = lab.within(Place::Switch, || {
            lab.interfaces().iter().map(|interface| attach(&program, interface)).collect::<io::Result<Vec<_>>>()
        });
        let attached = attached.unwrap().unwrap();
        Some(Self { lab, _attached: attached })
    }

    fn socket(&self, host: usize) -> UdpSocket {
        self.lab.within(Place::Host(host), || UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap()
    }

    #[track_caller]
    fn answers_all(&self) {
        for host in 0..self.lab.hosts().len() {
            assert_eq!(ask(&self.socket(host), NOBODY, b"echo"), Some((b"echo".to_vec(), NOBODY)), "host{host}");
        }
    }
}

#[test]
fn what_native_xdp_transmits_arrives() {
    let Some(reflecting) = Reflecting::new(&Options::temporary(2), Back::Transmit) else { return };
    reflecting.answers_all();
}

#[test]
fn what_native_xdp_redirects_arrives_also_without_xdp_at_the_hosts() {
    for xdp in [true, false] {
        let Some(reflecting) = Reflecting::new(&Options::temporary(2).xdp(xdp), Back::Redirect) else { return };
        reflecting.answers_all();
    }
}

#[test]
fn what_native_xdp_sends_is_lost_as_anything_else() {
    const SENT: u32 = 10_000;
    let options = Options::temporary(1).loss("20%".parse().unwrap());
    let Some(reflecting) = Reflecting::new(&options, Back::Transmit) else { return };
    let socket = reflecting.socket(0);
    let got = received_of(SENT, &socket, &socket, NOBODY);
    assert!(about(0.8 * 0.8, got, SENT), "{got} of {SENT} came back");
}
