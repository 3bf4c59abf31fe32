//! Faults as data. These apply to every program; a program adds its own.

use super::party::keep;
use super::{BadTrial, Net, Party};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

const PPM_MAX: u32 = 50_000;
const AHEAD_MAX_MS: u64 = 60_000;
const ATTACKS_MAX: u32 = 10_000;

/// A fault with a duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault<W> {
    /// When it begins.
    pub at_ms: u64,
    /// Duration; every fault ends at `heal_ms` at the latest.
    pub for_ms: u64,
    /// Its kind.
    pub what: W,
}

/// A program's kinds of faults.
pub trait FaultKind: Clone + Debug + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The program's nodes.
    type Party: Party;

    /// The common fault; `None` if it is the program's own.
    fn common(&self) -> Option<&Common<Self::Party>>;

    /// Whether its effect outlasts it.
    fn has_no_end(&self) -> bool {
        false
    }

    /// Renumbers its parties after `gone` left the trial; `false`: nothing is left of the fault.
    fn without(&mut self, gone: Self::Party) -> bool;
}

/// Faults that apply to every program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Common<P> {
    /// A process dies; at the end a new one starts. Any part of what is not durable on its disk may be lost or torn.
    Crash(P),
    /// A process is paused; its datagrams wait.
    Pause(P),
    /// A clock jumps ahead and runs at another rate; at the end the rate is right again.
    Drift {
        /// The party.
        party: P,
        /// Parts per million by which it is too fast.
        ppm: i32,
        /// How far it jumps ahead, in milliseconds.
        ahead_ms: u64,
    },
    /// Datagrams and messages between some parties are lost.
    Partition {
        /// The senders.
        from: Vec<P>,
        /// The receivers.
        to: Vec<P>,
        /// The other direction is lost too.
        both: bool,
    },
    /// The network has more faults than usual.
    Burst(Net),
    /// This many malformed datagrams arrive at all parties.
    Garbage(u32),
    /// This many valid packets arrive from another address than their sender's.
    Forged(u32),
    /// This many datagrams are replayed, some repeatedly, with their original source: an attacker on the path.
    Replayed(u32),
    /// This many forged packets arrive from the address of a party that has sent such a packet, with guesses in place
    /// of all secrets: an attacker off the path that knows formats and addresses.
    Guessed(u32),
}

/// For programs without faults of their own.
impl<P: Party + Serialize + DeserializeOwned> FaultKind for Common<P> {
    type Party = P;

    fn common(&self) -> Option<&Self> {
        Some(self)
    }

    fn without(&mut self, gone: P) -> bool {
        match self {
            Self::Crash(party) | Self::Pause(party) | Self::Drift { party, .. } => keep(party, gone),
            Self::Partition { from, to, .. } => {
                for side in [&mut *from, &mut *to] {
                    side.retain_mut(|party| keep(party, gone));
                }
                !from.is_empty() && !to.is_empty()
            }
            Self::Burst(_) | Self::Garbage(_) | Self::Forged(_) | Self::Replayed(_) | Self::Guessed(_) => true,
        }
    }
}

impl<P: Party> Common<P> {
    /// Whether it is an attack.
    #[must_use]
    pub const fn is_attack(&self) -> bool {
        matches!(self, Self::Garbage(_) | Self::Forged(_) | Self::Replayed(_) | Self::Guessed(_))
    }

    /// Checks it; `is_known`: whether the trial has a party.
    ///
    /// # Errors
    /// If a field is invalid; says which.
    pub fn validate(&self, is_known: impl Fn(P) -> bool) -> Result<(), BadTrial> {
        let parties: &[&[P]] = match self {
            Self::Crash(party) | Self::Pause(party) => &[&[*party]],
            Self::Drift { party, ppm, ahead_ms } => {
                if ppm.unsigned_abs() > PPM_MAX || *ahead_ms > AHEAD_MAX_MS {
                    return Err(BadTrial(format!("{self:?}: use ppm up to {PPM_MAX}, ahead_ms up to {AHEAD_MAX_MS}")));
                }
                &[&[*party]]
            }
            Self::Partition { from, to, .. } => &[from, to],
            Self::Burst(net) => return net.validate("burst"),
            Self::Garbage(count) | Self::Forged(count) | Self::Replayed(count) | Self::Guessed(count) => {
                if *count > ATTACKS_MAX {
                    return Err(BadTrial(format!("{self:?}: use up to {ATTACKS_MAX} datagrams")));
                }
                &[]
            }
        };
        match parties.concat().into_iter().find(|party| !is_known(*party)) {
            Some(party) => Err(BadTrial(format!("there is no {party:?}"))),
            None => Ok(()),
        }
    }
}
