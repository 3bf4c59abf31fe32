//! What a frame costs the shell and the program together: `dataplane/xdp/bench.h`.

use super::error::KernelError;
use super::layout::STATE_AT;
use super::object;
use super::program::Kernel;
use crate::program::SoftProgram;
use crate::reads::ReadsProgram;
use crate::replicas::ReplicasProgram;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of a frame that forwarding changes: Ethernet, IPv4 and UDP headers, and the first 96 bytes of the datagram.
const BEGINNING: usize = 138;
/// Bytes from one beginning to the next.
const BEGINNING_ROOM: usize = 144;
/// `XDP_TX`
const TRANSMIT: u32 = 3;

/// A program that has a benchmark of frames.
pub trait Benched: SoftProgram {
    /// What the benchmark was compiled to.
    const BENCHMARK: &'static [u8];
}

impl Benched for ReadsProgram {
    const BENCHMARK: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reads_bench.bpf.o"));
}

impl Benched for ReplicasProgram {
    const BENCHMARK: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/replicas_bench.bpf.o"));
}

/// A loaded benchmark of frames, for a program that forwards.
#[derive(Debug)]
pub struct FrameBench(OwnedFd);

/// What is done with each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It is forwarded by XDP.
    Forward,
    /// It is put in its place, as before forwarding, and left there.
    Nothing,
}

impl<P: Benched> Kernel<P> {
    /// Loads the benchmark.
    ///
    /// # Errors
    /// Where the kernel or the caller's privileges do not allow it.
    pub fn frame_bench(&self) -> Result<FrameBench, KernelError> {
        Ok(FrameBench(object::load_one(P::BENCHMARK, "mf_bench", self.arena(), &self.programs().handover)?))
    }

    /// Bytes of arena that [`new`](Self::new) must be asked for in addition, for a benchmark of so many frames.
    #[must_use]
    pub fn bytes_of_bench(frames: usize) -> u64 {
        (frames * BEGINNING_ROOM) as u64
    }

    /// Does the same work with each frame, at one point in time or [`NOW`](super::NOW), and returns the nanoseconds that all of them took. The frames are equal but for their first
    /// 138 bytes, and have IPv4 without VLAN tags.
    ///
    /// # Errors
    /// Where they are shorter, find no room in the arena, or one was not forwarded.
    pub fn bench_frames(
        &mut self,
        bench: &FrameBench,
        work: Work,
        now_ns: u64,
        frames: &[Vec<u8>],
    ) -> Result<u64, KernelError> {
        let refused = |what: &str| KernelError::Refused(format!("{what} of a benchmark"));
        let at = STATE_AT + self.state_bytes();
        if at + Self::bytes_of_bench(frames.len()) > self.arena().bytes() {
            return Err(refused("no room for the frames"));
        }
        for (i, frame) in frames.iter().enumerate() {
            let beginning = frame.get(..BEGINNING).ok_or_else(|| refused("a frame is too short"))?;
            // SAFETY: within the arena, behind the state, where no program writes.
            unsafe {
                let place = self.arena().offset(at + Self::bytes_of_bench(i));
                place.copy_from_nonoverlapping(beginning.as_ptr(), BEGINNING);
            }
        }
        let control = self.arena().control();
        // SAFETY: no call is under way.
        unsafe {
            (*control).bench_at = at;
            (*control).bench_count = frames.len() as u32;
            (*control).now_ns = now_ns;
            (*control).call = if work == Work::Forward { TRANSMIT } else { 0 };
        }
        let frame = frames.first().ok_or_else(|| refused("no frame"))?;
        object::run(bench.0.as_fd(), frame).map_err(KernelError::io("run a benchmark"))?;
        // SAFETY: as above.
        let (others, ns) = unsafe { ((*control).verdict, (*control).bench_ns) };
        if others == 0 { Ok(ns) } else { Err(refused(&format!("{others} frames were not forwarded: not a result"))) }
    }
}
