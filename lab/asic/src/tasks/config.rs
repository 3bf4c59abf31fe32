//! The configuration of an asic engine.

use midflight_rmt::Refusal;
use std::fmt;

/// The program in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Program {
    /// This project's safe program, [`midflight_rmt::tasks::safe`].
    Safe,
    /// The papers' published program, [`midflight_rmt::tasks::published`]; it loses tasks.
    Published,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safe => "asic-safe",
            Self::Published => "asic-published",
        })
    }
}

/// Bounds and times of an asic engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsicConfig {
    /// The program. Default [`Program::Safe`].
    pub program: Program,
    /// Priority levels: 1 to 4. Default 4.
    pub levels: u32,
    /// Entries of each level: a power of two; of all levels together at most 65,536, or 131,072 with 4 bytes of argument (three levels take
    /// the room of four). Default 16,384.
    pub queue: u32,
    /// Bytes of argument in an entry of the safe program: 4, 8, 12 or 16. The published one has 16. Default 16.
    pub argument: u32,
    /// Executor slots: 1 to 1 Mi. Default 65,536.
    pub slots: u32,
    /// The lease in REGISTERED, in milliseconds: executors send KEEPALIVE every third of it. This engine itself has no leases. Default
    /// 1,000.
    pub lease_ms: u32,
    /// Silence after which a slot is removed, in nanoseconds: at least two of `cookie_ns`, so that a copied packet cannot recreate the
    /// slot. Default 10 s.
    pub slot_idle_ns: u64,
    /// Length of a cookie interval in nanoseconds; a cookie is valid in its own interval and the next. Default 5 s.
    pub cookie_ns: u64,
    /// Microseconds after which a slot without a task polls again: 1 to 65,535. Default 50 (Bolt §5.4).
    pub poll_us: u16,
}

impl Default for AsicConfig {
    fn default() -> Self {
        Self {
            program: Program::Safe,
            levels: 4,
            queue: 16 << 10,
            argument: 16,
            slots: 65_536,
            lease_ms: 1_000,
            slot_idle_ns: 10_000_000_000,
            cookie_ns: 5_000_000_000,
            poll_us: 50,
        }
    }
}

impl AsicConfig {
    pub(super) fn check(&self) -> Result<(), AsicError> {
        let range = |name, ok, allowed| if ok { Ok(()) } else { Err(AsicError::OutOfRange { name, allowed }) };
        range("argument", [4, 8, 12, 16].contains(&self.argument), "4, 8, 12 or 16")?;
        range("slots", (1..=1 << 20).contains(&self.slots), "1 to 1,048,576")?;
        range("lease_ms", self.lease_ms > 0, "at least 1")?;
        range("cookie_ns", self.cookie_ns > 0, "at least 1")?;
        range("slot_idle_ns", self.slot_idle_ns / 2 >= self.cookie_ns, "at least twice cookie_ns")?;
        range("poll_us", self.poll_us > 0, "1 to 65,535")
    }
}

/// Why an asic engine cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AsicError {
    /// A value of [`AsicConfig`] is out of bounds.
    #[error("{name} must be {allowed}")]
    OutOfRange {
        /// Name of the value.
        name: &'static str,
        /// Its allowed values.
        allowed: &'static str,
    },
    /// The switch cannot hold the program.
    #[error(transparent)]
    Program(#[from] Refusal),
}
