//! A program in the kernel, for callers in user space.

use super::arena::Arena;
use super::bench::Benches;
use super::error::KernelError;
use super::kept::Kept;
use super::layout::{
    ADDRESSES_MAX, Call, INTERFACES_MAX, NEXT_HOPS, NEXT_HOPS_AT, NextHop, SCRATCH_DATA, SHELL_COUNTS, UNSUMMED_MAX,
};
use super::object::{self, Programs};
use super::pins::Pins;
use crate::native::check_state;
use crate::program::{Called, Engine, SoftProgram, Verdict};
use crate::raw::{ORDER_BYTES, RawDatagram, key_of};
use crate::tasks::TasksProgram;
use crate::{Out, XdpMode};
use midflight_wire::Address;
use siphasher::sip::SipHasher24;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{Ordering, fence};

/// Stands for the kernel's monotonic clock.
pub const NOW: u64 = u64::MAX;

/// XDP's return value after a successful call.
const XDP_PASS: u32 = 2;
/// `BPF_PROG_RUN` requires a frame, though `mf_call` does not read it.
const FRAME: [u8; 64] = [0; 64];

/// A program in the kernel.
pub struct Kernel<P> {
    programs: Programs,
    arena: Arena,
    state_bytes: u64,
    pub(super) benches: Benches,
    program: PhantomData<P>,
}

/// The cluster's task queue in the kernel.
pub type KernelTasks = Kernel<TasksProgram>;

impl<P> std::fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("arena", &self.arena).finish_non_exhaustive()
    }
}

/// The salt of the next hop cache: derived from the program's secret without revealing it.
fn next_hop_salt(secret: u128) -> u64 {
    let [low, high] = key_of(secret);
    SipHasher24::new_with_keys(low, high).hash(b"next hops")
}

impl<P: SoftProgram> Kernel<P> {
    /// An empty state in the kernel, with `extra_bytes` of arena after it for benchmarks.
    ///
    /// # Errors
    /// If a bound is violated, or the kernel, its age, memory or the caller's privileges do not allow it.
    pub fn new(config: &P::Config, epoch: u32, secret: u128, extra_bytes: u64) -> Result<Self, KernelError> {
        let state_bytes = match P::state_bytes(config) {
            0 => return Err(P::violated(config).into()),
            bytes => bytes.next_multiple_of(4096),
        };
        let arena = Arena::create(Arena::size(state_bytes, extra_bytes))?;
        let programs = Programs::load(P::OBJECT, &arena, None)?;
        let kernel = Self { programs, arena, state_bytes, benches: Benches::default(), program: PhantomData };
        // SAFETY: the state's pages are zeroed, aligned to 64 and sufficient for this configuration; no program runs yet.
        unsafe {
            P::init(kernel.arena.state(), config, epoch.max(1), key_of(secret).as_ptr());
            (*kernel.arena.control()).next_hop_salt = next_hop_salt(secret);
            (*kernel.arena.control()).now_ns = NOW;
        }
        Kept::new::<P>(config, epoch.max(1)).write(&kernel.arena);
        Ok(kernel)
    }

    /// Restarts with an empty state, zero counts, and bounds that need no more memory than the first ones. For tests: saves the second that
    /// the kernel takes to verify the programs. No datagram may arrive during it.
    ///
    /// # Errors
    /// If a bound is violated or the state is too large.
    pub fn restart(&mut self, config: &P::Config, epoch: u32, secret: u128) -> Result<(), KernelError> {
        let bytes = P::state_bytes(config);
        if bytes == 0 || bytes > self.state_bytes {
            return Err(P::violated(config).into());
        }
        // SAFETY: as in `new`.
        unsafe {
            self.arena.state().write_bytes(0, bytes as usize);
            self.arena.offset(NEXT_HOPS_AT).cast::<NextHop>().write_bytes(0, NEXT_HOPS as usize);
            for scratch in 0..self.arena.scratches() {
                (*self.arena.scratch(scratch)).counts = Default::default();
            }
            P::init(self.arena.state(), config, epoch.max(1), key_of(secret).as_ptr());
            (*self.arena.control()).next_hop_salt = next_hop_salt(secret);
        }
        Kept::new::<P>(config, epoch.max(1)).write(&self.arena);
        Ok(())
    }

