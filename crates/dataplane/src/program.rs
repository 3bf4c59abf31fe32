//! The programs of a switch, and the engines that run them.

use crate::Out;
use crate::raw::{RawDatagram, RawOut};
use midflight_endpoint::{MS, Nanos};
use std::fmt::{Debug, Display};
use std::net::SocketAddr;
use std::ops::DerefMut;

/// A program of the switch, such as [`TasksProgram`](crate::TasksProgram). A switch runs one program on one port.
pub trait Program: Debug + Send + Sync + 'static {
    /// Name in the configuration (a table), metrics, and BPF object.
    const NAME: &'static str;
    /// The clock for its times.
    const CLOCK: Clock;
    /// Names of its operations by number; the first is VERSION's.
    const OPERATIONS: &'static [&'static str];

    /// Its bounds and times.
    type Config: Clone + Debug + Send;
    /// Its drop reasons for a datagram or one record in it.
    type Verdict: Verdict;
    /// Its statistics.
    type Stats: Copy + Debug + Send;
    /// An operator's order, executed in steps. It has the layout of the structure in C.
    type Order: Debug + Send;
    /// What a survey copies in steps; `()` if counters suffice.
    type Survey: Debug + Default + Send;

    /// The bounds that a configuration violates, as text for users.
    fn violated(config: &Self::Config) -> ConfigError;

    /// Names and values of the settings that determine the state's layout: a kept state can be taken over only if they are equal.
    fn bounds(config: &Self::Config) -> Vec<(&'static str, Bound)>;

    /// Ticks needed every 10 ms to visit all of the state in time.
    fn ticks(config: &Self::Config) -> u32;

    /// Counts of datagrams with a valid header, by operation number.
    fn packets(stats: &Self::Stats) -> &[u64];

    /// Counts of datagrams and records, by the number of their drop reason.
    fn verdicts(stats: &Self::Stats) -> &[u64];

    /// Whether an attacker can make the switch send this answer to any address by a forged request. The switch limits such answers in its
    /// send buffer (T13).
    fn is_for_anybody(answer: &[u8]) -> bool;
}

/// A clock for a program's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Pauses while the machine is suspended: for leases that only clean up after silent peers.
    Monotonic,
    /// Continues while the machine is suspended: for leases that are promises to other machines. It is read for each packet, after the
    /// packet has arrived.
    CountsSuspension,
}

/// Drop reasons: C, Rust, metrics and docs have the same names.
pub trait Verdict: Copy + Debug + Eq + Send + 'static {
    /// All drop reasons of a program by number; the common ones come first.
    const ALL: &'static [Self];

    /// Name in metrics and transcripts.
    fn name(self) -> &'static str;

    /// What happens to the datagram.
    fn class(self) -> Class;
}

/// What happened to the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It was taken.
    Taken,
    /// All of it was refused, and it changed nothing (T11).
    Refused,
    /// One record or task of it was refused, or it was answered without being taken.
    Partly,
}

/// A program of the soft engine, written in C, which runs in a process and in the kernel.
///
/// # Safety
/// The functions are those of `switch.h`: they access only `state_bytes` bytes of state, and the memory behind their other pointers.
pub unsafe trait SoftProgram: Program {
    /// Bytes of state; 0 if the configuration violates a bound.
    fn state_bytes(config: &Self::Config) -> u64;

    /// `mf_NAME_init`
    ///
    /// # Safety
    /// `state`: that many bytes, zeroed, aligned to 64. `key`: two words.
    unsafe fn init(state: *mut u8, config: &Self::Config, epoch: u32, key: *const u64);

    /// `mf_NAME_packet`
    ///
    /// # Safety
    /// `state` was initialised; the datagram's bytes are valid for its length, also for writes.
    unsafe fn packet(state: *mut u8, now_ns: u64, datagram: *const RawDatagram, out: *mut RawOut) -> u32;

    /// `mf_NAME_tick`
    ///
    /// # Safety
    /// `state` was initialised.
    unsafe fn tick(state: *mut u8, now_ns: u64, out: *mut RawOut) -> u32;

