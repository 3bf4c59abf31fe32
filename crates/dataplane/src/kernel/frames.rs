//! Runs frames through the XDP and TC programs by `BPF_PROG_RUN`, for tests. Copies sent by TC really leave by the interfaces of this
//! network namespace.

use super::error::KernelError;
use super::handover::Handover;
use super::layout::{SHELL_COUNTS, Scratch};
use super::program::Kernel;
use crate::program::{SoftProgram, Verdict};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A frame that arrives at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The frame from its destination MAC address on.
    pub frame: &'a [u8],
    /// The interface's index; 1 is loopback.
    pub interface: u32,
    /// TC: segment size in bytes of a frame merged by GRO; 0 if not merged.
    pub merged: u32,
    /// TC: the interface has summed it.
    pub summed: bool,
}

impl<'a> Arrival<'a> {
    /// A frame from loopback.
    #[must_use]
    pub fn new(frame: &'a [u8]) -> Self {
        Self { frame, interface: 1, merged: 0, summed: false }
    }
}

/// What a program does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes on to the stack.
    Pass,
    /// It is dropped.
    Drop,
    /// It is transmitted in its current form.
    Transmit,
}

/// The result for a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<V> {
    /// What happens to the frame.
    pub action: Action,
    /// The frame after the program.
    pub frame: Vec<u8>,
    /// The datagram passed to the core and its outcome.
    pub asked: Option<(Vec<u8>, V)>,
}

/// The core was not called.
const UNASKED: u32 = u32::MAX;
/// Room for a frame that was made longer.
const FRAME_MAX: usize = 4096;

impl<P: SoftProgram> Kernel<P> {
    /// Runs a frame through `mf_xdp` at a given time, or [`NOW`](super::NOW).
    ///
    /// # Errors
    /// If the program could not be run.
    pub fn run_xdp(&mut self, now_ns: u64, arrival: &Arrival<'_>) -> Result<Departure<P::Verdict>, KernelError> {
        let bytes = arrival.frame.len() as u32;
        let context = [0, bytes, 0, arrival.interface, 0, 0]; // struct xdp_md
        // XDP_DROP, XDP_PASS, XDP_TX and XDP_REDIRECT.
        let actions = [(1, Action::Drop), (2, Action::Pass), (3, Action::Transmit), (4, Action::Transmit)];
        self.run(now_ns, arrival, &context, 0, |kernel| kernel.programs().xdp.as_fd(), &actions)
    }

    /// Runs a frame through `mf_tc`. The frame in [`Departure`] is the last answer; the others are sent.
    ///
    /// # Errors
    /// If the program could not be run.
    pub fn run_tc(&mut self, now_ns: u64, arrival: &Arrival<'_>) -> Result<Departure<P::Verdict>, KernelError> {
        let mut context = [0; 48]; // struct __sk_buff
        context[10] = arrival.interface;
        context[41] = arrival.merged.min(1) * 2;
        context[44] = arrival.merged;
        let flags = if arrival.summed { libbpf_sys::BPF_F_TEST_SKB_CHECKSUM_COMPLETE } else { 0 };
        let actions = [(u32::MAX, Action::Pass), (2, Action::Drop), (7, Action::Transmit)];
        self.run(now_ns, arrival, &context, flags, |kernel| kernel.programs().tc.as_fd(), &actions)
    }

    fn run(
        &mut self,
        now_ns: u64,
        arrival: &Arrival<'_>,
        context: &[u32],
        flags: u32,
        program: impl Fn(&Self) -> BorrowedFd<'_>,
        actions: &[(u32, Action)],
    ) -> Result<Departure<P::Verdict>, KernelError> {
        // SAFETY: programs only read it, and none runs.
        unsafe { (*self.arena().control()).now_ns = now_ns };
        self.each_scratch(|scratch| scratch.verdict = UNASKED);
        let mut frame = vec![0; FRAME_MAX];
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: arrival.frame.as_ptr().cast(),
            data_size_in: arrival.frame.len() as u32,
            data_out: frame.as_mut_ptr().cast(),
            data_size_out: frame.len() as u32,
            ctx_in: context.as_ptr().cast(),
            ctx_size_in: size_of_val(context) as u32,
            repeat: 1,
            flags,
            ..Default::default()
        };
        // SAFETY: the kernel reads and writes the given sizes, and all outlive the call.
        let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program(self).as_raw_fd(), &raw mut options) };
        if result < 0 {
            return Err(KernelError::io("run a frame through a shell")(io::Error::from_raw_os_error(-result)));
        }
        frame.truncate(options.data_size_out as usize);
        let mut asked = None;
        self.each_scratch(|scratch| asked = asked.take().or_else(|| of_scratch(scratch)));
        match actions.iter().find(|(number, _)| *number == options.retval) {
            Some(&(_, action)) => Ok(Departure { action, frame, asked }),
            None => Err(KernelError::Refused(format!("a shell said {}", options.retval))),
        }
    }

    fn each_scratch(&mut self, mut act: impl FnMut(&mut Scratch)) {
        for scratch in 1..self.arena().scratches() {
            // SAFETY: the scratch's pages exist, and no program runs.
            act(unsafe { &mut *self.arena().scratch(scratch) });
        }
    }

    /// The ring of datagrams for user space.
    ///
    /// # Errors
    /// If the ring cannot be opened.
    pub fn open_handover(&self) -> Result<Handover, KernelError> {
        Handover::new(&self.programs().handover)
    }

    /// A count of the XDP and TC programs by its name.
    ///
    /// # Panics
    /// If there is no such count.
    #[must_use]
    pub fn shell_count(&self, name: &str) -> u64 {
        let place = SHELL_COUNTS.iter().position(|&(known, _)| known == name);
        self.shell_counts()[place.unwrap_or_else(|| panic!("the shells count no {name}"))]
    }
}

fn of_scratch<V: Verdict>(scratch: &Scratch) -> Option<(Vec<u8>, V)> {
    let verdict = *V::ALL.get(scratch.verdict as usize)?;
    Some((scratch.data.get(..scratch.datagram.length as usize)?.to_vec(), verdict))
}