    /// Takes over another process's state. Its BPF programs may be using it now.
    pub(super) fn take_over(config: &P::Config, pins: &Pins) -> Result<Self, KernelError> {
        let arena = Arena::open(pins.arena()?)?;
        Kept::read::<P>(&arena, config)?;
        let programs = Programs::load(P::OBJECT, &arena, Some(&pins.handover()?))?;
        let state_bytes = P::state_bytes(config).next_multiple_of(4096);
        Ok(Self { programs, arena, state_bytes, benches: Benches::default(), program: PhantomData })
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.programs
    }

    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Bytes of the state; a benchmark's data begins after them.
    pub(super) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    /// The epoch of the state.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        Kept::of(&self.arena).epoch
    }

    /// Sets the port and the addresses to serve. Returns how many addresses have no room: packets to those come by the socket.
    pub fn serve(&mut self, port: u16, addresses: &[IpAddr]) -> usize {
        let served = addresses.len().min(ADDRESSES_MAX);
        let (control, nobody) = (self.arena.control(), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        // SAFETY: BPF programs only read these. A concurrent reader sees the old address or the new one in each place, both ours, or none:
        // then it passes its packet to the stack.
        unsafe {
            (&raw mut (*control).port).write_volatile(port.to_be());
            (&raw mut (*control).addresses).write_volatile(0);
            fence(Ordering::Release);
            let places = addresses[..served].iter().chain(std::iter::repeat(&nobody)).take(ADDRESSES_MAX);
            for (place, &address) in places.enumerate() {
                (&raw mut (*control).address[place]).write_volatile(SocketAddr::new(address, 0).into());
            }
            fence(Ordering::Release);
            (&raw mut (*control).addresses).write_volatile(served as u16);
        }
        addresses.len() - served
    }

    pub(super) fn served(&self) -> (u16, Vec<IpAddr>, XdpMode) {
        let control = self.arena.control();
        // SAFETY: plain integers, which only this process writes.
        let (port, count, generic, addresses) =
            unsafe { ((*control).port, (*control).addresses, (*control).generic, (*control).address) };
        let served = addresses.iter().take(usize::from(count)).map(|&address| SocketAddr::from(address).ip());
        (u16::from_be(port), served.collect(), if generic == 0 { XdpMode::Native } else { XdpMode::Generic })
    }

    /// Sets the XDP mode, and the indices of the `unsummed` interfaces: senders there leave checksums to hardware that does not exist. In
    /// generic mode, and for interfaces without room in the list, TC asks the kernel.
    pub fn set_mode(&mut self, mode: XdpMode, unsummed: &[u32]) {
        let unsummed = if mode == XdpMode::Native { unsummed } else { &[] };
        let places = unsummed.iter().copied().chain(std::iter::repeat(0)).take(UNSUMMED_MAX);
        let control = self.arena.control();
        // SAFETY: BPF programs only read them, each in one access.
        unsafe {
            (&raw mut (*control).generic).write_volatile(u32::from(mode == XdpMode::Generic));
            for (place, interface) in places.enumerate() {
                (&raw mut (*control).unsummed[place]).write_volatile(interface);
            }
        }
    }

    /// Sets the indices of the interfaces with our programs. XDP forwards by the kernel's routes to these only: others may not accept a
    /// redirected frame. The process sends for those without room in the list.
    pub fn set_interfaces(&mut self, interfaces: &[u32]) {
        let places = interfaces.iter().copied().chain(std::iter::repeat(0)).take(INTERFACES_MAX);
        let control = self.arena.control();
        for (place, interface) in places.enumerate() {
            // SAFETY: BPF programs only read them, each in one access.
            unsafe { (&raw mut (*control).interface[place]).write_volatile(interface) };
        }
    }

    /// Handles one datagram, like [`Native::take`](crate::Native::take). `now_ns` is [`NOW`], or in tests any time. A forwarded datagram is
    /// not rewritten in place, but in `rewritten`.
    ///
    /// # Errors
    /// If the program could not be run.
    pub fn packet(
        &mut self,
        now_ns: u64,
        from: impl Into<Address>,
        datagram: &[u8],
        out: &mut Out,
    ) -> Result<P::Verdict, KernelError> {
        // Anything longer than a packet is TRAILING, whatever its exact length.
        let length = datagram.len().min(SCRATCH_DATA);
        let scratch = self.arena.scratch(0);
        // SAFETY: this scratch area is ours: `&mut self`, and the kernel's programs use those of their CPUs.
        unsafe {
            (&mut (*scratch).data)[..length].copy_from_slice(&datagram[..length]);
            let data = (&raw mut (*scratch).data).cast();
            (*scratch).datagram = RawDatagram { from: from.into(), length: length as u32, data };
        }
        let verdict = self.call(Call::Packet, now_ns, out)?;
        let verdict = P::Verdict::ALL.get(verdict as usize).copied();
        verdict.ok_or_else(|| KernelError::Refused("the program returned a verdict that it does not have".into()))
    }

    /// The last datagram of [`packet`](Self::packet), as rewritten by the program.
    fn rewritten(&self) -> &[u8; SCRATCH_DATA] {
        // SAFETY: as in `packet`; no call is in progress.
        unsafe { &(*self.arena.scratch(0)).data }
    }

    fn call(&mut self, call: Call, now_ns: u64, out: &mut Out) -> Result<u32, KernelError> {
        let control = self.arena.control();
        // SAFETY: these fields are for calls only, and `&mut self` makes this the only one.
        unsafe {
            (*control).call = call as u32;
            (*control).now_ns = now_ns;
        }
        let verdict = object::run(self.programs.call.as_fd(), &FRAME);
        if verdict.map_err(KernelError::io("run the engine's program"))? != XDP_PASS {
            return Err(KernelError::Refused("the program was locked for too long".into()));
        }
        // SAFETY: the call is over, so its scratch and control are ours again.
        unsafe {
            out.copy_from(&(*self.arena.scratch(0)).out);
            Ok((*control).verdict)
        }
    }

    /// The program's statistics. It may count during the read, so sums may miss the latest packets.
    #[must_use]
    pub fn stats(&self) -> P::Stats {
        // SAFETY: the state in the arena is initialised, and its statistics are plain integers.
        unsafe { P::stats(self.arena.state()) }
    }

    /// The counts of the XDP and TC programs, in the order of [`SHELL_COUNTS`].
    #[must_use]
    pub fn shell_counts(&self) -> [u64; SHELL_COUNTS.len()] {
        let mut sum = [0u64; SHELL_COUNTS.len()];
        for scratch in 0..self.arena.scratches() {
            // SAFETY: plain integers on a scratch whose pages exist.
            let counts = unsafe { (&raw const (*self.arena.scratch(scratch)).counts).read_volatile() };
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
}

impl<P: SoftProgram> Engine for Kernel<P> {
    type Program = P;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<P::Verdict> {
        let verdict = Kernel::packet(self, now_ns, from, datagram, out)?;
        if out.forward().is_some() {
            let length = datagram.len().min(SCRATCH_DATA);
            datagram[..length].copy_from_slice(&self.rewritten()[..length]);
        }
        Ok(verdict)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        Ok(self.call(Call::Tick, now_ns, out)?)
    }

    fn order(&mut self, order: &mut P::Order) -> Called<bool> {
        const { assert!(size_of::<P::Order>() <= ORDER_BYTES && align_of::<P::Order>() <= 8) };
        let control = self.arena.control();
        // SAFETY: the field is for calls only, and `&mut self` makes this the only one; it has room for the order.
        let place = unsafe { (&raw mut (*control).order).cast::<P::Order>() };
        // SAFETY: both are valid, and do not overlap.
        unsafe { place.copy_from_nonoverlapping(order, 1) };
        let is_done = self.call(Call::Order, NOW, &mut Out::new())? != 0;
        // SAFETY: the call is over.
        unsafe { place.copy_to_nonoverlapping(order, 1) };
        Ok(is_done)
    }

    fn stats(&self) -> P::Stats {
        Kernel::stats(self)
    }

    fn survey(&self, survey: &mut P::Survey) -> bool {
        // SAFETY: the state in the arena is initialised, and the survey copies plain integers.
        unsafe { P::survey(self.arena.state(), survey) }
    }

    fn check(&self) -> Result<(), String> {
        // SAFETY: the state is initialised; no packet may be in progress.
        unsafe { check_state::<P>(self.arena.state()) }
    }
}
