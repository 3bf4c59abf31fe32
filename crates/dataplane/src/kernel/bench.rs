//! Benchmarks per packet and per frame: `dataplane/xdp/bench.h`.

use super::error::KernelError;
use super::layout::STATE_AT;
use super::object;
use super::program::Kernel;
use crate::cache::CacheProgram;
use crate::program::SoftProgram;
use crate::raw::RawDatagram;
use crate::store::StoreProgram;
use crate::tasks::TasksProgram;
use midflight_wire::Address;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of a frame that forwarding changes: Ethernet, IPv4 and UDP headers, and the first 96 bytes of the datagram.
const BEGINNING: usize = 138;
/// Distance of two beginnings in bytes.
const BEGINNING_ROOM: usize = 144;
/// `XDP_TX`
const TRANSMIT: u32 = 3;
/// `BPF_PROG_RUN` requires a frame, which the benchmark of packets does not read.
const FRAME: [u8; 64] = [0; 64];

/// A program that has benchmarks.
pub trait Benched: SoftProgram {
    /// Its BPF object with the benchmarks.
    const BENCHMARK: &'static [u8];
}

impl Benched for TasksProgram {
    const BENCHMARK: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tasks_bench.bpf.o"));
}

impl Benched for StoreProgram {
    const BENCHMARK: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/store_bench.bpf.o"));
}

impl Benched for CacheProgram {
    const BENCHMARK: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cache_bench.bpf.o"));
}

/// A packet of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct BenchPacket<'a> {
    /// Address of the sender.
    pub from: Address,
    /// Bytes of the datagram.
    pub datagram: &'a [u8],
}

/// Work per frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// XDP forwards it.
    Forward,
    /// It is copied into place as before forwarding, and left there.
    Nothing,
}

/// The benchmark programs loaded so far: each at its first run.
#[derive(Debug, Default)]
pub(super) struct Benches {
    packets: Option<OwnedFd>,
    frames: Option<OwnedFd>,
    /// Datagrams after the state, from the last benchmark of packets.
    datagrams: usize,
}

impl<P: Benched> Kernel<P> {
    /// Handles packets one after the other at one point in time. Returns the total in nanoseconds, including the lock, as measured by the
    /// kernel.
    ///
    /// # Errors
    /// If they exceed the room requested from [`new`](Self::new), one of them was refused, or the benchmark cannot be loaded.
    pub fn bench_packets(&mut self, now_ns: u64, packets: &[BenchPacket<'_>]) -> Result<u64, KernelError> {
        self.benches.datagrams = 0;
        let at = self.bench_at();
        let mut data_at = at + size_of::<RawDatagram>() as u64 * packets.len() as u64;
        for (i, packet) in packets.iter().enumerate() {
            let end = data_at + packet.datagram.len() as u64;
            if end > self.arena().bytes() {
                return Err(refused("no room for the packets"));
            }
            let length = packet.datagram.len();
            // SAFETY: within the arena, after the state, where no program writes.
            unsafe {
                let data = self.arena().offset(data_at);
                data.copy_from_nonoverlapping(packet.datagram.as_ptr(), length);
                let raw = RawDatagram { from: packet.from, length: length as u32, data };
                self.arena().offset(at).cast::<RawDatagram>().add(i).write(raw);
            }
            data_at = end.next_multiple_of(8);
        }
        self.benches.datagrams = packets.len();
        let bench = match self.benches.packets.take() {
            Some(bench) => bench,
            None => self.load_bench("mf_bench_packets")?,
        };
        let ended = self.run_bench(&bench, &FRAME, now_ns, packets.len());
        self.benches.packets = Some(bench);
        match ended? {
            (ns, 0) => Ok(ns),
            (_, others) => Err(refused(&format!("{others} packets were refused: not a result"))),
        }
    }

    /// The packets of the last [`bench_packets`](Self::bench_packets), as rewritten by the program.
    #[must_use]
    pub fn benched(&self) -> Vec<Vec<u8>> {
        let read = |i: usize| {
            // SAFETY: `bench_packets` has written this many, and no call is in progress.
            let raw = unsafe { &*self.arena().offset(self.bench_at()).cast::<RawDatagram>().add(i) };
            // SAFETY: it is in the arena, with this length.
            unsafe { std::slice::from_raw_parts(raw.data, raw.length as usize) }.to_vec()
        };
        (0..self.benches.datagrams).map(read).collect()
    }

    /// Extra arena bytes to request from [`new`](Self::new) for a benchmark of this many frames.
    #[must_use]
    pub fn bytes_of_bench(frames: usize) -> u64 {
        (frames * BEGINNING_ROOM) as u64
    }

    /// Does the same work with each frame, at one point in time or [`NOW`](super::NOW). Returns the total in nanoseconds. The frames may
    /// differ in their first 138 bytes only, and have IPv4 without VLAN tags.
    ///
    /// # Errors
    /// If they are shorter, find no room in the arena, one was not forwarded, or the benchmark cannot be loaded.
    pub fn bench_frames(&mut self, work: Work, now_ns: u64, frames: &[Vec<u8>]) -> Result<u64, KernelError> {
        self.benches.datagrams = 0;
        let at = self.bench_at();
        if at + Self::bytes_of_bench(frames.len()) > self.arena().bytes() {
            return Err(refused("no room for the frames"));
        }
        for (i, frame) in frames.iter().enumerate() {
            let beginning = frame.get(..BEGINNING).ok_or_else(|| refused("a frame is too short"))?;
            // SAFETY: within the arena, after the state, where no program writes.
            unsafe {
                let place = self.arena().offset(at + Self::bytes_of_bench(i));
                place.copy_from_nonoverlapping(beginning.as_ptr(), BEGINNING);
            }
        }
        let frame = frames.first().ok_or_else(|| refused("no frame"))?;
        // SAFETY: no call is in progress.
        unsafe { (*self.arena().control()).call = if work == Work::Forward { TRANSMIT } else { 0 } };
        let bench = match self.benches.frames.take() {
            Some(bench) => bench,
            None => self.load_bench("mf_bench_frames")?,
        };
        let ended = self.run_bench(&bench, frame, now_ns, frames.len());
        self.benches.frames = Some(bench);
        match ended? {
            (ns, 0) => Ok(ns),
            (_, others) => Err(refused(&format!("{others} frames were not forwarded: not a result"))),
        }
    }

    fn load_bench(&self, name: &str) -> Result<OwnedFd, KernelError> {
        object::load_one(P::BENCHMARK, name, self.arena(), &self.programs().handover)
    }

    fn bench_at(&self) -> u64 {
        STATE_AT + self.state_bytes()
    }

    /// Returns its nanoseconds, and how many packets or frames had another outcome than expected.
    fn run_bench(
        &mut self,
        bench: &OwnedFd,
        frame: &[u8],
        now_ns: u64,
        count: usize,
    ) -> Result<(u64, u32), KernelError> {
        let (control, at) = (self.arena().control(), self.bench_at());
        // SAFETY: no call is in progress.
        unsafe {
            (*control).bench_at = at;
            (*control).bench_count = count as u32;
            (*control).now_ns = now_ns;
        }
        object::run(bench.as_fd(), frame).map_err(KernelError::io("run a benchmark"))?;
        // SAFETY: as above.
        Ok(unsafe { ((*control).bench_ns, (*control).verdict) })
    }
}

fn refused(what: &str) -> KernelError {
    KernelError::Refused(format!("in a benchmark, {what}"))
}