    /// `mf_NAME_order`
    ///
    /// # Safety
    /// `state` was initialised.
    unsafe fn order(state: *mut u8, order: *mut Self::Order) -> u32;

    /// `mf_NAME_owes_more`
    ///
    /// # Safety
    /// `state` was initialised; the datagram's bytes are valid for its length.
    unsafe fn owes_more(state: *const u8, datagram: *const RawDatagram, room: u32) -> i32;

    /// `mf_NAME_stats`
    ///
    /// # Safety
    /// `state` was initialised.
    unsafe fn stats(state: *const u8) -> Self::Stats;

    /// `mf_NAME_check`
    ///
    /// # Safety
    /// `state` was initialised.
    unsafe fn check(state: *const u8) -> i32;

    /// Copies a bounded part of the state. Returns whether the survey is complete.
    ///
    /// # Safety
    /// `state` was initialised. The program may change it during the call.
    unsafe fn survey(_state: *const u8, _survey: &mut Self::Survey) -> bool {
        true
    }

    /// The compiled `*.bpf.c`.
    #[cfg(feature = "kernel")]
    const OBJECT: &'static [u8];

    /// A hash of the source files that define the layout and meaning of an arena's contents.
    #[cfg(feature = "kernel")]
    const LAYOUT: u64;
}

/// Implements [`SoftProgram`] by a program's C functions, in the order of `switch.h`. Configuration, statistics and orders must have C's
/// layout. Its object is the compiled `NAME.bpf.c` of `build/soft.rs`.
///
/// # Safety
/// The functions are those of `switch.h` for this program.
#[macro_export]
macro_rules! soft_program {
    ($program:ty, $name:literal, $layout:literal, $size:ident, $init:ident, $packet:ident, $tick:ident, $order:ident,
     $owes_more:ident, $stats:ident, $check:ident $(, survey: $survey:path)?) => {
        const _: () = {
            use $crate::program::{Program, SoftProgram};
            use $crate::{RawDatagram, RawOut};
            type Config = <$program as Program>::Config;
            type Stats = <$program as Program>::Stats;
            type Order = <$program as Program>::Order;

            unsafe extern "C" {
                fn $size(config: *const Config) -> u64;
                fn $init(state: *mut u8, config: *const Config, epoch: u32, key: *const u64);
                fn $packet(state: *mut u8, now_ns: u64, datagram: *const RawDatagram, out: *mut RawOut) -> u32;
                fn $tick(state: *mut u8, now_ns: u64, out: *mut RawOut) -> u32;
                fn $order(state: *mut u8, order: *mut Order) -> u32;
                fn $owes_more(state: *const u8, datagram: *const RawDatagram, room: u32) -> i32;
                fn $stats(state: *const u8, stats: *mut Stats);
                fn $check(state: *const u8) -> i32;
            }

            // SAFETY: the macro's user vouches for the functions, each caller for the arguments.
            unsafe impl SoftProgram for $program {
                fn state_bytes(config: &Config) -> u64 {
                    // SAFETY: the pointer is valid for the call.
                    unsafe { $size(config) }
                }

                unsafe fn init(state: *mut u8, config: &Config, epoch: u32, key: *const u64) {
                    // SAFETY: the caller's.
                    unsafe { $init(state, config, epoch, key) }
                }

                unsafe fn packet(state: *mut u8, now_ns: u64, datagram: *const RawDatagram, out: *mut RawOut) -> u32 {
                    // SAFETY: the caller's.
                    unsafe { $packet(state, now_ns, datagram, out) }
                }

                unsafe fn tick(state: *mut u8, now_ns: u64, out: *mut RawOut) -> u32 {
                    // SAFETY: the caller's.
                    unsafe { $tick(state, now_ns, out) }
                }

                unsafe fn order(state: *mut u8, order: *mut Order) -> u32 {
                    // SAFETY: the caller's.
                    unsafe { $order(state, order) }
                }

                unsafe fn owes_more(state: *const u8, datagram: *const RawDatagram, room: u32) -> i32 {
                    // SAFETY: the caller's.
                    unsafe { $owes_more(state, datagram, room) }
                }

                unsafe fn stats(state: *const u8) -> Stats {
                    let mut stats = std::mem::MaybeUninit::uninit();
                    // SAFETY: the caller's; the call writes all of the statistics.
                    unsafe {
                        $stats(state, stats.as_mut_ptr());
                        stats.assume_init()
                    }
                }

                unsafe fn check(state: *const u8) -> i32 {
                    // SAFETY: the caller's.
                    unsafe { $check(state) }
                }

                $(unsafe fn survey(state: *const u8, survey: &mut <$program as Program>::Survey) -> bool {
                    // SAFETY: the caller's.
                    unsafe { $survey(state, survey) }
                })?

                #[cfg(feature = "kernel")]
                const OBJECT: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"));

                #[cfg(feature = "kernel")]
                const LAYOUT: u64 = $crate::kernel::layout_of(env!($layout));
            }
        };
    };
}

