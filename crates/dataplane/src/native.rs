//! A safe interface to a program of the soft engine in this process.

use crate::Out;
use crate::memory::Region;
use crate::program::{Called, ConfigError, Engine, Program, SoftProgram, Verdict};
use crate::raw::{RawDatagram, key_of};
use midflight_wire::Address;
use std::marker::PhantomData;
use std::net::SocketAddr;

/// A program in this process. Time and randomness are arguments.
#[derive(Debug)]
pub struct Native<P> {
    region: Region,
    program: PhantomData<P>,
}

/// The drop reason with this number from C.
pub(crate) fn verdict<V: Verdict>(number: u32) -> V {
    V::ALL[number as usize]
}

/// Checks all structures of a state.
///
/// # Errors
/// The line of the failed check in `NAME_check.c`.
///
/// # Safety
/// The state is initialised and not written during the call.
pub(crate) unsafe fn check_state<P: SoftProgram>(state: *const u8) -> Result<(), String> {
    // SAFETY: the caller's.
    match unsafe { P::check(state) } {
        0 => Ok(()),
        line => Err(format!("{}_check.c, line {line}", <P as Program>::NAME)),
    }
}

impl<P: SoftProgram> Native<P> {
    /// An empty state. The caller draws `epoch` and `secret` at random; an epoch of 0 becomes 1.
    ///
    /// # Errors
    /// If a bound of the configuration is violated.
    pub fn new(config: &P::Config, epoch: u32, secret: u128) -> Result<Self, ConfigError> {
        let region = Region::zeroed(P::state_bytes(config)).ok_or_else(|| P::violated(config))?;
        #[cfg(feature = "mutants")]
        crate::mutants::arm();
        let native = Self { region, program: PhantomData };
        // SAFETY: the region is zeroed, aligned to 64 and large enough for this configuration.
        unsafe { P::init(native.state(), config, epoch.max(1), key_of(secret).as_ptr()) };
        Ok(native)
    }

    /// [`Engine::packet`], which cannot fail here.
    pub fn take(&mut self, now_ns: u64, from: impl Into<Address>, datagram: &mut [u8], out: &mut Out) -> P::Verdict {
        let datagram = RawDatagram::new(from.into(), datagram);
        // SAFETY: pointers are valid for the call, the datagram's bytes for its length.
        verdict(unsafe { P::packet(self.state(), now_ns, &raw const datagram, &raw mut *out.0) })
    }

    /// Expires a bounded part of the state. Returns how many elements it visited, and overwrites `out`.
    pub fn tick(&mut self, now_ns: u64, out: &mut Out) -> u32 {
        // SAFETY: pointers are valid for the call.
        unsafe { P::tick(self.state(), now_ns, &raw mut *out.0) }
    }

    /// Executes a bounded part of an operator's order. Returns whether the order is done.
    pub fn order(&mut self, order: &mut P::Order) -> bool {
        // SAFETY: pointers are valid for the call.
        unsafe { P::order(self.state(), order) != 0 }
    }

    /// Whether [`take`](Self::take) may owe more than one answer of at most `room` bytes to the sender. Changes nothing.
    #[must_use]
    pub fn owes_more(&self, from: impl Into<Address>, datagram: &mut [u8], room: u32) -> bool {
        let datagram = RawDatagram::new(from.into(), datagram);
        // SAFETY: as in `take`; it only reads.
        unsafe { P::owes_more(self.state(), &raw const datagram, room) != 0 }
    }

    /// Counters and gauges of the program.
    #[must_use]
    pub fn stats(&self) -> P::Stats {
        // SAFETY: the state was initialised.
        unsafe { P::stats(self.state()) }
    }

    pub(crate) fn state(&self) -> *mut u8 {
        self.region.start()
    }
}

impl<P: SoftProgram> Engine for Native<P> {
    type Program = P;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<P::Verdict> {
        Ok(self.take(now_ns, from, datagram, out))
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        Ok(Native::tick(self, now_ns, out))
    }

    fn order(&mut self, order: &mut P::Order) -> Called<bool> {
        Ok(Native::order(self, order))
    }

    fn stats(&self) -> P::Stats {
        Native::stats(self)
    }

    fn survey(&self, survey: &mut P::Survey) -> bool {
        // SAFETY: the state was initialised.
        unsafe { P::survey(self.state(), survey) }
    }

    fn check(&self) -> Result<(), String> {
        // SAFETY: the state was initialised.
        unsafe { check_state::<P>(self.state()) }
    }
}