/// A value of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A number of elements.
    Count(u32),
    /// A duration.
    Time(Nanos),
}

impl Bound {
    /// The plain number.
    #[must_use]
    pub fn value(self) -> u64 {
        match self {
            Self::Count(count) => count.into(),
            Self::Time(time) => time,
        }
    }

    /// The same kind with another number.
    #[cfg(feature = "kernel")]
    pub(crate) fn with(self, value: u64) -> Self {
        match self {
            Self::Count(_) => Self::Count(value as u32),
            Self::Time(_) => Self::Time(value),
        }
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => Display::fmt(count, f),
            Self::Time(time) => write!(f, "{} ms", time / MS),
        }
    }
}

/// A bound of a configuration is violated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The engine could not be called. Its datagram is lost as if on the wire, and the protocol repeats it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// The drop reason type of an engine's program.
pub type VerdictOf<E> = <<E as Engine>::Program as Program>::Verdict;

/// Result of an engine's call.
pub type Called<T> = Result<T, CallError>;

/// Runs a program: in this process ([`Native`](crate::Native)), in the kernel, in the model of a switch, or as the reference model.
pub trait Engine {
    /// The program that it runs.
    type Program: Program;

    /// Handles one datagram and overwrites `out`. `now_ns` must not decrease. It may rewrite the datagram in place.
    ///
    /// # Errors
    /// If the engine could not be called.
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<VerdictOf<Self>>;

    /// Expires a bounded part of the state. Returns how many elements it visited, and overwrites `out`.
    ///
    /// # Errors
    /// If the engine could not be called.
    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32>;

    /// Executes a bounded part of an operator's order. Returns whether the order is done.
    ///
    /// # Errors
    /// If the engine could not be called, or does not support such orders.
    fn order(&mut self, order: &mut <Self::Program as Program>::Order) -> Called<bool>;

    /// Counters and gauges of the program.
    fn stats(&self) -> <Self::Program as Program>::Stats;

    /// Copies a bounded part of the state. Returns whether the survey is complete: at once if the engine has nothing to show.
    fn survey(&self, _survey: &mut <Self::Program as Program>::Survey) -> bool {
        true
    }

    /// For tests: checks the consistency of all structures.
    ///
    /// # Errors
    /// Names the inconsistent structures.
    fn check(&self) -> Result<(), String>;
}

/// Owners of an engine are engines.
impl<H> Engine for H
where
    H: DerefMut,
    H::Target: Engine,
{
    type Program = <H::Target as Engine>::Program;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<VerdictOf<Self>> {
        (**self).packet(now_ns, from, datagram, out)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        (**self).tick(now_ns, out)
    }

    fn order(&mut self, order: &mut <Self::Program as Program>::Order) -> Called<bool> {
        (**self).order(order)
    }

    fn stats(&self) -> <Self::Program as Program>::Stats {
        (**self).stats()
    }

    fn survey(&self, survey: &mut <Self::Program as Program>::Survey) -> bool {
        (**self).survey(survey)
    }

    fn check(&self) -> Result<(), String> {
        (**self).check()
    }
}
